"""Topic mappings of what goes out change while the peer's bridge stays logged in."""

from collections.abc import Callable
from typing import Any

import trio

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.wire.mqtt.packets import Publish

BASIC = "authentication: {basic: {enabled: false}}"
LOGIN = "remote_authentication: {basic: {client_username: any}}"


def edge_text(mapping: str) -> str:
    """The router that renames what goes out to yellow on router core."""
    remote = '{name: yellow, router: core, location: "127.0.0.1:1"}'
    return f"""
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: link, bind: "127.0.0.1:0"}}
msg_vpns:
  blue:
    {BASIC}
    client_profiles: {{default: {{allow_bridge_connections_enabled: true}}}}
    bridges: {{back: {{{LOGIN}, remote_msg_vpns: [{remote}], topic_mapping: [{mapping}]}}}}
"""


def core_text(port: int, topics: str) -> str:
    """The router whose bridge takes them."""
    remote = f'{{name: blue, location: "127.0.0.1:{port}"}}'
    return f"""
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}}]
msg_vpns:
  yellow:
    {BASIC}
    client_profiles: {{default: {{allow_bridge_connections_enabled: true}}}}
    bridges:
      one: {{{LOGIN}, remote_msg_vpns: [{remote}], remote_subscriptions: [{topics}]}}
"""


async def until(true: Callable[[], bool]) -> None:
    """Let the routers run until something is true."""
    with trio.fail_after(20):
        while not true():  # noqa: ASYNC110 - a state tells nobody that it changed
            await trio.sleep(0.01)


async def test_names_change_for_the_next_message(
    running: Any, client_of: Any, configured: Any, port: Any
) -> None:
    """Each mapping holds for the next message over the same link, with what the peer had asked for."""
    async with running(edge_text(""), "edge") as edge:
        topics = '"x/>", {topic: "a/>", deliver_always_enabled: true, selector: "k = \'v\'"}'
        async with running(core_text(port(edge, "link"), topics), "core") as node:
            runner = node.bridges[0]
            await until(lambda: runner.record.inbound_state is Inbound.READY_IN_SYNC)
            link = runner.half.link
            (served,) = edge.book.serving.values()
            publisher, subscriber = await client_of(edge), await client_of(node)
            await publisher.connect("p")
            await subscriber.connect("s")
            await subscriber.subscribe("#")
            for mapping, topic in (
                ("", "x/1"),
                ('{from: "x/>", to: "x/z/{1}", direction: out}', "x/z/2"),
                ('{from: "x/>", to: "x/y/{1}", direction: out}', "x/y/3"),
                ("", "x/4"),
            ):
                edge.reload(configured(edge_text(mapping), "edge"))
                await publisher.publish(f"x/{topic[-1]}")
                packet = await subscriber.packet()
                assert isinstance(packet, Publish)
                assert packet.topic.decode() == topic
            assert runner.half.link is link
            assert list(edge.book.serving.values()) == [served]
            kept = served.client.subscriptions["a/>"]
            assert kept.deliver_always
            assert kept.selector.text == "k = 'v'"


async def test_what_stood_for_nothing(
    running: Any, client_of: Any, configured: Any, port: Any
) -> None:
    """A peer that asked for what no topic here became gets it when that changes, over the same link."""
    nothing = '{from: ">", to: "all/{1}", direction: out}'
    async with running(edge_text(nothing), "edge") as edge:  # noqa: SIM117
        async with running(core_text(port(edge, "link"), '"x/>"'), "core") as node:
            runner = node.bridges[0]
            await until(lambda: runner.record.inbound_state is Inbound.READY_IN_SYNC)
            assert edge.router.vpns["blue"].subscription_count == 0
            link = runner.half.link
            edge.reload(configured(edge_text(""), "edge"))
            await until(lambda: edge.router.vpns["blue"].subscription_count == 1)
            assert runner.half.link is link
