"""A router inside the test: ready line, listeners, passwords, a slow consumer, a clean stop."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio
import trio.testing

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.secrets import hash_password
from vpnrouter.errors import OperationError
from vpnrouter.server.net import loop as settled
from vpnrouter.server.net.loop import SWITCH_S, YOUNG, GarbageCollector, settle
from vpnrouter.server.run import Node, say_goodbye, serve
from vpnrouter.wire.mqtt.packets import Disconnect

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


@pytest.mark.parametrize(("one", "other"), [(4, 4), (5, 5), (4, 5), (5, 4)])
async def test_a_message_from_client_to_client(
    running: Any, client_of: Any, one: int, other: int
) -> None:
    """What one client publishes another one gets, whatever MQTT versions the two speak."""
    async with running(PLAIN) as node:
        subscriber, publisher = await client_of(node, other), await client_of(node, one)
        await subscriber.connect("s")
        await subscriber.subscribe("a/#")
        await publisher.connect("p")
        await publisher.publish("b", b"no")
        await publisher.publish("a/b", b"yes")
        assert await subscriber.payload() == b"yes"


async def test_a_hashed_password(running: Any, client_of: Any) -> None:
    """A right password lets in, a wrong one not, and others are served while it is verified."""
    text = f"""
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
msg_vpns:
  blue:
    client_usernames: {{app: {{password: "{hash_password("right", bytes(16))}"}}}}
