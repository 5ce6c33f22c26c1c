"""Endpoints: queues, topic endpoints and the queues of MQTT sessions, which hold guaranteed messages.

Where an endpoint cannot take a message, its attributes decide whether the publisher hears of it.

An endpoint holds ids; bodies are the spool's. Consumers: dispatch.py, dispatch.py; times: lifecycle.py, lifecycle.py;
messages that nobody can take: lifecycle.py; changed attributes: operations.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter.core.guaranteed import counters, dispatch, lifecycle, operations, reasons, recover
from vpnrouter.core.guaranteed.counters import ACKED, DELETED, DISCARDED, EndpointCounters
from vpnrouter.core.guaranteed.dispatch import dispatch_messages
from vpnrouter.core.guaranteed.flow import ACCEPTED, FAILED, RELEASED, Flow, Partitions, lane_of
from vpnrouter.core.guaranteed.flow import REJECTED as REFUSED
from vpnrouter.core.guaranteed.lifecycle import (
    EXPIRED,
    REJECTED,
    UNCOUNTED,
    again,
    dead_letter,
    failed,
    size_in_store,
)
from vpnrouter.core.guaranteed.terms import (
    AGAIN,
    NEVER,
    PARKING,
    QUEUE,
    REPLAY_LOG,
    SESSION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.traces import trace_lost, trace_replaced, trace_settled
from vpnrouter.core.guaranteed.waiting import Buckets, Delays, Waiting
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, Keeper
from vpnrouter.trace.events import DISCARD

if TYPE_CHECKING:
    from array import array

    from vpnrouter.core.guaranteed.end_to_end import Watched
    from vpnrouter.core.guaranteed.replay import Replay
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.guaranteed.terms import EndpointTerms
    from vpnrouter.core.message import Message
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.timers import Timer
    from vpnrouter.core.vpn import MessageVpn


_PASSES: Final = frozenset({reasons.SPOOL_OVER_QUOTA, reasons.MAX_MESSAGE_USAGE})
"""Reasons for which a message has no room now and may have some later."""


def obstructed(matched: list[Endpoint], message: Message, size: int) -> bool:
    """True when one of the endpoints cannot take the message now."""
    reason = ""
    for endpoint in matched:
        reason = endpoint.obstacle(message, size)
        if reason:
            break
    return reason != ""


def rejection(matched: list[Endpoint], message: Message, size: int, full: str) -> tuple[str, str]:
    """The first reason why nobody is to keep the message (promise ALLORNONE) and the endpoint that says so.

    Both are "" when there is none.

    `full` is why the message VPN or the router has no room, "" when they have. Counts at each endpoint
    for whose sake the message is rejected.

    A message that came over a bridge can wait in the remote queue: where one endpoint rejects on discard, the
    message waits until all that match have room, so that none of them loses it. Waiting does not help where an
    endpoint is shut down or takes only smaller messages: there each endpoint decides for itself.
    """
    found = ""
    where = ""
    together = False
    if message.hops:
        for endpoint in matched:
            if endpoint.terms.rejects():
                together = True
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if reason and (endpoint.terms.rejects() or (together and reason in _PASSES)):
            endpoint.counters.refused.add(reasons.DISCARD_NAMES[reason])
            if not found:
                found = reason
                where = endpoint.name
    return found, where


def willing(
    vpn: MessageVpn, matched: list[Endpoint], message: Message, size: int, full: str
) -> list[Endpoint]:
    """The endpoints that can take the message; the others discard it, and the publisher hears nothing of it."""
    takers: list[Endpoint] = []
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if not reason:
            takers.append(endpoint)
            continue
        name = reasons.DISCARD_NAMES[reason]
        endpoint.counters.refused.add(name)
        trace_lost(vpn, DISCARD, message, endpoint.name, name)
    return takers


__all__ = ("PARKING", "QUEUE", "REPLAY_LOG", "SESSION", "TOPIC_ENDPOINT", "Endpoint")

LOW_PRIORITY: Final = 3
"""The highest priority that `reject_low_priority_msg` looks at: below the default of 4."""

LAST_VALUE: Final = "last-value"
"""Why a message leaves a last value queue: a newer one came."""


@final
class Endpoint(Keeper):
    """One endpoint of `vpn`; `number` is its name in the store.

    `spooled_count` and `spooled_bytes` are all messages that it holds: those that wait, by partition
    (`waiting`), for their delivery delay (`held`), for their redelivery (`delayed`), for being sorted into
    other partitions or priorities (`unsorted`), ahead of all in a replay (`ahead`), delivered and not
    acknowledged (`Flow.unacked`), and on their way into the synced spool (`pending` of them).
    `redeliveries` says how often a message came back, `marked` up to which id messages may have been
    delivered before a crash, `mark` up to which id that is written down, so that they may be delivered now,
    `newest` is the last one that came, which is what a last value queue keeps. `turn`, `lane_turn` and
    `selective` (a flow has a selector) are dispatch.py's, `oldest_due_ns` is lifecycle.py's, `held_due_ns`
    lifecycle.py's. `bridges` are names of those that ever took from here, `lent` what went out to each of them (by
    who it proved to be) and came back neither accepted nor refused, `attracts_for` is who gave a topic endpoint
    its subscription (client username and client id, "" where nobody is known), `watched` is who waits until
    messages leave (end_to_end.py), None for nobody.
    """

    __slots__ = (
        "_armed_ns",
        "_timer",
        "ahead",
        "attracts_for",
        "bridges",
        "counters",
        "delayed",
        "deleted",
        "dirty",
        "durable",
        "expiring",
        "flows",
        "held",
        "held_due_ns",
        "kind",
        "lane_turn",
        "lent",
        "mark",
        "mark_wanted",
        "marked",
        "name",
        "newest",
        "number",
        "oldest_due_ns",
        "partitions",
        "pending",
        "redeliveries",
        "replay",
        "selective",
        "spool",
        "spooled_bytes",
        "spooled_count",
        "turn",
        "unsorted",
        "vpn",
        "waiting",
        "watched",
    )

    def __init__(
        self,
        spool: Spool,
        vpn: MessageVpn,
        kind: int,
        name: str,
        number: int,
        terms: EndpointTerms,
        durable: bool = True,
    ) -> None:
        super().__init__(name, Outbox(vpn.plane.ready, 0), FRAME_OWN, terms)
        self.spool = spool
        self.vpn = vpn
        self.kind = kind
        self.name = name
        self.number = number
        self.attracts_for = ("", "")
        self.durable = durable
        self.deleted = False
        self.counters = EndpointCounters()
        self.flows: list[Flow] = []
        self.selective = False
        self.turn = 0
        self.lane_turn = 0
        count = terms.partition_count if terms.partitioned else 1
        self.partitions = Partitions(self, count) if terms.partitioned else None
        self.waiting: list[Waiting] = [Waiting() for _ in range(count)]
        self.held: Waiting | None = None
        self.held_due_ns = 0
        self.unsorted: list[Waiting] = []
        self.ahead: Waiting | None = None
        self.replay: Replay | None = None
        self.delayed = Delays()
        self.expiring = Buckets()
        self.oldest_due_ns = 0
        self.redeliveries: dict[int, int] = {}
        self.marked = 0
        self.mark = 0
        self.mark_wanted = 0
        self.pending = 0
        self.spooled_count = 0
        self.spooled_bytes = 0
        self.dirty = False
        self.newest = 0
        self.bridges: list[str] = []
        self.lent: dict[str, set[int]] = {}
        self.watched: Watched | None = None
        self._timer: Timer | None = None
        self._armed_ns = 0

    # -- what comes in ---------------------------------------------------------------------------

    def obstacle(self, message: Message, size: int) -> str:
        """Why this message cannot be taken now, "" when it can."""
        terms = self.terms
        if not terms.ingress_enabled or self.deleted:
            return self.shutdown_reason()
        if terms.max_msg_size and len(message.payload) > terms.max_msg_size:
            return reasons.TOO_LARGE
        if terms.last_value:
            return ""
        if self.spooled_bytes + size > terms.max_msg_spool_usage:
            return reasons.SPOOL_OVER_QUOTA
        if terms.max_spooled_msg_count and self.spooled_count >= terms.max_spooled_msg_count:
            return reasons.MAX_MESSAGE_USAGE
        if (
            terms.reject_low_priority_msg_enabled
            and message.priority <= LOW_PRIORITY
            and self.spooled_count >= terms.reject_low_priority_msg_limit
            and terms.reject_behavior != NEVER
        ):
            return reasons.LOW_PRIORITY
        return ""

    def shutdown_reason(self) -> str:
        """The field's string for an endpoint of this kind that is shut down."""
        if self.kind == QUEUE:
            return reasons.QUEUE_SHUTDOWN
        if self.kind == TOPIC_ENDPOINT:
            return reasons.TOPIC_ENDPOINT_SHUTDOWN
        return reasons.ENDPOINT_SHUTDOWN

    def arrive(self, message_id: int, message: Message) -> None:
        """Take a message that is in the synced spool now: from now on it may be delivered."""
        if self.deleted:
            self.forget(message_id, message.size, DELETED)
            return
        if self.kind == REPLAY_LOG:
            self.waiting[0].add(message_id, 0)
            log = self.spool.replay_logs.get(self.vpn.name)
            if log is not None:
                log.arrived(message_id, message.size)
            return
        terms = self.terms
        newest = self.newest
        self.newest = message_id
        if terms.last_value and newest and counters.take_out(self, newest):
            self.lose(newest, DISCARDED, LAST_VALUE)
            trace_replaced(self, LAST_VALUE, 1)
        if terms.delivery_delay:
            lifecycle.hold(self, message_id, message)
        else:
            self.ready(message_id, message)
        if terms.respect_ttl_enabled:
            lifecycle.note_expiry(self, message_id, message)

    def ready(self, message_id: int, message: Message) -> None:
        """Put a message among those that wait for a flow."""
        if self.ahead is not None and self.replay is not None and self.replay.brought(message_id):
            self.ahead.add(message_id, self.level_of(message))
        else:
            count = len(self.waiting)
            lane = 0 if count == 1 else lane_of(message_id, message, count)
            self.waiting[lane].add(message_id, self.level_of(message))
        if self.selective:
            self._look_again(message_id, message)
        if not self.dirty:
            self.dirty = True
            self.spool.dirty.append(self)

    def level_of(self, message: Message) -> int:
        """The priority under which a message waits here."""
        return message.priority if self.terms.respect_msg_priority_enabled else 0

    def _look_again(self, message_id: int, message: Message) -> None:
        """Selectors may have passed this message; it is here again."""
        level = self.level_of(message)
        for flow in self.flows:
            back = flow.came_back
            if back is not None and flow.cursors[level] >= message_id:
                back.add(message_id)

    def recovered(
        self, ids: array[int], sizes: int, priority: int, lane: int, expires: list[tuple[int, int]]
    ) -> None:
        """Messages that were here when the router stopped: rising ids of one priority and lane.

        `sizes` is the sum of theirs, `expires` pairs of id and monotonic nanoseconds.
        """
        count = len(ids)
        self.spooled_count += count
        self.spooled_bytes += sizes
        self.counters.recovered += count
        self.counters.peak_bytes = max(self.counters.peak_bytes, self.spooled_bytes)
        recover.recovered(self, ids, priority, lane, expires)

    # -- flows -----------------------------------------------------------------------------------

    def bind(self, flow: Flow, permission: int, needed: int) -> None:
        """Let a consumer in. `permission` is what its client username may do here, `needed` what it wants.

        Raises Refused with the field's reason.
        """
        dispatch.bind(self, flow, permission, needed)

    def unbind(self, flow: Flow, *, counts: bool) -> None:
        """The consumer is gone; what it held is delivered again. `counts`: towards max_redelivery_count."""
        dispatch.unbind(self, flow, counts=counts)

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
        if self.unsorted:
            operations.sort_some(self)
        if self.replay is not None:
            self.replay.advance()
        if self.terms.egress_enabled and self.flows and not self.unsorted:
            if self.partitions is not None:
                self.partitions.settled()
            dispatch_messages(self)

    # -- what goes -------------------------------------------------------------------------------

    def settle(self, flow: Flow, message_id: int, outcome: int) -> bool:
        """A consumer's word on a message that it holds; False when it holds no such message."""
        message = flow.unacked.pop(message_id, None)
        if message is None:
            return False
        try:
            if message.traced or outcome == REFUSED:
                trace_settled(self, flow.client_name, message_id, message, outcome)
            if outcome == ACCEPTED:
                if self.watched is not None:
                    self.watched.accepted(message_id)
                self.forget(message_id, message.size, ACKED)
            elif outcome == RELEASED:
                again(self, message_id, message, 0)
            elif outcome == FAILED:
                failed(self, message_id, message)
            else:
                dead_letter(self, message_id, message, REJECTED)
        except Exception:
            self.mend(message_id, message)
            raise
        if outcome == ACCEPTED:
            flow.acked += 1
        self.wake()
        return True

    def mend(self, message_id: int, message: Message) -> None:
        """Repair the endpoint after work on a message raised: unless it has left or is held, it waits again."""
        spool = self.spool
        for pool in counters.pools(self):
            pool.recount()
        if spool.gone_id == message_id and spool.gone_from is self:
            return
        if not self.deleted and not counters.holds(self, message_id):
            if message_id not in self.redeliveries:
                # It is not known whether a consumer has seen it.
                self.redeliveries[message_id] = UNCOUNTED
            self.ready(message_id, message)

    def forget(self, message_id: int, size: int, cause: int, reason: str = "") -> None:
        """Take a message out, for a cause of counters.py. It is counted when nothing can fail any more."""
        self.spool.settle(self, message_id, size, cause, reason)

    def lose(self, message_id: int, cause: int, reason: str = "") -> None:
        """Take out a message that waited, even one that cannot be read."""
        self.forget(message_id, size_in_store(self, message_id), cause, reason)

    def expire(self, message_id: int, message: Message) -> None:
        """Treat a message as expired: it goes to the dead message queue or is discarded."""
        dead_letter(self, message_id, message, EXPIRED)

    # -- changes ---------------------------------------------------------------------------------

    def take_terms(self, terms: EndpointTerms) -> None:
        """Go on under other attributes."""
        operations.take_terms(self, terms)

    def delete(self, reason: str) -> None:
        """Delete the endpoint with all that it holds; flows are told `reason`."""
        operations.delete(self, reason)

    # -- time ------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Have `on_timer` called when the first delay or life time is over."""
        first = self.delayed.next_ns()
        other = self.expiring.next_ns()
        if first < 0 or 0 <= other < first:
            first = other
        if self.held_due_ns and (first < 0 or self.held_due_ns < first):
            first = self.held_due_ns
        if self.oldest_due_ns and (first < 0 or self.oldest_due_ns < first):
            first = self.oldest_due_ns
        if first < 0:
            return
        # What is due already comes with the next round.
        first = max(first, self.vpn.plane.now_ns + 1)
        if self._timer is not None:
            if self._armed_ns <= first:
                return
            self._timer.cancel()
        self._armed_ns = first
        self._timer = self.vpn.plane.timers.arm(first, self, 0)

    def disarm(self) -> None:
        """Cancel the timer: nothing is due any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Handle delays that are over and messages that expire; with AGAIN, try deliveries again that raised."""
        if kind == AGAIN:
            self.wake()
            return
        self._timer = None
        if self.deleted:
            return
        if self.spool.down:
            # Nothing can be written: look again a second later.
            self._armed_ns = now_ns + lifecycle.SECOND_NS
            self._timer = self.vpn.plane.timers.arm(self._armed_ns, self, 0)
            return
        lifecycle.run_expiry(self, now_ns)
        lifecycle.run_delay(self, now_ns)
        self.arm()


def endpoints_of(vpn: MessageVpn) -> dict[tuple[int, str], Endpoint]:
    """The queues, topic endpoints and endpoints of sessions of `vpn`, by kind and name."""
    return cast("dict[tuple[int, str], Endpoint]", vpn.endpoints)


def endpoint_of(subscriber: Subscriber) -> Endpoint | None:
    """The endpoint behind the subscriptions of QoS 1 and 2 of an MQTT session, once it has one."""
    return cast("Endpoint | None", subscriber.endpoint)
