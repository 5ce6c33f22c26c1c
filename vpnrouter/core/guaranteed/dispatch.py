"""Decides which flow gets which message of an endpoint, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.guaranteed.flow import Partitions, lane_of
from vpnrouter.core.guaranteed.returning import holds_up
from vpnrouter.core.guaranteed.waiting_list import WaitingList

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow

LOOKED_AT: Final = 1_000
"""Messages that a selector looks at, or that turn out to have expired, in one go; the rest in the next round."""

DELIVERY_WORK: Final = 1
LOOK_WORK: Final = 2
"""What it costs to hand a message to a flow, and what its selector costs without the properties that it reads, in parts
of a turn (TurnContext.work). When a round has done enough (limits.TURN_WORK), the rest waits for the next."""

PRIORITIES: Final = 10

SORTED: Final = 5_000
"""Messages that are sorted into other partitions or priorities in one round; nothing is delivered until
all are."""


@final
class DispatchOrder:
    """The order in which the messages of `endpoint` go to its flows.

    `selective`: a flow has a selector. `unsorted` are messages to be sorted into other partitions or priorities.
    """

    __slots__ = ("_endpoint", "_lane_turn", "_turn", "selective", "unsorted")

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.selective = False
        self._turn = 0
        self._lane_turn = 0
        self.unsorted: list[WaitingList] = []

    def next_active(self) -> None:
        """The longest bound flow of an exclusive endpoint is the active one."""
        for index, flow in enumerate(list(self._endpoint.flows)):
            first = index == 0
            if flow.active != first:
                flow.active = first
                flow.activated(first)

    def run(self) -> None:
        """Deliver what flows have room for: in order, exclusive to one, else in turn."""
        endpoint = self._endpoint
        flows = endpoint.flows
        if endpoint.returning and endpoint.partitions is None and holds_up(endpoint, 0):
            return
        if endpoint.ahead is not None:
            # A replay: what it brings goes first, and the rest waits for its end.
            self._to_one(endpoint.ahead, flows[0])
            return
        if endpoint.partitions is not None:
            lanes = endpoint.partitions.ready()
            if endpoint.returning:
                lanes = [row for row in lanes if not holds_up(endpoint, row[0])]
            count = len(lanes)
            # Another lane begins each time: lanes share their flow's window.
            self._lane_turn += 1
            for step in range(count):
                lane, flow = lanes[(self._lane_turn + step) % count]
                self._to_one(endpoint.waiting[lane], flow)
            return
        waiting = endpoint.waiting[0]
        if endpoint.settings.exclusive:
            self._to_one(waiting, flows[0])
            return
        if not self.selective:
            if len(flows) == 1:
                self._to_one(waiting, flows[0])
            else:
                self._in_turn(waiting, flows)
            return
        plain: list[Flow] = []
        for flow in flows:
            if flow.selector is None:
                plain.append(flow)
            elif self._spent():
                return
            else:
                self._selected(waiting, flow)
        if plain:
            self._in_turn(waiting, plain)

    def _room(self, flow: Flow) -> int:
        room = self._endpoint.settings.max_delivered_unacked_msgs_per_flow - len(flow.unacked)
        return min(room, flow.room())

    def _to_one(self, waiting: WaitingList, flow: Flow) -> None:
        endpoint = self._endpoint
        if not waiting.count:
            return
        if flow.selector is not None:
            self._selected(waiting, flow)
            return
        room = self._room(flow)
        lost = 0
        while waiting.count:
            if room <= 0 or (flow.budget <= 0 and not flow.goes_on()):
                flow.window_closed += 1
                return
            if self._spent():
                return
            message_id = waiting.first()
            if message_id > endpoint.mark and not self._may_deliver(message_id):
                return
            if self._pop(waiting, flow, message_id):
                room -= 1
            else:
                lost += 1
                if lost == LOOKED_AT:
                    endpoint.spool.later.append(endpoint)
                    return

    def _in_turn(self, waiting: WaitingList, flows: list[Flow]) -> None:
        endpoint = self._endpoint
        if not waiting.count:
            return
        rooms: list[int] = []
        left = 0
        for flow in flows:
            room = max(0, self._room(flow))
            rooms.append(room)
            left += room
        count = len(flows)
        turn = self._turn % count
        lost = 0
        while waiting.count and left and not self._spent():
            if rooms[turn] == 0:
                turn = (turn + 1) % count
                continue
            if not flows[turn].goes_on():
                left -= rooms[turn]
                rooms[turn] = 0
                continue
            message_id = waiting.first()
            if message_id > endpoint.mark and not self._may_deliver(message_id):
                break
            if self._pop(waiting, flows[turn], message_id):
                rooms[turn] -= 1
                left -= 1
                turn = (turn + 1) % count
            else:
                lost += 1
                if lost == LOOKED_AT:
                    endpoint.spool.later.append(endpoint)
                    break
        self._turn = turn
        if waiting.count:
            for index in range(count):
                if rooms[index] == 0:
                    flows[index].window_closed += 1

    def _selected(self, waiting: WaitingList, flow: Flow) -> None:
        """Deliver what the flow's selector matches; the rest waits for other flows."""
        endpoint = self._endpoint
        room = self._room(flow)
        back = flow.came_back
        while back is not None and len(back) and room > 0:
            if not flow.goes_on() or self._spent():
                return
            message_id = back.first()
            if not waiting.has(message_id):
                # Somebody else has it.
                back.popleft()
                continue
            if message_id > endpoint.mark and not self._may_deliver(message_id):
                return
            back.popleft()
            room -= self._look(waiting, flow, message_id)
        left = LOOKED_AT
        priority = PRIORITIES
        while priority > 0 and left > 0:
            priority -= 1
            ids = waiting.of_priority(priority, flow.cursors[priority], left)
            left -= len(ids)
            for message_id in ids:
                if room <= 0 or (flow.budget <= 0 and not flow.goes_on()):
                    flow.window_closed += 1
                    return
                if self._spent():
                    return
                if message_id > endpoint.mark and not self._may_deliver(message_id):
                    return
                flow.cursors[priority] = message_id
                room -= self._look(waiting, flow, message_id)
        if left <= 0:
            endpoint.spool.later.append(endpoint)

    def _spent(self) -> bool:
        """Return whether this round has done enough; the endpoint is looked at again in the next one then."""
        endpoint = self._endpoint
        if endpoint.vpn.context.work <= limits.TURN_WORK:
            return False
        endpoint.spool.later.append(endpoint)
        return True

    def _look(self, waiting: WaitingList, flow: Flow, message_id: int) -> int:
        """Deliver the message if the selector matches it; returns the window that this took."""
        selector = flow.selector
        context = self._endpoint.vpn.context
        context.work += LOOK_WORK
        message = self._endpoint.readable(message_id)
        if message is None:
            waiting.remove(message_id)
            return 0
        if selector is not None and not selector.matches(message.properties()):
            context.work += MEASURE.work()
            return 0
        return 1 if self._pop(waiting, flow, message_id) else 0

    def _pop(self, waiting: WaitingList, flow: Flow, message_id: int) -> bool:
        """Deliver a message that waits. If this raises, the flow has the message, or it waits again."""
        endpoint = self._endpoint
        context = endpoint.vpn.context
        context.work += DELIVERY_WORK
        try:
            if waiting.first() == message_id:
                waiting.pop()
            else:
                waiting.remove(message_id)
            taken = self._deliver(flow, message_id)
        except Exception:
            spool = endpoint.spool
            spool.failing = flow
            if message_id not in flow.unacked:
                endpoint.mend(message_id, spool.message(message_id))
            raise
        context.work += MEASURE.work()
        return taken

    def _may_deliver(self, message_id: int) -> bool:
        """Return whether the spool has noted that the message may be delivered; a temporary endpoint needs no note."""
        endpoint = self._endpoint
        if not endpoint.durable:
            return True
        endpoint.spool.request_mark(endpoint, message_id)
        return False

    def _deliver(self, flow: Flow, message_id: int) -> bool:
        """Hand one message to a flow; False when it has expired instead."""
        endpoint = self._endpoint
        message = endpoint.readable(message_id)
        if message is None:
            return False
        if endpoint.is_over(message):
            endpoint.expire(message_id, message)
            return False
        if message.due_ns and message.due_ns > endpoint.vpn.context.now_ns:
            # It was here before a restart, which knows of no message when it is due.
            endpoint.schedule.keep_back(message_id, message)
            return False
        count = endpoint.redeliveries.get(message_id, 0) if endpoint.redeliveries else 0
        if count == 0 and message_id <= endpoint.marked:
            # Perhaps delivered before a crash.
            count = -1
        if count:
            endpoint.counters.redelivered += 1
        endpoint.counters.delivered += 1
        flow.delivered += 1
        flow.delivers(message_id, message)
        flow.send(message_id, message, count)
        return True

    def unsort(self, lanes: int) -> None:
        """Everything that waits is to be sorted again, into so many lanes."""
        endpoint = self._endpoint
        for pool in endpoint.waiting:
            if pool.count:
                self.unsorted.append(pool)
        endpoint.waiting = [WaitingList() for _ in range(lanes)]
        if endpoint.partitions is not None:
            endpoint.partitions.stop()
            endpoint.partitions = None
        if endpoint.settings.partitioned:
            endpoint.partitions = Partitions(endpoint, lanes)
            endpoint.partitions.changed()
        for returning in endpoint.returning:
            # It comes back into any of them.
            returning.lanes = list(range(lanes))
        for flow in endpoint.flows:
            if flow.selector is not None:
                flow.start_over()

    def sort_some(self) -> None:
        """Sort a bounded number of messages; the rest in the next rounds."""
        endpoint = self._endpoint
        left = SORTED
        lanes = len(endpoint.waiting)
        ttl = endpoint.settings.respect_ttl_enabled
        plain = lanes == 1 and not ttl and not endpoint.settings.respect_msg_priority_enabled
        while self.unsorted and left:
            pool = self.unsorted[-1]
            while pool.count and left:
                left -= 1
                message_id = pool.pop()
                if plain:
                    endpoint.waiting[0].add(message_id, 0)
                    continue
                message = endpoint.readable(message_id)
                if message is None:
                    continue
                lane = 0 if lanes == 1 else lane_of(message_id, message, lanes)
                endpoint.waiting[lane].add(message_id, endpoint.level_of(message))
                if ttl:
                    endpoint.schedule.note(message_id, message)
            if not pool.count:
                self.unsorted.pop()
        if self.unsorted:
            endpoint.spool.later.append(endpoint)

    def change_access(self) -> None:
        """Exclusive or not: who is active."""
        endpoint = self._endpoint
        if endpoint.settings.exclusive:
            for flow in endpoint.flows[1:]:
                flow.active = True
            self.next_active()
            return
        for flow in endpoint.flows:
            if not flow.active:
                flow.active = True
                flow.activated(True)
