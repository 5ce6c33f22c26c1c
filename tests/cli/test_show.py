"""`vpnrouter show`, against an application that is really served."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from vpnrouter.cli import app
from vpnrouter.cli._router_access import connect
from vpnrouter.cli._show_rows import RowQuery, What, rows_of
from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient

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
    assert rows[0].split()[:3] == ["x,y", "[z]", "a/b"]
    assert "not-ready-connecting" in rows[0]
    assert "down" in rows[0]
    assert "00:01:00" in rows[1]


def test_url_of_the_environment(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """VPNROUTER_URL says where the router is."""
    assert app.run(["show", "bridges"]) == 0
    assert len(lines(capsys)) == 4


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ["x,y [z]", "to-a", "to-b"]),
        (["to-a"], ["to-a"]),
        (["to-*"], ["to-a", "to-b"]),
        (["--msg-vpn", "blue"], ["to-a", "to-b"]),
        (["*", "--msg-vpn", "a/b"], ["x,y [z]"]),
        (["--msg-vpn", "empty"], []),
    ],
)
def test_json_and_names(
    served: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], names: list[str]
) -> None:
    """JSON has every attribute of the bridges asked for, and their remotes."""
    assert app.run(["show", "bridges", *arguments, "--json", "--url", served.url]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["bridgeName"] for row in rows] == names
    assert all(row["remotes"][0]["remoteMsgVpnName"] == "far" for row in rows)


def test_no_bridges_at_all(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A router without bridges is no error; it is said on stderr."""
    served.still.bridges.clear()
    assert app.run(["show", "bridges", "--url", served.url]) == 0
    assert capsys.readouterr() == ("", "vpnrouter: no bridges\n")


