"""A router inside the test: ready line, listeners, passwords, a slow consumer, a clean stop."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.config.secrets import hash_password
from vpnrouter.errors import OperationError
from vpnrouter.server.run import Node, serve
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