"""
    async with running(text) as node:
        good = await client_of(node)
        assert (await good.connect("g", username="app", password=b"right")).reason_code == 0
        bad = await client_of(node)
        assert (await bad.connect("b", username="app", password=b"wrong")).reason_code == 0x86
        assert await bad.packet() is None
        again = await client_of(node)
        assert (await again.connect("a", username="app", password=b"right")).reason_code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_tells_the_clients(
    configured: Any, interpreter: None, client_of: Any, number: signal.Signals
) -> None:
    """On a signal every MQTT 5 client gets DISCONNECT 0x8B, and serve() returns by itself."""
    up: list[Node] = []
    ended = trio.Event()

    async def serve_it() -> None:
        await serve(configured(PLAIN), up.append)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_it)
        await trio.testing.wait_all_tasks_blocked(0.05)
        client = await client_of(up[0])
        await client.connect()
        os.kill(os.getpid(), number)
        packet = await client.packet()
        assert isinstance(packet, Disconnect)
        assert packet.reason_code == 0x8B
        assert await client.packet() is None
        with trio.fail_after(5):
            await ended.wait()


async def test_a_client_that_never_reads_stalls_nobody(running: Any, client_of: Any) -> None:
    """A subscriber that stops reading costs its own messages; another one gets them all."""
    async with running(PLAIN) as node:
        slow, quick, publisher = [await client_of(node) for _ in range(3)]
        for client, name in ((slow, "slow"), (quick, "quick"), (publisher, "p")):
            await client.connect(name)
        await slow.subscribe("#")
        await quick.subscribe("#")
        payload = bytes(100_000)
        count = 300
        with trio.fail_after(60):
            for _ in range(count):
                await publisher.publish("a", payload)
                assert await quick.payload() == payload
        outbox = node.router.vpns["blue"].clients["slow"].outbox
        assert outbox.discarded > 0
        assert outbox.size <= outbox.limit
        assert outbox.messages + outbox.discarded == count
        assert node.router.vpns["blue"].clients["quick"].outbox.discarded == 0


async def test_the_most_connections_of_a_listener(running: Any, client_of: Any) -> None:
    """Beyond `max_connection_count` a connection is closed at once; a place that is free is taken."""
    text = PLAIN.replace("msg_vpn: blue}", "msg_vpn: blue, max_connection_count: 1}", 1)
    async with running(text) as node:
        first = await client_of(node)
        await first.connect("one")
        second = await client_of(node)
        assert await second.packet() is None
        await first.stream.aclose()
        with trio.fail_after(5):
            while node.router.vpns["blue"].clients:
                await trio.testing.wait_all_tasks_blocked(0.01)
        third = await client_of(node)
        assert (await third.connect("three")).reason_code == 0


async def test_an_address_in_use(configured: Any, interpreter: None) -> None:
    """An address that cannot be bound is one OperationError that names it; nothing stays behind."""
    with trio.socket.socket() as taken:
        await taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        number = taken.getsockname()[1]
        config = configured(PLAIN.replace("127.0.0.1:0", f"127.0.0.1:{number}"))
        with pytest.raises(OperationError, match=rf"cannot listen on 127\.0\.0\.1:{number}: "):
            await serve(config, lambda node: None)


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


# -- stop ------------------------------------------------------------------------------------------


EDGE = """
listeners: [{protocol: link, bind: "127.0.0.1:0"}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

CORE = """
msg_vpns:
  yellow:
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:LINK"}]
        remote_subscriptions: [">"]
"""


class NoSockets:
    """A host whose sockets stay, so that what was said can be read."""

    def close_all(self) -> None:
        """Keep them."""


async def up(node: Any) -> Any:
    """Wait until the node's bridge is in sync; its record."""
    record = node.bridges[0].record
    with trio.fail_after(20):
        while record.inbound_state is not Inbound.READY_IN_SYNC:  # noqa: ASYNC110 - tells nobody
            await trio.sleep(0.01)
    return record


async def test_the_dialling_side_hears_why(running: Any, port: Any) -> None:
    """A remote that stops closes its links with its reason, kept in the bridge's record."""
    async with (
        running(EDGE, "edge") as edge,
        running(CORE.replace("LINK", str(port(edge, "link"))), "core") as core,
    ):
        record = await up(core)
        host: Any = NoSockets()
        say_goodbye(edge.router, host, list(edge.book.serving.values()))
        assert edge.book.serving == {}
        with trio.fail_after(20):
            while record.failures == 0:  # noqa: ASYNC110 - tells nobody
                await trio.sleep(0.01)
        assert record.inbound_failure_reason == "503 Service Unavailable"


async def test_the_accepting_side_hears_why(running: Any, port: Any, tmp_path: Path) -> None:
    """A router that stops closes the links of its own bridges as well, and says why."""
    traced = EDGE + f"trace: {{directory: {tmp_path}/traces, sample: 1.0}}\n"
    async with running(traced, "edge") as edge:
        async with running(CORE.replace("LINK", str(port(edge, "link"))), "core") as core:
            await up(core)
        with trio.fail_after(20):
            while edge.book.serving:  # noqa: ASYNC110 - tells nobody
                await trio.sleep(0.01)
        assert edge.router.vpns["blue"].clients == {}
    (path,) = (tmp_path / "traces").rglob("part-*.parquet")
    events = pq.ParquetFile(path).read().to_pylist()
    assert [row["reason"] for row in events if row["event"] == "link_down"] == [
        "503 Service Unavailable"
    ]


# -- settle ----------------------------------------------------------------------------------------


class Knot:
    """An object that refers to itself: only the garbage collector can free it."""

    def __init__(self) -> None:
        self.myself = self


def test_what_is_there_is_frozen(interpreter: None) -> None:
    """Threads switch sooner, young objects are looked at later, and what exists is not walked again."""
    settle()
    assert sys.getswitchinterval() == SWITCH_S
    assert gc.get_threshold()[0] == YOUNG
    assert gc.get_freeze_count() > 0


def test_frozen_cycles_are_freed_when_memory_has_grown(
    interpreter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle that survived a young collection waits until all objects are walked, and that is rare."""
    monkeypatch.setattr(settled, "PORTIONS", 2)
    monkeypatch.setattr(settled, "GROWTH", 10_000)
    collector = GarbageCollector()
    collector.settle()
    knot = Knot()
    seen = weakref.ref(knot)
    survivors = []

    def grow(blocks: int) -> None:
        for _ in range(4):
            survivors.extend([number] for number in range(blocks // 4))
            gc.collect(0)
            collector.tick()

    grow(2_000)
    del knot
    grow(2_000)
    assert seen() is not None
    grow(max(20_000, 2 * sys.getallocatedblocks()))
    assert seen() is None


# -- tasks -----------------------------------------------------------------------------------------


EDGE_TASKS = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {bridge: {password: secret, client_profile: bridging}}
"""

CORE_TASKS = """
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
    running: Any, client_of: Any, port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients and a bridge work when every socket is served by tasks."""
    monkeypatch.delattr(select, "epoll")
    async with running(EDGE_TASKS, "edge") as edge:
        text = CORE_TASKS.replace("PORT", str(port(edge, "link")))
        async with running(text, "core") as core:
            with trio.fail_after(20):
                while not core.bridges[0].record.is_up:  # noqa: ASYNC110 - a state tells nobody
                    await trio.sleep(0.01)
            subscriber, publisher = await client_of(core), await client_of(edge)
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            await publisher.connect("p")
            await publisher.publish("other", b"stays")
            await publisher.publish("weather/oslo", b"rain")
            assert await subscriber.payload() == b"rain"
