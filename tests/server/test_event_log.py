"""The event log of a running router: thresholds, reloads, failures at its edge."""

import io
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
import trio

from vpnrouter import limits
from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.config.load import load
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.settings_models import Logging
from vpnrouter.events import table
from vpnrouter.events.log import Event
from vpnrouter.events.table import EventType
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.events.event_context import PeerLog, current_log, raise_event_in, raise_named
from vpnrouter.server.events.log import LogWriter, RouterEvents, StderrLog
from vpnrouter.server.net.tls import HandshakeFailures
from vpnrouter.wire.link.frames import Hello

TEXT = """
logging: {level: info, rate_limit: 0}
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    max_connection_count: 2
    event: {connection_count_threshold: {set_percent: 100, clear_percent: 50}}
"""


def names(node: Any) -> list[str]:
    """What the log of a node holds."""
    return [event.kind.name for event in node.router.context.events.newest(1_000)]


async def raised(node: Any, name: str) -> None:
    """Wait until an event of this name was raised."""
    here = trio.Event()
    log = node.router.context.events
    log.listeners.append(lambda event: here.set() if event.kind.name == name else None)
    if name not in names(node):
        with trio.fail_after(20):
            await here.wait()


async def test_a_router_tells_what_happens(running: Any, client_of: Any) -> None:
    """Listeners, logins, bounds, thresholds and their clear events, in order."""
    async with running(TEXT) as node:
        one, other, third = [await client_of(node) for _ in range(3)]
        await one.connect("a")
        await other.connect("b")
        assert (await third.connect("c")).reason_code == 0x97
        await raised(node, "VPN_VPN_CONNECTIONS_HIGH")
        await one.stream.aclose()
        await raised(node, "VPN_VPN_CONNECTIONS_HIGH_CLEAR")
        assert names(node) == [
            "SYSTEM_SERVICE_LISTEN_PORT_STATE_CHANGE",
            "CLIENT_CLIENT_CONNECT",
            "CLIENT_CLIENT_CONNECT",
            "VPN_VPN_MAX_CONNECTIONS_EXCEEDED",
            "SYSTEM_CLIENT_CONNECT_FAIL",
            "VPN_VPN_CONNECTIONS_HIGH",
            "CLIENT_CLIENT_DISCONNECT",
            "VPN_VPN_CONNECTIONS_HIGH_CLEAR",
        ]
        assert not node.router.context.events.stands(table.CONNECTIONS_EXCEEDED, "blue", "")


async def test_a_reload_changes_the_log(
    running: Any, capfd: pytest.CaptureFixture[str], tmp_path: Path, client_of: Any
) -> None:
    """Form and levels hold from the next line on; message VPNs that come, change and go are told."""
    async with running(TEXT) as node:
        path = tmp_path / "here.yaml"
        capfd.readouterr()
        text = path.read_text()
        for change in (
            text.replace("level: info", "format: json, level: info") + "  green: {}\n",
            text + "  green: {enabled: false}\n",
            text,
        ):
            path.write_text(change)
            node.reload(load(str(path)).config)
        first, second, third = capfd.readouterr().err.splitlines()
        assert first == "vpnrouter: VPN_VPN_STATE_CHANGE: VPN green added: up"
        assert json.loads(second)["text"] == "VPN green down"
        assert third == "vpnrouter: VPN_VPN_STATE_CHANGE: VPN green removed"


