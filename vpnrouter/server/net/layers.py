"""What stands between a socket and its connection: TLS, WebSocket (MQTT 5, 6), or one over the other.

A layer takes and gives bytes and never touches a socket, so the nested epoll and the tasks share it.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from vpnrouter.core.origin import address_of
from vpnrouter.errors import OperationError
from vpnrouter.server.net.tls import tls_reason
from vpnrouter.wire.websocket import (
    ANSWERED,
    BINARY,
    NORMAL,
    WebSocketDecoder,
    close_frame,
    frame_head,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wsproto.events import Event

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import PeerCertificate


class Layer:
    """Turns the bytes of a socket into those of its connection, and back.

    No method raises because of what the peer sends. `begun`: something came. `ready`: the handshake is done, and
    `certificate`, `binding` (of TLS, known to both ends of this connection alone) and `version` (such as `TLSv1.3`) are
    known. `ended`: nothing more is received. `failure` says why, "" where the peer closed as the protocol wants it.
    `laborious`: what came last was much work for its bytes, so less of it is to be received at a time.
    """

    def __init__(self) -> None:
        self.begun = False
        self.ready = False
        self.ended = False
        self.failure = ""
        self.laborious = False
        self.certificate: PeerCertificate | None = None
        self.binding = b""
        self.version = ""

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the socket; returns those for the connection."""
        raise AssertionError(data)

    def unwrap(self, connection: Connection, data: bytes) -> bytes:
        """As `receive`; tells the connection who its peer is when the handshake is done."""
        shaken = self.ready
        found = self.receive(data)
        if self.ready and not shaken:
            connection.certificate = self.certificate
            connection.binding = self.binding
        return found

    def send(self, data: bytes) -> bytes:
        """Take bytes of the connection; returns those for the socket, none before it is ready."""
        raise AssertionError(data)

    def has_own(self) -> bool:
        """Return whether `take_own` has something."""
        raise AssertionError(self)

    def take_own(self) -> bytes:
        """Return once what the layer itself has to say: its handshake, its answers, the reason of a failure."""
        raise AssertionError(self)

    def close(self) -> bytes:
        """Return the last bytes for the socket, with which the protocol closes."""
        raise AssertionError(self)

    def finish(self) -> None:
        """Note that the peer has closed the socket."""
        if not self.ended:
            self.ended = True
            self.failure = "the client closed the connection" if self.begun else ""


RECORD_BYTES: Final = 16_384
"""Most payload of one TLS record (RFC 8446, 5.1)."""

PIECE_BYTES: Final = 32_768
"""Encrypted bytes handed to OpenSSL at a time: its buffer keeps the largest size that it has had."""


