"""What a reload does to bridges between routers that go on running, with messages on the way."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.wire.mqtt.packets import Publish

BASIC = "authentication: {basic: {enabled: false}}"
ALLOWED = "client_profiles: {default: {allow_bridge_connections_enabled: true}}"
LOGIN = "remote_authentication: {basic: {client_username: core, password: core}}"
USERNAMES = "client_usernames: {core: {password: core}}"
EDGE = f"""
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: link, bind: "127.0.0.1:0"}}
  LINKS
msg_vpns:
  blue: {{{BASIC}, {ALLOWED}, {USERNAMES}}}
"""


def bridge(location: str, more: str = "", remote: str = "", topics: str = '"a/>"') -> str:
    """A bridge from blue."""
    if "remote_authentication" not in more:
        more = f"{LOGIN}, {more}"
    return (
        f'{{remote_msg_vpns: [{{name: blue, location: "{location}", {remote}}}],'
        f" remote_subscriptions: [{topics}], {more}}}"
    )


def core(bridges: dict[str, str], vpn: str = "", others: str = "") -> str:
    """A router with bridges into yellow."""
    listed = ", ".join(f"{name}: {text}" for name, text in bridges.items())
    return (
        'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}]\n'
        f"msg_vpns:\n  yellow: {{{BASIC}, bridges: {{{listed}}}, {vpn}}}\n{others}"
    )


def in_sync(node: Any) -> Callable[[], bool]:
    """Whether all bridges of a node are up."""
    return lambda: all(
        runner.record.inbound_state is Inbound.READY_IN_SYNC for runner in node.bridges
    )


class Mesh:
    """Two routers, `edge` and `node`, with a publisher there and a subscriber here."""

    def __init__(self, edge: Any, node: Any, publisher: Any, subscriber: Any) -> None:
        self.edge, self.node = edge, node
        self.publisher, self.subscriber = publisher, subscriber
        self.got: list[tuple[str, bytes]] = []

    async def hear(self, count: int) -> list[tuple[str, bytes]]:
        """Wait for so many messages in all."""
        while len(self.got) < count:
            packet = await self.subscriber.packet()
            assert isinstance(packet, Publish)
            self.got.append((packet.topic.decode(), packet.payload))
        return self.got


@pytest.fixture
def mesh(running: Any, client_of: Any, port: Any, until: Any) -> Any:
    """Opens a Mesh; `text` makes the second router's configuration from the first one's location."""

    @asynccontextmanager
    async def run(text: Callable[[str], str], edge_text: str = EDGE) -> AsyncIterator[Mesh]:
        async with running(edge_text.replace("LINKS", ""), "edge") as edge:
            location = f"127.0.0.1:{port(edge, 'link')}"
            async with running(text(location), "core") as node:
                await until(in_sync(node))
                publisher, subscriber = await client_of(edge), await client_of(node)
                await publisher.connect("p")
                await subscriber.connect("s")
                await subscriber.subscribe("#")
                yield Mesh(edge, node, publisher, subscriber)

    return run


async def test_subscriptions_under_load(mesh: Any, configured: Any, port: Any) -> None:
    """While subscriptions come and go, no message is lost that is matched before and after."""

    def text(location: str, topics: str = '"a/>"') -> str:
        return core({"one": bridge(location, topics=topics)})

    async with mesh(text) as it:
        location = f"127.0.0.1:{port(it.edge, 'link')}"
        link = it.node.bridges[0].half.link
        for number in range(400):
            await it.publisher.publish("a/b", b"%d" % number)
            if number % 40 == 20:
                topics = ('"a/b", "c"', '"a/*"', '"*/b", "c"', '"a/>"')[number // 40 % 4]
                it.node.reload(configured(text(location, topics), "core"))
        got = await it.hear(400)
        assert [payload for _, payload in got] == [b"%d" % number for number in range(400)]
        assert it.node.bridges[0].half.link is link


async def test_hops_and_names_hold_for_the_next_message(
    mesh: Any, configured: Any, port: Any
) -> None:
    """`max_ttl` and topic mappings change without a reconnect."""

    def text(location: str, more: str = "") -> str:
        return core({"one": bridge(location, more)})

    async with mesh(text) as it:
        location = f"127.0.0.1:{port(it.edge, 'link')}"
        runner = it.node.bridges[0]
        link = runner.half.link
        await it.publisher.publish("a/1")
        for more in ("topic_mapping: [{add_prefix: x}], max_ttl: 3", ""):
            await it.hear(len(it.got) + 1)
            assert it.node.reload(configured(text(location, more), "core"))
            assert runner.half.terms.max_ttl == (3 if more else 8)
            await it.publisher.publish("a/1")
        assert [topic for topic, _ in await it.hear(3)] == ["a/1", "x/a/1", "a/1"]
        assert runner.half.link is link


async def test_come_and_go(mesh: Any, configured: Any, port: Any, until: Any) -> None:
    """Bridges are added, switched off and on, and removed, each told to the other router."""

    def text(location: str, **bridges: str) -> str:
        named = {name: bridge(location, more) for name, more in bridges.items()}
        return core(named)

    async with mesh(lambda location: text(location, one="")) as it:
        location = f"127.0.0.1:{port(it.edge, 'link')}"

        def change(**bridges: str) -> list[str]:
            lines: list[str] = it.node.reload(configured(text(location, **bridges), "core"))
            return lines

        assert change(one="", two="") == ["msg_vpns.yellow.bridges.two: added"]
        await until(in_sync(it.node))
        assert len(it.edge.book.serving) == 2
        assert len(change(one="enabled: false", two="")) == 1
        await until(lambda: len(it.edge.book.serving) == 1)
        assert it.node.bridges[0].record.inbound_state is Inbound.DISABLED
        assert len(change(one="", two="")) == 1
        await until(in_sync(it.node))
        assert change(two="") == ["msg_vpns.yellow.bridges.one: removed"]
        await until(lambda: len(it.edge.book.serving) == 1)
        assert len(it.node.bridges) == 1
        # Gone and back before any task could run.
        change()
        change(two="")
        await until(lambda: in_sync(it.node)() and len(it.edge.book.serving) == 1)
        await it.publisher.publish("a/1", b"x")
        assert await it.hear(1) == [("a/1", b"x")]


async def test_a_message_vpn_with_bridges(
    mesh: Any, configured: Any, port: Any, until: Any
) -> None:
    """A message VPN comes with its bridges, takes them down with it, and lets them come again."""

    def text(location: str, green: str = "") -> str:
        more = f"  green: {{{BASIC}, bridges: {{two: {bridge(location)}}}, {green}}}\n"
        return core({"one": bridge(location)}, others=more if green else "")

    async with mesh(text) as it:
        location = f"127.0.0.1:{port(it.edge, 'link')}"
        link = it.node.bridges[0].half.link
        for green, count in (("enabled: true", 2), ("enabled: false", 1), ("enabled: true", 2)):
            it.node.reload(configured(text(location, green), "core"))
            await until(lambda count=count: len(it.edge.book.serving) == count)  # type: ignore[misc]
        await until(in_sync(it.node))
        it.node.reload(configured(text(location), "core"))
        await until(lambda: len(it.edge.book.serving) == 1)
        assert it.node.bridges[0].half.link is link


async def test_a_client_username_of_a_bridge(
    running: Any, configured: Any, port: Any, capfd: Any, until: Any
) -> None:
    """A peer's bridge whose client username is removed is put out with 0x98, and stays out."""
    edge_text = EDGE.replace("LINKS", "").replace(f"{BASIC}, ", "").replace(USERNAMES, "USERS")
    known = edge_text.replace("USERS", "client_usernames: {bridge: {password: x}}")
    login = "remote_authentication: {basic: {client_username: bridge, password: x}}"
    async with running(known, "edge") as edge:
        location = f"127.0.0.1:{port(edge, 'link')}"
        async with running(core({"one": bridge(location, login)}), "core") as node:
            await until(in_sync(node))
            (line,) = edge.reload(configured(edge_text.replace("USERS", "enabled: true"), "edge"))
            assert line == "msg_vpns.blue.client_usernames.bridge: removed"
            await until(lambda: node.bridges[0].record.failures > 1)
            assert node.bridges[0].record.inbound_failure_reason == "403 Forbidden"
            told = capfd.readouterr().err
            assert "down: 403 Client Username Is Shutdown: bridge" in told


