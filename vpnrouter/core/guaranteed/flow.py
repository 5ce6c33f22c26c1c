"""Defines flows, the consumers bound to an endpoint, and the partitions of a queue between them.

Each partition of a non-exclusive queue is consumed, in order, by one flow at a time. When consumers come or go,
partitions without a flow are assigned at once; the others move after `partition_rebalance_delay`, so that a consumer
that restarts finds its own. A moving partition is paused until its old consumer has settled its messages, or the
hand-off time is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.core.guaranteed.unit_of_work import CompletionCallback
from vpnrouter.core.timers import TimerTarget
from vpnrouter.spool.ledger import IdQueue
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.timers import Timer
    from vpnrouter.selectors import Selector


ACCEPTED: Final = 0
"""The consumer has it: it leaves the endpoint."""

FAILED: Final = 1
"""The consumer could not take it: it is delivered again, and that counts."""

REJECTED: Final = 2
"""The consumer never wants it: it goes to the dead message queue."""

RELEASED: Final = 3
"""It was never looked at: it is delivered again, and that does not count."""

PRIORITIES: Final = 10
"""0 to 9."""

SELECTED: Final = 16
"""Messages that are read at once for a browser with a selector: one of them may be enough for a turn."""

UNBOUNDED: Final = 1 << 61
HALF_BOUNDED: Final = 1 << 60
"""The budget of a flow whose bytes are bounded elsewhere; one below the second is a client's."""