def test_detail(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything about a bridge, why it is down first, and its remotes."""
    assert app.run(["show", "bridges", "x*", "--detail", "--url", served.url]) == 0
    said = capsys.readouterr().out
    first = (
        "Bridge x,y [z] in message VPN a/b: down (cannot connect to 198.51.100.7:55555: refused)"
    )
    assert said.splitlines()[0] == first
    assert "inbound state" in said
    assert "remote message VPN far at 198.51.100.7:55555" in said
    assert "last connection failure reason" in said


def test_stats(served: Any, standing: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts both ways, and discards by reason."""
    bridge = standing.bridge_status(
        "blue", "to-a", data_rx_msg_count=1_234, discarded_rx={"loop-detected": 7}
    )
    served.still.bridges["blue", "to-a"] = bridge
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
    "counts",
    [
        {"data_rx_msg_count": 1},
        {"offered_tx_msg_count": 1},
        {"delivered_rx_msg_count": 1},
        {"tx_in_flight_msg_count": 1},
        {"data_rx_msg_count": 1, "discarded_rx_msg_count": 1},
    ],
    ids="+".join,
)
def test_a_message_that_is_not_accounted_for(
    served: Any,
    standing: ModuleType,
    counts: dict[str, int],
    as_json: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One message too many or too few in one direction of one bridge is exit code 1."""
    served.still.bridges["blue", "to-a"] = standing.bridge_status("blue", "to-a", **counts)
    arguments = ["show", "bridges", "--balance", *as_json, "--url", served.url]
    assert app.run(arguments) == 1
    if not as_json:
        assert lines(capsys)[-1] == "1 of 3 bridges do not balance"


def test_nothing_of_that_name(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the names that there are."""
    assert app.run(["show", "bridges", "nope", "--msg-vpn", "blue", "--url", served.url]) == 1
    said = "vpnrouter: there is no bridge nope in message VPN blue; there are: to-a, to-b\n"
    assert capsys.readouterr() == ("", said)


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


def test_users(standing: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With user and password file it is shown; without, and with a wrong one, exit code 1 says why."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("right\r\n", encoding="utf-8")
    wrong.write_text("wrong", encoding="utf-8")
    with standing.serving(standing.three_bridges(), USERS) as address:
        show = ["show", "bridges", "--url", f"http://{address}"]
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
    assert [row.split()[0] for row in rows] == ["x,y", "dead", "orders"]
    assert rows[2].split()[6:9] == ["25", "<0.1", "5,000"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["o*"], ["orders"]),
        (["--msg-vpn", "blue"], ["dead", "orders"]),
        (["--msg-vpn", "empty"], []),
    ],
)
def test_queues_by_name(
    served: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], names: list[str]
) -> None:
    """JSON has every attribute of the queues asked for."""
    assert app.run(["show", "queues", *arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["queueName"] for row in rows] == names


def test_no_such_queue(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the names that there are."""
    assert app.run(["show", "queues", "nope"]) == 1
    said = "vpnrouter: there is no queue nope; there are: x,y, dead, orders\n"
    assert capsys.readouterr() == ("", said)


def test_queues_that_do_not_balance(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A message that no counter knows is exit code 1."""
    assert app.run(["show", "queues", "--balance"]) == 0
    assert lines(capsys)[-1] == "all 3 queues balance"
    served.still.queues.changes["blue", "dead"] = {"imbalance": -1}
    assert app.run(["show", "queues", "--balance"]) == 1
    assert lines(capsys)[-1] == "1 of 3 queues do not balance"


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
    from vpnrouter.management.responses import row_of
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
        (["vpns", "--balance"], "is for bridges and queues"),
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


@pytest.fixture
def client(recorded: Any) -> Iterator[ManagementClient]:
    """A client of a router with 250 clients in VPN blue."""
    rows = [{"clientName": f"c{number:03}", "msgVpnName": "blue"} for number in range(250)]
    recorded.answers |= {
        "/vpnrouter/v1/clients": rows,
        "/SEMP/v2/monitor/msgVpns/blue/clients": rows[:3],
        "/SEMP/v2/monitor/msgVpns": [{"msgVpnName": "blue"}, {"msgVpnName": "red"}],
        "/SEMP/v2/monitor/msgVpns/blue": {"msgVpnName": "blue"},
        "/vpnrouter/v1/msgVpns/blue/matches": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/msgVpns/red/matches": [{"name": "r", "msgVpnName": "red"}],
        "/vpnrouter/v1/subscriptions": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/msgVpns/blue/subscriptions": [{"name": "b", "msgVpnName": "blue"}],
        "/vpnrouter/v1/events": [{"event": "E", "eventId": 7}],
    }
    with ManagementClient(recorded.url) as made:
        yield made


def names(client: ManagementClient, *asked: Any) -> list[str]:
    """Names of the rows."""
    what = asked[0]
    return [row[what.key] for row in rows_of(client, RowQuery(*asked))]


def test_all_pages(client: ManagementClient, recorded: Any) -> None:
    """All of many clients, a page at a time."""
    assert len(names(client, What.CLIENTS)) == 250
    assert len(recorded.asked) == 3


def test_no_more_than_wanted(client: ManagementClient, recorded: Any) -> None:
    """A bound is told to the router, and pages beyond are not asked for."""
    assert names(client, What.CLIENTS, "", "", "", 2) == ["c000", "c001"]
    assert [each[1] for each in recorded.asked] == ["/vpnrouter/v1/clients?count=2"]


def test_of_one_msg_vpn(client: ManagementClient) -> None:
    """Those of the VPN."""
    assert names(client, What.CLIENTS, "", "blue") == ["c000", "c001", "c002"]
    assert names(client, What.VPNS, "", "red") == ["red"]


def test_the_router_looks_for_a_name(client: ManagementClient, recorded: Any) -> None:
    """A pattern is a condition of the request; a name with a comma is looked for here."""
    assert names(client, What.CLIENTS, "c00*") == [f"c00{number}" for number in range(10)]
    assert "where=clientName==c00*" in unquote(recorded.asked[0][1])
    recorded.asked.clear()
    with pytest.raises(OperationError, match=r"^there is no client a,b$"):
        names(client, What.CLIENTS, "a,b")
    assert "where" not in recorded.asked[0][1]


def test_a_misspelt_name(client: ManagementClient) -> None:
    """Of what there are few all names are told."""
    with pytest.raises(OperationError, match=r"no message VPN bleu; there are: blue, red$"):
        names(client, What.VPNS, "bleu")
    with pytest.raises(OperationError, match=r"no subscription of x in message VPN blue$"):
        names(client, What.SUBSCRIPTIONS, "x", "blue")


def test_show_rows_who_gets_a_topic(client: ManagementClient) -> None:
    """Matches of one message VPN, or of all one after the other."""
    assert names(client, What.SUBSCRIPTIONS, "", "red", "a/b") == ["r"]
    assert names(client, What.SUBSCRIPTIONS, "", "", "a/b") == ["b", "r"]


def test_events(client: ManagementClient) -> None:
    """Events by the field's name."""
    assert names(client, What.EVENTS, "E*") == ["E"]


@pytest.mark.parametrize(
    ("what", "one", "key"),
    [
        (What.VPNS, "message VPN", "msgVpnName"),
        (What.CLIENTS, "client", "clientName"),
        (What.SUBSCRIPTIONS, "subscription", "name"),
        (What.QUEUES, "queue", "queueName"),
        (What.BRIDGES, "bridge", "bridgeName"),
        (What.EVENTS, "event", "event"),
    ],
)
def test_names(what: What, one: str, key: str) -> None:
    """The word for one, and the attribute with its name."""
    assert (what.one, what.key) == (one, key)


def test_everything_without_more_words() -> None:
    """No name, no VPN, no bound."""
    assert RowQuery(What.CLIENTS)[1:] == ("", "", "", 0)


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


def test_wrong_options(tmp_path: Path) -> None:
    """Each names the option that is wrong."""
    with pytest.raises(typer.BadParameter, match="http://HOST:PORT"):
        connect("h", "", None, None)
    with pytest.raises(typer.BadParameter, match="whose password"):
        connect("http://h", "", tmp_path / "p", None)