async def test_the_next_remote(running: Any, configured: Any, port: Any, until: Any) -> None:
    """A removed or disabled remote that is in use sends its bridge to the next one."""
    async with (
        running(EDGE.replace("LINKS", ""), "edge") as edge,
        running(EDGE.replace("LINKS", ""), "rim") as rim,
    ):
        first = (
            f'{{name: blue, location: "127.0.0.1:{port(edge, "link")}", connect_order: 1, MORE}}'
        )
        second = f'{{name: blue, location: "127.0.0.1:{port(rim, "link")}"}}'

        def text(*remotes: str) -> str:
            return core({"one": f"{{{LOGIN}, remote_msg_vpns: [{', '.join(remotes)}]}}"})

        async with running(text(first.replace("MORE", ""), second), "core") as node:
            await until(lambda: len(edge.book.serving) == 1)
            node.reload(configured(text(first.replace("MORE", "enabled: false"), second), "core"))
            await until(lambda: (len(edge.book.serving), len(rim.book.serving)) == (0, 1))
            node.reload(configured(text(first.replace("MORE", "")), "core"))
            await until(lambda: (len(edge.book.serving), len(rim.book.serving)) == (1, 0))


async def test_tls_under_load(
    mesh: Any, configured: Any, port: Any, running: Any, tmp_path: Path, until: Any
) -> None:
    """A bridge goes from a plain connection to TLS and back, and nothing that was on the way is lost."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1", "edge").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "s.pem")
    )
    tls = f"{{certificate: {tmp_path}/s.pem, key: {tmp_path}/s.pem}}"
    edge_text = EDGE.replace("LINKS", f'- {{protocol: links, bind: "127.0.0.1:0", tls: {tls}}}')
    trust = f"bridging: {{tls_server_cert: {{ca: {tmp_path}/ca.pem}}}}"

    def text(location: str, remote: str = "") -> str:
        # The first bridge learns where the router of that name is.
        helper = bridge(location, topics='"none"')
        return core({"helper": helper, "one": bridge("v:edge", "", remote)}, trust)

    async with mesh(text, edge_text) as it:
        location = f"127.0.0.1:{port(it.edge, 'link')}"
        runner = it.node.bridges[1]
        count = 0
        for index, remote in enumerate(("tls_enabled: true", "", "tls_enabled: true")):
            (line,) = it.node.reload(configured(text(location, remote), "core"))
            assert line.endswith("(reconnects after draining if it is in use)")

            def moved(wanted: bool = index != 1) -> bool:
                half = runner.half
                return half is not None and not half.over and half.link.tls == wanted

            with trio.fail_after(20):
                while not (moved() and in_sync(it.node)()):
                    await it.publisher.publish("a/1", b"%d" % count)
                    count += 1
                    await trio.lowlevel.checkpoint()
            for _ in range(50):
                await it.publisher.publish("a/1", b"%d" % count)
                count += 1
        got = await it.hear(count)
        assert [payload for _, payload in got] == [b"%d" % number for number in range(count)]
        assert count > 150
        # Another authority for all TLS bridges of the message VPN: those shake hands again, no others.
        links = [each.half.link for each in it.node.bridges]
        named = text(location, "tls_enabled: true").replace("ca.pem", "./ca.pem")
        it.node.reload(configured(named, "core"))
        await until(lambda: runner.half is not None and runner.half.link is not links[1])
        assert it.node.bridges[0].half.link is links[0]


async def test_credentials_of_a_bridge(
    running: Any, configured: Any, port: Any, until: Any
) -> None:
    """Other credentials leave the link alone and hold at its next login."""
    edge_text = EDGE.replace("LINKS", "").replace(f"{BASIC}, ", "")
    edge_text = edge_text.replace(USERNAMES, "client_usernames: {one: {password: x}}")
    login = "remote_authentication: {basic: {client_username: one, password: %s}}"
    async with running(edge_text, "edge") as edge:
        location = f"127.0.0.1:{port(edge, 'link')}"
        async with running(core({"one": bridge(location, login % "x")}), "core") as node:
            await until(in_sync(node))
            link = node.bridges[0].half.link
            node.reload(configured(core({"one": bridge(location, login % "y")}), "core"))
            await trio.sleep(0.05)
            assert node.bridges[0].half.link is link
            link.goodbye(0x98, "once more")
            await until(lambda: node.bridges[0].record.failures > 1)
            assert node.bridges[0].record.inbound_failure_reason == "403 Forbidden"


# -- apply mapping ---------------------------------------------------------------------------------


LOGIN_AS_ANY = "remote_authentication: {basic: {client_username: any}}"


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
    bridges: {{back: {{{LOGIN_AS_ANY}, remote_msg_vpns: [{remote}], topic_mapping: [{mapping}]}}}}
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
      one: {{{LOGIN_AS_ANY}, remote_msg_vpns: [{remote}], remote_subscriptions: [{topics}]}}
"""


async def test_names_change_for_the_next_message(
    running: Any, client_of: Any, configured: Any, port: Any, until: Any
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
    running: Any, client_of: Any, configured: Any, port: Any, until: Any
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
