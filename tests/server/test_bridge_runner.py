"""The task of one bridge, between two routers inside the test."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
import trio

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.configured_bridge import subscriptions
from vpnrouter.server.net import dial

EDGE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: ALLOWED}}
"""

CORE = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}]
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        enabled: ENABLED
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "LOCATION"}]
        remote_subscriptions: ["weather/>"]
"""


def core(location: str, enabled: str = "true") -> str:
    """The router with the bridge."""
    return CORE.replace("LOCATION", location).replace("ENABLED", enabled)


async def until(true: Callable[[], bool]) -> None:
    """Let the routers run until something is true."""
    with trio.fail_after(20):
        while not true():  # noqa: ASYNC110 - a state tells nobody that it changed
            await trio.sleep(0.01)


async def test_up_and_down(running: Any, client_of: Any, port: Any) -> None:
    """The record follows the link: in sync with its remote's name, and why it is down after."""
    async with running(EDGE.replace("ALLOWED", "true"), "edge") as edge:
        location = f"127.0.0.1:{port(edge, 'link')}"
        async with running(core(location), "core") as node:
            record = node.bridges[0].record
            await until(lambda: record.inbound_state is Inbound.READY_IN_SYNC)
            assert (record.remote_router_name, record.remote_address) == ("edge", location)
            assert record.inbound_failure_reason == ""
            subscriber, publisher = await client_of(node), await client_of(edge)
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            await publisher.connect("p")
            await publisher.publish("weather/1", b"rain")
            assert await subscriber.payload() == b"rain"
            (link,) = edge.book.serving.values()
            link.goodbye(0x98, "503 Disconnected By Administrator")
            await until(lambda: record.failures == 1)
            await until(lambda: record.inbound_state is Inbound.READY_IN_SYNC)
            await publisher.publish("weather/2", b"sun")
            assert await subscriber.payload() == b"sun"
            assert record.counters is not None
        await until(lambda: not edge.book.serving)
        assert edge.router.vpns["blue"].subscription_count == 0


async def test_a_refusal_is_kept(running: Any, port: Any) -> None:
    """A refused bridge keeps the reason and does not hammer the remote; it is told once on either side."""
    async with running(EDGE.replace("ALLOWED", "false"), "edge") as edge:
        text = core(f"127.0.0.1:{port(edge, 'link')}")
        async with running(text, "core") as node:
            record = node.bridges[0].record
            await until(lambda: record.failures > 0)
            assert record.inbound_failure_reason == "403 Bridge Connections Not Allowed"
            await trio.sleep(0.3)
            assert edge.router.logins_refused == 1


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("127.0.0.1:1", "cannot connect to 127.0.0.1:1: Connection refused"),
        ("no-such-host.invalid:5", "cannot look up no-such-host.invalid: "),
        ("a" * 64 + ":5", "cannot look up " + "a" * 64 + ": "),
        ("a..b:5", "cannot look up a..b: "),
        ("v:elsewhere", "no link to router elsewhere"),
    ],
)
async def test_remotes_that_cannot_be_reached(running: Any, location: str, reason: str) -> None:
    """Each way to miss a remote is told in the bridge's failure reason, and the router serves on."""
    async with running(core(location), "core") as node:
        record = node.bridges[0].record
        await until(lambda: record.failures > 1)
        assert record.inbound_failure_reason.startswith(reason)


async def test_a_bridge_that_is_switched_off(running: Any, port: Any) -> None:
    """A bridge that is disabled dials nobody."""
    async with running(EDGE.replace("ALLOWED", "true"), "edge") as edge:
        location = f"127.0.0.1:{port(edge, 'link')}"
        async with running(core(location, "false"), "core") as node:
            await until(lambda: node.bridges[0].record.inbound_state is Inbound.DISABLED)
            await trio.sleep(0.1)
            assert edge.book.serving == {}


@pytest.mark.parametrize(
    ("syntax", "topic", "asked"),
    [
        ("smf", "a/*/>", ["a/*/>"]),
        ("mqtt", "a/+/c", ["a/*/c"]),
        ("mqtt", "#", [">"]),
        ("mqtt", "a/#", ["a", "a/>"]),
    ],
)
def test_subscriptions_in_the_link_s_dialect(syntax: str, topic: str, asked: list[str]) -> None:
    """MQTT filters become what matches the same topics in `*` `>` dialect."""
    written = Bridge.model_validate({"topic_syntax": syntax, "remote_subscriptions": [topic]})
    assert sorted(text for _, text in subscriptions(written)) == asked


def test_subscription_flags() -> None:
    """Deliver-always and the deliver-to-one priority go with each filter."""
    written = Bridge.model_validate(
        {
            "remote_deliver_to_one_priority": "p2",
            "remote_subscriptions": ["a", {"topic": "b", "deliver_always_enabled": True}],
        }
    )
    assert subscriptions(written) == [(4, "a"), (5, "b")]


async def test_an_address_that_swallows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several addresses of a remote, one that never answers does not keep the next from being tried."""
    monkeypatch.setattr(dial, "CONNECT_S", 0.4)
    with socket.socket() as silent, socket.create_server(("127.0.0.1", 0)) as good:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        # Its queue is full: the kernel drops what else wants in.
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(silent.getsockname())
            fillers.append(filler)
        found: list[tuple[int, int, int, str, object]] = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", address)
            for address in (silent.getsockname(), good.getsockname())
        ]
        connected = await dial._connect(found)
        assert connected.getpeername() == good.getsockname()
        for sock in (connected, *fillers):
            sock.close()
