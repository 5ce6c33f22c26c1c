"""A router inside the test: ready line, traces that cannot be written, memory, and a system without epoll."""

from __future__ import annotations

import gc
import select
import subprocess
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from vpnrouter.server.net import interpreter as settled
from vpnrouter.server.net.interpreter import (
    SWITCH_S,
    YOUNG,
    MemoryWatch,
    settle,
)

PLAIN = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}
"""


async def test_the_ready_line_names_every_listener(running: Any) -> None:
    """Listeners stand in the order of the configuration, with the ports that the system chose."""
    text = """
listeners:
  - {protocol: link, bind: "127.0.0.1:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: mqtt, bind: "[::1]:0"}
  - {protocol: mqtt, bind: "127.0.0.1:0", enabled: false}
msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}
"""
    async with running(text) as node:
        words = node.ready_line().split()
        assert words[:2] == ["ready", "router=here"]
        assert [word.rpartition(":")[0] for word in words[2:]] == [
            "link=127.0.0.1",
            "mqtt=127.0.0.1",
            "ws=127.0.0.1",
            "mqtt=[::1]",
        ]
        assert 0 not in [int(word.rpartition(":")[2]) for word in words[2:]]


async def test_a_trace_directory_that_cannot_be(
    running: Callable[..., Any], client_of: Any, tmp_path: Any
) -> None:
    """Where no trace file can be written the router serves all the same."""
    (tmp_path / "file").write_text("in the way")
    text = PLAIN + f"trace: {{directory: {tmp_path}/file/traces, sample: 1.0}}\n"
    async with running(text) as node:
        client = await client_of(node)
        await client.connect()
        await client.subscribe("#")
        await client.publish("a", b"x")
        assert await client.payload() == b"x"


# -- settle ----------------------------------------------------------------------------------------


class Knot:
    """An object that refers to itself: only the garbage watch can free it."""

    def __init__(self) -> None:
        self.myself = self


def test_what_is_there_is_frozen(interpreter: None) -> None:
    """Threads switch sooner, young objects are looked at later, and what exists is not walked again."""
    settle()
    assert sys.getswitchinterval() == SWITCH_S
    assert gc.get_threshold()[0] == YOUNG
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize(
    ("grown", "counted", "freed"),
    [
        pytest.param(0, 0, False, id="nothing has grown"),
        pytest.param(3_000_000, 0, True, id="nobody knows why"),
        pytest.param(3_000_000, 3_000_000, False, id="clients hold it"),
        pytest.param(0, -3_000_000, True, id="clients held it, and have ended"),
    ],
)
def test_cycles_are_freed_when_memory_has_grown(
    interpreter: None, monkeypatch: pytest.MonkeyPatch, grown: int, counted: int, freed: bool
) -> None:
    """A cycle that survived a young collection waits until all objects are walked, for which there must be a reason."""
    monkeypatch.setattr(settled, "GROWTH_BYTES", 1_000_000)
    monkeypatch.setattr(settled, "TRIM_BYTES", 500_000)
    resident = [2_000_000]
    monkeypatch.setattr(settled, "resident_bytes", lambda: resident[0])
    held = [4_000_000]
    watch = MemoryWatch()
    watch.counted = lambda: held[0]
    watch.settle()
    knot = Knot()
    seen = weakref.ref(knot)
    gc.collect(0)
    del knot
    resident[0] += grown
    held[0] += counted
    for _ in range(settled.LOOKS - 1):
        watch.look()
        assert seen() is not None
    watch.look()
    assert (seen() is None) == freed


@pytest.mark.parametrize(
    ("grown", "looks"), [(20_000_000, 0), (30_000_000, settled.LOOKS), (110_000_000, 1)]
)
def test_much_free_memory_goes_back_at_once(
    interpreter: None, monkeypatch: pytest.MonkeyPatch, grown: int, looks: int
) -> None:
    """What is less is given back when nobody has used it for a second, and objects are not walked before."""
    resident = [100_000_000]
    monkeypatch.setattr(settled, "resident_bytes", lambda: resident[0])
    watch = MemoryWatch()
    watch.settle()
    trims: list[int] = []
    monkeypatch.setattr(watch, "_allocator", SimpleNamespace(malloc_trim=trims.append))
    knot = Knot()
    seen = weakref.ref(knot)
    gc.collect(0)
    del knot
    resident[0] += grown
    for look in range(1, 2 * settled.LOOKS):
        watch.look()
        assert bool(trims) == (0 < looks <= look)
        assert look >= settled.LOOKS or seen() is not None
    assert (seen() is None) == (grown > settled.GROWTH_BYTES)


def test_what_exists_at_the_start_is_not_walked(
    interpreter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle of it stays: that a walk is short is worth more."""
    early, late = Knot(), Knot()
    early_seen, late_seen = weakref.ref(early), weakref.ref(late)
    del late
    watch = MemoryWatch()
    watch.settle()
    assert late_seen() is None
    del early
    late = Knot()
    late_seen = weakref.ref(late)
    del late
    monkeypatch.setattr(settled, "resident_bytes", lambda: 1 << 50)
    for _ in range(settled.LOOKS):
        watch.look()
    assert late_seen() is None
    assert early_seen() is not None


# -- tasks -----------------------------------------------------------------------------------------


EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {bridge: {password: secret, client_profile: bridging}}
"""

CORE = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}]
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: bridge, password: secret}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:PORT"}]
        remote_subscriptions: ["weather/>"]
"""


async def test_two_routers_without_epoll(
    running: Any, client_of: Any, port: Any, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    """Clients and a bridge work when every socket is served by tasks."""
    monkeypatch.delattr(select, "epoll")
    async with running(EDGE, "edge") as edge:
        text = CORE.replace("PORT", str(port(edge, "link")))
        async with running(text, "core") as core:
            await until(lambda: core.bridges[0].record.is_up)
            subscriber, publisher = await client_of(core), await client_of(edge)
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            await publisher.connect("p")
            await publisher.publish("other", b"stays")
            await publisher.publish("weather/oslo", b"rain")
            assert await subscriber.payload() == b"rain"


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


LARGE_AND_SMALL = """
from vpnrouter.server.net.interpreter import LOOKS, MEMORY, settle

def held():
    text = open("/proc/self/status", encoding="ascii").read()
    return int(text.partition("RssAnon:")[2].split()[0]) * 1024

settle()
before = held()
kept = []
for _ in range(20):
    large = [bytes(9_000_000) for _ in range(4)]
    large = [each[1:] for each in large]
    kept.append([bytes(2_000) for _ in range(200)])
    most = held() - before
    del large
for _ in range(LOOKS):
    MEMORY.look()
print(most, held() - before)
"""


def test_the_memory_of_large_messages_goes_back() -> None:
    """What lives on between large blocks does not keep their memory."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE_AND_SMALL], capture_output=True, text=True, check=True
    )
    most, left = map(int, done.stdout.split())
    assert most > 36_000_000
    assert left < 20_000_000
