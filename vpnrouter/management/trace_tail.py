"""`GET /vpnrouter/v1/traces`: routing traces as they happen."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import TopicError
from vpnrouter.management.answers.replies import rows_reply
from vpnrouter.management.dependencies import CallerDep, context_of
from vpnrouter.management.errors import busy, invalid
from vpnrouter.management.live_traces import TraceFilter
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.events import EVENT_NAMES

ours: Final = APIRouter(prefix="/vpnrouter/v1", tags=["vpnrouter"])

PAGE_ROWS: Final = 100
"""Rows in an answer that says nothing of `count`."""

MARK_MOST: Final = (1 << 53) - 1
"""What every reader of JSON takes exactly."""

TRACE_ID_DIGITS: Final = 32

_PARAMETERS: Final = frozenset({"after", "count", "topic", "event", "msgVpnName", "traceId"})


@ours.get("/traces", summary="Watch routing traces", response_model=None)
async def traces(
    request: Request,
    caller: CallerDep,
    after: Annotated[
        int,
        Query(ge=0, le=MARK_MOST, description="`meta.mark` of the answer before; 0: from now on"),
    ] = 0,
    count: Annotated[
        int, Query(ge=1, le=limits.TRACE_TAIL_PAGE, description="Rows in the answer")
    ] = PAGE_ROWS,
    topic: Annotated[str, Query(description="A topic filter, such as `flights/*/arrived`")] = "",
    event: Annotated[str, Query(description="Such as `ingress` or `discard`")] = "",
    msg_vpn: Annotated[str, Query(alias="msgVpnName")] = "",
    trace_id: Annotated[str, Query(alias="traceId")] = "",
) -> Response:
    """Trace rows behind a mark, the oldest first. Ask again within some seconds, with the same filter."""
    if unknown := request.query_params.keys() - _PARAMETERS:
        raise invalid(f"there is no query parameter {min(unknown)}")
    wish = TraceFilter(topic, event, msg_vpn, trace_id.lower(), caller.msg_vpns)
    _check(wish)
    rows = context_of(request).traces.look(wish, after, count)
    if rows is None:
        raise busy(f"Traces are looked at by {limits.TRACE_TAILS} filters already; try again")
    meta = {"mark": rows.mark, "missed": rows.missed, "tracing": rows.tracing}
    return rows_reply(request, rows.rows, meta)


def _check(wish: TraceFilter) -> None:
    if wish.event and wish.event not in EVENT_NAMES:
        raise invalid(f"event: {wish.event} is none of {', '.join(EVENT_NAMES)}")
    digits = wish.trace_id
    if digits and (len(digits) != TRACE_ID_DIGITS or not set(digits) <= set("0123456789abcdef")):
        raise invalid("traceId: 32 hexadecimal digits are needed")
    if wish.topic:
        try:
            parse_filter(wish.topic, SMF)
        except TopicError as error:
            raise invalid(f"topic: {error}") from error
