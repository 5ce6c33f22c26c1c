"""Which flow gets which message of an endpoint, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.expiry import expired
from vpnrouter.core.guaranteed.unreadable import readable

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow
    from vpnrouter.core.guaranteed.waiting import Waiting

LOOKED_AT: Final = 1_000
"""Messages that a selector looks at, or that turn out to have expired, in one go; the rest in the next round."""

PRIORITIES: Final = 10


def next_active(endpoint: Endpoint) -> None:
    """The longest bound flow of an exclusive endpoint is the active one."""
    for index, flow in enumerate(list(endpoint.flows)):
        first = index == 0
        if flow.active != first:
            flow.active = first
            flow.activated(first)


def dispatch(endpoint: Endpoint) -> None:
    """Deliver what flows have room for: in order, exclusive to one, else in turn."""
    flows = endpoint.flows
    if endpoint.ahead is not None:
        # A replay: what it brings goes first, and the rest waits for its end.
        _to_one(endpoint, endpoint.ahead, flows[0])
        return
    if endpoint.partitions is not None:
        lanes = endpoint.partitions.ready()
        count = len(lanes)
        # Another lane begins each time: lanes share their flow's window.
        endpoint.lane_turn += 1
        for step in range(count):
            lane, flow = lanes[(endpoint.lane_turn + step) % count]
            _to_one(endpoint, endpoint.waiting[lane], flow)
        return
    waiting = endpoint.waiting[0]
    if endpoint.terms.exclusive:
        _to_one(endpoint, waiting, flows[0])
        return
    if not endpoint.selective:
        if len(flows) == 1:
            _to_one(endpoint, waiting, flows[0])
        else:
            _in_turn(endpoint, waiting, flows)
        return
    plain: list[Flow] = []
    for flow in flows:
        if flow.selector is None:
            plain.append(flow)
        else:
            _selected(endpoint, waiting, flow)
    if plain:
        _in_turn(endpoint, waiting, plain)


def _room(endpoint: Endpoint, flow: Flow) -> int:
    room = endpoint.terms.max_delivered_unacked_msgs_per_flow - len(flow.unacked)
    return min(room, flow.room())


def _to_one(endpoint: Endpoint, waiting: Waiting, flow: Flow) -> None:
    if not waiting.count:
        return
    if flow.selector is not None:
        _selected(endpoint, waiting, flow)
        return
    room = _room(endpoint, flow)
    lost = 0
    while waiting.count:
        if room <= 0:
            flow.window_closed += 1
            return
        message_id = waiting.first()
        if message_id > endpoint.mark and not _may_deliver(endpoint, message_id):
            return
        if _pop(endpoint, waiting, flow, message_id):
            room -= 1
        else:
            lost += 1
            if lost == LOOKED_AT:
                endpoint.spool.later.append(endpoint)
                return


def _in_turn(endpoint: Endpoint, waiting: Waiting, flows: list[Flow]) -> None:
    if not waiting.count:
        return
    rooms: list[int] = []
    left = 0
    for flow in flows:
        room = max(0, _room(endpoint, flow))
        rooms.append(room)
        left += room
    count = len(flows)
    turn = endpoint.turn % count
    lost = 0
    while waiting.count and left:
        if rooms[turn] == 0:
            turn = (turn + 1) % count
            continue
        message_id = waiting.first()
        if message_id > endpoint.mark and not _may_deliver(endpoint, message_id):
            break
        if _pop(endpoint, waiting, flows[turn], message_id):
            rooms[turn] -= 1
            left -= 1
            turn = (turn + 1) % count
        else:
            lost += 1
            if lost == LOOKED_AT:
                endpoint.spool.later.append(endpoint)
                break
    endpoint.turn = turn
    if waiting.count:
        for index in range(count):
            if rooms[index] == 0:
                flows[index].window_closed += 1


def _selected(endpoint: Endpoint, waiting: Waiting, flow: Flow) -> None:
    """Deliver what the flow's selector matches; what it does not match waits for others."""
    room = _room(endpoint, flow)
    back = flow.came_back
    while back is not None and len(back) and room > 0:
        message_id = back.first()
        if not waiting.has(message_id):
            # Somebody else has it.
            back.popleft()
            continue
        if message_id > endpoint.mark and not _may_deliver(endpoint, message_id):
            return
        back.popleft()
        room -= _look(endpoint, waiting, flow, message_id)
    left = LOOKED_AT
    priority = PRIORITIES
    while priority > 0 and left > 0:
        priority -= 1
        ids = waiting.of_priority(priority, flow.cursors[priority], left)
        left -= len(ids)
        for message_id in ids:
            if room <= 0:
                flow.window_closed += 1
                return
            if message_id > endpoint.mark and not _may_deliver(endpoint, message_id):
                return
            flow.cursors[priority] = message_id
            room -= _look(endpoint, waiting, flow, message_id)
    if left <= 0:
        endpoint.spool.later.append(endpoint)


def _look(endpoint: Endpoint, waiting: Waiting, flow: Flow, message_id: int) -> int:
    """Deliver the message if the selector matches it; returns the window that this took."""
    selector = flow.selector
    message = readable(endpoint, message_id)
    if message is None:
        waiting.remove(message_id)
        return 0
    if selector is not None and not selector.matches(message.properties()):
        return 0
    return 1 if _pop(endpoint, waiting, flow, message_id) else 0


def _pop(endpoint: Endpoint, waiting: Waiting, flow: Flow, message_id: int) -> bool:
    """Deliver a message that waits. If this raises, the flow has the message, or it waits again."""
    try:
        if waiting.first() == message_id:
            waiting.pop()
        else:
            waiting.remove(message_id)
        return _deliver(endpoint, flow, message_id)
    except Exception:
        spool = endpoint.spool
        spool.failing = flow
        if message_id not in flow.unacked:
            endpoint.mend(message_id, spool.message(message_id))
        raise


def _may_deliver(endpoint: Endpoint, message_id: int) -> bool:
    """True for a temporary endpoint. For a durable one the spool first has to note that it may be delivered."""
    if not endpoint.durable:
        return True
    endpoint.spool.want_mark(endpoint, message_id)
    return False


def _deliver(endpoint: Endpoint, flow: Flow, message_id: int) -> bool:
    """Hand one message to a flow; False when it has expired instead."""
    message = readable(endpoint, message_id)
    if message is None:
        return False
    if endpoint.terms.respect_ttl_enabled and expired(endpoint, message):
        endpoint.expire(message_id, message)
        return False
    count = endpoint.redeliveries.get(message_id, 0) if endpoint.redeliveries else 0
    if count == 0 and message_id <= endpoint.marked:
        # Perhaps delivered before a crash.
        count = -1
    if count:
        endpoint.counters.redelivered += 1
    endpoint.counters.delivered += 1
    flow.delivered += 1
    flow.unacked[message_id] = message
    flow.send(message_id, message, count)
    return True
