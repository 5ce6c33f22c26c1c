"""The router itself, and who asks: `/vpnrouter/v1/router`."""

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter import __version__
from vpnrouter.management.asked import AskedOne
from vpnrouter.management.attributes import row_of
from vpnrouter.management.context import CallerHere, MonitorHere, answers
from vpnrouter.management.envelope import root_of

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


@ours.get(
    "",
    summary="Get the router",
    responses=answers(RouterStatus, many=False),
    response_model=None,
)
async def router(
    request: Request, monitor: MonitorHere, caller: CallerHere, asked: AskedOne
) -> Response:
    """Its name, and what the user may do: screens offer no more than that."""
    status = RouterStatus(
        monitor.router_name(),
        __version__,
        monitor.is_ready(),
        caller.name,
        caller.role,
        caller.msg_vpns is None,
    )
    links = {"uri": f"{root_of(request)}/vpnrouter/v1/router"}
    return asked.reply(request, row_of(status), links, RouterStatus)
