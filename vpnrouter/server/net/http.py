"""Serve HTTP/1.1 with h11 for an ASGI application, over connections that the router accepts and bounds.

HTTP/1.1 alone: browsers take HTTP/2 with TLS and ALPN only, which no listener offers. A request for another protocol
(h2c, WebSocket) gets its answer in this one, which a server may do (RFC 9110 §7.8).
"""

from __future__ import annotations

import time
from contextlib import suppress
from socket import SHUT_WR
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import unquote
from wsgiref.handlers import format_date_time

import h11
import trio
from starlette.requests import ClientDisconnect

from vpnrouter import limits
from vpnrouter.core.fault_barrier import REQUEST
from vpnrouter.core.origin import origin_of
from vpnrouter.core.outbox import Channel
from vpnrouter.management.places import Places, Turns
from vpnrouter.server.net.descriptors import is_shortage

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp, Message

    from vpnrouter.core.fault_barrier import FaultBarrier
    from vpnrouter.server.net.tls import ServerTls

WRITE_S: Final = 10.0
"""Seconds that a peer has to take what is written to it; the answer is lost then, and the connection."""

IDLE_S: Final = 10.0
"""Seconds that a connection may wait for its first or its next request."""

HANDSHAKE_S: Final = 10.0
"""Seconds for a TLS handshake; the same bound as for a silent client."""

REST_S: Final = 0.1
"""Pause of the accept loop when the system is out of descriptors."""