AHEAD: Final = 16_384
"""Bytes that count before they are there where some do, so that the next messages cost nothing."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Flow(CompletionCallback):
    """A consumer of `endpoint`. Subclasses: an MQTT session's, a bridge's.

    `window` bounds `unacked`, its unacknowledged messages by id in the order of delivery. `selector` lets only matching
    messages through. `active` is False for a standby at an exclusive queue. `client_name` is for display. The flow is
    the callback of its requests to the spool; `owning_connection` is closed when a delivery raises. `bytes_out` are
    those of `unacked`; `counted` of them, or up to AHEAD more, are in the account of the connection `payer`; `budget`
    says how many more it may be sent in one go. The selector counts for the connection `selector_payer`. Counters:
    `delivered`, `acked`, `window_closed` (times that a message waited for the window).
    """

    __slots__ = (
        "acked",
        "active",
        "budget",
        "bytes_out",
        "came_back",
        "client_name",
        "counted",
        "cursors",
        "delivered",
        "endpoint",
        "payer",
        "selector",
        "selector_payer",
        "unacked",
        "window",
        "window_closed",
    )

    def __init__(
        self, endpoint: Endpoint, client_name: str, window: int, selector: Selector | None = None
    ) -> None:
        self.endpoint = endpoint
        self.client_name = client_name
        self.window = window
        self.selector = selector
        self.selector_payer: Connection | None = None
        self.unacked: dict[int, Message] = {}
        self.bytes_out = 0
        self.counted = 0
        self.payer: Connection | None = None
        self.budget = UNBOUNDED
        self.active = False
        # With a selector: up to where the endpoint's messages have been looked at, by priority, and what
        # came back behind that.
        self.cursors: list[int] = []
        self.came_back: IdQueue | None = None
        if selector is not None:
            self.start_over()
        self.delivered = 0
        self.acked = 0
        self.window_closed = 0

    def start_over(self) -> None:
        """Look at all messages of the endpoint again."""
        self.cursors = [0] * PRIORITIES
        self.came_back = IdQueue()

    def take_selector(self) -> bool:
        """Have the selector counted for the connection of the flow; False where that has no room for it."""
        selector = self.selector
        connection = self.owning_connection()
        if selector is None or connection is None:
            return True
        if not connection.take(selector.memory):
            return False
        self.selector_payer = connection
        return True

    def return_selector(self) -> None:
        """Have the selector counted no more. A second call does nothing."""
        payer = self.selector_payer
        selector = self.selector
        self.selector_payer = None
        if payer is not None and selector is not None:
            payer.give_back(selector.memory)

    def room(self) -> int:
        """How many messages it can be sent now."""
        raise AssertionError(self.client_name)

    def has_budget(self, connection: Connection, outbox: Outbox) -> bool:
        """Set what the client may be sent in one go; False where it holds, or does not take, too much already."""
        if self.bytes_out - self.counted > limits.SPARE_BYTES:
            self.count(connection)
            if self.bytes_out > self.counted:
                return False
        left = limits.UNSETTLED_BYTES - self.bytes_out
        if left <= 0 or not self.may_send(connection, outbox):
            return False
        self.budget = max(1, min(limits.GUARANTEED_AHEAD_BYTES - outbox.size, left))
        return True

    def may_send(self, connection: Connection, outbox: Outbox) -> bool:
        """Return whether the client can be sent one more message of the endpoint: once as it waits for its settlement,
        and once more as it waits to be sent. Other consumers of the client share that memory.
        """
        if outbox.size > limits.GUARANTEED_AHEAD_BYTES:
            return False
        return connection.has_room(outbox.size + 2 * self.endpoint.settings.max_msg_size)

    def goes_on(self) -> bool:
        """Return whether it can be sent another message, perhaps after other consumers of its client have been sent
        some; where not, it is looked at again.
        """
        if self.budget > 0:
            return True
        self.look_again()
        return False

    def look_again(self) -> None:
        """Have the endpoint looked at again soon: messages wait, and no settlement may come before."""

    def count(self, connection: Connection | None) -> None:
        """Have what is delivered and not settled counted for the connection that it is delivered over."""
        change = self.bytes_out - self.counted
        payer = self.payer
        if payer is None:
            payer = connection
            self.payer = payer
        if payer is None:
            return
        if change < 0:
            payer.give_back(-change)
        elif not payer.crowded() and payer.take(change + AHEAD):
            change += AHEAD
        elif not payer.take(change):
            self.budget = 0
            return
        payer.unsettled_bytes += change
        self.counted += change
        if self.counted == 0:
            self.payer = None

    def delivers(self, message_id: int, message: Message) -> None:
        """Have one more message that is not settled."""
        self.unacked[message_id] = message
        size = message.size + limits.SPOOL_BODY_COST
        self.bytes_out += size
        self.budget -= size
        if self.bytes_out - self.counted > limits.SPARE_BYTES and self.budget < HALF_BOUNDED:
            self.count(self.owning_connection())

    def forget_all(self) -> None:
        """Forget what a browser has been sent."""
        self.unacked = {}
        self.bytes_out = 0
        if self.counted:
            self.count(None)

    def leave_counted(self) -> MemoryAccount | None:
        """Have what is counted counted for the client username from now on, whose account is returned.

        It may stay when the connection ends, and is given back with `forget`.
        """
        payer = self.payer
        counted = self.counted
        self.payer = None
        self.counted = 0
        if payer is None:
            return None
        payer.unsettled_bytes -= counted
        account = payer.account
        return None if account is None else account.leave_behind(counted)

    def settles(self, message_id: int) -> Message | None:
        """Take out a message that is settled, None where it is not there."""
        message = self.unacked.pop(message_id, None)
        if message is not None:
            left = self.bytes_out - message.size - limits.SPOOL_BODY_COST
            if not self.unacked:
                left = 0
            self.bytes_out = left
            if self.counted and (left == 0 or (left + AHEAD) * 2 <= self.counted):
                self.count(None)
        return message

    def send(self, message_id: int, message: Message, count: int) -> None:
        """Send one message, which is in `unacked` already. `count` says how often it was delivered before.

        -1: it may have been, before a crash or to a consumer that did not look at it. May settle the message at once,
        but neither bind nor unbind.
        """
        raise AssertionError(message_id)

    def activated(self, active: bool) -> None:
        """Note that the flow became the active one of an exclusive queue, or a standby again."""

    def gives_way(self) -> bool:
        """Unbind the flow where it is over and only holds what it had; False for one that goes on."""
        return False

    def letting_go(self) -> None:
        """Called when the flow ends, before its `unacked` messages go back."""

    def permitted(self) -> bool:
        """Return whether the consumer may still consume."""
        return True

    def unbound(self, reason: str) -> None:
        """Called when the endpoint has unbound the flow: it was shut down or deleted, or permits it no more."""
        raise AssertionError(reason)


REBALANCE: Final = 0
HAND_OFF: Final = 1


UNASSIGNED: Final = "unassigned"
READY: Final = "ready"
PAUSED: Final = "paused"


def lane_of(message_id: int, message: Message, count: int) -> int:
    """The partition of a message: by its key, and spread by id where it has none."""
    return (message.lane or message_id) % count


@final
class Partitions(TimerTarget):
    """Assigns the partitions of `endpoint` to flows; `heirs` are flows that wait for a partition that moves."""

    __slots__ = ("_endpoint", "_hand_off", "_rebalance", "heirs", "owners")

    def __init__(self, endpoint: Endpoint, count: int) -> None:
        self._endpoint = endpoint
        self.owners: list[Flow | None] = [None] * count
        self.heirs: dict[int, Flow] = {}
        self._rebalance: Timer | None = None
        self._hand_off: Timer | None = None

    def changed(self) -> None:
        """Assign partitions without a flow to the bound flows, after one was bound or unbound."""
        flows = self._endpoint.flows
        owners = self.owners
        for lane, heir in list(self.heirs.items()):
            if heir not in flows:
                del self.heirs[lane]
            elif owners[lane] not in flows:
                # Whom it was to wait for is gone.
                owners[lane] = heir
                del self.heirs[lane]
        if not flows:
            for lane in range(len(owners)):
                owners[lane] = None
            return
        load = self._load()
        for lane, owner in enumerate(owners):
            if owner is None or owner not in flows:
                flow = _least(load)
                owners[lane] = flow
                load[flow].append(lane)
        counts = [len(lanes) for lanes in load.values()]
        if max(counts) - min(counts) > 1 and self._rebalance is None:
            context = self._endpoint.vpn.context
            delay_ns = self._endpoint.settings.partition_rebalance_delay * SECOND_NS
            self._rebalance = context.timers.arm(context.now_ns + delay_ns, self, REBALANCE)

    def _load(self) -> dict[Flow, list[int]]:
        """The partitions that each flow has or is to have."""
        load: dict[Flow, list[int]] = {flow: [] for flow in self._endpoint.flows}
        for lane, owner in enumerate(self.owners):
            flow = self.heirs.get(lane, owner)
            if flow is not None and flow in load:
                load[flow].append(lane)
        return load

    def ready(self) -> list[tuple[int, Flow]]:
        """The partitions that are not paused and have messages, each with its flow."""
        found: list[tuple[int, Flow]] = []
        waiting = self._endpoint.waiting
        for lane, owner in enumerate(self.owners):
            if owner is not None and waiting[lane].count and lane not in self.heirs:
                found.append((lane, owner))
        return found

    def status(self, lane: int) -> str:
        """Return the status of a partition as management shows it."""
        if self.owners[lane] is None:
            return UNASSIGNED
        return PAUSED if lane in self.heirs else READY

    def settled(self) -> None:
        """Messages were settled: perhaps the last ones that a partition waits for."""
        if self.heirs:
            self._hand_over(late=False)

    def stop(self) -> None:
        """Cancel the timers: the endpoint has other partitions now, or none."""
        if self._rebalance is not None:
            self._rebalance.cancel()
        if self._hand_off is not None:
            self._hand_off.cancel()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """The delay before partitions move is over, or the time for their hand-off."""
        if kind == REBALANCE:
            self._rebalance = None
            self._move()
        else:
            self._hand_off = None
            self._hand_over(late=True)

    def _move(self) -> None:
        load = self._load()
        while load:
            most = _most(load)
            least = _least(load)
            if len(load[most]) - len(load[least]) <= 1:
                break
            lane = load[most].pop()
            load[least].append(lane)
            if self.owners[lane] is least:
                del self.heirs[lane]
            else:
                self.heirs[lane] = least
        if self.heirs and self._hand_off is None:
            context = self._endpoint.vpn.context
            wait_ns = self._endpoint.settings.partition_rebalance_max_handoff_time * SECOND_NS
            self._hand_off = context.timers.arm(context.now_ns + wait_ns, self, HAND_OFF)
        self._hand_over(late=False)

    def _hand_over(self, *, late: bool) -> None:
        count = len(self.owners)
        moved = False
        for lane, heir in list(self.heirs.items()):
            owner = self.owners[lane]
            if owner is not None and not late and _holds(owner, lane, count):
                continue
            self.owners[lane] = heir
            del self.heirs[lane]
            moved = True
        if not self.heirs and self._hand_off is not None:
            self._hand_off.cancel()
            self._hand_off = None
        if moved:
            self._endpoint.wake()


def _most(load: dict[Flow, list[int]]) -> Flow:
    """The first of the flows that have most partitions."""
    flows = list(load)
    found = flows[0]
    for flow in flows:
        if len(load[flow]) > len(load[found]):
            found = flow
    return found


def _least(load: dict[Flow, list[int]]) -> Flow:
    """The first of the flows that have fewest partitions."""
    flows = list(load)
    found = flows[0]
    for flow in flows:
        if len(load[flow]) < len(load[found]):
            found = flow
    return found


def _holds(flow: Flow, lane: int, count: int) -> bool:
    """True when the flow holds an unsettled message of this partition."""
    held = [
        message_id
        for message_id, message in flow.unacked.items()
        if lane_of(message_id, message, count) == lane
    ]
    return bool(held)
