"""Wraps each request: checks who sends it, bounds the time of its body, and ends its connection when it must."""

from typing import Final, cast, final

import trio
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vpnrouter import limits
from vpnrouter.core.origin import origin_of
from vpnrouter.core.outbox import Channel
from vpnrouter.errors import RequestError
from vpnrouter.management.access import Access, Caller
from vpnrouter.management.answers.replies import error_reply
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.errors import busy, invalid, too_slow
from vpnrouter.management.health import HEALTH, probed
from vpnrouter.management.places import Places

_DENIED: Final = (401, 403, 429)
"""Answers to who gave a name and password and may not come in: the event log has them."""

_CALLER: Final = "vpnrouter.caller"


class AuthMiddleware:
    """ASGI middleware that notes who asks.

    It also makes routing work on the path as it was sent: names may hold an encoded slash.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._bodies: dict[str, Places] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request whose caller is admitted, and refuse others; WebSockets are closed."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii")
        exchange = Body(scope, receive, send)
        receive, send = exchange.receive, exchange.send
        request = Request(scope)
        headers = request.headers
        if "transfer-encoding" in headers and "content-length" in headers:
            # With two lengths, a proxy in between may have used the other one (RFC 9112 §6.1).
            refusal = invalid("both Content-Length and Transfer-Encoding")
            await error_reply(request, refusal, {"connection": "close"})(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD") and not exchange.coming:
            probe = probed(cast(ApiContext, request.app.state.context), scope["path"])
            if probe is not None:
                await probe(scope, receive, send)
                return
        if not scope["path"].startswith(HEALTH):
            authorization = headers.get("authorization", "")
            peer = "" if request.client is None else request.client.host
            try:
                scope[_CALLER] = await self._access.admit(
                    peer, headers.get("host", ""), authorization
                )
            except RequestError as error:
                if authorization and error.http_status in _DENIED:
                    cast(ApiContext, request.app.state.context).audit.denied(peer, str(error))
                reason = (
                    {"www-authenticate": 'Basic realm="vpnrouter", charset="UTF-8"'}
                    if error.http_status == 401
                    else {}
                )
                await error_reply(request, error, reason)(scope, receive, send)
                return
            if exchange.coming:
                await self._with_body(request, exchange, origin_of(peer))
                return
        await self._app(scope, receive, send)

    async def _with_body(self, request: Request, exchange: "Body", origin: str) -> None:
        """Handle a request with a body. Each user may have a few of them at a time, so that other users get in."""
        name = caller_of(request).name
        places = self._bodies.setdefault(name, Places(limits.BODIES_OF_A_USER))
        if not places.take(exchange, origin, waits=True):
            await error_reply(request, busy(TOO_MANY_BODIES))(
                request.scope, exchange.receive, exchange.send
            )
            return
        exchange.places = places
        try:
            await self._app(request.scope, exchange.receive, exchange.send)
        finally:
            places.leave(exchange)
            if not places and self._bodies.get(name) is places:
                del self._bodies[name]


def caller_of(connection: HTTPConnection) -> Caller:
    """Return the caller, as the gate identified it."""
    return cast(Caller, connection.scope[_CALLER])


BODY_S: Final = 30.0
"""Seconds for the body of a request, from its headers on: the largest one comes within them on any line that
is worth being used. A peer that sends a byte now and then would keep its connection, and its place, for ever.
"""

TOO_MANY_BODIES: Final = "Too many requests with a body at once; try again"

REST_S: Final = 1.0
"""Seconds for what is left of a body when the answer is ready."""


NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""A browser that looks at the payload of a message takes it for bytes, whatever they look like."""


@final
class Body(Channel):
    """`receive` and `send` of an ASGI application for one request, whose body is bounded in time.

    It may have one of the `places` for bodies, and then is cut when another one needs it more.

    A server cannot take another request from a connection on which the body of this one has not ended, so it
    closes that. Whoever is not told sends the next request there and gets no answer (RFC 9112 §9.6).
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        headers = Headers(scope=scope)
        self._coming = (
            "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""
        )
        self._deadline = trio.current_time() + BODY_S
        self._scope = trio.CancelScope()
        self._was_cut = False
        self.places: Places | None = None

    @property
    def coming(self) -> bool:
        """True while more of the body is to come."""
        return self._coming

    async def receive(self) -> Message:
        """Return the next message of the request, as ASGI has it.

        Raises RequestError when the body takes longer than BODY_S, or was cut.
        """
        if not self._coming:
            return await self._receive()
        if not self._was_cut:
            with trio.CancelScope(deadline=self._deadline) as self._scope:
                return await self._next()
        if self._was_cut:
            raise busy(TOO_MANY_BODIES)
        raise too_slow(f"the body did not come within {BODY_S:.0f} s")

    def cut(self, why: str) -> bool:
        """Have no more of the body taken: who reads it gets an error. Returns True."""
        self._was_cut = True
        self._scope.cancel()
        return True

    async def send(self, message: Message) -> None:
        """Send a message of the answer, as ASGI has it.

        Before the answer's start the rest of the body is taken; if more is still to come then, the
        answer says that the connection closes.
        """
        if message["type"] == "http.response.start":
            message = dict(message)
            message["headers"] = [*message.get("headers", ()), NO_SNIFFING]
            if self._coming:
                await self._take_rest()
            if self._coming:
                message["headers"].append((b"connection", b"close"))
        await self._send(message)

    async def _next(self) -> Message:
        message = await self._receive()
        self._coming = message["type"] == "http.request" and message.get("more_body", False)
        if not self._coming and self.places is not None:
            self.places.works(self)
        return message

    async def _take_rest(self) -> None:
        """Take the rest of a body that is short and comes soon, so that the connection can stay."""
        size = 0
        if self._was_cut:
            return
        with trio.move_on_at(min(self._deadline, trio.current_time() + REST_S)):
            while self._coming and size <= limits.MANAGEMENT_BODY_BYTES:
                size += len((await self._next()).get("body", b""))
