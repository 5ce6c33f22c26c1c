"""`GET /vpnrouter/v1/events`: the event log."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.events.log import Event
from vpnrouter.management.answers.replies import rows_reply
from vpnrouter.management.answers.rows import row_of
from vpnrouter.management.dependencies import CallerDep, ContextDep, answers
from vpnrouter.management.errors import invalid, not_found

ours: Final = APIRouter(prefix="/vpnrouter/v1", tags=["vpnrouter"])

PAGE_ROWS: Final = 100
"""Rows in an answer that says nothing of `count`."""

ID_MOST: Final = (1 << 53) - 1
"""What every reader of JSON takes exactly."""

_PARAMETERS: Final = frozenset({"after", "count", "msgVpnName"})


@dataclass(frozen=True, slots=True)
class EventStatus:
    """One event of the log."""

    event_id: int
    """Rising by one; the log keeps the last ones."""
    time_ns: int
    """Since 1970."""
    level: str
    """`debug`, `info`, `notice`, `warning` or `error`."""
    scope: str
    """`SYSTEM`, `VPN` or `CLIENT`."""
    event: str
    """The field's name, such as `VPN_BRIDGING_LINK_DOWN`; "" for what has none."""
    msg_vpn_name: str
    """"" for what is the router's as a whole."""
    name: str
    """The client, bridge, queue or listener that it is about; "" for none."""
    text: str
    area: str = ""
    """The part of the router that `logging.levels` has a level for."""


@ours.get(
    "/events",
    summary="List events",
    responses=answers(EventStatus, many=True),
    response_model=None,
)
async def events(
    request: Request,
    caller: CallerDep,
    context: ContextDep,
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
        if not caller.sees(msg_vpn) or msg_vpn not in context.router.vpns:
            raise not_found(f"msgVpn {msg_vpn}")
        sees = partial(eq, msg_vpn)
    log = context.log
    rows = log.newest(count, sees) if after is None else log.after(after, count, sees)
    meta = {"lastEventId": log.last_event_id}
    return rows_reply(request, [row_of(_status(event)) for event in rows], meta)


def _status(event: Event) -> EventStatus:
    kind = event.kind
    return EventStatus(
        event_id=event.event_id,
        time_ns=event.time_ns,
        level=kind.level_name,
        scope=kind.scope,
        event=kind.name,
        msg_vpn_name=event.msg_vpn,
        name=event.name,
        text=event.text,
        area=kind.area,
    )
