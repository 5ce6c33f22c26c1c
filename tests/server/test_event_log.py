"""The event log of a running router: thresholds, reloads, failures at its edge."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from vpnrouter.config.load import load
from vpnrouter.config.router import RouterConfig
from vpnrouter.events import table
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.events.event_context import current_log, raise_event_in, raise_named
from vpnrouter.server.events.log import RouterEvents

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


async def until(node: Any, name: str) -> None:
    """Wait until an event of this name was raised."""
    raised = trio.Event()
    log = node.router.context.events
    log.listeners.append(lambda event: raised.set() if event.kind.name == name else None)
    if name not in names(node):
        with trio.fail_after(20):
            await raised.wait()


async def test_a_router_tells_what_happens(running: Any, client_of: Any) -> None:
    """Listeners, logins, bounds, thresholds and their clear events, in order."""
    async with running(TEXT) as node:
        one, other, third = [await client_of(node) for _ in range(3)]
        await one.connect("a")
        await other.connect("b")
        assert (await third.connect("c")).reason_code == 0x97
        await until(node, "VPN_VPN_CONNECTIONS_HIGH")
        await one.stream.aclose()
        await until(node, "VPN_VPN_CONNECTIONS_HIGH_CLEAR")
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


async def test_connections_of_a_client_username(running: Any, client_of: Any) -> None:
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
            with trio.fail_after(20):
                while len(told()) < 2 * round_ - 1:  # noqa: ASYNC110 - twice the same event
                    await trio.sleep(0.01)
            for client in clients:
                await client.stream.aclose()
            with trio.fail_after(20):
                while len(told()) < 2 * round_:  # noqa: ASYNC110 - twice the same event
                    await trio.sleep(0.01)
        assert told() == [("ann", "CONNECTIONS_HIGH"), ("ann", "CONNECTIONS_HIGH_CLEAR")] * 2