@final
class TlsLayer(Layer):
    """TLS by OpenSSL. `verify` looks at the peer once the handshake is done, and returns the certificate it showed.

    It raises OperationError where the peer is not to be let in. Raises ValueError where `server_name` is no host name.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        verify: Callable[[ssl.SSLObject], PeerCertificate | None],
        server_name: str | None = None,
    ) -> None:
        super().__init__()
        self._verify = verify
        self._is_server = server_name is None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=self._is_server,
            server_hostname=server_name,
        )

    @property
    def cipher(self) -> str:
        """Name of the cipher suite, "" while the peer has said nothing that is TLS."""
        agreed = self._tls.cipher()
        return "" if agreed is None else agreed[0]

    def begin(self) -> None:
        """Begin the handshake as the side that dials; `take_own` has its first bytes."""
        self._shake()

    def receive(self, data: bytes) -> bytes:
        """Decrypt all whole records."""
        self.begun = True
        if len(data) <= PIECE_BYTES:
            return self._decrypt(data)
        pieces = range(0, len(data), PIECE_BYTES)
        return b"".join([self._decrypt(data[at : at + PIECE_BYTES]) for at in pieces])

    def _decrypt(self, data: bytes) -> bytes:
        if self.ended:
            return b""
        incoming = self._incoming
        incoming.write(data)
        if not self.ready and not self._shake():
            return b""
        tls = self._tls
        first = b""
        parts: list[bytes] = []
        try:
            while incoming.pending or tls.pending():
                part = tls.read(RECORD_BYTES)
                if not part:
                    self.ended = True
                    break
                if first:
                    parts.append(part)
                else:
                    first = part
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, OSError) as error:
            self._fail(tls_reason(error))
        return b"".join([first, *parts]) if parts else first

    def _shake(self) -> bool:
        """Go on with the handshake; returns whether it is done."""
        tls = self._tls
        try:
            tls.do_handshake()
            self.certificate = self._verify(tls)
        except ssl.SSLWantReadError:
            return False
        except (ssl.SSLError, OSError, OperationError) as error:
            self._fail(tls_reason(error, "the client" if self._is_server else "the remote"))
            return False
        # This is what OpenSSL gives for "tls-unique" (RFC 5929, 3): the first Finished message. With TLS 1.3 that name
        # is not defined any more, but the message covers the whole handshake there, certificate and keys; the standard
        # library has no exporter.
        self.binding = tls.get_channel_binding("tls-unique") or b""
        self.version = tls.version() or ""
        self.ready = True
        return True

    def _fail(self, why: str) -> None:
        self.ended = True
        self.failure = why

    def send(self, data: bytes) -> bytes:
        """Encrypt."""
        if not self.ready or self.failure:
            return b""
        tls = self._tls
        try:
            written = tls.write(data)
            if written < len(data):
                # OpenSSL takes one record at a time.
                rest = memoryview(data)
                while written < len(data):
                    written += tls.write(rest[written:])
        except (ssl.SSLError, OSError) as error:
            self._fail(tls_reason(error))
        return self._outgoing.read()

    def has_own(self) -> bool:
        """Return whether OpenSSL has something to say by itself."""
        return self._outgoing.pending > 0

    def take_own(self) -> bytes:
        """Return what OpenSSL has to say by itself."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def close(self) -> bytes:
        """Return the alert close_notify, where the handshake is done and nothing has failed."""
        if self.ready and not self.failure:
            # It would wait for the peer's alert, which nobody needs.
            with suppress(ssl.SSLError, OSError, ValueError):
                self._tls.unwrap()
        return self.take_own()


MQTT_SUBPROTOCOLS: Final = ("mqtt", "mqttv3.1", "")
AMQP_SUBPROTOCOLS: Final = ("amqp",)
"""The names that clients may offer, the first of them is taken; "" is for none at all.

Clients of MQTT 3.1.1 and 5 must offer `mqtt` (MQTT-6.0.0-3). Older ones offer `mqttv3.1`, and some offer nothing.
"""

END_OF_HEAD: Final = b"\r\n\r\n"
"""Ends the head of an HTTP request (RFC 9112, 2.1)."""

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403

ANY_ORIGIN: Final = "*"
SAME_HOST: Final = "same-host"
"""Words that a listener's `allowed_origins` may have besides origins."""


def origin_allowed(
    origin: str, host: str, allowed: Sequence[str], hosts: frozenset[str] | None
) -> bool:
    """True when a page of `origin` may open a WebSocket to `host` (RFC 6455, 4.2.2; RFC 6454, 7).

    `host` is the request's Host, with or without a port. SAME_HOST allows it only under an address, as localhost, or
    under one of the names `hosts`: the owner of any other name can make it lead here, after its page was loaded from
    elsewhere. With None, TLS has shown the browser that the name is right.
    """
    if ANY_ORIGIN in allowed or origin.lower() in [each.lower() for each in allowed]:
        return True
    if SAME_HOST not in allowed or "://" not in origin:
        return False
    name = _name(origin)
    if name is None or name != _name(f"//{host}"):
        return False
    if hosts is None or name in hosts or name == "localhost" or name.endswith(".localhost"):
        return True
    return address_of(name) is not None


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        # An origin or a host that cannot be parsed matches nothing.
        return None


