"""`vpnrouter queue`: messages are browsed, deleted, copied, moved and replayed."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from management_routers import routers, serving

from vpnrouter import limits
from vpnrouter.cli import app


@pytest.mark.parametrize("arguments", [[], ["brows", "q"], ["browse"], ["delete-msg", "q", "x"]])
def test_wrong_use(arguments: list[str]) -> None:
    """Exit code 2, before anything is asked."""
    assert app.run(["queue", *arguments]) == 2


BROWSE = ["queue", "browse", "orders"]


def test_table(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a message, the oldest first."""
    assert app.run([*BROWSE, "--count", "2"]) == 0
    titles, *rows = capsys.readouterr().out.splitlines()
    assert titles.split()[:2] == ["Message", "Topic"]
    assert [row.split() for row in rows] == [
        [str(number), "orders", "1", "4", "0", "2026-11-22T03:01:00Z", "-", "c1"]
        for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], range(1, 21)),
        (["--count", "1000"], range(1, 26)),
        (["--count", "3", "--after", "20"], range(21, 24)),
        (["--after", "25"], range(0)),
    ],
)
def test_json(
    served: Any, options: list[str], ids: range, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as were asked for, over as many pages as that takes."""
    assert app.run([*BROWSE, *options, "--json"]) == 0
    assert [row["msgId"] for row in json.loads(capsys.readouterr().out)] == list(ids)


def test_more_than_a_page(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages are put together without a message twice or left out."""
    served.router.publish("c1", "orders", *[b""] * 300)
    assert app.run([*BROWSE, "--count", "250", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["msgId"] for row in rows] == served.router.ids("blue", "orders")[:250]


def test_payload(served: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The bytes alone, whatever they are."""
    served.router.publish("c1", "orders", b"\0\xff\n")
    newest = str(served.router.ids("blue", "orders")[-1])
    assert app.run([*BROWSE, "--payload", newest]) == 0
    assert capfdbinary.readouterr() == (b"\0\xff\n", b"")


def test_payload_of_no_message(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and the reason."""
    assert app.run([*BROWSE, "--payload", "99"]) == 1
    assert capsys.readouterr().err.endswith("Could not find match for msg 99 in queue orders\n")


def test_empty_queue(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """That is no error; it is said on stderr."""
    assert app.run(["queue", "browse", "small"]) == 0
    assert capsys.readouterr() == ("", "vpnrouter: no messages in queue small\n")


def held(served: Any, queue: str = "orders") -> list[int]:
    """The messages of a queue of blue."""
    found: list[int] = served.router.ids("blue", queue)
    return found


def test_purge(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it goes when nobody has to be asked."""
    assert app.run(["queue", "purge", "orders", "--yes"]) == 0
    assert capsys.readouterr().out == "deleted 25 messages\n"
    assert held(served) == []


def test_purge_asks(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At a terminal somebody is asked; where nobody is, --yes is needed."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert app.run(["queue", "purge", "orders"]) == 2
    assert "Nobody is there to be asked; give --yes" in capsys.readouterr().err.replace("\n", " ")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answers = iter([False, True])

    def confirm(text: str, *, err: bool) -> bool:
        assert text == "Delete all messages of queue orders in message VPN blue?"
        assert err
        return next(answers)

    monkeypatch.setattr(typer, "confirm", confirm)
    assert app.run(["queue", "purge", "orders"]) == 1
    assert len(held(served)) == 25
    assert app.run(["queue", "purge", "orders"]) == 0
    assert held(served) == []


def test_delete_msg(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages by their ids; one that is not there is exit code 1."""
    assert app.run(["queue", "delete-msg", "orders", "3", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"msgCount": 2}
    assert app.run(["queue", "delete-msg", "orders", "4", "5"]) == 1
    assert capsys.readouterr().out == "deleted 1 message\n"
    assert held(served) == [1, 2, *range(6, 26)]


def test_more_ids_than_a_request_takes(served: Any) -> None:
    """They are asked for in parts."""
    served.router.publish("c1", "orders", *[b""] * (2 * limits.MANAGEMENT_MSG_IDS + 2))
    ids = held(served)
    assert app.run(["queue", "delete-msg", "orders", *map(str, ids)]) == 0
    assert held(served) == []


def test_a_store_that_fails(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and what the store says."""
    served.router.node.store.close()
    assert app.run(["queue", "purge", "orders", "--yes"]) == 1
    assert capsys.readouterr().err.endswith(": the spool is closed\n")


def test_queues_of_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where two message VPNs have a queue of a name, somebody must say which."""
    (router,) = routers(tmp_path, here="msg_vpns: {a: {queues: {q: {}}}, b: {queues: {q: {}}}}")
    with serving(router.application()) as url:
        monkeypatch.setenv("VPNROUTER_URL", url)
        assert app.run(["queue", "browse", "q"]) == 1
        said = "vpnrouter: message VPNs a, b each have a queue q; --msg-vpn says which\n"
        assert capsys.readouterr() == ("", said)
        assert app.run(["queue", "browse", "q", "--msg-vpn", "b"]) == 0
        assert "no messages" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["browse", "purge", "delete-msg", "copy", "move"])
def test_no_such_queue(served: Any, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command names the queues that there are."""
    more = {"delete-msg": ["1"], "copy": ["dead"], "move": ["dead"]}.get(verb, [])
    assert app.run(["queue", verb, "ord*", *more]) == 1
    names = "x,y, #topic-endpoint/s, #topic-endpoint/t, dead, orders, small"
    assert capsys.readouterr().err == f"vpnrouter: there is no queue ord*; there are: {names}\n"


@pytest.mark.parametrize(("verb", "said", "left"), [("copy", "copied", 25), ("move", "moved", 0)])
def test_all(
    served: Any, verb: str, said: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """All messages are in the other queue; after a move in it alone."""
    assert app.run(["queue", verb, "orders", "dead"]) == 0
    assert capsys.readouterr().out == f"{said} 25 messages to dead\n"
    assert (len(held(served, "dead")), len(held(served))) == (25, left)


def test_some(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages by their ids; one that is not there is exit code 1."""
    move = ["queue", "move", "orders", "dead", "--json"]
    assert app.run([*move, "--msg-id", "1", "--msg-id", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == {"msgCount": 2}
    assert app.run([*move, "--msg-id", "2"]) == 1
    assert json.loads(capsys.readouterr().out) == {"msgCount": 0}


def test_a_full_queue(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, with how far it came and why no further."""
    assert app.run(["queue", "move", "orders", "small"]) == 1
    said = "3 messages moved, the next was refused: 503 Max message usage exceeded\n"
    assert capsys.readouterr().err.endswith(said)


def test_no_queue_to_put_them_into(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The queue that is missing is named."""
    assert app.run(["queue", "move", "orders", "nope"]) == 1
    assert capsys.readouterr().err.endswith("queue nope in msgVpn blue\n")


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ([], 1),
        (["--log", "log", "--from", "2026-11-22T03:01:03Z"], 21),
        (["--from", "1970-01-01"], 1),
        (["--after", "11"], 12),
    ],
)
def test_replay(
    served: Any, capsys: pytest.CaptureFixture[str], options: list[str], first: int
) -> None:
    """A replay begins where it was wanted, and is ended."""
    assert app.run(["queue", "purge", "orders", "--yes"]) == 0
    served.router.mesh.wait(5_000)
    served.router.publish("c1", "orders", b"late")
    assert app.run(["queue", "replay", "orders", *options]) == 0
    said = "began a replay to queue orders in message VPN blue\n"
    assert capsys.readouterr().out.endswith(said)
    served.router.mesh.wait(1_000)
    brought = served.router.payloads("blue", "orders")
    wanted = [b"%d" % number for number in range(1, 26)][first - 1 :] if first != 21 else []
    assert brought == [*wanted, b"late"]
    assert app.run(["queue", "replay", "orders", "--cancel", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "msgVpnName": "blue",
        "queueName": "orders",
        "cancelled": True,
    }
    assert app.run(["queue", "replay", "orders", "--cancel"]) == 1
    assert "no replay to queue orders runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--from", "noon"], "noon is no date and time of the form"),
        (["--from", "2026-01-31", "--after", "1"], "only one of them"),
        (["--after", "1", "--cancel"], "only one of them"),
        (["--after", "-1"], "--after"),
    ],
)
def test_wrong_options(
    served: Any, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """Exit code 2, before anything is asked of the router."""
    assert app.run(["queue", "replay", "orders", *options]) == 2
    assert said in capsys.readouterr().err
    assert served.router.context.queues.queue("blue", "orders").replay_start_count == 0


def test_refused(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and the field's reason."""
    assert app.run(["queue", "replay", "orders", "--log", "none"]) == 1
    assert "the replay was refused: 503 Replay Disabled" in capsys.readouterr().err
