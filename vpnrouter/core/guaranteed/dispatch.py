"""Which flow gets which message of an endpoint, and when; consumers come to an endpoint, and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.barrier import SPOOL
from vpnrouter.core.deliver import OFFERED, deliver_to_one
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.flow import FAILED, RELEASED
from vpnrouter.core.guaranteed.lifecycle import expired, readable
from vpnrouter.core.guaranteed.reasons import may_learn
from vpnrouter.core.guaranteed.terms import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.route import Route
from vpnrouter.core.subscriber import FRAME_MQTT4
from vpnrouter.errors import Refused
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow
    from vpnrouter.core.guaranteed.waiting import Waiting
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def demote_to_one(vpn: MessageVpn, route: Route, message: Message) -> bool:
    """Offer the message to one of those who keep none; True when one was offered it.

    Endpoints have it besides: deliver-to-one is about the Direct copy alone.
    """
    others = Route(route.topic, route.raw)
    others.receivers4 = [each for each in route.demoted if each.frame == FRAME_MQTT4]
    others.receivers5 = [each for each in route.demoted if each.frame != FRAME_MQTT4]
    others.special = route.demoted_special
    others.links = route.links
    others.many_links = route.many_links
    others.excluded = route.excluded
    others.groups = [group for group in route.groups if not group.durable]
    others.turn = route.turn
    others.link_turn = route.link_turn
    offered = deliver_to_one(vpn, others, message) == OFFERED
    route.turn = others.turn
    route.link_turn = others.link_turn
    return offered


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


def dispatch_messages(endpoint: Endpoint) -> None:
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


NOT_AUTHORIZED: Final = 0x87
NOT_FOUND: Final = 0x8F
QUOTA_EXCEEDED: Final = 0x97
UNAVAILABLE: Final = 0x83
"""MQTT 5 reason codes: implementation specific error for what is shut down."""


def not_there(kind: int, username: ClientUsername | None) -> Refused:
    """The refusal of a consumer that `username` wants at an endpoint that is not there."""
    unknown = reasons.UNKNOWN_QUEUE if kind == QUEUE else reasons.UNKNOWN_TOPIC_ENDPOINT
    if may_learn(username):
        return Refused(unknown, NOT_FOUND)
    return Refused(reasons.PERMISSION_DENIED, NOT_AUTHORIZED, unknown)


def permit(endpoint: Endpoint, permission: int, needed: int) -> None:
    """Refuse who may not have what he wants, before anything else is said of the endpoint."""
    if permission < needed:
        endpoint.counters.bind_request_count += 1
        _refuse(endpoint, reasons.PERMISSION_DENIED, NOT_AUTHORIZED)


def bind(endpoint: Endpoint, flow: Flow, permission: int, needed: int) -> None:
    """Let a consumer in; see Endpoint.bind."""
    counters = endpoint.counters
    counters.bind_request_count += 1
    terms = endpoint.terms
    vpn = endpoint.vpn
    queue = endpoint.kind == QUEUE
    if endpoint.deleted:
        _refuse(
            endpoint,
            reasons.UNKNOWN_QUEUE if queue else reasons.UNKNOWN_TOPIC_ENDPOINT,
            NOT_FOUND,
        )
    if permission < needed:
        _refuse(endpoint, reasons.PERMISSION_DENIED, NOT_AUTHORIZED)
    if not terms.egress_enabled:
        _refuse(endpoint, endpoint.shutdown_reason(), UNAVAILABLE)
    if flow in endpoint.flows:
        _refuse(endpoint, reasons.ALREADY_BOUND, NOT_AUTHORIZED)
    if len(endpoint.flows) >= terms.max_bind_count:
        _refuse(
            endpoint, reasons.QUEUE_BINDS if queue else reasons.TOPIC_ENDPOINT_BINDS, QUOTA_EXCEEDED
        )
    if flow.selector is not None and endpoint.partitions is not None:
        _refuse(endpoint, reasons.INVALID_SELECTOR, NOT_AUTHORIZED)
    if endpoint.kind in (QUEUE, TOPIC_ENDPOINT):
        most = vpn.limits.max_egress_flow_count
        if most and vpn.egress_flows >= most:
            _refuse(endpoint, reasons.TOO_MANY_FLOWS, QUOTA_EXCEEDED)
        vpn.egress_flows += 1
    counters.bind_success_count += 1
    endpoint.flows.append(flow)
    _changed(endpoint)
    if not terms.exclusive:
        flow.active = True
    _report(endpoint, flow, bind=True)


def unbind(endpoint: Endpoint, flow: Flow, *, counts: bool) -> None:
    """Unbind a consumer, as Endpoint.unbind says. A second call goes on behind the step that raised."""
    bound = flow in endpoint.flows
    if bound:
        endpoint.flows.remove(flow)
        if endpoint.kind in (QUEUE, TOPIC_ENDPOINT):
            endpoint.vpn.egress_flows -= 1
        flow.active = False
    try:
        flow.letting_go()
    finally:
        try:
            _give_back(endpoint, flow, FAILED if counts else RELEASED)
        finally:
            _changed(endpoint)
    if bound:
        _report(endpoint, flow, bind=False)


def _give_back(endpoint: Endpoint, flow: Flow, outcome: int) -> None:
    barrier = endpoint.vpn.plane.barrier
    for message_id in list(flow.unacked):
        try:
            endpoint.settle(flow, message_id, outcome)
        except Exception as error:  # noqa: BLE001 - given to the barrier: the others go back as well
            barrier.caught(error, SPOOL, endpoint.name, endpoint.vpn.name, "goes on")


def unbind_all(endpoint: Endpoint, reason: str) -> None:
    """Unbind all consumers, and tell them why. What they hold comes back, and does not count as a redelivery."""
    for flow in list(endpoint.flows):
        unbind(endpoint, flow, counts=False)
        flow.unbound(reason)


def unbind_forbidden(endpoint: Endpoint) -> None:
    """Unbind consumers that are not permitted any more. What they hold comes back; that is no redelivery."""
    for flow in list(endpoint.flows):
        if not flow.permitted():
            unbind(endpoint, flow, counts=False)
            flow.unbound(reasons.PERMISSION_DENIED)


def _changed(endpoint: Endpoint) -> None:
    selective = [flow for flow in endpoint.flows if flow.selector is not None]
    endpoint.selective = bool(selective)
    if endpoint.terms.exclusive:
        next_active(endpoint)
    elif endpoint.partitions is not None:
        endpoint.partitions.changed()
    endpoint.wake()


def _refuse(endpoint: Endpoint, reason: str, code: int) -> None:
    failures = endpoint.counters.bind_failures
    failures[reason] = failures.get(reason, 0) + 1
    raise Refused(reason, code)


def _report(endpoint: Endpoint, consumer: Flow, *, bind: bool) -> None:
    """Raise the event of a consumer that came to a queue or topic endpoint, or went."""
    events = endpoint.vpn.plane.events
    if events is None or endpoint.kind not in (QUEUE, TOPIC_ENDPOINT):
        return
    vpn = endpoint.vpn.name
    name = consumer.client_name
    what = "queue" if endpoint.kind == QUEUE else "topic endpoint"
    way = "bound to" if bind else "unbound from"
    text = f"VPN {vpn} client {name}: {way} {what} {endpoint.name}; {len(endpoint.flows)} bound"
    events.raise_event(table.BIND if bind else table.UNBIND, vpn, name, text)
