"""`vpnrouter show`, against an application that is really served."""

import json
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vpnrouter.cli import app

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
