"""Defines endpoints: queues, topic endpoints and the queues of MQTT sessions, which hold guaranteed messages.

Where an endpoint cannot take a message, its settings decide whether the publisher is told.

An endpoint holds ids; the spool has the messages. dispatch.py decides which flow gets which message, schedule.py when
one falls due. An operation of the management API is one step between two rounds, and reaches the store with the unit
being built.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, cast, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.credentials import NOT_AUTHORIZED
from vpnrouter.core.fault_barrier import SPOOL
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.counters import ACKED, DELETED, DISCARDED, MOVED, EndpointCounters
from vpnrouter.core.guaranteed.dead_letters import (
    CONSUMER,
    EXPIRED,
    REDELIVERED,
    letter_of,
    sources,
)
from vpnrouter.core.guaranteed.dispatch import DispatchOrder
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
from vpnrouter.core.guaranteed.endpoint_settings import (
    NEVER,
    QUEUE,
    REPLAY_LOG,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.flow import (
    ACCEPTED,
    FAILED,
    REJECTED,
    RELEASED,
    Flow,
    Partitions,
    lane_of,
)
from vpnrouter.core.guaranteed.queue_senders import TellRemoved
from vpnrouter.core.guaranteed.refusals import NOT_FOUND, QUOTA_EXCEEDED, UNAVAILABLE
from vpnrouter.core.guaranteed.returning import take_back
from vpnrouter.core.guaranteed.schedule import Schedule
from vpnrouter.core.guaranteed.waiting_list import WaitingList
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, EndpointSubscriber
from vpnrouter.core.tracing import trace_kept, trace_kept_lost
from vpnrouter.errors import Refused, SpoolError
from vpnrouter.events import table
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import name_meant
from vpnrouter.trace.events import (
    ACKNOWLEDGE,
    DEAD_LETTER,
    DISCARD,
    EXPIRE,
    PERSISTENT,
    REJECT,
)
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.end_to_end import SettlementWatchers
    from vpnrouter.core.guaranteed.endpoint_settings import EndpointSettings
    from vpnrouter.core.guaranteed.queue_senders import QueueSender
    from vpnrouter.core.guaranteed.replay import Replay
    from vpnrouter.core.guaranteed.returning import Returning
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.message import Message
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.timers import Job
    from vpnrouter.core.vpn import MessageVpn

LOW_PRIORITY: Final = 3
"""The highest priority that `reject_low_priority_msg` looks at: below the default of 4."""

DAMAGED: Final = "damaged"
"""Why a message is lost that the store has, but not as it was written."""

LAST_VALUE: Final = "last-value"
"""Why a message leaves a last value queue: a newer one came."""

YEAR_NS: Final = 365 * 24 * 3600 * 1_000_000_000

MOST: Final = 0xFFFF
"""What a stored redelivery count can say."""

UNCOUNTED: Final = -1
"""A redelivery count that says: delivered before, or perhaps, and that does not count."""

MESSAGE_NOT_FOUND: Final = "400 Message Not Found"
IN_HAND: Final = "400 Message Is Delivered And Not Acknowledged"


@final
class Endpoint(EndpointSubscriber):
    """One endpoint of `vpn`; `number` is its key in the store.

    `spooled_count` and `spooled_bytes` are all messages that it holds: waiting by partition (`waiting`), for a time
    (`schedule`), to be sorted into other partitions or priorities (`order`), ahead of all in a replay (`ahead`),
    delivered and not acknowledged (`Flow.unacked`), on their way back from consumers that ended (`returning`), held by
    those who are no consumers (`enlisted`: of transactions that outlast theirs, and of what was given up), and on their
    way into the synced spool (`pending` of them).
    `redeliveries` counts failed deliveries by id. Messages up to the id `marked` may have been delivered before a
    crash; up to the id `mark` the spool has noted it, so that they may be delivered now. `newest` is the last message,
    which a last value queue keeps. `bridges` are names of bridges that ever consumed from it, `lent` what went out to
    each of them (by proven identity) and came back neither accepted nor refused. `attracts_for` are the client username
    and client id that gave a topic endpoint its subscription, or "". `watched` are watchers of its messages
    (end_to_end.py) or None, `senders` those who send to it by its name over links.
    """

    __slots__ = (
        "ahead",
        "attracts_for",
        "bridges",
        "counters",
        "deleted",
        "dirty",
        "durable",
        "enlisted",
        "flows",
        "kind",
        "lent",
        "mark",
        "mark_requested",
        "marked",
        "name",
        "newest",
        "number",
        "order",
        "partitions",
        "pending",
        "redeliveries",
        "replay",
        "returning",
        "schedule",
        "senders",
        "spool",
        "spooled_bytes",
        "spooled_count",
        "vpn",
        "waiting",
        "watched",
        "when_empty",
    )

    def __init__(
        self,
        spool: Spool,
        vpn: MessageVpn,
        kind: int,
        name: str,
        number: int,
        settings: EndpointSettings,
        durable: bool = True,
    ) -> None:
        super().__init__(name, Outbox(vpn.context.ready, 0), FRAME_OWN, settings)
        self.spool = spool
        self.vpn = vpn
        self.kind = kind
        self.name = name
        self.number = number
        self.attracts_for = ("", "")
        # What is to be done when no message is left: the endpoint is to go.
        self.when_empty: Job | None = None
        self.durable = durable
        self.deleted = False
        self.counters = EndpointCounters()
        self.flows: list[Flow] = []
        self.returning: list[Returning] = []
        self.enlisted: dict[Flow, None] = {}
        self.order = DispatchOrder(self)
        self.schedule = Schedule(self)
        count = settings.partition_count if settings.partitioned else 1
        self.partitions = Partitions(self, count) if settings.partitioned else None
        self.waiting: list[WaitingList] = [WaitingList() for _ in range(count)]
        self.ahead: WaitingList | None = None
        self.replay: Replay | None = None
        self.redeliveries: dict[int, int] = {}
        self.marked = 0
        self.mark = 0
        self.mark_requested = 0
        self.pending = 0
        self.spooled_count = 0
        self.spooled_bytes = 0
        self.dirty = False
        self.newest = 0
        self.bridges: list[str] = []
        self.lent: dict[str, set[int]] = {}
        self.watched: SettlementWatchers | None = None
        self.senders: dict[QueueSender, None] = {}

    @override
    def memory(self) -> MemoryAccount | None:
        owner = self.attracts_for[0]
        return self.vpn.memory.of(owner) if owner else None

    # -- what comes in --------------------------------------------------------------------------------

    @override
    def obstacle(self, message: Message, size: int) -> str:
        settings = self.settings
        if not settings.ingress_enabled or self.deleted:
            return self.shutdown_reason()
        if settings.max_msg_size and len(message.payload) > settings.max_msg_size:
            return refusals.TOO_LARGE
        if settings.last_value:
            return ""
        if self.spooled_bytes + size > settings.max_msg_spool_usage:
            return refusals.SPOOL_OVER_QUOTA
        if settings.max_spooled_msg_count and self.spooled_count >= settings.max_spooled_msg_count:
            return refusals.MAX_MESSAGE_USAGE
        if (
            settings.reject_low_priority_msg_enabled
            and message.priority <= LOW_PRIORITY
            and self.spooled_count >= settings.reject_low_priority_msg_limit
            and settings.reject_behavior != NEVER
        ):
            return refusals.LOW_PRIORITY
        return ""

    def shutdown_reason(self) -> str:
        """The field's string for an endpoint of this kind that is shut down."""
        if self.kind == QUEUE:
            return refusals.QUEUE_SHUTDOWN
        if self.kind == TOPIC_ENDPOINT:
            return refusals.TOPIC_ENDPOINT_SHUTDOWN
        return refusals.ENDPOINT_SHUTDOWN

    def arrive(self, message_id: int, message: Message) -> None:
        """Take a message that is now in the synced spool: it may be delivered from now on."""
        if self.deleted:
            self.forget(message_id, message.size, DELETED)
            return
        if self.kind == REPLAY_LOG:
            self.waiting[0].add(message_id, 0)
            log = self.spool.replay_logs.get(self.vpn.name)
            if log is not None:
                log.arrived(message_id, message.size)
            return
        settings = self.settings
        newest = self.newest
        self.newest = message_id
        if settings.last_value and newest and self.waits(newest):
            self.lose(newest, DISCARDED, LAST_VALUE)
            self._trace_discarded(LAST_VALUE, 1)
        if settings.delivery_delay:
            self.schedule.hold(message_id, message)
        elif message.due_ns:
            self.schedule.keep_back(message_id, message)
        else:
            self.ready(message_id, message)
        if settings.respect_ttl_enabled:
            self.schedule.note(message_id, message)

    def ready(self, message_id: int, message: Message) -> None:
        """Put a message among those that wait for a flow."""
        if self.ahead is not None and self.replay is not None and self.replay.brought(message_id):
            self.ahead.add(message_id, self.level_of(message))
        else:
            count = len(self.waiting)
            lane = 0 if count == 1 else lane_of(message_id, message, count)
            self.waiting[lane].add(message_id, self.level_of(message))
        if self.order.selective:
            self._look_again(message_id, message)
        if not self.dirty:
            self.dirty = True
            self.spool.dirty.append(self)

    def level_of(self, message: Message) -> int:
        """The priority under which a message waits here."""
        return message.priority if self.settings.respect_msg_priority_enabled else 0

    def _look_again(self, message_id: int, message: Message) -> None:
        """Offer the message to flows again whose selectors may have passed over it."""
        level = self.level_of(message)
        for flow in self.flows:
            back = flow.came_back
            if back is not None and flow.cursors[level] >= message_id:
                back.add(message_id)

    def recovered(
        self, ids: array[int], sizes: int, priority: int, lane: int, expires: list[tuple[int, int]]
    ) -> None:
        """Queue messages that were here when the router stopped: rising ids of one priority and lane.

        `sizes` is the sum of their bytes, `expires` are pairs of id and monotonic nanoseconds.
        """
        count = len(ids)
        self.spooled_count += count
        self.spooled_bytes += sizes
        self.counters.recovered += count
        self.counters.peak_bytes = max(self.counters.peak_bytes, self.spooled_bytes)
        settings = self.settings
        if ids:
            self.newest = max(self.newest, ids[-1])
            if not settings.respect_msg_priority_enabled:
                priority = 0
            if settings.delivery_delay:
                self.schedule.hold_recovered(ids)
            else:
                self.waiting[lane % len(self.waiting)].extend(ids, priority)
            self.wake()
        self.schedule.recovered(bool(ids), expires)

    # -- what waits -----------------------------------------------------------------------------------

    def pools(self) -> list[WaitingList]:
        """Everything that waits, but for `delayed`."""
        found = self.waiting + self.order.unsorted
        if self.schedule.held is not None:
            found.append(self.schedule.held)
        if self.ahead is not None:
            found.append(self.ahead)
        return found

    def take_out(self, message_id: int) -> bool:
        """Remove an id that waits; False when a flow holds it, or when it is gone. If this raises, it waits again."""
        if not self.waits(message_id):
            return False
        try:
            if self.schedule.delayed.remove(message_id):
                return True
            return any(pool.remove(message_id) for pool in self.pools())
        except Exception:
            self.mend(message_id, self.spool.message(message_id))
            raise

    def waits(self, message_id: int) -> bool:
        """True when this id waits here, whatever it waits for."""
        if self.schedule.delayed.has(message_id):
            return True
        return any(pool.has(message_id) for pool in self.pools())

    def holds(self, message_id: int) -> bool:
        """True when the endpoint has this message of the synced spool."""
        if self.waits(message_id):
            return True
        return any(message_id in flow.unacked for flow in self.holders())

    def holders(self) -> list[Flow]:
        """Return the consumers, and who has what they held in the place of those that ended."""
        if not self.returning and not self.enlisted:
            return self.flows
        returning = [each.holder for each in self.returning]
        return [*self.flows, *self.enlisted, *returning]

    def reclaim(self, message_id: int) -> None:
        """Take a message back now that an ended consumer held, so that it need not be waited for."""
        for returning in self.returning:
            if returning.reclaim(message_id):
                return

    def first_held(self) -> int:
        """The lowest id that waits here or that a flow holds, 0 when there is none. Nothing is read."""
        found = [min(pool.oldest()) for pool in self.pools() if pool.count]
        found += [min(flow.unacked) for flow in self.holders() if flow.unacked]
        return min([*found, *self.schedule.delayed.ids()], default=0)

    def last_waiting(self) -> int:
        """The highest id that waits here, whatever it waits for; 0 when none does."""
        highest = max((pool.last() for pool in self.pools()), default=0)
        return max(highest, max(self.schedule.delayed.ids(), default=0))

    def last_held(self) -> int:
        """The highest id that waits here or that a flow holds, 0 when there is none."""
        highest = self.last_waiting()
        for flow in self.holders():
            highest = max(highest, max(flow.unacked, default=0))
        return highest

    def readable(self, message_id: int) -> Message | None:
        """Return a message that no longer waits or is about to; None when it cannot be read.

        An unreadable one waits until the end of the round. If it is damaged it is set aside then; else it counts as
        there, and is tried again after the next start.
        """
        try:
            return self.spool.message(message_id)
        except SpoolError as error:
            self.schedule.delayed.add(message_id, self.vpn.context.now_ns + 100 * YEAR_NS)
            self.report_unreadable(message_id, error)
            return None

    def size_in_store(self, message_id: int) -> int:
        """The bytes that a message counts for, without reading it; 0 where its size is lost."""
        message = self.spool.bodies.kept.get(message_id)
        if message is not None:
            return message.size
        try:
            return self.spool.ledger.size(message_id)
        except SpoolError:
            return 0

    def report_unreadable(self, message_id: int, error: SpoolError) -> None:
        """Have a message that cannot be read looked at again, and the operator warned; 0 is for the endpoint itself."""
        self.spool.unreadable(self, message_id, str(error))

    def set_aside(self, ids: list[int]) -> int:
        """Take out what is damaged of the segments of these messages, which could not be read; returns how many.

        The store keeps a copy of each segment. What can be read now is delivered, and what cannot be read for another
        reason stays.
        """
        spool = self.spool
        lost = 0
        looked_at: set[int] = set()
        for message_id in ids:
            if not self.waits(message_id):
                continue
            try:
                self._readable_again(message_id, spool.message(message_id))
                continue
            except SpoolError as error:
                if error.reason != "corrupt":
                    continue
            try:
                first, sizes = spool.ledger.sizes(message_id)
            except SpoolError:
                lost += self._lose_damaged(message_id, 0)
                continue
            lost += self._lose_damaged(message_id, sizes[message_id - first])
            if first in looked_at:
                continue
            looked_at.add(first)
            try:
                spool.ledger.read(message_id)
            except SpoolError:
                # No message of the segment can be read, but for those in memory.
                spool.ledger.put_aside(message_id)
                for place, size in enumerate(sizes):
                    if first + place not in spool.bodies.kept and self.waits(first + place):
                        lost += self._lose_damaged(first + place, size)
        if lost:
            self._trace_discarded(DAMAGED, lost)
            self.wake()
        return lost

    def count_unreadable(self, ids: list[int]) -> int:
        """Return how many of these messages, which could not be read, are still here."""
        return len([message_id for message_id in ids if not message_id or self.waits(message_id)])

    def _readable_again(self, message_id: int, message: Message) -> None:
        if self.schedule.delayed.remove(message_id):
            self.ready(message_id, message)

    def _lose_damaged(self, message_id: int, size: int) -> int:
        self.take_out(message_id)
        self.forget(message_id, size, DISCARDED, DAMAGED)
        return 1

    # -- flows ----------------------------------------------------------------------------------------

    def permit(self, permission: int, needed: int) -> None:
        """Raise Refused for a client without the permission, before anything else about the endpoint is checked."""
        if permission < needed:
            self.counters.bind_request_count += 1
            self._refuse(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)

    def bind(self, flow: Flow, permission: int, needed: int) -> None:
        """Bind a consumer. `permission` is what its client username may do here, `needed` what it requests.

        Raises Refused with the field's reason.
        """
        counters = self.counters
        counters.bind_request_count += 1
        settings = self.settings
        vpn = self.vpn
        queue = self.kind == QUEUE
        if self.deleted:
            self._refuse(
                refusals.UNKNOWN_QUEUE if queue else refusals.UNKNOWN_TOPIC_ENDPOINT,
                NOT_FOUND,
            )
        if permission < needed:
            self._refuse(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
        if not settings.egress_enabled:
            self._refuse(self.shutdown_reason(), UNAVAILABLE)
        if flow in self.flows:
            self._refuse(refusals.ALREADY_BOUND, NOT_AUTHORIZED)
        if len(self.flows) >= settings.max_bind_count and not self._makes_room():
            self._refuse(
                refusals.QUEUE_BINDS if queue else refusals.TOPIC_ENDPOINT_BINDS, QUOTA_EXCEEDED
            )
        if flow.selector is not None and self.partitions is not None:
            self._refuse(refusals.INVALID_SELECTOR, NOT_AUTHORIZED)
        if self.kind in (QUEUE, TOPIC_ENDPOINT):
            most = vpn.limits.max_egress_flow_count
            if vpn.egress_flows >= most or not flow.take_selector():
                self._refuse(refusals.TOO_MANY_FLOWS, QUOTA_EXCEEDED)
            vpn.egress_flows += 1
        counters.bind_success_count += 1
        self.flows.append(flow)
        self._flows_changed()
        if not settings.exclusive:
            flow.active = True
        self._report_bind(flow, bind=True)

    def _makes_room(self) -> bool:
        """Unbind a consumer that is over and has not been unbound yet; False where there is none."""
        return any(flow.gives_way() for flow in list(self.flows))

    def unbind(self, flow: Flow, *, counts: bool) -> None:
        """Unbind a consumer; what it held is delivered again. `counts`: towards max_redelivery_count.

        Much comes back in later turns (returning.py), ahead of what is behind it in the order.
        After an exception a second call continues behind the step that raised.
        """
        bound = flow in self.flows
        if bound:
            self.flows.remove(flow)
            if self.kind in (QUEUE, TOPIC_ENDPOINT):
                self.vpn.egress_flows -= 1
            flow.active = False
        flow.return_selector()
        try:
            flow.letting_go()
        finally:
            try:
                take_back(self, flow, FAILED if counts else RELEASED)
            finally:
                self._flows_changed()
        if bound:
            self._report_bind(flow, bind=False)

    def enlist(self, flow: Flow, message_ids: list[int]) -> Flow:
        """Take messages that a consumer holds to one who holds them for a transaction, which is returned.

        The consumer ends, and the transaction does not. It settles them, and calls `discharged`.
        """
        holder = Flow(self, flow.client_name, 0)
        for message_id in message_ids:
            message = flow.settles(message_id)
            if message is not None:
                holder.delivers(message_id, message)
        self.enlisted[holder] = None
        return holder

    def hand_over(self, flow: Flow, message_id: int, holder: Flow) -> None:
        """Have `holder`, which is no consumer, hold a message from now on that a consumer holds."""
        message = flow.settles(message_id)
        if message is not None:
            holder.delivers(message_id, message)
            self.enlisted[holder] = None
            self.wake()

    def discharged(self, holder: Flow) -> None:
        """All that it held for a transaction has been settled."""
        self.enlisted.pop(holder, None)

    def give_back(self, flow: Flow, message_id: int, outcome: int) -> None:
        """Take back a message that a consumer holds, which ends; once more where that raises."""
        for _ in range(2):
            try:
                self.settle(flow, message_id, outcome)
            except Exception as error:  # noqa: BLE001 - given to the barrier: the others go back as well
                barrier = self.vpn.context.barrier
                barrier.caught(error, SPOOL, self.name, self.vpn.name, "goes on")
            else:
                return

    def unbind_all(self, reason: str) -> None:
        """Unbind all consumers for a reason. What they hold comes back, and does not count as a redelivery."""
        for flow in list(self.flows):
            self.unbind(flow, counts=False)
            flow.unbound(reason)

    def put_out(self, reason: str) -> None:
        """Unbind all consumers, and tell all who send to it by its name: the endpoint is removed."""
        self.unbind_all(reason)
        senders = list(self.senders)
        self.senders.clear()
        telling = TellRemoved(self.vpn.context, senders, reason)
        if not telling.step():
            self.vpn.context.jobs.add(telling)

    def unbind_forbidden(self) -> None:
        """Unbind consumers that are no longer permitted; what they hold comes back, uncounted as a redelivery."""
        for flow in list(self.flows):
            if not flow.permitted():
                self.unbind(flow, counts=False)
                flow.unbound(refusals.PERMISSION_DENIED)

    def _flows_changed(self) -> None:
        selective = [flow for flow in self.flows if flow.selector is not None]
        self.order.selective = bool(selective)
        if self.settings.exclusive:
            self.order.next_active()
        elif self.partitions is not None:
            self.partitions.changed()
        self.wake()

    def _refuse(self, reason: str, code: int) -> None:
        failures = self.counters.bind_failures
        failures[reason] = failures.get(reason, 0) + 1
        raise Refused(reason, code)

    def _report_bind(self, consumer: Flow, *, bind: bool) -> None:
        """Raise the event of a consumer that was bound to a queue or topic endpoint, or unbound."""
        events = self.vpn.context.events
        if events is None or self.kind not in (QUEUE, TOPIC_ENDPOINT):
            return
        vpn = self.vpn.name
        name = consumer.client_name
        what = "queue" if self.kind == QUEUE else "topic endpoint"
        way = "bound to" if bind else "unbound from"
        text = f"VPN {vpn} client {name}: {way} {what} {self.name}; {len(self.flows)} bound"
        events.raise_event(table.BIND if bind else table.UNBIND, vpn, name, text)

    def wake(self) -> None:
        """Have the spool look at the end of the round whether a flow can take something."""
        if not self.dirty:
            self.dirty = True
            self.spool.dirty.append(self)

    def dispatch(self) -> None:
        """Deliver what the flows have room for."""
        self.dirty = False
        if self.deleted:
            return
        if self.order.unsorted:
            self.order.sort_some()
        if self.replay is not None:
            self.replay.advance()
        if self.settings.egress_enabled and self.flows and not self.order.unsorted:
            if self.partitions is not None:
                self.partitions.settled()
            self.order.run()

    # -- what goes ------------------------------------------------------------------------------------

    def settle(self, flow: Flow, message_id: int, outcome: int) -> bool:
        """A consumer's word on a message that it holds; False when it holds no such message."""
        message = flow.unacked.get(message_id)
        if message is None:
            return False
        try:
            flow.settles(message_id)
            if message.traced or outcome == REJECTED:
                self._trace_settled(flow.client_name, message_id, message, outcome)
            if outcome == ACCEPTED:
                if self.watched is not None:
                    self.watched.accepted(message_id)
                self.forget(message_id, message.size, ACKED)
            elif outcome == RELEASED:
                self._again(message_id, message, 0)
            elif outcome == FAILED:
                self._failed(message_id, message)
            else:
                self._dead_letter(message_id, message, CONSUMER)
        except Exception:
            self.mend(message_id, message)
            raise
        if outcome == ACCEPTED:
            flow.acked += 1
        self.wake()
        return True

    def reject(
        self, flow: Flow, message_id: int, why: str, more: list[tuple[str, str]] | None = None
    ) -> bool:
        """Settle a message that a consumer holds as REJECTED; as a dead letter it says `why`, and `more`.

        True when the dead message queue has it; else it was discarded, or the consumer holds no such message.
        """
        message = flow.unacked.get(message_id)
        if message is None:
            return False
        try:
            flow.settles(message_id)
            self._trace_settled(flow.client_name, message_id, message, REJECTED)
            moved = self._dead_letter(message_id, message, CONSUMER, why, more)
        except Exception:
            self.mend(message_id, message)
            raise
        self.wake()
        return moved

    def left(self, flow: Flow, message_id: int, before: tuple[int, int]) -> None:
        """Note that a message which a flow holds is a dead letter elsewhere, in the unit being built: it leaves here.

        `before` is a mark of the unit without it, in case that this raises.
        """
        message = flow.unacked[message_id]
        spool = self.spool
        try:
            flow.settles(message_id)
            self._trace_settled(flow.client_name, message_id, message, REJECTED)
            self.forget(message_id, message.size, MOVED)
        except Exception:
            if not (spool.gone_id == message_id and spool.gone_from is self):
                spool.take_back(before)
            self.mend(message_id, message)
            raise
        counts = self.counters.to_dmq
        counts[CONSUMER] = counts.get(CONSUMER, 0) + 1
        if message.traced:
            self.trace(DEAD_LETTER, message_id, message, CONSUMER)
        self.wake()

    def mend(self, message_id: int, message: Message) -> None:
        """Repair the endpoint after work on a message raised: unless it has left or is held, it waits again."""
        spool = self.spool
        for pool in self.pools():
            pool.recount()
        if spool.gone_id == message_id and spool.gone_from is self:
            return
        if not self.deleted and not self.holds(message_id):
            if message_id not in self.redeliveries:
                # It is not known whether a consumer has seen it.
                self.redeliveries[message_id] = UNCOUNTED
            self.ready(message_id, message)

    def forget(self, message_id: int, size: int, cause: int, reason: str = "") -> None:
        """Take a message out, for a cause of counters.py. It is counted when nothing can fail any more."""
        self.spool.settle(self, message_id, size, cause, reason)

    def look_if_empty(self, when_empty: Job) -> None:
        """Have `when_empty` done if messages have left, and none is here any more."""
        if not self.spooled_count:
            self.vpn.context.jobs.add(when_empty)

    def lose(self, message_id: int, cause: int, reason: str = "") -> None:
        """Take out a message that waits, even one that cannot be read. If this raises, it waits again."""
        size = self.size_in_store(message_id)
        self.take_out(message_id)
        try:
            self.forget(message_id, size, cause, reason)
        except Exception:
            self.mend(message_id, self.spool.message(message_id))
            raise

    def expire(self, message_id: int, message: Message) -> None:
        """Treat a message as expired: it goes to the dead message queue or is discarded."""
        self._dead_letter(message_id, message, EXPIRED)

    def give_up(self, message_id: int, message: Message, reason: str) -> bool:
        """Give up a message that waits; True when the dead message queue has it. If this raises, it waits again."""
        self.take_out(message_id)
        try:
            return self._dead_letter(message_id, message, reason)
        except Exception:
            self.mend(message_id, message)
            raise

    def lets_die(self, message: Message) -> bool:
        """Return whether a message that is given up becomes a dead letter, and is not discarded."""
        return message.dmq_eligible or not self.settings.respect_dmq_eligible_enabled

    def _dead_letter(
        self,
        message_id: int,
        message: Message,
        reason: str,
        why: str = "",
        more: list[tuple[str, str]] | None = None,
    ) -> bool:
        """Move a message to the dead message queue, in the unit in which it leaves here; else discard it.

        It says `why`, or the `reason`, by which it is counted, and `more`. True when it was moved.

        It goes to no queue that gave it up before, so that two queues that name each other do not exchange it for ever.
        """
        counters = self.counters
        traced = message.traced
        if traced and reason == EXPIRED:
            self.trace(EXPIRE, message_id, message, reason)
        if self.lets_die(message):
            queue = cast("Endpoint | None", self.vpn.queue(self.settings.dead_msg_queue))
            if queue is not None and queue is not self and queue.name not in sources(message.block):
                copy = letter_of(message, why or reason, self.name, more)
                if not self.spool.place(queue, copy, even_down=True):
                    counters.to_dmq[reason] = counters.to_dmq.get(reason, 0) + 1
                    self.forget(message_id, message.size, MOVED)
                    if traced:
                        self.trace(DEAD_LETTER, message_id, message, reason)
                    return True
                counters.to_dmq_failed[reason] = counters.to_dmq_failed.get(reason, 0) + 1
        self.forget(message_id, message.size, DISCARDED, reason)
        self.trace_lost(DISCARD, message_id, message, reason)
        return False

    def _failed(self, message_id: int, message: Message) -> None:
        """Count a failed delivery, and try again or give up."""
        settings = self.settings
        count = min(max(self.redeliveries.get(message_id, 0), 0) + 1, MOST)
        if not settings.redelivery_enabled or 0 < settings.max_redelivery_count < count:
            self._dead_letter(message_id, message, REDELIVERED)
            return
        self.redeliveries[message_id] = count
        self.spool.ledger.put(keys.redeliveries(self.number, message_id), count.to_bytes(2, "big"))
        delay_ms = 0.0
        if settings.redelivery_delay_enabled:
            growth = (settings.redelivery_delay_multiplier / 100) ** min(count - 1, 64)
            delay_ms = min(
                settings.redelivery_delay_initial_interval * growth,
                settings.redelivery_delay_max_interval,
            )
        self._again(message_id, message, int(delay_ms * MILLISECOND_NS))

    def _again(self, message_id: int, message: Message, delay_ns: int) -> None:
        """Deliver the message once more, after a delay."""
        if message_id < self.newest and self.settings.last_value:
            self.forget(message_id, message.size, DISCARDED, LAST_VALUE)
            self._trace_discarded(LAST_VALUE, 1)
            return
        if message_id not in self.redeliveries:
            self.redeliveries[message_id] = UNCOUNTED
        if self.schedule.expired(message):
            self.expire(message_id, message)
        elif delay_ns:
            self.schedule.redeliver(message_id, delay_ns)
        else:
            self.ready(message_id, message)

    # -- what management does -------------------------------------------------------------------------

    def is_over(self, message: Message) -> bool:
        """Return whether a message that is still here has expired: nobody is given it any more."""
        return self.settings.respect_ttl_enabled and self.schedule.expired(message)

    def browse(self, after_id: int, count: int, most_bytes: int = 0) -> list[EndpointMessage]:
        """At most `count` messages beyond `after_id`, by id: those that wait and those that consumers have.

        With `most_bytes` no more than so many bytes, but one message. Nothing changes. Those that cannot be read are
        left out.
        """
        in_hand: dict[int, Message] = {}
        for flow in self.holders():
            in_hand.update(flow.unacked)
        rows: list[EndpointMessage] = []
        size = 0
        while not rows:
            ids = [number for number in in_hand if number > after_id]
            ids += [number for number in self.schedule.delayed.ids() if number > after_id]
            for pool in self.pools():
                ids += pool.after(after_id, count)
            ids.sort()
            del ids[count:]
            if not ids:
                break
            after_id = ids[-1]
            for number in ids:
                message = in_hand.get(number)
                held = message is not None
                if message is None:
                    try:
                        message = self.spool.message(number)
                    except SpoolError as error:
                        self.report_unreadable(number, error)
                        continue
                size += message.size
                if most_bytes and size > most_bytes and rows:
                    break
                rows.append(EndpointMessage(self, number, message, held))
        return rows

    def find(self, message_id: int) -> Message | None:
        """One message, wherever in the endpoint it is; None when it is not there."""
        for flow in self.holders():
            message = flow.unacked.get(message_id)
            if message is not None:
                return message
        return self.spool.message(message_id) if self.waits(message_id) else None

    def copy_message(self, message_id: int, target: Endpoint) -> str:
        """Put a copy of a message into another endpoint; "" or why that cannot be (the field's strings)."""
        message = self.find(message_id)
        if message is None:
            return MESSAGE_NOT_FOUND
        return target._place_copy(message)

    def move_message(self, message_id: int, target: Endpoint) -> str:
        """Put a message into another endpoint instead, in one unit; "" or why that cannot be.

        Not one that a consumer has.
        """
        self.reclaim(message_id)
        if not self.waits(message_id):
            return MESSAGE_NOT_FOUND if self.find(message_id) is None else IN_HAND
        message = self.spool.message(message_id)
        spool = self.spool
        before = spool.unit.mark()
        reason = target._place_copy(message, moved=target.vpn is self.vpn)
        if reason:
            return reason
        try:
            self.lose(message_id, MOVED)
        except Exception:
            spool.take_back(before)
            raise
        self.wake()
        return ""

    def _place_copy(self, message: Message, *, moved: bool = False) -> str:
        """Take a copy of a message of another endpoint, which it leaves where `moved`; "" or why that cannot be."""
        copy = message.copy()
        copy.ingress_ns = 0
        return self.spool.place(self, copy, moved=moved)

    def start_replay(self, from_ns: int, after_id: int, log_name: str = "") -> Replay:
        """Replay to this endpoint from the log of its message VPN, as ReplayLog.replay_to does.

        Raises Refused with the field's reason, also where there is no log, or it has another name than `log_name`.
        """
        log = self.spool.replay_logs.get(self.vpn.name)
        if log is None or (log_name and log.endpoint.name != log_name):
            raise Refused(refusals.REPLAY_DISABLED)
        return log.replay_to(self, from_ns, after_id)

    def delete_message(self, message_id: int) -> str:
        """Delete one message; "" or why that cannot be. Not one that a consumer has."""
        self.reclaim(message_id)
        if not self.waits(message_id):
            return MESSAGE_NOT_FOUND if self.find(message_id) is None else IN_HAND
        self.lose(message_id, DELETED)
        self.wake()
        return ""

    def purge(self) -> int:
        """Delete all messages that wait, but not those that consumers hold; returns how many.

        They leave the endpoint at once and the store in later rounds (`Spool.when_purged` notifies when that is
        synced); a crash before that brings the rest back.
        """
        spool = self.spool
        self._reclaim_all()
        if self.watched is not None:
            self.watched.purged(self)
        kept_bytes = 0
        kept_count = 0
        for flow in [*self.flows, *self.enlisted]:
            for message in flow.unacked.values():
                kept_count += 1
                kept_bytes += message.size
        kept_count += self.pending
        kept_bytes += spool.pending_bytes_of(self)
        count = self.spooled_count - kept_count
        size = self.spooled_bytes - kept_bytes
        delayed = WaitingList()
        delayed.extend(array("Q", self.schedule.delayed.ids()), 0)
        for pool in [*self.pools(), delayed]:
            if pool.count:
                spool.purge(self, pool)
        self._empty()
        self._forget_redeliveries()
        self.counters.deleted += count
        self.spooled_count = kept_count
        self.spooled_bytes = kept_bytes
        if self.when_empty is not None:
            self.look_if_empty(self.when_empty)
        spool.release(self.vpn, size)
        self.wake()
        return count

    def _reclaim_all(self) -> None:
        """Have all that ended consumers held wait among what is to be sorted, in one go: most of it is to leave."""
        for returning in self.returning:
            self.order.unsorted.append(returning.ids_left())
        self.returning.clear()

    def _empty(self) -> None:
        self.waiting = [WaitingList() for _ in self.waiting]
        self.order.unsorted = []
        if self.ahead is not None:
            self.ahead = WaitingList()
        self.schedule.clear()

    def _forget_redeliveries(self) -> None:
        held: set[int] = set()
        for flow in [*self.flows, *self.enlisted]:
            held.update(flow.unacked)
        ledger = self.spool.ledger
        kept: dict[int, int] = {}
        for message_id, count in self.redeliveries.items():
            if message_id in held:
                kept[message_id] = count
            elif count > 0:
                ledger.delete(keys.redeliveries(self.number, message_id))
        self.redeliveries = kept

    # -- changes --------------------------------------------------------------------------------------

    def take_settings(self, settings: EndpointSettings) -> None:
        """Apply changed settings.

        Where egress is disabled all flows are unbound, where the permission is less those that may not consume any
        more. Where partitions, priorities or life times change, waiting messages are sorted again, and nothing is
        delivered meanwhile, so that the order holds. A smaller quota keeps the messages there; a last value queue keeps
        the newest. New life times and delays hold for messages that are here already.
        """
        before = self.settings
        self.settings = settings
        if before.egress_enabled and not settings.egress_enabled:
            self.unbind_all(self.shutdown_reason())
        if before.permission != settings.permission or before.owner != settings.owner:
            self.unbind_forbidden()
        if (
            _lanes(before) != _lanes(settings)
            or before.respect_msg_priority_enabled != settings.respect_msg_priority_enabled
            or (settings.respect_ttl_enabled and not before.respect_ttl_enabled)
        ):
            self.order.unsort(_lanes(settings))
        if before.exclusive != settings.exclusive:
            self.order.change_access()
        elif self.partitions is not None:
            self.partitions.changed()
        if settings.last_value and not before.last_value:
            self._keep_newest()
        self.schedule.take_settings(before)
        self.wake()

    def _keep_newest(self) -> None:
        """Discard all waiting messages but the newest: the endpoint has become a last value queue."""
        self._reclaim_all()
        unreadable: set[int] = set()
        message = None
        while message is None:
            newest = 0
            for pool in self.pools():
                newest = max(newest, pool.last())
            for number in self.schedule.delayed.ids():
                if number not in unreadable:
                    newest = max(newest, number)
            if not newest:
                return
            self.take_out(newest)
            message = self.readable(newest)
            if message is None:
                # It goes with the rest: the newest message that can be read is kept.
                unreadable.add(newest)
        size = message.size
        # Purge counts by what is left over: the newest is put aside for that time.
        self.spooled_count -= 1
        self.spooled_bytes -= size
        count = self.purge()
        self.counters.deleted -= count
        self.counters.discarded.add(LAST_VALUE, count)
        self._trace_discarded(LAST_VALUE, count)
        self.spooled_count += 1
        self.spooled_bytes += size
        self.newest = newest
        self.ready(newest, message)

    def delete(self, reason: str) -> int:
        """Delete an endpoint with its messages, subscriptions and definition; returns how many messages.

        Its flows are unbound for `reason`. Its number is not used again.
        """
        if self.deleted:
            return 0
        vpn = self.vpn
        if self.replay is not None:
            self.replay.cancel()
        self.put_out(reason)
        for holder in self.enlisted:
            left = WaitingList()
            left.extend(array("Q", sorted(holder.unacked)), 0)
            self.order.unsorted.append(left)
            holder.forget_all()
        self.enlisted.clear()
        count = self.purge()
        self.deleted = True
        if self.partitions is not None:
            self.partitions.stop()
        self.schedule.disarm()
        vpn.drop(self)
        place = (self.kind, self.name)
        if vpn.endpoints.get(place) is self:
            del vpn.endpoints[place]
        if self.kind == QUEUE:
            vpn.forget_queue(self.name)
        ledger = self.spool.ledger
        ledger.delete(keys.endpoint(self.number))
        ledger.delete(keys.mark(self.number))
        ledger.delete(keys.endpoint_counters(self.number))
        return count

    def remember_bridge(self, bridge: str) -> None:
        """Write down that a bridge of this name takes from the queue, the first time it does.

        Beyond ENDPOINT_BRIDGES the one that was first is forgotten.
        """
        known = self.bridges
        if not bridge or bridge in known or self.kind != QUEUE:
            return
        known.append(bridge)
        if len(known) > limits.ENDPOINT_BRIDGES:
            del known[0]
        if self.durable:
            self.define()

    def define(self, subscription: str = "") -> None:
        """Write the definition of the endpoint to the store; `subscription` is that of a topic endpoint."""
        definition = EndpointDefinition(
            self.number,
            self.vpn.name,
            self.kind,
            self.name,
            True,
            subscription,
            self.attracts_for,
        )
        definition.bridges = self.bridges
        if self.kind == SUBSCRIPTION:
            definition.shared = self.settings.max_bind_count > 1
            for held in self.subscriptions.values():
                definition.no_local = held.no_local
                definition.selector = "" if held.selector is None else held.selector.text
        self.spool.ledger.put(keys.endpoint(self.number), definition.encode())

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Try deliveries again that raised."""
        self.wake()

    # -- traces ---------------------------------------------------------------------------------------

    def trace(
        self,
        event: int,
        spool_id: int,
        message: Message,
        reason: str = "",
        client: str = "",
    ) -> None:
        """Record what happened to a traced message that `endpoint` keeps under `spool_id`."""
        partition = self.partition_of(spool_id, message)
        trace_kept(self.vpn, event, message, self.name, reason, client, partition)

    def trace_lost(
        self, event: int, spool_id: int, message: Message, reason: str, client: str = ""
    ) -> None:
        """Record that a message that `endpoint` kept under `spool_id`, traced or not, was discarded or rejected."""
        partition = self.partition_of(spool_id, message)
        trace_kept_lost(self.vpn, event, message, self.name, reason, client, partition)

    def _trace_discarded(self, reason: str, count: int) -> None:
        """Add up messages that left without being read."""
        losses = self.vpn.context.discard_rows
        if losses is not None and count:
            name = self.vpn.name
            losses.add(
                (DISCARD, name, PERSISTENT, "", self.name, reason, "", "", 0, "", b""), count
            )

    def _trace_settled(self, client: str, spool_id: int, message: Message, outcome: int) -> None:
        """Record the answer of the consumer `client`; the return of a message has a row of its own."""
        if outcome == REJECTED:
            self.trace_lost(REJECT, spool_id, message, CONSUMER, client)
        elif outcome == ACCEPTED and message.traced:
            self.trace(ACKNOWLEDGE, spool_id, message, "", client)

    def partition_of(self, spool_id: int, message: Message) -> int:
        """The partition in which `endpoint` keeps a message; -1 where it has none."""
        if self.partitions is None:
            return -1
        return lane_of(spool_id, message, len(self.waiting))


@final
class EndpointMessage:
    """One message of an endpoint. Names are the field's in snake case; times are wall clock in nanoseconds,
    `expiry_time_ns` 0 for never; `undelivered` is False while a consumer has it; `redelivery_count` counts
    tries that failed; `message` is the message itself.
    """

    __slots__ = (
        "dmq_eligible",
        "expiry_time_ns",
        "message",
        "msg_id",
        "partition",
        "priority",
        "redelivery_count",
        "size",
        "spooled_time_ns",
        "topic",
        "undelivered",
    )

    def __init__(self, endpoint: Endpoint, msg_id: int, message: Message, in_hand: bool) -> None:
        context = endpoint.vpn.context
        self.msg_id = msg_id
        self.message = message
        self.topic = message.topic
        self.size = message.size
        self.priority = message.priority
        self.dmq_eligible = message.dmq_eligible
        self.spooled_time_ns = message.ingress_ns
        self.expiry_time_ns = 0
        settings = endpoint.settings
        if message.expires_ns:
            self.expiry_time_ns = message.expires_ns - context.now_ns + context.steady_ns
        if settings.respect_ttl_enabled and settings.max_ttl:
            latest_ns = message.ingress_ns + settings.max_ttl * 1_000_000_000
            self.expiry_time_ns = min(self.expiry_time_ns or latest_ns, latest_ns)
        self.redelivery_count = max(0, endpoint.redeliveries.get(msg_id, 0))
        self.undelivered = not in_hand
        self.partition = lane_of(msg_id, message, len(endpoint.waiting))


def _lanes(settings: EndpointSettings) -> int:
    return settings.partition_count if settings.partitioned else 1


def endpoints_of(vpn: MessageVpn) -> dict[tuple[int, str], Endpoint]:
    """The queues, topic endpoints and endpoints of sessions of `vpn`, by kind and name."""
    return cast("dict[tuple[int, str], Endpoint]", vpn.endpoints)


def endpoint_named(vpn: MessageVpn, kind: int, written: str) -> Endpoint | None:
    """The queue or topic endpoint that a topic or filter names: one of this name, or of the name that it escapes."""
    endpoints = endpoints_of(vpn)
    endpoint = endpoints.get((kind, written))
    return endpoints.get((kind, name_meant(written))) if endpoint is None else endpoint


def endpoint_of(subscriber: Subscriber) -> Endpoint | None:
    """The endpoint behind the subscriptions of QoS 1 and 2 of an MQTT session, once it has one."""
    return cast("Endpoint | None", subscriber.endpoint)
