"""Shake hands so that the other side of a failure learns why."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import trio

LINGER_S: Final = 1.0
"""Seconds that a peer has to take our alert before its transport is cut."""

LINGER_BYTES: Final = 65_536
"""Bytes that are read and thrown away meanwhile."""

Secured = trio.SSLStream[trio.SocketStream]


async def shake_hands(stream: Secured) -> None:
    """Do the handshake; when it fails, the alert that says why has left before the error is raised.

    Raises trio.BrokenResourceError, whose cause is the ssl.SSLError. The caller closes the transport.
    """
    try:
        await stream.do_handshake()
    except trio.BrokenResourceError:
        # The alert waits in the stream, which sends nothing any more.
        alert = stream._outgoing.read()  # noqa: SLF001
        if alert:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await stream.transport_stream.send_all(alert)
        raise


def binding_of(secured: Secured) -> bytes:
    """The channel binding of a TLS connection, different for each: the first Finished message of its handshake.

    This is what OpenSSL gives for "tls-unique" (RFC 5929, 3). With TLS 1.3 that name is not defined any more, but the
    message covers the whole handshake there, certificate and keys; the standard library has no exporter.
    """
    return secured._ssl_object.get_channel_binding("tls-unique") or b""  # noqa: SLF001


async def linger(stream: trio.SocketStream) -> None:
    """Give the peer of a failed handshake time to read what we said; the caller closes the transport.

    A TLS 1.3 client may have sent its first bytes behind the handshake already. Closed with these unread,
    the system would reset the connection, and the alert would be lost with it.
    """
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        await stream.send_eof()
        left = LINGER_BYTES
        with trio.move_on_after(LINGER_S):
            while left > 0:
                data = await stream.receive_some(left)
                if not data:
                    break
                left -= len(data)
