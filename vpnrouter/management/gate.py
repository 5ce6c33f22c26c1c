"""The way in: every request is admitted here, or refused, before anything of the router is looked at."""

from collections import Counter
from typing import Final, cast

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from vpnrouter import limits
from vpnrouter.errors import RequestError
from vpnrouter.management.access import Access, Caller
from vpnrouter.management.body import busy, invalid
from vpnrouter.management.exchange import Exchange
from vpnrouter.management.rows import error_reply
from vpnrouter.management.sources import Sources

HEALTH: Final = "/health/"
"""Paths below this one say nothing of the router but that it lives, and need no login."""

_DENIED: Final = (401, 403, 429)
"""Answers to who gave a name and password and may not come in: the event log has them."""

_CALLER: Final = "vpnrouter.caller"


class Gate:
    """ASGI middleware that notes who asks.

    It also makes routing work on the path as it was sent: names may hold an encoded slash.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access
        self._bodies: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request whose caller is admitted, and refuse others; WebSockets are closed."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii")
        exchange = Exchange(scope, receive, send)
        receive, send = exchange.receive, exchange.send
        request = Request(scope)
        headers = request.headers
        if "transfer-encoding" in headers and "content-length" in headers:
            # With two lengths, a proxy in between may have used the other one (RFC 9112 §6.1).
            refusal = invalid("both Content-Length and Transfer-Encoding")
            await error_reply(request, refusal, {"connection": "close"})(scope, receive, send)
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
                    cast(Sources, request.app.state.sources).audit.denied(peer, str(error))
                said = (
                    {"www-authenticate": 'Basic realm="vpnrouter", charset="UTF-8"'}
                    if error.http_status == 401
                    else {}
                )
                await error_reply(request, error, said)(scope, receive, send)
                return
            if exchange.coming:
                await self._with_body(request, caller_of(request).name, receive, send)
                return
        await self._app(scope, receive, send)

    async def _with_body(self, request: Request, name: str, receive: Receive, send: Send) -> None:
        """Handle a request with a body. Each user may have some of them at a time, so that other users get in."""
        if self._bodies[name] >= limits.BODIES_OF_A_USER:
            refusal = busy("Too many requests with a body at once; try again")
            await error_reply(request, refusal)(request.scope, receive, send)
            return
        self._bodies[name] += 1
        try:
            await self._app(request.scope, receive, send)
        finally:
            self._bodies[name] -= 1
            if not self._bodies[name]:
                del self._bodies[name]


def caller_of(connection: HTTPConnection) -> Caller:
    """Who asks, as the gate noted it."""
    return cast(Caller, connection.scope[_CALLER])
