"""What a reload does to listeners, and to connections that are open on them."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from vpnrouter.errors import OperationError

LINK = 'protocol: link, bind: "[::1]:0"'

VPNS = """
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}}
  green: {authentication: {basic: {enabled: false}}}
"""


def text(*listeners: str) -> str:
    """A router with these listeners."""
    return "listeners: [" + ", ".join(f"{{{each}}}" for each in listeners) + "]" + VPNS


def mqtt(bind: str = "127.0.0.1:0", more: str = "msg_vpn: blue", protocol: str = "mqtt") -> str:
    """A listener."""
    return f'protocol: {protocol}, bind: "{bind}", {more}'


@pytest.fixture
def free() -> int:
    """A port that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
async def dial(client_type: Any) -> AsyncIterator[Callable[..., Any]]:
    """Opens clients on a port, over TLS with a context; they are closed with the test."""
    streams: list[trio.SocketStream] = []

    async def run(port: int, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Any:
        plain = await trio.open_tcp_stream(host, port)
        streams.append(plain)
        if context is None:
            return client_type(plain)
        return client_type(trio.SSLStream(plain, context, server_hostname="localhost"))

    yield run
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def test_come_and_go(running: Any, client_of: Any, configured: Any, dial: Any) -> None:
    """A listener that is added answers; one that is removed takes no more, and its connections last."""
    async with running(text(mqtt())) as node:
        stays = await client_of(node)
        await stays.connect("c")
        (before,) = node.addresses
        lines = node.reload(configured(text(mqtt("127.0.0.2:0"), LINK)))
        assert sorted(lines) == [
            "listeners[link [::1]:0]: added",
            "listeners[mqtt 127.0.0.1:0]: removed",
            "listeners[mqtt 127.0.0.2:0]: added",
        ]
        assert [protocol for protocol, _ in node.addresses] == ["mqtt", "link"]
        assert node.book.link_port == int(node.addresses[1][1].rpartition(":")[2])
        with pytest.raises(OSError, match=r"refused|connect"):
            await trio.open_tcp_stream("127.0.0.1", int(before[1].rpartition(":")[2]))
        client = await dial(int(node.addresses[0][1].rpartition(":")[2]), host="127.0.0.2")
        assert (await client.connect("d")).reason_code == 0
        await stays.subscribe("#")
        await client.publish("a", b"1")
        assert await stays.payload() == b"1"


@pytest.mark.parametrize("protocol", ["mqtt", "ws"])
async def test_off_and_on(running: Any, configured: Any, free: int, protocol: str) -> None:
    """A listener that is disabled closes its address and is bound again when it is enabled."""
    on = mqtt(f"127.0.0.1:{free}", protocol=protocol)
    async with running(text(on)) as node:
        for _ in range(2):
            node.reload(configured(text(on + ", enabled: false")))
            # Before any task could run.
            node.reload(configured(text(on)))
        node.reload(configured(text(on + ", enabled: false")))
        assert node.addresses == []
        with pytest.raises(OSError, match=r"refused|connect"):
            await trio.open_tcp_stream("127.0.0.1", free)
        (line,) = node.reload(configured(text(on)))
        assert line.endswith(".enabled: false -> true (the listener is bound anew)")
        await (await trio.open_tcp_stream("127.0.0.1", free)).aclose()


async def test_another_protocol_at_the_same_address(
    running: Any, configured: Any, client_of: Any, free: int
) -> None:
    """One address goes from listener to listener without being free in between."""
    async with running(text(mqtt(f"127.0.0.1:{free}", "enabled: true", "link"))) as node:
        for protocol in ("ws", "mqtt", "ws", "mqtt"):
            lines = node.reload(configured(text(mqtt(f"127.0.0.1:{free}", protocol=protocol))))
            assert len(lines) == 2
            assert node.addresses == [(protocol, f"127.0.0.1:{free}")]
        client = await client_of(node)
        assert (await client.connect("c")).reason_code == 0


async def test_who_waits_to_be_accepted(
    running: Any, configured: Any, client_type: Any, free: int
) -> None:
    """Whoever connected to an address before another listener took it over is served by that one."""
    async with running(text(mqtt(f"127.0.0.1:{free}", "enabled: true", "link"))) as node:
        with socket.create_connection(("127.0.0.1", free)) as waiting:
            node.reload(configured(text(mqtt(f"127.0.0.1:{free}"))))
            waiting.setblocking(False)
            client = client_type(trio.SocketStream(trio.socket.from_stdlib_socket(waiting)))
            assert (await client.connect("c")).reason_code == 0


async def test_a_wider_address_on_the_same_port(
    running: Any, configured: Any, client_of: Any, free: int
) -> None:
    """An address that the old one is in the way of is bound in its place, or the old one goes on."""
    async with running(text(mqtt(f"127.0.0.1:{free}"))) as node:
        with pytest.raises(OperationError, match="cannot listen on 192"):
            node.reload(configured(text(mqtt(f"0.0.0.0:{free}"), mqtt("192.0.2.1:5"))))
        client = await client_of(node)
        assert (await client.connect("c")).reason_code == 0
        node.reload(configured(text(mqtt(f"0.0.0.0:{free}"))))
        assert node.addresses == [("mqtt", f"0.0.0.0:{free}")]
        other = await client_of(node)
        assert (await other.connect("d")).reason_code == 0
        await client.subscribe("#")


async def test_another_message_vpn(running: Any, configured: Any, client_of: Any) -> None:
    """Another message VPN of a listener holds for logins from then on."""
    async with running(text(mqtt())) as node:
        first = await client_of(node)
        await first.connect("c")
        node.reload(configured(text(mqtt(more="msg_vpn: green"))))
        second = await client_of(node)
        await second.connect("d")
        assert [list(vpn.clients) for vpn in node.router.vpns.values()] == [["c"], ["d"]]


@pytest.mark.parametrize("tls", [False, True])
async def test_more_and_fewer_connections(
    running: Any,
    configured: Any,
    dial: Any,
    tls: bool,
    tmp_path: Path,
    port: Any,
) -> None:
    """The bound of connections moves under those that are open, for plain ones and for TLS."""
    authority = trustme.CA()
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "s.pem")
    )
    protocol = "mqtts" if tls else "mqtt"
    files = f", tls: {{certificate: {tmp_path}/s.pem, key: {tmp_path}/s.pem}}" if tls else ""
    context = ssl.create_default_context()
    authority.configure_trust(context)

    def bound(most: int) -> str:
        more = f"msg_vpn: blue, max_connection_count: {most}{files}"
        return text(mqtt(more=more, protocol=protocol))

    async with running(bound(2)) as node:

        async def comes_in(name: str) -> bool:
            client = await dial(port(node, protocol), context if tls else None)
            try:
                return (await client.connect(name)).reason_code == 0
            except (AssertionError, trio.BrokenResourceError):
                return False

        assert [await comes_in(name) for name in "abc"] == [True, True, False]
        node.reload(configured(bound(1)))
        assert not await comes_in("c")
        node.reload(configured(bound(4)))
        assert [await comes_in(name) for name in "cde"] == [True, True, False]
        assert len(node.router.vpns["blue"].publishers) == 4


