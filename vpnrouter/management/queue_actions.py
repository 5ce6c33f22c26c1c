"""What an operator does to a queue and its messages: delete, copy, move, replay, clear its counts.

The verb is PUT, as for all actions of the field. A web page cannot send one to this address from a browser
that happens to run on the router's machine: browsers ask first, and this API does not answer that.
"""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.management.access import Caller
from vpnrouter.management.body import body_of
from vpnrouter.management.context import CallerHere, MsgVpnHere, acted
from vpnrouter.management.envelope import object_reply
from vpnrouter.management.faults import busy, forbidden, invalid, not_allowed, not_found
from vpnrouter.management.queue_source import Done
from vpnrouter.management.queues import MsgHere, QueueHere, QueuesHere

ACTION: Final = "/SEMP/v2/action"

_QUEUE: Final = "/msgVpns/{msgVpnName}/queues/{queueName}"

routes: Final = APIRouter(prefix=f"{ACTION}{_QUEUE}", tags=["queue"])

ours: Final = APIRouter(prefix=f"/vpnrouter/v1{_QUEUE}", tags=["vpnrouter"])

_IDS: Final = {"msgIds": list}
_TO: Final = {"toQueueName": str, "msgIds": list}
_REPLAY: Final = {"replayLogName": str, "fromTime": int, "afterMsgId": int}

SECOND_NS: Final = 1_000_000_000

LATEST_S: Final = 253_402_300_799
"""The last second of the year 9999."""


async def _operator(caller: CallerHere) -> Caller:
    if not caller.may_change:
        raise forbidden(f"User {caller.name} may look and not change")
    return caller


OperatorHere = Annotated[Caller, Depends(_operator)]
"""Who asks, and may change things."""


@routes.put("/deleteMsgs", summary="Delete messages", response_model=None)
async def delete_msgs(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
) -> Response:
    """Delete the messages `msgIds` (ours), or all that no consumer holds."""
    ids = _ids(await body_of(request, _IDS))
    try:
        done = await source.delete_msgs(msg_vpn, queue, ids)
    except SpoolError as error:
        raise busy(str(error)) from error
    if done.count:
        acted(request, caller, f"deleted {done.count:,} messages of queue {queue}", msg_vpn)
    return _reply(request, done, "deleted")


@routes.put("/msgs/{msgId}/delete", summary="Delete a message", response_model=None)
async def delete_msg(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
    msg_id: MsgHere,
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
        acted(request, caller, f"deleted message {msg_id} of queue {queue}", msg_vpn)
    return _reply(request, done, "deleted")


@routes.put("/clearStats", summary="Clear the counts of a queue", response_model=None)
async def clear_stats(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
) -> Response:
    """Begin the counts anew. What the queue holds counts as recovered then: it was there at the beginning."""
    await body_of(request, {})
    if not source.clear_stats(msg_vpn, queue):
        raise not_found(f"queue {queue} in msgVpn {msg_vpn}")
    acted(request, caller, f"cleared the counts of queue {queue}", msg_vpn)
    return object_reply(request, {}, {})


@ours.put("/copyMsgs", summary="Copy messages to another queue", response_model=None)
async def copy_msgs(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
) -> Response:
    """Put the messages `msgIds`, or all that no consumer holds, into the queue `toQueueName` as well."""
    return await _put(request, caller, source, (msg_vpn, queue), move=False)


@ours.put("/moveMsgs", summary="Move messages to another queue", response_model=None)
async def move_msgs(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
) -> Response:
    """Put the messages `msgIds`, or all that no consumer holds, into the queue `toQueueName` instead."""
    return await _put(request, caller, source, (msg_vpn, queue), move=True)


@routes.put("/startReplay", summary="Replay messages to a queue", response_model=None)
async def start_replay(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
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
    acted(request, caller, f"started a replay to queue {queue}", msg_vpn)
    return object_reply(request, {}, {})


@routes.put("/cancelReplay", summary="End a replay to a queue", response_model=None)
async def cancel_replay(
    request: Request,
    caller: OperatorHere,
    source: QueuesHere,
    msg_vpn: MsgVpnHere,
    queue: QueueHere,
) -> Response:
    """End the replay that runs; what it brought stays."""
    await body_of(request, {})
    try:
        ended = await source.cancel_replay(msg_vpn, queue)
    except SpoolError as error:
        raise busy(str(error)) from error
    if not ended:
        raise not_allowed(f"no replay to queue {queue} runs")
    acted(request, caller, f"ended the replay to queue {queue}", msg_vpn)
    return object_reply(request, {}, {})


async def _put(
    request: Request, caller: Caller, source: QueuesHere, key: tuple[str, str], *, move: bool
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
        what = f"{how} {done.count:,} messages of queue {queue} to queue {to}"
        acted(request, caller, what, msg_vpn)
    return _reply(request, done, how)


def _ids(body: dict[str, list[object]]) -> list[int] | None:
    """The messages named, None for all of them."""
    written = body.get("msgIds")
    if written is None:
        return None
    if len(written) > limits.MANAGEMENT_MSG_IDS:
        raise invalid(f"msgIds: more than {limits.MANAGEMENT_MSG_IDS:,}")
    ids = [each for each in written if isinstance(each, int) and not isinstance(each, bool)]
    if len(ids) != len(written) or any(not 0 <= each < 1 << 64 for each in ids):
        raise invalid("msgIds: not all of them are msgIds")
    return sorted(set(ids))


def _reply(request: Request, done: Done, what: str) -> Response:
    if done.refusal:
        raise not_allowed(f"{done.count:,} messages {what}, the next was refused: {done.refusal}")
    return object_reply(request, {"msgCount": done.count}, {})
