"""Queues: `/SEMP/v2/monitor/msgVpns/{…}/queues`, their consumers and messages, and what an operator does to them.

An operator deletes, copies, moves and replays messages, and clears counts. The verb is PUT, as for all actions of the
field. A web page cannot send one to this address from a browser that happens to run on the router's machine: browsers
ask first, and this API does not answer that.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.management.access import Caller
from vpnrouter.management.answers.replies import list_reply, object_reply, root_of
from vpnrouter.management.answers.rows import row_of
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.collections import (
    ACTION,
    MONITOR,
    OF_MSG_VPN,
    OURS,
    Children,
    Collection,
    Found,
    OperatorDep,
    name_in_path,
    serve,
    serve_all,
    serve_children,
    serve_clear_stats,
)
from vpnrouter.management.dependencies import MsgVpnDep, answers, audit_action, body_of, context_of
from vpnrouter.management.errors import busy, invalid, not_allowed, not_found
from vpnrouter.management.status.queues import (
    ActionResult,
    FlowStatus,
    MsgStatus,
    Queues,
    QueueStatus,
)
from vpnrouter.units import SECOND_NS

routes: Final = APIRouter()

_QUEUE: Final = f"{OF_MSG_VPN}/queues/{{queueName}}"

action_routes: Final = APIRouter(prefix=f"{ACTION}{_QUEUE}", tags=["queue"])

our_actions: Final = APIRouter(prefix=f"{OURS}{_QUEUE}", tags=["vpnrouter"])


async def _source(request: Request) -> Queues:
    return context_of(request).queues


QueuesDep = Annotated[Queues, Depends(_source)]


def _queues(context: ApiContext, msg_vpn: str) -> Found:
    source = context.queues
    return Found(partial(source.queue_names, msg_vpn), partial(source.queue, msg_vpn))


QUEUES: Final = Collection(
    path="queues",
    tag="queue",
    key="queueName",
    kind=QueueStatus,
    one="queue",
    many="queues",
    description="The queues of a message VPN.",
    open=_queues,
    children=("msgs", "txFlows"),
)

TX_FLOWS: Final = Children(
    path="txFlows",
    kind=FlowStatus,
    many="consumers",
    name="tx_flows",
    description="The consumers that are bound to a queue.",
    found=lambda context, msg_vpn, name: context.queues.tx_flows(msg_vpn, name),
    # Keys are texts; these sort as the numbers do.
    key=lambda flow: (f"{flow.flow_id:020}",),
    segment=lambda key: str(int(key[0])),
)

_queue_name = name_in_path(QUEUES)

QueueDep = Annotated[str, Depends(_queue_name)]
"""The queue of the path, which exists."""

serve(routes, QUEUES, _queue_name)
serve_children(routes, QUEUES, _queue_name, TX_FLOWS)
serve_all(routes, QUEUES, "The queues of all message VPNs that the user sees.")
serve_clear_stats(
    routes,
    QUEUES,
    _queue_name,
    lambda context, msg_vpn, name: context.queues.clear_stats(msg_vpn, name),
    "Begin the counts anew. What the queue holds counts as recovered then: it was there at the beginning.",
)


def number_of(written: str) -> int:
    """Return the id of a message in a path; raises RequestError for what is none."""
    if not (written.isascii() and written.isdecimal() and len(written) <= 20):
        raise invalid(f"{unquote(written)} is no msgId")
    return int(written)


async def _msg_id(written: Annotated[str, Path(alias="msgId")]) -> int:
    return number_of(written)


MsgDep = Annotated[int, Depends(_msg_id)]


@routes.get(
    f"{MONITOR}{_QUEUE}/msgs",
    summary="Browse messages",
    tags=["queue"],
    responses=answers(MsgStatus, many=True),
    response_model=None,
)
async def msgs(
    request: Request,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    name: QueueDep,
    count: Annotated[int, Query(ge=1, le=limits.MANAGEMENT_PAGE_ROWS)] = 10,
    cursor: Annotated[str, Query(description="From `meta.paging`: the last msgId")] = "",
) -> Response:
    """Messages of a queue, the oldest first. Nothing is taken out and nobody is kept from consuming."""
    if unknown := request.query_params.keys() - {"count", "cursor"}:
        # A queue may hold millions: there is no search over what stands on disk.
        raise invalid(f"there is no query parameter {min(unknown)}")
    after = number_of(cursor) if cursor else 0
    messages = source.msgs(msg_vpn, name, after, count)
    status = source.queue(msg_vpn, name)
    total = len(messages) if status is None else status.msg_count
    uri = QUEUES.links_of(root_of(request), (msg_vpn, name))["msgsUri"]
    more = str(messages[-1].msg_id) if len(messages) == count else None
    return list_reply(
        request,
        [row_of(msg) for msg in messages],
        [{"uri": f"{uri}/{msg.msg_id}"} for msg in messages],
        total,
        more,
    )


@routes.get(
    f"{OURS}{_QUEUE}/msgs/{{msgId}}/payload",
    summary="Get the payload of a message",
    tags=["vpnrouter"],
    responses={200: {"description": "The bytes", "content": {"application/octet-stream": {}}}},
    response_model=None,
)
async def payload(
    source: QueuesDep, msg_vpn: MsgVpnDep, name: QueueDep, msg_id: MsgDep
) -> Response:
    """What was published, byte for byte."""
    message = source.payload(msg_vpn, name, msg_id)
    if message is None:
        raise not_found(f"msg {msg_id} in queue {name}")
    # Whatever a publisher wrote, no browser takes it for a page: see middleware.py.
    sent = {"cache-control": "no-store"}
    return Response(message, 200, sent, media_type="application/octet-stream")


_IDS: Final = {"msgIds": list}
_TO: Final = {"toQueueName": str, "msgIds": list}
_REPLAY: Final = {"replayLogName": str, "fromTime": int, "afterMsgId": int}


LATEST_S: Final = 253_402_300_799
"""The last second of the year 9999."""


@action_routes.put("/deleteMsgs", summary="Delete messages", response_model=None)
async def delete_msgs(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
) -> Response:
    """Delete the messages `msgIds` (ours), or all that no consumer holds."""
    ids = _ids(await body_of(request, _IDS))
    try:
        done = await source.delete_msgs(msg_vpn, queue, ids)
    except SpoolError as error:
        raise busy(str(error)) from error
    if done.count:
        audit_action(request, caller, f"deleted {done.count:,} messages of queue {queue}", msg_vpn)
    return _reply(request, done, "deleted")


@action_routes.put("/msgs/{msgId}/delete", summary="Delete a message", response_model=None)
async def delete_msg(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
    msg_id: MsgDep,
) -> Response:
    """Delete one message."""
    await body_of(request, {})
    try:
        done = await source.delete_msgs(msg_vpn, queue, [msg_id])
    except SpoolError as error:
        raise busy(str(error)) from error
    if not done.count and not done.refusal:
        raise not_found(f"msg {msg_id} in queue {queue}")
    if done.count:
        audit_action(request, caller, f"deleted message {msg_id} of queue {queue}", msg_vpn)
    return _reply(request, done, "deleted")


@our_actions.put("/copyMsgs", summary="Copy messages to another queue", response_model=None)
async def copy_msgs(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
) -> Response:
    """Put the messages `msgIds`, or all that no consumer holds, into the queue `toQueueName` as well."""
    return await _put(request, caller, source, (msg_vpn, queue), move=False)


@our_actions.put("/moveMsgs", summary="Move messages to another queue", response_model=None)
async def move_msgs(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
) -> Response:
    """Put the messages `msgIds`, or all that no consumer holds, into the queue `toQueueName` instead."""
    return await _put(request, caller, source, (msg_vpn, queue), move=True)


@action_routes.put("/startReplay", summary="Replay messages to a queue", response_model=None)
async def start_replay(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
) -> Response:
    """Give the queue once more what the replay log has, from `fromTime` (seconds since 1970, UTC) on.

    Or from behind the message `afterMsgId` (ours, an id of the log), or without both from the beginning.
    """
    body = await body_of(request, _REPLAY)
    since = body.get("fromTime")
    after = body.get("afterMsgId")
    if since is not None and after is not None:
        raise invalid("fromTime and afterMsgId: only one of them")
    if since is not None and not 0 <= since <= LATEST_S:
        raise invalid(f"fromTime: {since} is no time")
    if after is not None and not 0 < after < 1 << 64:
        raise invalid(f"afterMsgId: {after} is no msgId")
    from_ns = 0 if since is None else max(1, since * SECOND_NS)
    try:
        refusal = await source.start_replay(
            msg_vpn, queue, body.get("replayLogName", ""), from_ns, after or 0
        )
    except SpoolError as error:
        raise busy(str(error)) from error
    if refusal:
        raise not_allowed(f"the replay was refused: {refusal}")
    audit_action(request, caller, f"started a replay to queue {queue}", msg_vpn)
    return object_reply(request, {}, {})


@action_routes.put("/cancelReplay", summary="End a replay to a queue", response_model=None)
async def cancel_replay(
    request: Request,
    caller: OperatorDep,
    source: QueuesDep,
    msg_vpn: MsgVpnDep,
    queue: QueueDep,
) -> Response:
    """End the replay that runs; what it brought stays."""
    await body_of(request, {})
    try:
        ended = await source.cancel_replay(msg_vpn, queue)
    except SpoolError as error:
        raise busy(str(error)) from error
    if not ended:
        raise not_allowed(f"no replay to queue {queue} runs")
    audit_action(request, caller, f"ended the replay to queue {queue}", msg_vpn)
    return object_reply(request, {}, {})


async def _put(
    request: Request, caller: Caller, source: QueuesDep, key: tuple[str, str], *, move: bool
) -> Response:
    msg_vpn, queue = key
    body = await body_of(request, _TO)
    ids = _ids(body)
    to = body.get("toQueueName", "")
    if not to:
        raise invalid("toQueueName is missing")
    if to == queue:
        raise invalid("toQueueName is the queue itself")
    if source.queue(msg_vpn, to) is None:
        raise not_found(f"queue {to} in msgVpn {msg_vpn}")
    try:
        done = await source.copy_msgs(msg_vpn, queue, to, ids, move=move)
    except SpoolError as error:
        raise busy(str(error)) from error
    how = "moved" if move else "copied"
    if done.count:
        action = f"{how} {done.count:,} messages of queue {queue} to queue {to}"
        audit_action(request, caller, action, msg_vpn)
    return _reply(request, done, how)


def _ids(body: dict[str, list[object]]) -> list[int] | None:
    """Return the ids of the requested messages, None for all messages."""
    requested = body.get("msgIds")
    if requested is None:
        return None
    if len(requested) > limits.MANAGEMENT_MSG_IDS:
        raise invalid(f"msgIds: more than {limits.MANAGEMENT_MSG_IDS:,}")
    ids = [
        msg_id for msg_id in requested if isinstance(msg_id, int) and not isinstance(msg_id, bool)
    ]
    if len(ids) != len(requested) or any(not 0 <= msg_id < 1 << 64 for msg_id in ids):
        raise invalid("msgIds: not all of them are msgIds")
    return sorted(set(ids))


def _reply(request: Request, done: ActionResult, what: str) -> Response:
    if done.refusal:
        raise not_allowed(f"{done.count:,} messages {what}, the next was refused: {done.refusal}")
    return object_reply(request, {"msgCount": done.count}, {})


PAGES: Final = (routes, action_routes, our_actions)
"""What the kind serves."""
