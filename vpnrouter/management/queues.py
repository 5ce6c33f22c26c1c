"""Queues: `/SEMP/v2/monitor/msgVpns/{…}/queues`, their consumers and messages, and all queues at once."""

from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.management.asked import AskedMany, AskedOne
from vpnrouter.management.attributes import Row, row_of
from vpnrouter.management.context import CallerHere, MonitorHere, MsgVpnHere, answers, sources_of
from vpnrouter.management.envelope import Links, list_reply, root_of, segment
from vpnrouter.management.faults import invalid, not_found
from vpnrouter.management.msg_vpns import MONITOR
from vpnrouter.management.paging import Key
from vpnrouter.management.queue_source import FlowStatus, MsgStatus, QueueSource, QueueStatus

routes: Final = APIRouter(prefix=f"{MONITOR}/msgVpns/{{msgVpnName}}/queues", tags=["queue"])

ours: Final = APIRouter(prefix="/vpnrouter/v1", tags=["vpnrouter"])
"""What the field's API has no path for."""


async def _source(request: Request) -> QueueSource:
    return sources_of(request).queues


QueuesHere = Annotated[QueueSource, Depends(_source)]


async def _queue_name(
    queues: QueuesHere, msg_vpn: MsgVpnHere, name: Annotated[str, Path(alias="queueName")]
) -> str:
    queue = unquote(name)
    if queues.queue(msg_vpn, queue) is None:
        raise not_found(f"queue {queue} in msgVpn {msg_vpn}")
    return queue


QueueHere = Annotated[str, Depends(_queue_name)]
"""The queue of the path, which exists."""


def number_of(written: str) -> int:
    """The id of a message in a path; raises RequestError for what is none."""
    if not (written.isascii() and written.isdecimal() and len(written) <= 20):
        raise invalid(f"{unquote(written)} is no msgId")
    return int(written)


async def _msg_id(written: Annotated[str, Path(alias="msgId")]) -> int:
    return number_of(written)


MsgHere = Annotated[int, Depends(_msg_id)]


@routes.get(
    "", summary="List queues", responses=answers(QueueStatus, many=True), response_model=None
)
async def queues(
    request: Request, source: QueuesHere, msg_vpn: MsgVpnHere, asked: AskedMany
) -> Response:
    """The queues of a message VPN."""
    keys = [(msg_vpn, name) for name in source.queue_names(msg_vpn)]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, source), links, QueueStatus)


@routes.get(
    "/{queueName}",
    summary="Get a queue",
    responses=answers(QueueStatus, many=False),
    response_model=None,
)
async def queue(
    request: Request, source: QueuesHere, msg_vpn: MsgVpnHere, name: QueueHere, asked: AskedOne
) -> Response:
    """One queue."""
    key = (msg_vpn, name)
    row = _row(source, key)
    if row is None:
        raise not_found(f"queue {name} in msgVpn {msg_vpn}")
    return asked.reply(request, row, _links(root_of(request), key), QueueStatus)


@routes.get(
    "/{queueName}/txFlows",
    summary="List consumers",
    responses=answers(FlowStatus, many=True),
    response_model=None,
)
async def tx_flows(
    request: Request, source: QueuesHere, msg_vpn: MsgVpnHere, name: QueueHere, asked: AskedMany
) -> Response:
    """The consumers that are bound to a queue."""
    # Keys are texts; these sort as the numbers do.
    flows: dict[Key, FlowStatus] = {
        (f"{flow.flow_id:020}",): flow for flow in source.tx_flows(msg_vpn, name)
    }
    uri = _links(root_of(request), (msg_vpn, name))["txFlowsUri"]
    return await asked.reply(
        request,
        list(flows),
        lambda key: row_of(flows[key]),
        lambda key: {"uri": f"{uri}/{int(key[0])}"},
        FlowStatus,
    )


@routes.get(
    "/{queueName}/msgs",
    summary="Browse messages",
    responses=answers(MsgStatus, many=True),
    response_model=None,
)
async def msgs(
    request: Request,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    name: QueueHere,
    count: Annotated[int, Query(ge=1, le=limits.MANAGEMENT_PAGE_ROWS)] = 10,
    cursor: Annotated[str, Query(description="From `meta.paging`: the last msgId")] = "",
) -> Response:
    """Messages of a queue, the oldest first. Nothing is taken out and nobody is kept from consuming."""
    if unknown := request.query_params.keys() - {"count", "cursor"}:
        # A queue may hold millions: there is no search over what stands on disk.
        raise invalid(f"there is no query parameter {min(unknown)}")
    after = number_of(cursor) if cursor else 0
    found = source.msgs(msg_vpn, name, after, count)
    status = source.queue(msg_vpn, name)
    total = len(found) if status is None else status.msg_count
    uri = _links(root_of(request), (msg_vpn, name))["msgsUri"]
    more = str(found[-1].msg_id) if len(found) == count else None
    return list_reply(
        request,
        [row_of(msg) for msg in found],
        [{"uri": f"{uri}/{msg.msg_id}"} for msg in found],
        total,
        more,
    )


@ours.get(
    "/queues",
    summary="List the queues of all message VPNs",
    responses=answers(QueueStatus, many=True),
    response_model=None,
)
async def all_queues(
    request: Request,
    source: QueuesHere,
    monitor: MonitorHere,
    caller: CallerHere,
    asked: AskedMany,
) -> Response:
    """The queues of all message VPNs that the user sees."""
    keys = [
        (msg_vpn, name)
        for msg_vpn in monitor.msg_vpn_names()
        if caller.sees(msg_vpn)
        for name in source.queue_names(msg_vpn)
    ]
    links = partial(_links, root_of(request))
    return await asked.reply(request, keys, partial(_row, source), links, QueueStatus)


@ours.get(
    "/msgVpns/{msgVpnName}/queues/{queueName}/msgs/{msgId}/payload",
    summary="Get the payload of a message",
    responses={200: {"description": "The bytes", "content": {"application/octet-stream": {}}}},
    response_model=None,
)
async def payload(
    source: QueuesHere, msg_vpn: MsgVpnHere, name: QueueHere, msg_id: MsgHere
) -> Response:
    """What was published, byte for byte."""
    found = source.payload(msg_vpn, name, msg_id)
    if found is None:
        raise not_found(f"msg {msg_id} in queue {name}")
    # Whatever a publisher wrote, no browser takes it for a page: see exchange.py.
    sent = {"cache-control": "no-store"}
    return Response(found, 200, sent, media_type="application/octet-stream")


def _row(source: QueueSource, key: Key) -> Row | None:
    status = source.queue(*key)
    return None if status is None else row_of(status)


def _links(root: str, key: Key) -> Links:
    msg_vpn, name = key
    uri = f"{root}{MONITOR}/msgVpns/{segment(msg_vpn)}/queues/{segment(name)}"
    return {"uri": uri, "msgsUri": f"{uri}/msgs", "txFlowsUri": f"{uri}/txFlows"}
