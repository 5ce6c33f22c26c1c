"""Serves `/vpnrouter/v1/router`, which shows the router and the caller, and `/health/live` and `/health/ready`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from vpnrouter import __version__
from vpnrouter.management.answers.query import ObjectQueryDep
from vpnrouter.management.answers.replies import root_of
from vpnrouter.management.answers.rows import row_of
from vpnrouter.management.dependencies import CallerDep, ContextDep, answers
from vpnrouter.management.health import HEALTH, LIVE, READY, live_reply, ready_reply

routes: Final = APIRouter(prefix=HEALTH.removesuffix("/"), tags=["health"])


@routes.get(LIVE, summary="Whether the process answers", response_model=None)
async def live() -> JSONResponse:
    """Answer as long as the process can answer."""
    return live_reply()


@routes.get(
    READY,
    summary="Whether the router serves",
    response_model=None,
    responses={503: {"description": "It does not serve yet, it stops, or its spool fails"}},
)
async def ready(context: ContextDep) -> JSONResponse:
    """Answer 200 from the moment all listeners are bound until the router stops, else 503 with the reason."""
    return ready_reply(context)


ours: Final = APIRouter(prefix="/vpnrouter/v1/router", tags=["vpnrouter"])


@dataclass(frozen=True, slots=True)
class RouterStatus:
    """One router, and what whoever asks may do to it."""

    router_name: str
    version: str
    ready: bool
    user: str
    """Who asks; "" for whoever is let in from this machine without a login."""
    role: str
    """`admin` or `read-only`."""
    all_msg_vpns: bool
    """Whether the user sees all message VPNs."""
    certificate_expiries: dict[str, int]
    """Until when the certificate of each listener with TLS is valid, in seconds since 1970, by the protocol and the
    address of the listener; {} for a user who does not see all message VPNs."""


@ours.get(
    "",
    summary="Get the router",
    responses=answers(RouterStatus, many=False),
    response_model=None,
)
async def router(
    request: Request, context: ContextDep, caller: CallerDep, query: ObjectQueryDep
) -> Response:
    """The router's name, and what the user may do, so that screens offer no more than that."""
    status = RouterStatus(
        context.router.name,
        __version__,
        not context.edge.unready(context.router),
        caller.name,
        caller.role,
        caller.msg_vpns is None,
        dict(context.edge.certificates()) if caller.msg_vpns is None else {},
    )
    links = {"uri": f"{root_of(request)}/vpnrouter/v1/router"}
    return query.reply(request, row_of(status), links, RouterStatus)