async def test_certificates_under_load(
    running: Any, configured: Any, dial: Any, tmp_path: Path, port: Any
) -> None:
    """Certificates change under load and nobody is disconnected; an old authority lets nobody in."""
    authorities = [trustme.CA(), trustme.CA()]
    servers = trustme.CA()
    for index, authority in enumerate(authorities):
        authority.cert_pem.write_to_path(str(tmp_path / f"ca{index}.pem"))
        servers.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
            str(tmp_path / f"s{index}.pem")
        )

    def using(index: int) -> str:
        own = f"{tmp_path}/s{index}.pem"
        tls = f"certificate: {own}, key: {own}, client_ca: {tmp_path}/ca{index}.pem"
        return text(mqtt(more=f"msg_vpn: blue, tls: {{{tls}}}", protocol="mqtts"))

    async def opened(node: Any, index: int) -> Any:
        context = ssl.create_default_context()
        servers.configure_trust(context)
        authorities[index].issue_cert(common_name="c").configure_cert(context)
        return await dial(port(node, "mqtts"), context)

    async with running(using(0)) as node:
        subscriber, publisher = await opened(node, 0), await opened(node, 0)
        await subscriber.connect("s")
        await subscriber.subscribe("#")
        await publisher.connect("p")
        for number in range(200):
            if number in (50, 100, 150):
                node.reload(configured(using(number // 50 % 2)))
            await publisher.publish("a", b"%d" % number)
            assert await subscriber.payload() == b"%d" % number
        refused = await opened(node, 0)
        with pytest.raises((trio.BrokenResourceError, AssertionError)):
            await refused.connect("r")
        assert (await (await opened(node, 1)).connect("t")).reason_code == 0
        # The files under the same names, one of them of no use: all stays.
        (tmp_path / "s1.pem").write_text("not a certificate")
        with pytest.raises(OperationError, match=r"cannot use certificate .*s1\.pem"):
            node.reload(configured(using(1) + "  red: {}\n"))
        assert list(node.router.vpns) == ["blue", "green"]
        assert (await (await opened(node, 1)).connect("u")).reason_code == 0


async def test_renewed_certificate(running: Any, configured: Any, tmp_path: Path) -> None:
    """A reload tells of another certificate, once, and the API until when it is valid."""
    authority = trustme.CA()

    def renew(until: datetime) -> None:
        leaf = authority.issue_cert("localhost", not_after=until)
        leaf.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "s.pem"))

    first, second = (datetime(year, 3, 1, tzinfo=UTC) for year in (2031, 2032))
    renew(first)
    tls = f"msg_vpn: blue, tls: {{certificate: {tmp_path}/s.pem, key: {tmp_path}/s.pem}}"
    source = text(mqtt(more=tls, protocol="mqtts"))
    async with running(source) as node:
        ((_, address),) = node.addresses
        name = f"mqtts {address}"
        certificates = node._answering.certificates
        assert certificates() == {name: int(first.timestamp())}
        renew(second)
        assert certificates() == {name: int(first.timestamp())}
        for _ in range(2):
            node.reload(configured(source))
        assert certificates() == {name: int(second.timestamp())}
        told = [
            row.text for row in node.router.context.events.after(0, 99) if "certificate" in row.text
        ]
        assert told == [f"{name} shows another certificate, valid until 2032-03-01T00:00:00Z"]


async def test_management(running: Any, configured: Any, port: Any) -> None:
    """Listeners of the management API come, change and go too."""
    http = 'protocol: http, bind: "127.0.0.1:0"'
    async with running(text(mqtt())) as node:
        node.reload(configured(text(mqtt(), http)))
        first = port(node, "http")
        await (await trio.open_tcp_stream("127.0.0.1", first)).aclose()
        node.reload(configured(text(mqtt(), http + ", max_connection_count: 3")))
        stream = await trio.open_tcp_stream("127.0.0.1", port(node, "http"))
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(20):
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 ")
        await stream.aclose()
        node.reload(configured(text(mqtt())))
        assert [protocol for protocol, _ in node.addresses] == ["mqtt"]
