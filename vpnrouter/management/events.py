"""`GET /vpnrouter/v1/events`: the event log."""

from collections.abc import Callable
from functools import partial
from operator import eq
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.management.body import invalid, not_found
from vpnrouter.management.context import CallerHere, MonitorHere, answers, sources_of
from vpnrouter.management.rows import row_of, rows_reply
from vpnrouter.management.sources import EventStatus

ours: Final = APIRouter(prefix="/vpnrouter/v1", tags=["vpnrouter"])

PAGE_ROWS: Final = 100
"""Rows in an answer that says nothing of `count`."""

ID_MOST: Final = (1 << 53) - 1
"""What every reader of JSON takes exactly."""

_PARAMETERS: Final = frozenset({"after", "count", "msgVpnName"})


@ours.get(
    "/events",
    summary="List events",
    responses=answers(EventStatus, many=True),
    response_model=None,
)
async def events(
    request: Request,
    caller: CallerHere,
    monitor: MonitorHere,
    after: Annotated[
        int | None,
        Query(
            ge=0, le=ID_MOST, description="`eventId` of the last one seen; without it the newest"
        ),
    ] = None,
    count: Annotated[
        int, Query(ge=1, le=limits.EVENTS_PAGE, description="Rows in the answer")
    ] = PAGE_ROWS,
    msg_vpn: Annotated[str | None, Query(alias="msgVpnName")] = None,
) -> Response:
    """Events by rising id. Who sees only some message VPNs sees their events, and not the router's own."""
    if unknown := request.query_params.keys() - _PARAMETERS:
        raise invalid(f"there is no query parameter {min(unknown)}")
    sees: Callable[[str], bool] | None = None if caller.msg_vpns is None else caller.sees
    if msg_vpn:
        # One answer for what is not there and what is hidden.
        if not caller.sees(msg_vpn) or msg_vpn not in monitor.msg_vpn_names():
            raise not_found(f"msgVpn {msg_vpn}")
        sees = partial(eq, msg_vpn)
    source = sources_of(request).events
    if after is None:
        found = source.newest_events(count, sees)
    else:
        found = source.events(after, count, sees)
    meta = {"lastEventId": source.last_event_id()}
    return rows_reply(request, [row_of(event) for event in found], meta)
