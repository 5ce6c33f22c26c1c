"""Routers, clients and folders of the demo."""

import os
import select
import signal
import socket
import sys
from pathlib import Path

import pytest
import yaml

from vpnrouter.config.load import load
from vpnrouter.demo import progress, scenario
from vpnrouter.demo.clients import PROC, ClientCounts, accepted, connected_clients
from vpnrouter.demo.processes import child_process, signals_as_exceptions, signals_deferred
from vpnrouter.demo.progress import MARKER, PUBLISHED, ROUTERS, LineReporter, claimed
from vpnrouter.demo.routers import Routers, core_config, edge_config, parse_ready, running_routers
from vpnrouter.demo.run import run_demo
from vpnrouter.demo.scenario import Flights
from vpnrouter.errors import OperationError
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter


def echo() -> None:
    """In a child: say the process id of a grandchild, then each line backwards."""
    grandchild = os.fork()
    if grandchild == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    print(grandchild, flush=True)
    for line in sys.stdin:
        print(line.strip()[::-1], flush=True)


def complain() -> None:
    """In a child: fail with a word on standard error."""
    sys.exit("no fuel")


def silent() -> None:
    """In a child: say nothing for ever."""
    signal.pause()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which a child imports this file."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return Path(__file__).stem


def test_lines_and_end(here: str, tmp_path: Path) -> None:
    """A child takes and gives lines; after the block it and what it started are gone."""
    with child_process("echo", f"{here}:echo", [], tmp_path / "log") as process:
        grandchild = os.pidfd_open(int(process.first_line(20.0)))
        process.send({"a": 1})
        assert process.first_line(20.0) == '}1 :"a"{'
    assert process.process.returncode == -signal.SIGTERM
    # The descriptor of a process becomes readable when it has ended.
    assert select.select([grandchild], [], [], 10)[0]
    os.close(grandchild)


def test_exception_ends_the_child(here: str, tmp_path: Path) -> None:
    """An exception in the block ends the child as well."""
    with (
        pytest.raises(ZeroDivisionError),
        child_process("s", f"{here}:silent", [], tmp_path / "l") as process,
    ):
        raise ZeroDivisionError
    assert process.process.returncode == -signal.SIGTERM


def test_early_end(here: str, tmp_path: Path) -> None:
    """A child that ends early is an error with its last words and the place of all of them."""
    log = tmp_path / "log"
    with child_process("pilot", f"{here}:complain", [], log) as process:
        with pytest.raises(OperationError, match="pilot ended early: no fuel") as caught:
            process.first_line(20.0)
        assert str(log) in str(caught.value)
        with pytest.raises(OperationError):
            process.send({"more": "x" * 100_000})


def test_too_late(here: str, tmp_path: Path) -> None:
    """A child that says nothing in time is an error."""
    with (
        child_process("mute", f"{here}:silent", [], tmp_path / "log") as process,
        pytest.raises(OperationError, match="mute not ready within"),
    ):
        process.first_line(0.0)


def test_signals_leave_as_exceptions() -> None:
    """SIGTERM ends the block as an exception, but not while something is being tidied up."""
    before = signal.getsignal(signal.SIGTERM)
    tidied = False

    def tidy() -> None:
        nonlocal tidied
        with signals_as_exceptions(), signals_deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            tidied = True

    with pytest.raises(SystemExit) as caught:
        tidy()
    assert tidied
    assert caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_configurations_load(tmp_path: Path) -> None:
    """Both generated configurations are accepted and trace every message."""
    texts = {
        "edge": edge_config(tmp_path, "secret"),
        "core": core_config(tmp_path, "secret", "127.0.0.1:5555", scenario.REMOTE_SUBSCRIPTIONS),
    }
    for name, config in texts.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        loaded = load(str(path)).config
        assert loaded.router.name == name
        assert loaded.trace is not None
        assert loaded.trace.sample == 1.0
        assert [f"{name}/{vpn}" for vpn in loaded.msg_vpns] == [
            place for place in scenario.PLACES if scenario.router_of(place) == name
        ]
        if name == "core":
            bridge = loaded.msg_vpns["yellow"].bridges[scenario.BRIDGE]
            topics = [one.topic for one in bridge.remote_subscriptions]
            assert topics == [*scenario.REMOTE_SUBSCRIPTIONS, scenario.ALERTS]
        else:
            (remote,) = loaded.msg_vpns["blue"].bridges[scenario.BRIDGE_BACK].remote_msg_vpns
            assert remote.location == "v:core"