class AnsweringLayer(Layer):
    """A layer that says something of its own, which waits in `_own`; it begins with `own`."""

    def __init__(self, own: bytes = b"") -> None:
        super().__init__()
        self._own = own

    def has_own(self) -> bool:
        """Return whether there is something to say."""
        return len(self._own) > 0

    def take_own(self) -> bytes:
        """Return what is said for the handshake, and frames that answer frames."""
        own = self._own
        self._own = b""
        return own


@final
class WebSocketLayer(AnsweringLayer):
    """The bytes inside the binary frames of one WebSocket, for pages of `allowed_origins` (`origin_allowed`).

    The upgrade is refused when it is no WebSocket request, offers none of the `subprotocols`, has an `Origin` that is
    not allowed, or cannot be read by the library.
    """

    def __init__(
        self,
        allowed_origins: Sequence[str] = (ANY_ORIGIN,),
        subprotocols: Sequence[str] = MQTT_SUBPROTOCOLS,
        hosts: frozenset[str] | None = None,
    ) -> None:
        super().__init__()
        self._subprotocols = subprotocols
        self._allowed = allowed_origins
        self._hosts = hosts
        self._decoder = WebSocketDecoder()
        self._upgrade: WSConnection | None = WSConnection(ConnectionType.SERVER)
        self._head = b""

    def receive(self, data: bytes) -> bytes:
        """Take the request, and then frames apart."""
        self.begun = True
        upgrade = self._upgrade
        if upgrade is not None:
            data = self._ask(upgrade, data)
        if not self.ready or self.ended or not data:
            return b""
        decoder = self._decoder
        found = decoder.receive(data)
        self._own += decoder.take_replies()
        self.laborious = decoder.controls > ANSWERED
        self.ended = decoder.ended
        return found

    def _ask(self, upgrade: WSConnection, data: bytes) -> bytes:
        """Read the request as far as it is there; returns what follows it."""
        known = len(self._head)
        self._head += data
        end = self._head.find(END_OF_HEAD, max(0, known - len(END_OF_HEAD)))
        rest = b""
        if end >= 0:
            # Frames that came with the request are not for the library.
            end += len(END_OF_HEAD)
            rest = self._head[end:]
            data = self._head[known:end]
        try:
            upgrade.receive_data(data)
            for event in upgrade.events():
                if isinstance(event, Request):
                    self._answer(upgrade, event)
                    return rest
        except RemoteProtocolError as error:
            if error.event_hint is not None:
                self._say(upgrade, error.event_hint)
            self._refuse("the client asked for no WebSocket")
        except Exception:  # noqa: BLE001 - the library reads some headers as if they were always ASCII
            self._say(upgrade, RejectConnection(status_code=BAD_REQUEST))
            self._refuse("the client asked for no WebSocket")
        return b""

    def _answer(self, upgrade: WSConnection, request: Request) -> None:
        offered = request.subprotocols or [""]
        taken = [name for name in self._subprotocols if name in offered]
        if not taken:
            self._say(upgrade, RejectConnection(status_code=BAD_REQUEST))
            self._refuse("the client did not offer the subprotocol " + self._subprotocols[0])
            return
        origins = [value for name, value in request.extra_headers if name.lower() == b"origin"]
        for origin in origins:
            text = origin.decode("latin-1")
            if not origin_allowed(text, request.host, self._allowed, self._hosts):
                self._say(upgrade, RejectConnection(status_code=FORBIDDEN))
                self._refuse("a page of its origin is not allowed")
                return
        self._say(upgrade, AcceptConnection(subprotocol=taken[0] or None))
        self.ready = True
        self._upgrade = None
        self._head = b""

    def _say(self, upgrade: WSConnection, event: Event) -> None:
        # No answer may be possible any more: the connection is closed all the same.
        with suppress(LocalProtocolError):
            self._own += upgrade.send(event)

    def _refuse(self, why: str) -> None:
        self.ended = True
        self.failure = why
        self._upgrade = None
        self._head = b""

    def send(self, data: bytes) -> bytes:
        """Make one binary frame."""
        if not self.ready or self.ended:
            return b""
        return frame_head(BINARY, len(data)) + data

    def close(self) -> bytes:
        """Return a Close frame, where none was sent."""
        if self.ready and not self.ended:
            self.ended = True
            self._own += close_frame(NORMAL)
        return self.take_own()


