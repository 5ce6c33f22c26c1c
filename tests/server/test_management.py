"""The management API on real sockets, and the router behind it."""

import importlib.util
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.server.management import (
    RouterMonitor,
    keep_rates,
)
from vpnrouter.trace.recorder import Recorder

PLACE = Path(__file__).parents[1] / "management" / "standing.py"
GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE_S = 20


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A bound, listening, non-blocking socket."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


class Source:
    """A bridge that can be asked how it stands."""

    def __init__(self, standing: ModuleType, name: str) -> None:
        self.standing = standing
        self.name = name
        self.sampled: list[int] = []

    def status(self, now_ns: int) -> Any:
        return self.standing.bridge_status("blue", self.name, uptime=now_ns)

    def sample(self, now_ns: int) -> None:
        self.sampled.append(now_ns)


def router_of(*names: str) -> Router:
    """A router with message VPNs of these names."""
    router = Router("here", 1, Recorder())
    for name in names:
        bounds = VpnLimits(max_connection_count=5)
        router.add(MessageVpn(name, router.plane, Credentials(False), {}, {}, bounds))
    return router


def test_the_router_as_it_is_seen(standing: ModuleType) -> None:
    """Message VPNs and bridges by name, as they stand when asked."""
    router = router_of("blue", "red")
    bridges: dict[tuple[str, str], Any] = {("blue", "b"): Source(standing, "b")}
    monitor = RouterMonitor(router, bridges, lambda: 7)
    assert monitor.router_name() == "here"
    assert list(monitor.msg_vpn_names()) == ["blue", "red"]
    blue = monitor.msg_vpn("blue")
    assert blue is not None
    assert (blue.bridge_count, blue.max_connection_count, blue.state) == (1, 5, "up")
    assert (blue.rx_msg_count, blue.discarded, blue.msg_vpn_connections) == (0, {}, 0)
    router.vpns["blue"].discards.add("loop-detected", 3)
    router.vpns["blue"].discards.add("client-not-connected", 2)
    router.vpns["blue"].enabled = False
    blue = monitor.msg_vpn("blue")
    assert blue is not None
    assert (blue.discarded, blue.discarded_msg_count, blue.state) == (
        {"loop-detected": 3, "client-not-connected": 2},
        5,
        "down",
    )
    assert (blue.rx_discarded, blue.rx_discarded_msg_count) == ({"loop-detected": 3}, 3)
    assert (blue.tx_discarded, blue.tx_discarded_msg_count) == ({"client-not-connected": 2}, 2)
    assert monitor.msg_vpn("nope") is None
    assert list(monitor.bridge_names("blue")) == ["b"]
    assert list(monitor.bridge_names("red")) == []
    status = monitor.bridge("blue", "b")
    assert status is not None
    assert status.uptime == 7
    assert monitor.bridge("red", "b") is None
    bridges["red", "late"] = Source(standing, "late")
    assert list(monitor.bridge_names("red")) == ["late"]
    assert monitor.is_ready()
    monitor.stopping = True
    assert not monitor.is_ready()


async def test_rates_are_sampled(
    standing: ModuleType, autojump_clock: trio.testing.MockClock
) -> None:
    """Each bridge once a second, also one that came later."""
    sources = [Source(standing, "a")]
    with trio.move_on_after(2.5):
        await keep_rates(lambda: sources)
    assert len(sources[0].sampled) == 3
    sources.append(Source(standing, "b"))
    with trio.move_on_after(0.5):
        await keep_rates(lambda: sources)
    assert len(sources[1].sampled) == 1


def test_nothing_is_loaded_without_a_listener() -> None:
    """Who has no http listener pays nothing for it when starting."""
    program = (
        "import sys; import vpnrouter.server.run;"
        "print({'fastapi', 'starlette', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_served_beside_other_threads(standing: ModuleType) -> None:
    """Many clients at once get whole answers."""
    with standing.serving(standing.three_bridges()) as address:
        found: list[int] = []

        def ask() -> None:
            with httpx.Client(trust_env=False) as client:
                for _ in range(5):
                    rows = client.get(f"http://{address}/vpnrouter/v1/bridges").json()["data"]
                    found.append(len(rows))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert found == [3] * 20
