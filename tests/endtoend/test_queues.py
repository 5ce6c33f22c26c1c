"""Queues of a router as a process: operated with the commands, reloaded, killed, backed up and restored."""

import io
import json
import signal
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

import pytest

from vpnrouter.cli import app

PATIENCE_S: Final = 60.0

HEAD: Final = (
    'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}, {protocol: http, bind: "127.0.0.1:0"}]\n'
    "msg_vpns: {blue: {authentication: {basic: {enabled: false}}, "
)


def text_of(queues: str, more: str = "") -> str:
    """A configuration with these queues."""
    return f"{HEAD}queues: {{{queues}}}{more}}}}}\n"


ORDERS: Final = "orders: {subscriptions: [orders/>]}"


class Site:
    """One router, its file, and its clients."""

    def __init__(self, start: Any, paho: Any, tool: Any, place: Path, patiently: Any) -> None:
        self._start = start
        self._paho = paho
        self._tool = tool
        self.place = place
        self.patiently = patiently
        self.file = place / "edge.yaml"
        self.router: Any = None

    def start(self, text: str = text_of(ORDERS)) -> None:
        """Start the router, again if it was there before."""
        self.router = self._start(text)

    def client(self, name: str = "", **options: Any) -> Any:
        """A client that is logged in."""
        client = self._paho(self.router.port("mqtt"), name, **options)
        assert client.code == 0
        return client

    def publish(self, topic: str, *payloads: bytes, retain: bool = False) -> None:
        """Publish with QoS 1 and wait for every answer."""
        client = self.client()
        for told in [client.client.publish(topic, one, 1, retain) for one in payloads]:
            told.wait_for_publish(PATIENCE_S)
            assert told.is_published()
        client.stop()

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command that asks the router; what it prints."""
        words = (*words, "--url", f"http://127.0.0.1:{self.router.port('http')}")
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        told = io.StringIO()
        with redirect_stdout(out), redirect_stderr(told):
            found = app.run(list(words))
        assert found == code, told.getvalue()
        out.seek(0)
        return out.read()

    def spool(self, command: str, *words: str, code: int = 0) -> str:
        """Run a command on files, as a process of its own: it must not have what the router has."""
        return str(self._tool("spool", command, *words, code=code, cwd=self.place).stdout)

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """What `queue browse` shows of a queue."""
        found: list[dict[str, Any]] = json.loads(self.run("queue", "browse", queue, "--json"))
        return found

    def payloads(self, queue: str) -> list[str]:
        """The payloads in a queue."""
        api = self.router.api()
        ids = [row["msgId"] for row in api.msgs("blue", queue, 100)]
        return [api.payload("blue", queue, number).decode() for number in ids]

    def count(self, queue: str) -> int:
        """Messages in a queue."""
        return int(self.router.queue("blue", queue)["msgCount"])

    def reload(self, text: str) -> None:
        """Change the file and have it read again."""
        head = self.file.read_text(encoding="utf-8").partition("\n")[0]
        self.file.write_text(f"{head}\n{text}", encoding="utf-8")
        before = len(self.router.told("reloaded"))
        self.router.process.send_signal(signal.SIGHUP)
        self.patiently(lambda: len(self.router.told("reloaded")) > before, "the reload")


@pytest.fixture
def site(start: Any, paho: Any, tool: Any, tmp_path: Path, patiently: Any) -> Site:
    """A router that is not started yet."""
    return Site(start, paho, tool, tmp_path, patiently)


def consume(site: Site, queue: str, count: int, level: int = 5) -> list[bytes]:
    """Take all messages from a queue, which are so many, and wait until they are acknowledged."""
    client = site.client(level=level)
    client.subscribe(f"$queue/{queue}")
    found = [client.next()[1] for _ in range(count)]
    site.router.holds("blue", queue, 0)
    client.stop()
    return found


def test_commands(site: Site) -> None:
    """show, browse, copy, move, delete-msg and purge, each on what the one before left."""
    site.start(text_of(f"{ORDERS}, other: {{}}"))
    site.publish("orders/1", b"1", b"2", b"3")
    site.publish("$queue/orders", b"4")
    assert "orders" in site.run("show", "queues")
    assert site.payloads("orders") == ["1", "2", "3", "4"]
    assert (
        site.run("queue", "browse", "orders", "--payload", str(site.messages("orders")[3]["msgId"]))
        == "4"
    )
    first, second, *_ = (str(row["msgId"]) for row in site.messages("orders"))
    site.run("queue", "delete-msg", "orders", first)
    site.run("queue", "delete-msg", "orders", first, code=1)
    assert "1 message " in site.run("queue", "copy", "orders", "other", "--msg-id", second)
    assert "3 messages" in site.run("queue", "move", "orders", "other")
    assert site.payloads("other") == ["2", "2", "3", "4"]
    assert site.count("orders") == 0
    site.router.kill()
    site.start(text_of(f"{ORDERS}, other: {{}}"))
    assert site.payloads("other") == ["2", "2", "3", "4"]
    assert "4 messages" in site.run("queue", "purge", "other", "--yes")
    assert "all 2 queues" in site.run("show", "queues", "--balance")
    site.router.kill()
    site.start(text_of(f"{ORDERS}, other: {{}}"))
    assert site.count("other") == site.count("orders") == 0


def test_backup_and_restore(site: Site) -> None:
    """What was there at the backup is there again; what came after is not."""
    site.start()
    site.publish("orders/1", b"1", b"2")
    address = f"http://127.0.0.1:{site.router.port('http')}"
    site.spool("backup", "edge.yaml", "copy", "--url", address)
    site.publish("orders/1", b"3")
    site.spool("verify", "edge.yaml", code=1)
    assert site.spool("verify", "copy").endswith("sound\n")
    site.spool("restore", "edge.yaml", "copy", "--force", code=1)
    assert site.router.stop() == 0
    assert site.spool("verify", "edge.yaml").endswith("sound\n")
    site.spool("restore", "edge.yaml", "copy", code=1)
    site.spool("restore", "edge.yaml", "copy", "--force")
    site.start()
    assert consume(site, "orders", 2) == [b"1", b"2"]
    site.publish("orders/1", b"4")
    assert consume(site, "orders", 1, level=4) == [b"4"]


def test_reload(site: Site) -> None:
    """Queues come, change in place and go, with SIGHUP; one with messages stays and says so."""
    site.start()
    consumer = site.client()
    consumer.subscribe("$queue/orders")
    site.publish("orders/1", b"1")
    assert consumer.next() == ("orders/1", b"1")
    new = "new: {subscriptions: [new/>], max_spooled_msg_count: 1}"
    site.reload(text_of(f"{ORDERS.replace('>', '>, more')}, {new}"))
    assert site.router.told("msg_vpns.blue.queues.new: added")
    site.publish("more", b"2")
    # The consumer was there all the time.
    assert consumer.next() == ("more", b"2")
    site.publish("new/1", b"3")
    full = site.client()
    full.client.publish("new/1", b"4", 1).wait_for_publish(PATIENCE_S)
    site.reload(text_of(f"{ORDERS}, {new.replace('count: 1', 'count: 2')}"))
    site.publish("new/1", b"5")
    # Nobody takes it: the subscription is gone.
    site.publish("more", b"nobody")
    assert site.payloads("new") == ["3", "5"]
    consumer.stop()
    site.reload(HEAD.rstrip(", ") + "}}\n")
    kept = "queue new of message VPN blue is not configured any more; it is shut down and keeps its 2 messages"
    assert len(site.router.told(kept)) == 1
    assert [row["queueName"] for row in json.loads(site.run("show", "queues", "--json"))] == ["new"]
    assert site.router.stop() == 0
    site.start(HEAD.rstrip(", ") + "}}\n")
    assert len(site.router.told(kept)) == 1
    assert site.payloads("new") == ["3", "5"]
    site.reload(text_of(new))
    assert consume(site, "new", 2) == [b"3", b"5"]


def test_killed(site: Site) -> None:
    """Retained messages, a durable session and a topic endpoint outlive SIGKILL."""
    text = text_of(ORDERS, ", topic_endpoints: {t: {}}")
    site.start(text)
    site.publish("state/1", b"on", retain=True)
    site.publish("state/2", b"on", retain=True)
    site.publish("state/2", b"", retain=True)
    attracting = site.client()
    attracting.subscribe("$topic-endpoint/t/events/#")
    attracting.stop()
    lasting = site.client("lasting", level=4, clean_session=False)
    lasting.subscribe(("jobs/#", 1))
    lasting.stop()
    site.publish("jobs/1", b"1")
    site.publish("events/1", b"1")
    site.router.kill()
    site.start(text)
    assert site.router.told("2 messages wait in the spool")
    site.publish("jobs/2", b"2")
    site.publish("events/2", b"2")
    again = site.client("lasting", level=4, clean_session=False)
    assert [again.next(), again.next()] == [("jobs/1", b"1"), ("jobs/2", b"2")]
    back = site.client()
    back.subscribe("$topic-endpoint/t/events/#")
    assert [back.next(), back.next()] == [("events/1", b"1"), ("events/2", b"2")]
    fresh = site.client()
    fresh.subscribe("state/#")
    assert fresh.next() == ("state/1", b"on")
    site.publish("state/3", b"last")
    assert fresh.next() == ("state/3", b"last")


def test_replay_log(site: Site) -> None:
    """It is there with SIGHUP, logs what it is told to, and goes with all that it has."""
    site.start()
    log = ", replay_logs: {log: {topic_filter: {enabled: true, subscriptions: [%s]}}}"
    site.reload(text_of(ORDERS, log % "log/>"))
    assert site.router.told("msg_vpns.blue.replay_logs.log: added")
    site.publish("log/1", b"1", b"2")
    site.publish("else", b"3")
    site.reload(text_of(ORDERS, log % "else"))
    site.publish("log/1", b"4")
    site.publish("else", b"5")
    site.router.kill()
    site.start(text_of(ORDERS, log % "else"))
    assert site.router.told("3 messages wait in the spool")
    site.reload(text_of(ORDERS))
    assert site.router.told("msg_vpns.blue.replay_logs.log: removed")
    assert site.router.stop() == 0
    site.start()
    assert not site.router.told("wait in the spool")


def test_without_guaranteed_messages(site: Site) -> None:
    """QoS 1 is not to be had, and nothing is kept on disk."""
    site.start("guaranteed_msging: {enabled: false}\n" + HEAD.rstrip(", ") + "}}\n")
    refused = site.client(level=4)
    refused.client.publish("a", b"1", 1)
    refused.disconnected.get(timeout=PATIENCE_S)
    direct = site.client()
    direct.subscribe("a")
    site.client().publish("a", b"2")
    assert direct.next() == ("a", b"2")
    assert not (site.place / "data-edge" / "spool").exists()
