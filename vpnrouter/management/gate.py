"""The way in: every request is admitted here, or refused, before anything of the router is looked at."""

from typing import Final, cast

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from vpnrouter.errors import RequestError
from vpnrouter.management.access import Access, Caller
from vpnrouter.management.envelope import error_reply

HEALTH: Final = "/health/"
"""Paths below this one say nothing of the router but that it lives, and need no login."""

_CALLER: Final = "vpnrouter.caller"


class Gate:
    """ASGI middleware that notes who asks.

    It also makes routing work on the path as it was sent: names may hold an encoded slash.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii")
        if not scope["path"].startswith(HEALTH):
            request = Request(scope)
            headers = request.headers
            peer = "" if request.client is None else request.client.host
            try:
                scope[_CALLER] = await self._access.admit(
                    peer, headers.get("host", ""), headers.get("authorization", "")
                )
            except RequestError as error:
                said = (
                    {"www-authenticate": 'Basic realm="vpnrouter", charset="UTF-8"'}
                    if error.http_status == 401
                    else {}
                )
                await error_reply(request, error, said)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def caller_of(connection: HTTPConnection) -> Caller:
    """Who asks, as the gate noted it."""
    return cast(Caller, connection.scope[_CALLER])