def test_ready_line() -> None:
    """A ready line's values are listed by key, in order."""
    line = "ready router=edge mqtt=127.0.0.1:1 mqtt=[::1]:2 link=127.0.0.1:3"
    assert parse_ready(line) == {
        "router": ["edge"],
        "mqtt": ["127.0.0.1:1", "[::1]:2"],
        "link": ["127.0.0.1:3"],
    }


def test_running(routers: Routers) -> None:
    """Each message VPN has an address of its own that answers; one connection has both bridges."""
    assert list(routers.addresses) == list(scenario.PLACES)
    assert len(set(routers.addresses.values())) == len(scenario.PLACES)
    for address in routers.addresses.values():
        socket.create_connection(address, timeout=5).close()
    assert len(routers.link_ports) == 2
    assert accepted(routers.link_ports) in {1, None}


def test_refused_configuration(folder: Path) -> None:
    """A router that refuses its configuration is an error with its last words, and leaves nobody."""
    with (
        pytest.raises(OperationError, match=r"router core ended early: .*core\.yaml:\d+:\d+"),
        running_routers(folder, ["flights/UA\0"]),
    ):
        pass


def test_new_and_empty(tmp_path: Path) -> None:
    """A directory that does not exist and one that is empty are taken and marked."""
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty"):
        with claimed(tmp_path / name) as folder:
            assert (folder / ROUTERS).is_dir()
        assert (tmp_path / name / MARKER).is_file()


def test_former(tmp_path: Path) -> None:
    """What an earlier demonstration left is removed, and nothing else."""
    with claimed(tmp_path) as folder:
        (folder / "traces").mkdir()
        (folder / "traces" / "old").touch()
    (tmp_path / "notes.txt").write_text("mine")
    with claimed(tmp_path):
        assert not (tmp_path / "traces").exists()
        assert (tmp_path / "notes.txt").read_text() == "mine"


def test_foreign(tmp_path: Path) -> None:
    """A directory with anything else in it is refused in one line and left alone."""
    (tmp_path / "traces").mkdir()
    with (
        pytest.raises(OperationError, match="choose another --output") as caught,
        claimed(tmp_path),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]


def test_a_file(tmp_path: Path) -> None:
    """A file in the directory's place is refused."""
    (tmp_path / "out").touch()
    with pytest.raises(OperationError, match="cannot use"), claimed(tmp_path / "out"):
        pass


def test_two_at_a_time(tmp_path: Path) -> None:
    """A second demonstration does not take the directory of one that is running."""
    with (
        claimed(tmp_path),
        pytest.raises(OperationError, match="another demo is running"),
        claimed(tmp_path),
    ):
        pass
    with claimed(tmp_path) as again:
        assert again == tmp_path.resolve()


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue\n"


ROW = "   {number}: 0100007F:{own:04X} 0100007F:{far:04X} {state} 00000000:00000000\n"


def test_rows(tmp_path: Path) -> None:
    """An established connection counts at the end that listens; other states and ports do not count."""
    rows = [(5000, 0, "0A"), (5000, 6000, "01"), (6000, 5000, "01"), (5000, 6001, "06")]
    rows += [(5001, 6002, "01"), (5002, 6003, "01")]
    (tmp_path / "tcp").write_text(
        HEAD
        + "".join(
            ROW.format(number=number, own=own, far=far, state=state)
            for number, (own, far, state) in enumerate(rows)
        )
    )
    assert accepted({5000}, tmp_path) == 1
    assert accepted({5000, 5001}, tmp_path) == 2
    (tmp_path / "tcp6").write_text(HEAD + ROW.format(number=0, own=5000, far=7000, state="01"))
    assert accepted({5000}, tmp_path) == 2


def test_nobody_tells(tmp_path: Path) -> None:
    """Where the system has no such tables the answer is that it is not known."""
    assert accepted({1}, tmp_path) is None


@pytest.mark.skipif(not (PROC / "tcp").is_file(), reason="no such tables here")
def test_this_machine() -> None:
    """A connection of this process is one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert accepted({port}) == 0
        with socket.create_connection(("127.0.0.1", port)):
            assert accepted({port}) == 1


def test_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal, stages are lines on stderr and counts follow now and then."""
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    with progress.progress_reporter({progress.PUBLISHED: 2_000, "x": 1_000}) as reporter:
        reporter.stage("one thing")
        reporter.counts({"a": 500, "b": 500}, {"x": 700})
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first == "demo: one thing"
    assert second.startswith("demo: published 1,000 of 2,000 (")
    assert second.endswith("/s), received 700")