async def test_two_routers_have_their_own_logs(
    running: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each task tells the log of the router that it belongs to."""
    one = "logging: {format: json, level: info}\nlisteners: [{protocol: http, bind: '127.0.0.1:0'}]"
    async with running(one, "one") as first, running(one, "two") as second:
        assert current_log() is None
        assert first.router.context.events is not second.router.context.events
        raise_event_in(second.router.context, table.NOTE, "from afar")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    told = [(line["router"], line["event"]) for line in lines]
    assert ("two", "SYSTEM_SYSTEM_NOTE") in told
    for router in ("one", "two"):
        assert (router, "SYSTEM_SERVICE_LISTEN_PORT_STATE_CHANGE") in told
        assert (router, "SYSTEM_SYSTEM_SHUTDOWN") in told


@pytest.fixture
def events(configured: Callable[..., RouterConfig]) -> RouterEvents:
    """The events of a router that does not run."""
    config = configured(TEXT)
    return RouterEvents(build_router(config, 7, bytes(16)), config)


async def test_say_finds_the_log_of_its_task(events: RouterEvents) -> None:
    """Labels and names; what is neither is a note."""
    raise_named("SIGHUP", "reloaded")
    raise_named("VPN_BRIDGING_LINK_UP", "up")
    raise_named("other", "x")
    assert current_log() is events.log
    found = [row.kind.name for row in events.log.after(0, 10)]
    assert found == ["SYSTEM_CONFIG_RELOAD", "VPN_BRIDGING_LINK_UP", "SYSTEM_SYSTEM_NOTE"]


USERNAMES = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_usernames: {ann: {client_profile: few}, bob: {}}
    client_profiles:
      few:
        max_connection_count_per_client_username: 4
        event: {connection_count_per_client_username_threshold: {set_percent: 75, clear_percent: 25}}
"""


async def test_connections_of_a_client_username(running: Any, client_of: Any, until: Any) -> None:
    """At the share of its client profile's bound one event, below the other its clear, also when the last has gone."""
    async with running(USERNAMES) as node:

        def told() -> list[tuple[str, str]]:
            events = node.router.context.events.newest(1_000)
            return [
                (each.name, each.kind.name.removeprefix("VPN_CLIENT_USERNAME_"))
                for each in events
                if each.kind.name.startswith("VPN_CLIENT_USERNAME_CONNECTIONS")
            ]

        for round_ in (1, 2):
            clients = [await client_of(node) for _ in range(5)]
            for number, client in enumerate(clients):
                username = "bob" if number > 2 else "ann"
                await client.connect(f"c{number}", username=username)
            await until(lambda n=round_: len(told()) >= 2 * n - 1)
            for client in clients:
                await client.stream.aclose()
            await until(lambda n=round_: len(told()) >= 2 * n)
        assert told() == [("ann", "CONNECTIONS_HIGH"), ("ann", "CONNECTIONS_HIGH_CLEAR")] * 2


# -- narrate ---------------------------------------------------------------------------------------


def test_peers(capsys: pytest.CaptureFixture[str]) -> None:
    """Bridges of others that come, go and are refused are told with where they come from."""
    log = PeerLog(HandshakeFailures().note)
    record = Bridge(BridgeFacts("edge", "blue", "#bridge/core/yellow/b"), 0)
    record.remote_address = "192.0.2.7:1"
    log.peer_up(record)
    log.peer_down(record, "closed")
    log.peer_rejected(Hello("core", "b", "yellow", "blue"), "192.0.2.7:1", "403 Forbidden")
    lines = capsys.readouterr().err.splitlines()
    peer = "VPN blue remote bridge #bridge/core/yellow/b at 192.0.2.7:1"
    assert lines == [
        f"vpnrouter: {table.LINK_UP.name}: {peer}: up",
        f"vpnrouter: {table.LINK_DOWN.name}: {peer}: down: closed",
        (
            f"vpnrouter: {table.LINK_REJECTED.name}: VPN blue remote bridge b of VPN yellow on core at 192.0.2.7:1:"
            " rejected: 403 Forbidden"
        ),
    ]


def test_a_peer_that_is_refused_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal is told once for each reason and address, and again after a login; the memory for it is bounded."""
    log = PeerLog(HandshakeFailures().note)
    record = Bridge(BridgeFacts("edge", "blue", "#bridge/core/yellow/b"), 0)

    def rejected(reason: str, port: int, bridge: str = "b") -> int:
        log.peer_rejected(Hello("core", bridge, "yellow", "blue"), f"192.0.2.7:{port}", reason)
        return len(capsys.readouterr().err.splitlines())

    assert [rejected("403 Forbidden", port) for port in range(5)] == [1, 0, 0, 0, 0]
    assert [rejected("503 Too Many Clients", 1), rejected("403 Forbidden", 1)] == [1, 1]
    log.peer_up(record)
    capsys.readouterr()
    assert [rejected("403 Forbidden", 1), rejected("403 Forbidden", 2)] == [1, 0]
    for number in range(limits.LINK_REJECTED_TOLD):
        assert rejected("403 Forbidden", 1, f"other{number}") == 1
    assert rejected("403 Forbidden", 1) == 1


# -- stderr log ------------------------------------------------------------------------------------


class Rig:
    """A log on a stream in memory, under settings that a test may change."""

    def __init__(self, **written: object) -> None:
        self.stream = io.StringIO()
        self.settings = Logging.model_validate(written)
        self.log = StderrLog("edge", LogWriter(lambda: self.stream), lambda: self.settings)
        self.now_ns = 1_000

    def tell(self, kind: EventType, text: str = "x", name: str = "") -> None:
        """One event."""
        self.log(Event(1, self.now_ns, kind, "blue", name, text))

    def lines(self) -> list[str]:
        """What was written since this was asked last."""
        found = self.stream.getvalue().splitlines()
        self.stream.seek(0)
        self.stream.truncate()
        return found


def test_levels() -> None:
    """What is less grave than the level is left out; an area may have its own."""
    rig = Rig()
    rig.tell(table.CONNECT)
    rig.tell(table.LINK_UP)
    assert rig.lines() == ["vpnrouter: VPN_BRIDGING_LINK_UP: x"]
    rig.settings = Logging.model_validate({"level": "error", "levels": {"client": "info"}})
    rig.tell(table.CONNECT)
    rig.tell(table.LINK_DOWN)
    rig.tell(table.SPOOL_DOWN)
    assert rig.lines() == ["vpnrouter: CLIENT_CLIENT_CONNECT: x", "vpnrouter: x"]


def test_rate_limit() -> None:
    """Lines beyond the bound are counted, and told; those of other names go on."""
    rig = Rig(rate_limit=2)
    for _ in range(5):
        rig.tell(table.LINK_UP)
    rig.tell(table.LINK_DOWN)
    assert len(rig.lines()) == 3
    rig.log.tick(5)
    told = "vpnrouter: 3 more VPN_BRIDGING_LINK_UP were not written (logging.rate_limit)"
    assert rig.lines() == [told]
    rig.log.tick(6)
    assert rig.lines() == []


def test_a_reload_is_told_whole() -> None:
    """Changes of the configuration are not limited: who makes them may do worse."""
    rig = Rig(rate_limit=1)
    for number in range(5):
        rig.tell(table.RELOAD, f"{number}")
    assert [line[-1] for line in rig.lines()] == list("01234")


@pytest.mark.parametrize("form", ["readable", "json"])
def test_one_event_is_one_short_line(form: str) -> None:
    """Hostile names and texts neither break a line nor make it longer than a pipe takes at once."""
    rig = Rig(format=form)
    for text in ("a\nvpnrouter: SIGHUP: forged", "\U0001f600" * 5_000, '"\\' * 5_000, "\ud800"):
        rig.tell(table.LINK_UP, text, text)
    lines = rig.lines()
    assert len(lines) == 4
    assert max(len(line.encode()) for line in lines) < limits.EVENT_LINE_BYTES
    if form == "json":
        assert all(json.loads(line)["event"] == "VPN_BRIDGING_LINK_UP" for line in lines)


def test_lost_lines_are_told() -> None:
    """When somebody reads again he learns how much he missed."""
    rig = Rig()
    closed = io.StringIO()
    closed.close()
    stream = closed
    log = StderrLog("edge", LogWriter(lambda: stream), lambda: rig.settings)
    log(Event(1, 1, table.LINK_UP, "", "", "x"))
    stream = rig.stream
    log.tick(2)
    assert rig.lines() == ["vpnrouter: 1 lines were lost: nobody read stderr"]


# -- log writer ------------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The end to read of a pipe, and the other one as the stream to write to."""
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w", encoding="utf-8")
    yield reading, stream
    os.close(reading)
    with suppress(BrokenPipeError):
        stream.close()


def test_nobody_reads(pipe: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """A full pipe stalls nobody: lines wait, then are lost and counted, and come in order later."""
    monkeypatch.setattr(limits, "EVENT_LINES_WAITING", 500)
    reading, stream = pipe
    writer = LogWriter(lambda: stream)
    began = time.monotonic()
    written = 3_000
    for number in range(written):
        writer.write(f"{number:06} {'x' * 500}")
    assert time.monotonic() - began < 5
    assert writer.waiting == 500
    assert writer.lost > 0
    assert writer.take_lost() == 0
    found = b""
    while writer.waiting:
        found += os.read(reading, 1 << 20)
        writer.drain()
    os.set_blocking(reading, False)
    try:
        while True:
            found += os.read(reading, 1 << 20)
    except BlockingIOError:
        pass
    numbers = [int(line[:6]) for line in found.decode().splitlines()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) + writer.take_lost() == written
    assert writer.take_lost() == 0


def test_the_reader_is_gone(pipe: tuple[int, TextIO]) -> None:
    """A closed pipe costs the lines and nothing else."""
    reading, stream = pipe
    os.dup2(os.open(os.devnull, os.O_RDONLY), reading)
    writer = LogWriter(lambda: stream)
    for _ in range(3):
        writer.write("x")
    assert writer.take_lost() == 3


def test_streams_in_memory_and_none() -> None:
    """What has no descriptor is written to; without a stream nothing happens."""
    memory = io.StringIO()
    writer = LogWriter(lambda: memory)
    writer.write("x")
    assert memory.getvalue() == "x\n"
    assert not writer.is_terminal
    LogWriter(lambda: None).write("x")
    memory.close()
    writer.write("y")
    assert writer.take_lost() == 1
