"""`vpnrouter show`, against an application that is really served."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer
from management_routers import serving

from vpnrouter.cli import app
from vpnrouter.cli._router_access import connect
from vpnrouter.cli._show_rows import What

USERS = {"ann": {"password": "right"}}


def lines(captured: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on stdout."""
    return captured.readouterr().out.splitlines()


def test_overview(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a bridge under a line of titles; names with brackets are shown as they are."""
    assert app.run(["show", "bridges", "--url", served.url]) == 0
    titles, *rows = lines(capsys)
    assert titles.startswith("Bridge")
    assert len(rows) == 3
    assert rows[0].split()[:2] == ["x,y[z]", "a/b"]
    assert "not-ready-wait-next" in rows[0]
    assert "down" in rows[0]
    assert "00:00:50" in rows[1]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["bridges"], ["x,y[z]", "to-a", "to-b"]),
        (["bridges", "to-a"], ["to-a"]),
        (["bridges", "to-*"], ["to-a", "to-b"]),
        (["bridges", "--msg-vpn", "blue"], ["to-a", "to-b"]),
        (["bridges", "*", "--msg-vpn", "a/b"], ["x,y[z]"]),
        (["bridges", "--msg-vpn", "empty"], []),
        (["queues", "o*"], ["orders"]),
        (
            ["queues", "--msg-vpn", "blue", "*d*"],
            ["#topic-endpoint/s", "#topic-endpoint/t", "dead", "orders"],
        ),
        (["queues", "--msg-vpn", "empty"], []),
        (["vpns", "--msg-vpn", "blue"], ["blue"]),
    ],
)
def test_json_and_names(
    served: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], names: list[str]
) -> None:
    """JSON has every attribute of what was requested, of bridges also their remotes."""
    assert app.run(["show", *arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row[What(arguments[0]).key] for row in rows] == names
    if arguments[0] == "bridges":
        assert all(row["remotes"][0]["remoteMsgVpnName"] in {"red", "gone"} for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bridges", "nope", "--msg-vpn", "blue"],
         "bridge nope in message VPN blue; there are: to-a, to-b"),
        (["queues", "nope"], "queue nope; there are: x,y, #topic-endpoint/s, #topic-endpoint/t, dead, orders, small"),
        (["vpns", "bleu"], "message VPN bleu; there are: a/b, blue, empty"),
        (["clients", "a,b"], "client a,b"),
        (["subscriptions", "x", "--msg-vpn", "blue"], "subscription of x in message VPN blue"),
    ],
)  # fmt: skip
def test_nothing_of_that_name(
    served: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Exit code 1, and the names that there are where they are few."""
    assert app.run(["show", *arguments]) == 1
    assert capsys.readouterr() == ("", f"vpnrouter: there is no {said}\n")


def test_no_bridges_at_all(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A router without bridges is no error; it is said on stderr."""
    served.router.bridges.clear()
    assert app.run(["show", "bridges", "--url", served.url]) == 0
    assert capsys.readouterr() == ("", "vpnrouter: no bridges\n")


def test_detail(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything about a bridge, why it is down first, and its remotes."""
    assert app.run(["show", "bridges", "x*", "--detail", "--url", served.url]) == 0
    said = capsys.readouterr().out
    first = "Bridge x,y[z] in message VPN a/b: down (no given file describes router gone)"
    assert said.splitlines()[0] == first
    assert "inbound state" in said
    assert "remote message VPN gone at 198.51.100.7:55555" in said
    assert "last connection failure reason" in said


def test_stats(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts both ways, and discards by reason."""
    counters = served.router.bridge("blue", "to-a").record.counters
    counters.data_rx_msg_count = 1_234
    counters.discarded_rx.add("loop-detected", 7)
    assert app.run(["show", "bridges", "to-a", "--stats", "--url", served.url]) == 0
    said = {tuple(line.split()) for line in lines(capsys)}
    assert ("messages", "1,234", "0") in said
    assert ("loop-detected", "7", "0") in said


def test_balance(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Where every message is accounted for, the exit code is 0."""
    assert app.run(["show", "bridges", "--balance", "--url", served.url]) == 0
    assert lines(capsys)[-1] == "all 3 bridges balance"


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize(
    "count", ["data_rx_msg_count", "offered_tx_msg_count", "delivered_rx_msg_count"]
)
def test_a_message_that_is_not_accounted_for(
    served: Any, count: str, as_json: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One message too many or too few in one direction of one bridge is exit code 1."""
    counters = served.router.bridge("blue", "to-a").record.counters
    setattr(counters, count, getattr(counters, count) + 1)
    arguments = ["show", "bridges", "--balance", *as_json, "--url", served.url]
    assert app.run(arguments) == 1
    if not as_json:
        assert lines(capsys)[-1] == "1 of 3 bridges do not balance"


def test_no_such_msg_vpn(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A message VPN that does not exist is said to be missing, not to be empty."""
    assert app.run(["show", "bridges", "--msg-vpn", "nope", "--url", served.url]) == 1
    assert capsys.readouterr().err.endswith(": Could not find match for msgVpn nope\n")


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what failed and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert app.run(["show", "bridges", "--url", f"http://127.0.0.1:{port}"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"vpnrouter: cannot connect to http://127.0.0.1:{port}: ")
    assert said.err.count("\n") == 1


def test_users(here: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With user and password file it is shown; without, and with a wrong one, exit code 1 says why."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("right\r\n", encoding="utf-8")
    wrong.write_text("wrong", encoding="utf-8")
    with serving(here.application(USERS)) as url:
        show = ["show", "bridges", "--url", url]
        assert app.run([*show, "--user", "ann", "--password-file", str(right)]) == 0
        capsys.readouterr()
        assert app.run(show) == 1
        assert "give --user and --password-file" in capsys.readouterr().err
        assert app.run([*show, "--user", "ann", "--password-file", str(wrong)]) == 1
        assert "refused user ann" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["queus"], "'queus'"),
        (["bridges", "--url", "localhost:8080"], "http://HOST:PORT"),
        (["bridges", "--user", "ann"], "a user needs its password"),
        (["bridges", "--user", "ann", "--password-file", "/no/such"], "cannot read /no/such"),
        (["bridges", "--password-file", "/no/such"], "whose password it is"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, before anything is asked."""
    monkeypatch.delenv("VPNROUTER_URL", raising=False)
    assert app.run(["show", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_password_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A password file that is not UTF-8 is wrong use."""
    path = tmp_path / "password"
    path.write_bytes(b"\xff")
    arguments = ["show", "bridges", "--user", "ann", "--password-file", str(path)]
    assert app.run(arguments) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_queues(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a queue, with what is in it."""
    assert app.run(["show", "queues"]) == 0
    titles, *rows = lines(capsys)
    assert titles.split()[:3] == ["Queue", "VPN", "Type"]
    assert [row.split()[0] for row in rows][:1] == ["x,y"]
    (row,) = [row.split() for row in rows if row.startswith("orders")]
    assert row[6:10] == ["25", "any", "<0.1", "5,000"]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param(
            [],
            ["small blue queue exclusive on on 2 3 <0.1 5,000 0 0 2 00:01:05"],
            id="lost and refused messages are one number",
        ),
        pytest.param(
            ["--detail"],
            ["Queue small in message VPN blue: 2 messages", "spooled msg count 3"],
            id="every attribute in words",
        ),
        pytest.param(
            ["--stats"],
            ["not taken: max-msg-usage-exceeded 2", "moved 1"],
            id="lost messages apart from refused ones",
        ),
        pytest.param(
            ["--balance"],
            ["small blue 3 0 0 1 0 2 0"],
            id="the terms of the balance in one line",
        ),
    ],
)
def test_a_queue(served: Any, form: list[str], expected: list[str], capsys: Any) -> None:
    """Each form of a queue has its figures, written for people."""
    served.router.publish("c1", "small", *[b"x"] * 5)
    vpn = served.router.router.vpns["blue"]
    first = served.router.ids("blue", "small")[0]
    assert vpn.queue("small").move_message(first, vpn.queue("dead")) == ""
    served.router.mesh.wait(65_000)
    assert app.run(["show", "queues", "small", *form]) == 0
    found = [" ".join(line.split()) for line in lines(capsys)]
    assert set(expected) <= set(found)


def test_queues_that_do_not_balance(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A message that no counter knows is exit code 1."""
    assert app.run(["show", "queues", "--balance"]) == 0
    assert lines(capsys)[-1] == "all 6 queues balance"
    served.router.router.vpns["blue"].queue("dead").counters.acked += 1
    assert app.run(["show", "queues", "--balance"]) == 1
    assert lines(capsys)[-1] == "1 of 6 queues do not balance"


def test_message_vpns(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a message VPN, its counts in --stats."""
    assert app.run(["show", "vpns"]) == 0
    titles, *rows = lines(capsys)
    assert titles.split()[:3] == ["VPN", "Admin", "State"]
    assert [row.split()[0] for row in rows] == ["a/b", "blue", "empty"]
    assert app.run(["show", "vpns", "blue", "--stats"]) == 0
    assert lines(capsys)[0] == "Message VPN blue: up"


def test_wide(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """More columns, behind the others."""
    for what, last in (("bridges", "Reason"), ("queues", "Replay")):
        assert app.run(["show", what]) == 0
        titles = lines(capsys)[0]
        assert app.run(["show", what, "--wide"]) == 0
        wide = lines(capsys)[0]
        assert wide.startswith(titles.rstrip())
        assert wide.rstrip().endswith(last)


def clients(count: int) -> list[dict[str, Any]]:
    """Rows of clients."""
    from vpnrouter.management.answers.rows import row_of
    from vpnrouter.management.status.clients import ClientStatus

    return [row_of(ClientStatus("blue", f"client-{number:05}")) for number in range(count)]


def test_many_clients(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """They are printed block by block, each once, below one line of titles; as JSON in one list."""
    recorded.answers["/vpnrouter/v1/clients"] = clients(1_201)
    assert app.run(["show", "clients"]) == 0
    titles, *rows = lines(capsys)
    assert titles.startswith("Client ")
    assert [row.split()[0] for row in rows] == [f"client-{number:05}" for number in range(1_201)]
    assert len({row.index("connected") for row in rows}) == 1
    assert app.run(["show", "clients", "--json", "--count", "120"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 120


def test_who_gets_a_topic(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """--matching asks the router, with the topic as it was written."""
    row = {
        "msgVpnName": "blue",
        "subscriptionTopic": "a/#",
        "holder": "client",
        "name": "c",
        "qos": 1,
    }
    recorded.answers["/vpnrouter/v1/msgVpns/blue/matches"] = [row]
    assert app.run(["show", "subscriptions", "--matching", "a/b&c", "--msg-vpn", "blue"]) == 0
    assert lines(capsys)[1].split() == ["a/#", "client", "c", "blue", "1"]
    assert recorded.asked[-1][1] == "/vpnrouter/v1/msgVpns/blue/matches?count=100&topic=a%2Fb%26c"


def test_who_gets_a_topic_in_any_message_vpn(recorded: Any, capsys: Any) -> None:
    """Without --msg-vpn the matches of all message VPNs are shown, one after the other."""
    recorded.answers["/SEMP/v2/monitor/msgVpns"] = [{"msgVpnName": "blue"}, {"msgVpnName": "red"}]
    for vpn in ("blue", "red"):
        row = {"name": f"c-{vpn}", "msgVpnName": vpn}
        recorded.answers[f"/vpnrouter/v1/msgVpns/{vpn}/matches"] = [row]
    assert app.run(["show", "subscriptions", "--matching", "a/b", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["c-blue", "c-red"]


def test_what_the_router_selects(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A bound and a pattern are sent with the request; a name with a comma is looked for in the answer."""
    recorded.answers["/vpnrouter/v1/clients"] = clients(250)
    assert app.run(["show", "clients", "--count", "2"]) == 0
    assert len(lines(capsys)) == 3
    assert [each[1] for each in recorded.asked] == ["/vpnrouter/v1/clients?count=2"]
    assert app.run(["show", "clients", "client-0000*", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 10
    assert "where=clientName==client-0000*" in unquote(recorded.asked[1][1])
    recorded.asked.clear()
    assert app.run(["show", "clients", "a,b"]) == 1
    assert "where" not in recorded.asked[0][1]


def test_events_by_name(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern selects events by their names."""
    events = [{"event": "E1", "eventId": 7}, {"event": "F", "eventId": 8}]
    recorded.answers["/vpnrouter/v1/events"] = events
    assert app.run(["show", "events", "E*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == events[:1]


def test_watched(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Block after block with rates, until ^C, which is a good end."""
    from vpnrouter.cli import _watch

    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(_watch, "sleep", sleep)
    assert app.run(["show", "bridges", "to-a", "--watch", "0.5"]) == 0
    said = [line for line in lines(capsys) if line.startswith(("Bridge", "to-a"))]
    assert [line.split()[-2:] for line in said[::2]] == [["Rx/s", "Tx/s"]] * 2
    assert [line.split()[-2:] for line in said[1::2]] == [["-", "-"], ["0", "0"]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["vpns", "--balance"], "is for bridges, connectors and queues"),
        (["queues", "--matching", "t"], "is for subscriptions"),
        (["events", "--wide"], "one form only"),
        (["vpns", "--url", "http://a", "--url", "http://b"], "several are for topology"),
        (["vpns", "--watch", "1", "--json"], "does not go with --json"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2."""
    assert app.run(["show", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_password_is_asked_for_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sits there is asked, and what is typed is not shown."""
    asked: list[tuple[str, dict[str, object]]] = []

    def prompt(text: str, **more: object) -> str:
        asked.append((text, more))
        return "right"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    connect("http://h", "ann", None, None).close()
    assert asked == [("Password", {"hide_input": True, "err": True})]
