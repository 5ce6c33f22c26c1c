"""`vpnrouter pub` and `sub --protocol amqp`, against a router as a process and against each other's protocol."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.management.client import ManagementClient
from vpnrouter.wire.amqp.frames import SASL_HEADER


def rows(captured: Any) -> list[dict[str, Any]]:
    """What `sub --format json` printed."""
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


@pytest.mark.parametrize("qos", ["0", "1"])
def test_published(ann_by_amqp: list[str], qos: str, capsys: Any) -> None:
    """All are sent, and acknowledged where they are not settled."""
    said = ["pub", "nobody/x", "hi", "--qos", qos, "--count", "3000", "--json"]
    assert app.run([*said, *ann_by_amqp]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentMsgCount"] == 3000
    assert found["acknowledged"] == ({} if qos == "0" else {"0x00 Success": 3000})
    assert found["unansweredMsgCount"] == 0


def test_a_full_queue(ann_by_amqp: list[str], capsys: Any) -> None:
    """What did not fit is counted and told with the router's reason; exit code 1."""
    assert app.run(["sub", "$queue/small", "--timeout", "0.5", "--qos", "1", *ann_by_amqp]) == 0
    capsys.readouterr()
    publish = ["pub", "small/x", "--size", "400000", "--qos", "1", "--count", "5"]
    assert app.run([*publish, *ann_by_amqp]) == 1
    out, err = capsys.readouterr()
    assert "acknowledged 2: 0x00 Success" in out
    assert "refused 3: 0x83 Implementation specific error (amqp:resource-limit-exceeded" in out
    assert "503 Spool Over Quota" in err
    assert app.run(["sub", "$queue/small", "--count", "2", "--qos", "1", *ann_by_amqp]) == 0


def test_a_topic_that_is_not_allowed(ann_by_amqp: list[str], capsys: Any) -> None:
    """The reason of the ACL is told."""
    assert app.run(["pub", "secret/x", "hi", "--qos", "1", *ann_by_amqp]) == 1
    assert "403 Publish ACL Denied" in capsys.readouterr().out


@pytest.mark.parametrize("sender", ["amqp", "mqtt"])
@pytest.mark.parametrize("receiver", ["amqp", "mqtt"])
def test_each_receives_from_each(
    ann: list[str], ann_by_amqp: list[str], capsys: Any, sender: str, receiver: str
) -> None:
    """A message with all its properties crosses a queue, whichever protocol either side speaks."""
    options = {"amqp": ann_by_amqp, "mqtt": ann}
    properties = ["--content-type", "text/x", "--response-topic", "back", "--correlation", "c1"]
    publish = ["pub", "orders/x", "hello", "--qos", "1", "-D", "colour=blue", *properties]
    assert app.run([*publish, "--expiry", "500", *options[sender]]) == 0
    capsys.readouterr()
    receive = ["sub", "$queue/orders", "--count", "1", "--qos", "1", "--format", "json"]
    assert app.run([*receive, "--timeout", "20", *options[receiver]]) == 0
    (row,) = rows(capsys)
    assert (row["topic"], row["payload"], row["qos"]) == ("orders/x", "hello", 1)
    assert row["contentType"] == "text/x"
    assert row["responseTopic"] == "back"
    assert row["correlationData"] == "YzE="
    assert row["userProperties"] == [["colour", "blue"]]
    assert 490 <= row["messageExpiryInterval"] <= 500