def test_lines_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts that follow at once on others tell nothing."""
    reporter = progress.LineReporter({progress.PUBLISHED: 10})
    for _ in range(100):
        reporter.counts({"a": 5}, {"x": 5})
    assert capsys.readouterr().err == ""


def test_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal there is a bar with count and rate for all that is published and each receiver."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress_reporter({progress.PUBLISHED: 2_000, "yellow-all": 1_000}) as reporter:
        reporter.stage("one thing")
        reporter.counts({"a": 500, "b": 500}, {"yellow-all": 700})
    out, err = capsys.readouterr()
    assert out == ""
    assert "one thing" in err
    assert "1000/2000" in err.replace(" ", "")
    assert "yellow-all" in err
    assert "/1000" in err


def test_filters_are_valid() -> None:
    """The bridges' filters are of the `*` `>` dialect, the clients' of MQTT's."""
    for text in (*scenario.REMOTE_SUBSCRIPTIONS, scenario.ALERTS):
        parse_filter(text, SMF)
    for one in scenario.SUBSCRIBERS:
        parse_filter(one.filter, MQTT)


def test_every_kind_of_filter_is_used() -> None:
    """Among the remote subscriptions are a literal, one level, a prefix, and the rest."""
    levels = [text.split("/") for text in scenario.REMOTE_SUBSCRIPTIONS]
    assert any("*" not in "/".join(one) and one[-1] != ">" for one in levels)
    assert any("*" in one for one in levels)
    assert any(level.endswith("*") and len(level) > 1 for one in levels for level in one)
    assert any(one[-1] == ">" for one in levels)


def test_every_place_is_watched() -> None:
    """Each message VPN has a publisher and a subscriber, and names are used once."""
    assert {one.place for one in scenario.PUBLISHERS} == set(scenario.PLACES)
    assert {one.place for one in scenario.SUBSCRIBERS} == set(scenario.PLACES)
    for everybody in (scenario.PUBLISHERS, scenario.SUBSCRIBERS):
        assert len({one.name for one in everybody}) == len(everybody)


def test_one_answers() -> None:
    """One subscriber answers what comes from blue, in yellow; alerts are heard on both sides."""
    assert [one.place for one in scenario.SUBSCRIBERS if one.answers] == [scenario.YELLOW]
    heard = [one.place for one in scenario.SUBSCRIBERS if one.wants_alerts]
    assert heard == [scenario.BLUE, scenario.YELLOW]


def test_names_of_places() -> None:
    """A place is a router and a message VPN."""
    assert scenario.router_of(scenario.YELLOW) == "core"
    assert scenario.vpn_of(scenario.YELLOW) == "yellow"


def test_everything_arrives(flights: Flights, folder: Path) -> None:
    """Every publisher's flights leave, every subscriber's tally is what it must be, on one connection."""
    with (
        running_routers(folder) as routers,
        connected_clients(folder, len(flights), routers.addresses) as clients,
    ):
        counted: ClientCounts = clients.run(flights, LineReporter({PUBLISHED: 1}))
        assert accepted(routers.link_ports) in {1, None}
    assert counted.published == {
        one.name: int(scenario.published(flights, one).sum()) for one in scenario.PUBLISHERS
    }
    for one in scenario.SUBSCRIBERS:
        assert counted.tallies[one.name] == scenario.tally(flights, one), one.name


def test_nobody_answers(folder: Path) -> None:
    """Clients that cannot connect are an error that names their log."""
    nowhere = dict.fromkeys(scenario.PLACES, ("127.0.0.1", 1))
    with (
        pytest.raises(OperationError, match=r"subscribers edge ended early: .*Connection refused"),
        connected_clients(folder, 10, nowhere),
    ):
        pass


def test_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a report, a short run passes and leaves configurations and traces of both routers."""
    assert run_demo(700, tmp_path / "out", with_report=False)
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "all 16 checks passed"
    assert "demo: 700 flights leave New York" in err
    for name in ("edge", "core"):
        assert (tmp_path / "out" / "routers" / f"{name}.yaml").is_file()
        assert list((tmp_path / "out" / "traces").glob(f"date=*/router={name}/part-*.parquet"))


def test_one_flight(tmp_path: Path) -> None:
    """A single flight is enough for a run that passes."""
    assert run_demo(1, tmp_path / "out", with_report=False)


@pytest.mark.slow
def test_subscription_too_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bridge that attracts more than it must fails the run as well."""
    wide = [*scenario.REMOTE_SUBSCRIPTIONS, "flights/DL/>"]
    assert not run_demo(1_000, tmp_path / "out", remote_subscriptions=wide, with_report=False)
    assert "0 missing" in capsys.readouterr().out