@final
class WebSocketClientLayer(AnsweringLayer):
    """The bytes inside the binary frames of one WebSocket, from the client's end. `host` and `target` are the server
    and the path that are asked for.
    """

    def __init__(self, host: str, target: str, subprotocol: str) -> None:
        connection = WSConnection(ConnectionType.CLIENT)
        request = Request(host=host, target=target, subprotocols=[subprotocol])
        super().__init__(connection.send(request))
        self._subprotocol = subprotocol
        self._connection = connection

    def receive(self, data: bytes) -> bytes:
        """Take the answer, and then frames apart."""
        self.begun = True
        found: list[bytes] = []
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                if isinstance(event, BytesMessage):
                    found.append(bytes(event.data))
                else:
                    self._take(event)
        except RemoteProtocolError as error:
            self._fail(f"the peer broke the protocol of WebSocket: {error}")
        return b"".join(found)

    def _take(self, event: Event) -> None:
        if isinstance(event, AcceptConnection):
            self.ready = event.subprotocol == self._subprotocol
            if not self.ready:
                self._fail(f"the peer does not speak the subprotocol {self._subprotocol}")
        elif isinstance(event, RejectConnection):
            self._fail(f"the peer refused the WebSocket with status {event.status_code}")
        elif isinstance(event, Ping):
            self._own += self._connection.send(event.response())
        elif isinstance(event, CloseConnection):
            with suppress(LocalProtocolError):
                self._own += self._connection.send(event.response())
            self.ended = True
        elif isinstance(event, TextMessage):
            self._fail("the peer sent a text over a WebSocket")

    def _fail(self, why: str) -> None:
        self.ended = True
        self.failure = self.failure or why

    def send(self, data: bytes) -> bytes:
        """Make one binary frame."""
        if not self.ready or self.ended:
            return b""
        return self._connection.send(BytesMessage(data=data))

    def close(self) -> bytes:
        """Return a Close frame, where none was sent."""
        if self.ready and not self.ended:
            self.ended = True
            with suppress(LocalProtocolError):
                self._own += self._connection.send(CloseConnection(code=NORMAL))
        return self.take_own()


@final
class StackedLayer(Layer):
    """One layer over another: WebSocket over TLS."""

    def __init__(self, upper: Layer, lower: Layer) -> None:
        super().__init__()
        self._upper = upper
        self._lower = lower

    def receive(self, data: bytes) -> bytes:
        """Take bytes through both."""
        plain = self._lower.receive(data)
        found = self._upper.receive(plain) if plain else b""
        self._look()
        return found

    def _look(self) -> None:
        upper, lower = self._upper, self._lower
        self.begun = lower.begun
        self.ready = upper.ready and lower.ready
        self.ended = upper.ended or lower.ended
        self.failure = lower.failure or upper.failure
        self.laborious = upper.laborious
        self.certificate = lower.certificate
        self.binding = lower.binding
        self.version = lower.version

    def send(self, data: bytes) -> bytes:
        """Take bytes through both."""
        return self._lower.send(self._upper.send(data))

    def has_own(self) -> bool:
        """Return whether either has something to say."""
        return self._lower.has_own() or self._upper.has_own()

    def take_own(self) -> bytes:
        """Return what either has to say."""
        own = self._lower.take_own()
        said = self._upper.take_own()
        return own + self._lower.send(said) if said else own

    def close(self) -> bytes:
        """Return the last bytes of both."""
        said = self._upper.close()
        last = self._lower.send(said) if said else b""
        return last + self._lower.close()

    def finish(self) -> None:
        """Note that the peer has closed the socket."""
        self._lower.finish()
        self._look()