_OF_BODIES: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers of requests that have a body, as h11 spells them."""

ACCEPTS: Final = 8
"""Connections that are taken in one go: with their first bytes they hold everybody up for some milliseconds."""

READ_BYTES: Final = 65_536

HEALTH: Final = b"/health/"
"""What is below this path is answered in no time, so the first such request of a connection needs no turn."""

PROBES: Final = (HEALTH, b"/metrics")
"""Requests to read below these paths, without a body, have places of their own: whoever watches the router sends
them."""

REQUESTS: Final = "requests"
"""The name of the tasks that answer."""


async def serve_http(
    sock: socket.socket, tls: ServerTls | None, most: int, app: ASGIApp, barrier: FaultBarrier
) -> None:
    """Answer HTTP on a bound, listening, non-blocking socket until cancelled.

    `tls` is that of an `https` listener, asked at each connection. `most` requests, and not more than
    `limits.MANAGEMENT_CONNECTIONS`, are answered at a time; `ListenerPlaces` says who makes room beyond. Unexpected
    exceptions are given to the `barrier`.
    """
    places = ListenerPlaces(most)
    with sock:
        async with trio.open_nursery() as connections:
            for turns in (places.probe_turns, places.request_turns):
                connections.start_soon(turns.give, name=REQUESTS)
            try:
                while True:
                    await trio.lowlevel.wait_readable(sock)
                    accepted, short = _accept(sock)
                    for stream, peer in accepted:
                        connections.start_soon(
                            _serve_one, stream, peer, tls, app, barrier, places, name=REQUESTS
                        )
                    if short:
                        # Let connections end before trying again.
                        await trio.sleep(REST_S)
            finally:
                for each in places.open:
                    # Wakes writes that are shielded from cancellation.
                    each.socket.close()


def _accept(sock: socket.socket) -> tuple[list[tuple[trio.SocketStream, tuple[str, int]]], bool]:
    """Accept some of the connections that wait, with their addresses; also whether the system has no room for more."""
    found: list[tuple[trio.SocketStream, tuple[str, int]]] = []
    for _ in range(ACCEPTS):
        try:
            accepted, address = sock.accept()
        except BlockingIOError:
            break
        except OSError as error:
            if is_shortage(error):
                return found, True
            # That one has gone already.
            continue
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(accepted))
        found.append((stream, (str(address[0]), int(address[1]))))
    return found, False


@final
class ListenerPlaces:
    """The places of the connections of one listener: without a request, with one, or with one of PROBES.

    So no connection without a request keeps a request out, and no request a probe. In each of the three the address
    that has most makes room, and there the one that has waited longest for its peer. Requests begin in turn.
    """

    def __init__(self, most: int) -> None:
        self.open: set[HttpConnection] = set()
        self.strangers = Places(limits.MANAGEMENT_STRANGERS, limits.MANAGEMENT_STRANGERS_OF_ADDRESS)
        self.requests = Places(min(most, limits.MANAGEMENT_CONNECTIONS))
        self.request_turns = Turns()
        self.probes = Places(limits.MANAGEMENT_PROBES)
        self.probe_turns = Turns()


async def _serve_one(
    stream: trio.SocketStream,
    peer: tuple[str, int],
    tls: ServerTls | None,
    app: ASGIApp,
    barrier: FaultBarrier,
    places: ListenerPlaces,
) -> None:
    """Serve an accepted connection to its end; an unexpected exception costs it alone."""
    try:
        connection = HttpConnection(stream, peer, tls, app, barrier, places)
        try:
            await connection.serve()
        finally:
            connection.cut("")
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
        # The peer has gone, could not shake hands, lost its place, or the router stops.
        pass
    except Exception as error:  # noqa: BLE001 - given to the barrier: the router goes on
        barrier.caught(error, REQUEST, "", "", "one connection is closed")
    finally:
        stream.socket.close()


@final
class HttpConnection(Channel):
    """One connection: its requests are answered one after the other.

    It always has one of the `places`, from its first byte to its end.
    """

    def __init__(
        self,
        accepted: trio.SocketStream,
        peer: tuple[str, int],
        tls: ServerTls | None,
        app: ASGIApp,
        barrier: FaultBarrier,
        places: ListenerPlaces,
    ) -> None:
        self.socket = accepted.socket
        self._peer = peer
        self._origin = origin_of(peer[0])
        self._places = places
        self._turns = places.request_turns
        self._place = places.strangers
        self._app = app
        self._barrier = barrier
        self._stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = accepted
        if tls is not None:
            self._stream = trio.SSLStream(
                accepted, tls.context, server_side=True, https_compatible=True
            )
        self._http = h11.Connection(h11.SERVER)
        self._whole = False
        """Whether the application has had all of the request."""
        self._bodiless = False
        """Whether the answer has no body, whatever the application says."""
        self._head: h11.Response | None = None
        """The head of an answer whose body has not begun."""
        self._answered = False
        """Whether a request has begun here before."""
        self._gone = False
        """Whether the peer takes nothing more."""

    def cut(self, why: str) -> bool:
        """Close the socket, which ends whatever waits for the peer, and give the place back. Returns True."""
        self._gone = True
        self.socket.close()
        self._places.open.discard(self)
        self._place.leave(self)
        self._turns.leave(self, self._origin)
        return True

    async def _begins(self, request: h11.Request) -> bool:
        """Wait until a request has its turn. Returns whether it has a place, and the peer is there."""
        places = self._places
        is_probe = (
            request.target.startswith(PROBES)
            and request.method in (b"GET", b"HEAD")
            and not any(name in _OF_BODIES for name, _ in request.headers)
        )
        self._turns = places.probe_turns if is_probe else places.request_turns
        if not self._move(places.probes if is_probe else places.requests, waits=True):
            await self._refuse(503)
            return False
        if self._answered or not is_probe or not request.target.startswith(HEALTH):
            await self._turns.wait(self, self._origin)
        self._answered = True
        self._place.works(self)
        return not self._gone

    def _move(self, places: Places, *, waits: bool) -> bool:
        """Change into other places; False where none is free."""
        self._place.leave(self)
        self._place = places
        return places.take(self, self._origin, waits=waits)

    def fault(self, error: Exception, cost: str) -> None:
        """Count and report an unexpected exception of one request or connection."""
        self._barrier.caught(error, REQUEST, "", "", cost)

    async def serve(self) -> None:
        """Answer requests until either side has enough of it. Raises what the stream raises when it is gone."""
        self._places.open.add(self)
        self._place.take(self, self._origin, waits=True)
        if isinstance(self._stream, trio.SSLStream):
            with trio.fail_after(HANDSHAKE_S):
                await self._stream.do_handshake()
        scope = self._scope()
        while (request := await self._request()) is not None:
            if not await self._begins(request):
                break
            await self._answer(scope, request)
            self._drop_body()
            if self._gone or self._http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                break
            self._http.start_next_cycle()
            self._move(self._places.strangers, waits=True)
        await self._end()

    def _scope(self) -> dict[str, Any]:
        """What all requests of the connection have in common, as ASGI has it."""
        return {
            "type": "http",
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "scheme": "https" if isinstance(self._stream, trio.SSLStream) else "http",
            "root_path": "",
            "client": self._peer,
            "server": self.socket.getsockname()[:2],
            "extensions": {},
        }

    # -- what the peer sends ---------------------------------------------------------------------

    async def _request(self) -> h11.Request | None:
        """Return the next request, None where none arrives in time or what arrives is invalid."""
        with trio.move_on_after(IDLE_S):
            event = await self._event()
            if isinstance(event, h11.Request):
                return event
        return None

    async def _event(self) -> h11.Event | None:
        """Return the next event, None at the end of the connection. What is no HTTP is refused."""
        while True:
            try:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        await self._send(
                            h11.InformationalResponse(status_code=100, headers=_date())
                        )
                    self._http.receive_data(bytes(await self._stream.receive_some(READ_BYTES)))
                    continue
            except h11.RemoteProtocolError as error:
                if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    await self._refuse(error.error_status_hint)
                return None
            if isinstance(event, h11.Event) and not isinstance(event, h11.ConnectionClosed):
                return event
            return None

    async def _receive(self) -> Message:
        """The next part of the body of the request, as ASGI has it, or that the peer has gone.

        Whoever asks for more than there is waits until it is cancelled.
        """
        if self._whole:
            await trio.sleep_forever()
        event: h11.Event | None = None
        if not self._gone:
            self._place.waits(self)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                event = await self._event()
            if not isinstance(event, h11.Data):
                self._place.works(self)
        if isinstance(event, h11.Data):
            return {"type": "http.request", "body": bytes(event.data), "more_body": True}
        if isinstance(event, h11.EndOfMessage):
            self._whole = True
            return {"type": "http.request", "body": b"", "more_body": False}
        self._gone = True
        return {"type": "http.disconnect"}

    def _drop_body(self) -> None:
        """Read the rest of a request's body that the application did not read."""
        with suppress(h11.RemoteProtocolError):
            while self._http.their_state is h11.SEND_BODY:
                if self._http.next_event() is h11.NEED_DATA:
                    break

    # -- what the peer gets ----------------------------------------------------------------------

    async def _answer(self, common: dict[str, Any], request: h11.Request) -> None:
        """Let the application answer a request."""
        path, _, query = request.target.partition(b"?")
        method = request.method.decode("ascii").upper()
        self._whole = False
        self._head = None
        self._bodiless = method == "HEAD"
        scope = common | {
            "http_version": request.http_version.decode("ascii"),
            "method": method,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "headers": list(request.headers),
            "state": {},
        }
        try:
            await self._app(scope, self._receive, self._say)
        except ClientDisconnect:
            # The client has gone in the middle of its request: there is nothing to answer, and no fault.
            return
        except Exception as error:  # noqa: BLE001 - given to the barrier: others are served
            self.fault(error, "one request")
        if self._http.our_state is h11.SEND_RESPONSE:
            await self._refuse(500)

    async def _say(self, message: Message) -> None:
        """Send a part of the answer, as ASGI has it. What is for a peer that has gone is dropped.

        The head leaves with the first part of the body: a short answer is one write, and comes whole or not at all.
        """
        if message["type"] == "http.response.start":
            status = int(message["status"])
            self._bodiless |= status in (204, 304)
            headers = [*message.get("headers", ()), *_date()]
            self._head = h11.Response(status_code=status, headers=headers)
            return
        events: list[h11.Event] = []
        if self._head is not None:
            events.append(self._head)
            self._head = None
        body = message.get("body", b"")
        if body and not self._bodiless:
            events.append(h11.Data(data=body))
        if not message.get("more_body", False):
            events.append(h11.EndOfMessage())
        await self._send(*events)

    async def _refuse(self, status: int) -> None:
        """Answer with a status alone, and end the connection."""
        headers = [(b"content-length", b"0"), (b"connection", b"close"), *_date()]
        await self._send(h11.Response(status_code=status, headers=headers), h11.EndOfMessage())

    async def _send(self, *events: h11.Event) -> None:
        if self._gone:
            await trio.lowlevel.checkpoint()
            return
        data = b"".join([self._http.send(event) or b"" for event in events])
        if not data:
            return
        self._place.waits(self)
        try:
            # An answer that is ready is sent, though the listener ends.
            with trio.CancelScope(deadline=trio.current_time() + WRITE_S, shield=True) as writing:
                await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._gone = True
        if writing.cancelled_caught:
            self._gone = True
            self.socket.close()

    async def _end(self) -> None:
        """Send the end of the response and close."""
        if isinstance(self._stream, trio.SocketStream):
            with suppress(OSError):
                self.socket.shutdown(SHUT_WR)
        await self._stream.aclose()


def _date() -> list[tuple[bytes, bytes]]:
    return [(b"date", format_date_time(time.time()).encode("ascii"))]