def test_a_topic_and_what_is_below_it(
    ann: list[str], ann_by_amqp: list[str], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter of MQTT means the same topics; a selector lets only matching messages through."""
    from vpnrouter.cli.sub import Subscriber

    subscribe = Subscriber.subscribe
    codes: list[int] = []

    def subscribed(self: Subscriber) -> list[str]:
        lines = subscribe(self)
        for topic, colour in (("t", "red"), ("t/a", "red"), ("t/a/b", "green"), ("u", "red")):
            said = ["pub", topic, topic, "-D", f"colour={colour}", "--qos", "1", *ann]
            publishing = threading.Thread(target=lambda: codes.append(app.run(said)))  # noqa: B023
            publishing.start()
            publishing.join()
        return lines

    monkeypatch.setattr(Subscriber, "subscribe", subscribed)
    receive = ["sub", "t/#", "--count", "2", "--timeout", "20", "--format", "text"]
    assert app.run([*receive, "-D", "selector=colour = 'red'", *ann_by_amqp]) == 0
    assert codes == [0] * 4
    said = capsys.readouterr()
    assert sorted(line for line in said.out.splitlines() if line.startswith("t")) == ["t", "t/a"]
    assert "subscribed to t/# (QoS 0)" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pub", "a", "b", "--qos", "2"], "takes messages up to QoS 1"),
        (["pub", "a", "b", "--retain"], "keeps no retained messages"),
        (["sub", "a", "--retained", "never"], "--retained"),
        (["sub", "a", "--session-expiry", "5", "--client-id", "x"], "--session-expiry"),
        (["sub", "a", "-D", "replay-from=x"], "--user-property"),
        (["sub", "$queue/none", "--qos", "1"], "refused $queue/none"),
    ],
)
def test_what_amqp_has_no_words_for(
    ann_by_amqp: list[str], capsys: Any, arguments: list[str], told: str
) -> None:
    """One line says what is wrong."""
    assert (
        app.run(
            [*arguments, "--timeout", "5", *ann_by_amqp]
            if arguments[0] == "sub"
            else [*arguments, *ann_by_amqp]
        )
        != 0
    )
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said


def test_a_wrong_password(broker_ports: dict[str, int], tmp_path: Path, capsys: Any) -> None:
    """Exit code 1, and no password in the line."""
    (tmp_path / "p").write_text("wrong-one\n", encoding="utf-8")
    url = f"amqp://ann@127.0.0.1:{broker_ports['amqp']}"
    assert app.run(["pub", "a", "b", "--url", url, "--password-file", str(tmp_path / "p")]) == 1
    said = capsys.readouterr().err
    assert "refused client vpnrouter-pub-" in said
    assert "wrong-one" not in said


def test_a_broker_of_another_protocol(ann: list[str], broker: int, capsys: Any) -> None:
    """It is told in one line; a protocol that the URL contradicts, too."""
    assert app.run(["pub", "a", "b", "--url", f"amqp://127.0.0.1:{broker}"]) == 1
    assert "amqp://127.0.0.1" in capsys.readouterr().err
    assert app.run(["pub", "a", "b", "--protocol", "amqp", *ann]) == 2
    assert "--protocol" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["queue://orders", "$queue/orders"])
def test_addresses_as_amqp_writes_them(ann_by_amqp: list[str], capsys: Any, address: str) -> None:
    """A queue is named in either way, for sending and for receiving."""
    assert app.run(["pub", address, "hello", "--qos", "1", *ann_by_amqp]) == 0
    capsys.readouterr()
    receive = ["sub", address, "--count", "1", "--qos", "1", "--format", "text"]
    assert app.run([*receive, "--timeout", "20", *ann_by_amqp]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_a_broker_that_says_nothing(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of MQTT takes the greeting for the beginning of a packet and waits for the rest: that is told soon."""
    from vpnrouter.cli import _amqp_link

    monkeypatch.setattr(_amqp_link, "GREETING_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"amqp://127.0.0.1:{server.getsockname()[1]}"
        assert app.run(["pub", "a", "b", "--url", url]) == 1
    said = capsys.readouterr().err
    assert "did not answer SASL" in said
    assert "begins with mqtt://" in said


def test_a_broker_that_ends_the_connection(capsys: Any) -> None:
    """What came before is no success."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            link, _ = server.accept()
            with link:
                link.recv(100)
                link.sendall(SASL_HEADER)

        thread = threading.Thread(target=run)
        thread.start()
        assert (
            app.run(["pub", "a", "b", "--url", f"amqp://127.0.0.1:{server.getsockname()[1]}"]) == 1
        )
        thread.join(20)
    assert "closed the connection" in capsys.readouterr().err


def test_the_example_for_jms(
    jms_example: dict[str, int], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """configs/jms.yaml: what a till publishes by MQTT waits for billing; the API names what an AMQP client asks for."""
    from vpnrouter.cli.sub import Subscriber

    monkeypatch.setenv("P", "change-me")
    login = ["--password-env", "P", "--qos", "1"]
    till = ["--user", "till", "--url", f"mqtt://127.0.0.1:{jms_example['mqtt']}"]
    assert app.run(["pub", "orders/1", "two apples", *login, *till]) == 0
    subscribe = Subscriber.subscribe
    seen: list[dict[str, Any]] = []

    def subscribed(self: Subscriber) -> list[str]:
        lines = subscribe(self)
        with ManagementClient(f"http://127.0.0.1:{jms_example['http']}") as client:
            (row,) = client.clients()
            seen.append(row)
            seen.extend(client.client_subscriptions("shop", row["clientName"]))
        return lines

    monkeypatch.setattr(Subscriber, "subscribe", subscribed)
    capsys.readouterr()
    billing = ["--user", "billing", "--url", f"amqp://127.0.0.1:{jms_example['amqp']}"]
    receive = ["sub", "$queue/orders", "news/+", "--client-id", "b", "--count", "1"]
    assert app.run([*receive, *login, *billing]) == 0
    assert capsys.readouterr().out == "orders/1 two apples\n"
    client, subscription = seen
    assert (client["platform"], client["subscriptionCount"], client["bindCount"]) == (
        "AMQP 1.0",
        1,
        2,
    )
    assert (subscription["subscriptionTopic"], subscription["syntax"]) == ("news/*", "smf")


@pytest.mark.parametrize(
    ("protocol", "address"),
    [
        ("mqtt", "$queue/%23DEAD_MSG_QUEUE"),
        ("amqp", "$queue/%23DEAD_MSG_QUEUE"),
        ("amqp", "queue://#DEAD_MSG_QUEUE"),
    ],
)
def test_dead_letters_of_the_example_for_jms(
    jms_example: dict[str, int],
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    address: str,
) -> None:
    """Any client username consumes from the dead message queue, over both protocols, as either writes it."""
    monkeypatch.setenv("P", "change-me")
    login = ["--password-env", "P", "--qos", "1"]
    amqp = f"amqp://127.0.0.1:{jms_example['amqp']}"
    orders = ["queue://orders", "--user", "billing", "--url", amqp, *login]
    assert app.run(["pub", orders[0], "spoilt", *orders[1:]]) == 0
    assert app.run(["sub", *orders, "--count", "1", "--reject"]) == 0
    capsys.readouterr()
    till = ["--user", "till", "--url", f"{protocol}://127.0.0.1:{jms_example[protocol]}"]
    assert app.run(["sub", address, *till, *login, "--count", "1"]) == 0
    assert "spoilt" in capsys.readouterr().out


def test_the_example_for_jms_respects_what_producers_say(
    jms_example: dict[str, int], capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queues, which say nothing of it, deliver by priority and let messages expire."""
    monkeypatch.setenv("P", "change-me")
    login = ["--password-env", "P", "--user", "till", "--qos", "1"]
    with ManagementClient(f"http://127.0.0.1:{jms_example['http']}") as client:
        rows = {row["queueName"]: row for row in client.queues("shop")}
    assert rows.keys() == {"orders", "invoices", "#DEAD_MSG_QUEUE"}
    for row in rows.values():
        assert row["respectMsgPriorityEnabled"]
        assert row["respectTtlEnabled"]
    for text, priority in (("low", "1"), ("high", "9")):
        words = ["pub", "$queue/orders", text, "--user-property", f"priority={priority}"]
        assert app.run([*words, *login, "--url", f"mqtt://127.0.0.1:{jms_example['mqtt']}"]) == 0
    capsys.readouterr()
    login += ["--url", f"amqp://127.0.0.1:{jms_example['amqp']}"]
    assert app.run(["sub", "queue://orders", *login, "--count", "2"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["high", "low"]
