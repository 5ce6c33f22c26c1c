"""A handshake that fails tells the other side why, whatever that sent meanwhile."""

import ssl

import pytest
import trio
import trustme

from vpnrouter.server.net import tls
from vpnrouter.server.net.tls import linger, shake_hands


def contexts(*, trusted: bool) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's context."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    client = ssl.create_default_context()
    if trusted:
        authority.configure_trust(client)
    return server, client


async def pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Two connected streams."""
    with trio.socket.socket() as listening:
        await listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        one = await trio.open_tcp_stream(*listening.getsockname())
        other, _ = await listening.accept()
    return one, trio.SocketStream(other)


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_alert_leaves(trusted: bool) -> None:
    """A client that refuses the certificate says so before it gives up."""
    server, client = contexts(trusted=trusted)
    ours, theirs = await pair()
    causes: list[BaseException | None] = []

    async def shake(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            await shake_hands(stream)
        except trio.BrokenResourceError as error:
            causes.append(error.__cause__)

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shake, trio.SSLStream(ours, server, server_side=True))
            nursery.start_soon(shake, trio.SSLStream(theirs, client, server_hostname="localhost"))
    assert len(causes) == (0 if trusted else 2)
    if not trusted:
        assert isinstance(causes[0], ssl.SSLCertVerificationError)
        assert isinstance(causes[1], ssl.SSLError)
        assert causes[1].reason == "TLSV1_ALERT_UNKNOWN_CA"
    for stream in (ours, theirs):
        await stream.aclose()


@pytest.mark.parametrize("talks", [True, False])
async def test_lingering_has_an_end(monkeypatch: pytest.MonkeyPatch, talks: bool) -> None:
    """A peer that goes on talking, or says nothing, is left after LINGER_BYTES or LINGER_S."""
    monkeypatch.setattr(tls, "LINGER_S", 30.0 if talks else 0.05)
    ours, theirs = await pair()

    async def talk() -> None:
        while talks:
            await theirs.send_all(bytes(tls.LINGER_BYTES))

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            await linger(ours)
            nursery.cancel_scope.cancel()
    # The peer saw the end at once, before we stopped listening.
    assert await theirs.receive_some() == b""
    for stream in (ours, theirs):
        await stream.aclose()
