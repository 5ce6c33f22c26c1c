"""Makes the answers of `/health/live` and `/health/ready`, for the routes and for the short way around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from vpnrouter.management.api_context import ApiContext

HEALTH: Final = "/health/"
"""Paths below this one say nothing of the router but that it lives, and need no login."""

LIVE: Final = "/live"
READY: Final = "/ready"


def live_reply() -> JSONResponse:
    """Return the answer of a process that can answer."""
    return JSONResponse({"status": "live"})


def ready_reply(context: ApiContext) -> JSONResponse:
    """Return 200 while the router serves, else 503 with the reason."""
    reason = context.edge.unready(context.router)
    if reason:
        return JSONResponse({"status": "not ready", "reason": reason}, 503)
    return JSONResponse({"status": "ready"})


def probed(context: ApiContext, path: str) -> JSONResponse | None:
    """Return the answer to a GET of one of these paths, None for any other.

    The way through the framework takes ten times as long, and whoever watches the router asks under any load.
    """
    if not path.startswith(HEALTH):
        return None
    rest = path.removeprefix(HEALTH.removesuffix("/"))
    if rest == LIVE:
        return live_reply()
    return ready_reply(context) if rest == READY else None
