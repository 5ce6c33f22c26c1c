"""The message spool of a router: takes guaranteed messages, all or nothing, and tells when they are on disk.

The edge ends each of its rounds with `end_round`. When that returns a batch, it has the store commit it in
another thread and calls `committed` afterwards; meanwhile the next unit is built. Nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.context import SpoolPort
from vpnrouter.core.deliver import demote, demote_to_one
from vpnrouter.core.discard_reasons import NO_SUBSCRIPTION_MATCH
from vpnrouter.core.fault_barrier import RETRY_NS, SPOOL
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.counters import ACKED, DISCARDED, MOVED
from vpnrouter.core.guaranteed.endpoint import endpoint_of
from vpnrouter.core.guaranteed.message_record import (
    MessageCache,
    read_headers,
    to_record,
    wall_expiry_ns,
)
from vpnrouter.core.guaranteed.unit_of_work import (
    DEMOTED,
    EVERYTHING,
    REJECTED,
    SPOOLED,
    SYNCED,
    UNMATCHED,
    CompletionCallback,
    DelayNotice,
    PurgeQueue,
    UnitOfWork,
)
from vpnrouter.core.retained import retain
from vpnrouter.core.tracing import trace_kept, trace_kept_lost
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.trace.events import DEMOTE, DISCARD, ENQUEUE, PROMOTE, REJECT
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow
    from vpnrouter.core.guaranteed.replay import ReplayLog
    from vpnrouter.core.guaranteed.waiting_list import WaitingList
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route, Target
    from vpnrouter.core.timers import Job
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.spool.ledger import Ledger
    from vpnrouter.spool.store import Batch


DISPATCH_WORK: Final = 2
"""What a look at an endpoint costs, in parts of a turn (TurnContext.work)."""

_PASSES: Final = frozenset({refusals.SPOOL_OVER_QUOTA, refusals.MAX_MESSAGE_USAGE})
"""Reasons for which a message has no room now and may have some later."""


def matching_endpoints(route: Route, message: Message) -> list[Endpoint]:
    """Return the endpoints that match `message`: queues and topic endpoints, and for a guaranteed one sessions.

    The list may be the route's own: do not change it.
    """
    if route.endpoints_fixed:
        return cast("list[Endpoint]", route.destinations if message.persistent else route.queues)
    found = [
        cast("Endpoint", target.subscriber) for target in route.endpoints if _takes(target, message)
    ]
    if message.persistent:
        for target in route.sessions:
            endpoint = endpoint_of(target.subscriber)
            if endpoint is not None and _wants(target, message):
                found.append(endpoint)
        for group in route.groups:
            member = group.choose_durable(message, route.excluded)
            endpoint = None if member is None else endpoint_of(member.subscriber)
            if endpoint is not None and endpoint not in found:
                found.append(endpoint)
    return found


def _takes(target: Target, message: Message) -> bool:
    """Return whether a subscription of a queue, a topic endpoint, an AMQP client or a connector matches."""
    source = message.local_name
    for subscription in target.wanting(message):
        if not subscription.no_local:
            return True
        if target.subscriber.local_name != source:
            return True
    return False


def _wants(target: Target, message: Message) -> bool:
    """Return whether a subscription of the session matches. No-local holds for guaranteed messages too."""
    source = message.local_name
    for subscription in target.wanting(message):
        if subscription.qos and not (
            subscription.no_local and source == target.subscriber.local_name
        ):
            return True
    return False


def obstructed(matched: list[Endpoint], message: Message, size: int) -> bool:
    """True when one of the endpoints cannot take the message now."""
    reason = ""
    for endpoint in matched:
        reason = endpoint.obstacle(message, size)
        if reason:
            break
    return reason != ""


def refuses(route: Route, message: Message, endpoint: Endpoint, reason: str) -> bool:
    """Return whether the publisher is told that an endpoint cannot take a message for a `reason`.

    Its settings decide that, unless the message names this queue, and no other can take it in its place: then a queue
    that is shut down refuses. What came over a bridge would hold that for ever.
    """
    if endpoint.settings.rejects():
        return True
    return route.guard is endpoint and message.hops == 0 and reason == refusals.QUEUE_SHUTDOWN


def rejection(
    route: Route, matched: list[Endpoint], message: Message, size: int, full: str
) -> tuple[str, str]:
    """Return the reason to reject the message (promise ALLORNONE) and the endpoint that gives it, or "" and "".

    `full` is the reason why the message VPN or the router has no room, or "". Counts the rejection at each such
    endpoint.

    A message that came over a bridge can wait in the remote queue: where one endpoint rejects on discard, it waits
    until all that match have room, so that none of them loses it. Waiting does not help where an endpoint is shut down
    or takes only smaller messages: there each endpoint decides for itself.
    """
    found = ""
    where = ""
    together = False
    if message.hops:
        for endpoint in matched:
            if endpoint.settings.rejects():
                together = True
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if reason and (
            refuses(route, message, endpoint, reason) or (together and reason in _PASSES)
        ):
            endpoint.counters.refused.add(refusals.DISCARD_NAMES[reason])
            if not found:
                found = reason
                where = endpoint.name
    return found, where


def willing(
    vpn: MessageVpn, matched: list[Endpoint], message: Message, size: int, full: str
) -> list[Endpoint]:
    """The endpoints that can take the message; the others discard it, and the publisher hears nothing of it."""
    destinations: list[Endpoint] = []
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if not reason:
            destinations.append(endpoint)
            continue
        name = refusals.DISCARD_NAMES[reason]
        endpoint.counters.refused.add(name)
        trace_kept_lost(vpn, DISCARD, message, endpoint.name, name)
    return destinations


AHEAD: Final = 100_000
"""Ids by which a mark is written ahead of a delivery, so that a backlog drains without waiting often."""

PROMOTION_CONGESTION: Final = "message-promotion-congestion"


@final
class Spool(SpoolPort):
    """All endpoints' messages of one router.

    `max_usage` bounds the bytes of all endpoints and retained messages together (0: none). `dirty` are endpoints
    that may have something to deliver. `down` says why nothing is taken now, "" normally. `store_failures` counts
    what was told of messages that the store could not read, or not note as settled; `damaged` counts messages that
    were lost in endpoints, since the store had them damaged.
    """

    __slots__ = (
        "_delayed_ns",
        "_freed",
        "_hungry",
        "_large",
        "_next_number",
        "_purging",
        "_refused",
        "_rests_ns",
        "_unread",
        "bodies",
        "context",
        "damaged",
        "dirty",
        "down",
        "failing",
        "fault",
        "finishing",
        "gone_from",
        "gone_id",
        "later",
        "max_usage",
        "replay_logs",
        "sealed",
        "store_failures",
        "syncing",
        "unit",
        "usage",
    )

    def __init__(self, context: RouterContext, ledger: Ledger, max_usage: int = 0) -> None:
        self.context = context
        super().__init__(ledger)
        self.max_usage = max_usage
        self.usage = 0
        self.store_failures = 0
        self.damaged = 0
        # Messages that endpoints could not read in this round, and why the last one could not be.
        self._unread: dict[Endpoint, tuple[list[int], str]] = {}
        # Why nothing is taken, and when those who wait were told, or it began.
        self.down = ""
        self._delayed_ns = 0
        self.unit, self._refused = UnitOfWork(), UnitOfWork()
        self.syncing: UnitOfWork | None = None
        # The batch of `syncing`, until the store has it.
        self.sealed: Batch | None = None
        # A unit that is synced, while `committed` still works on it.
        self.finishing: UnitOfWork | None = None
        self._rests_ns = 0
        # The message that left an endpoint last, and the flow whose delivery raised.
        self.gone_from: Endpoint | None = None
        self.gone_id = 0
        self.failing: Flow | None = None
        # A fault point of tests (server/crash_points.py); None costs nothing.
        self.fault: Callable[[str], None] | None = None
        self.dirty: list[Endpoint] = []
        # Those that have more to do in the next round.
        self.later: list[Endpoint] = []
        self.replay_logs: dict[str, ReplayLog] = {}  # by message VPN
        self.bodies = MessageCache()
        self._freed = False
        self._purging = PurgeQueue()
        self._hungry: list[tuple[CompletionCallback, int]] = []
        # Large messages that wait for the commit after the next one.
        self._large: list[Job] = []
        self._next_number = 1

    # -- taking ----------------------------------------------------------------------------------

    def publish(
        self, vpn: MessageVpn, message: Message, callback: CompletionCallback, token: int
    ) -> int:
        """Take or refuse a guaranteed message; `callback` gets the outcome in its turn.

        Returns that outcome, provided that the sync succeeds. Raises TopicError for a bad topic.
        """
        unit = self.unit
        messages = len(unit.ids)
        callbacks = len(unit.callbacks)
        try:
            return self._publish(vpn, message, callback, token)
        except Exception:
            self.take_back((messages, callbacks))
            raise

    def keep_together(self, vpn: MessageVpn, messages: list[Message]) -> tuple[str, list[bool]]:
        """Put all these guaranteed messages into endpoints, in the unit being built, or none of them.

        Returns "" and whether any endpoint matches each, for `pass_on`; or the reason for which the first one is
        refused that nobody can keep. Raises TopicError for a bad topic.
        """
        before = len(self.unit.ids)
        callbacks = len(self.unit.callbacks)
        kept: list[bool] = []
        try:
            for message in messages:
                route = vpn.route(message.topic)
                reason, where, matched = self._keep(vpn, route, message)
                if reason:
                    self.take_back((before, callbacks))
                    vpn.rejected += 1
                    trace_kept_lost(vpn, REJECT, message, where, reason)
                    return reason, []
                kept.append(matched)
        except Exception:
            self.take_back((before, callbacks))
            raise
        return "", kept

    def _publish(
        self, vpn: MessageVpn, message: Message, callback: CompletionCallback, token: int
    ) -> int:
        route = vpn.route(message.topic)
        reason, where, kept = self._keep(vpn, route, message)
        if reason:
            return self._reject(vpn, message, callback, token, reason, where)
        outcome = self.pass_on(vpn, route, message, kept)
        self.unit.call_when_synced(callback, token, outcome, "")
        if self.fault is not None:
            self.fault("publish-accepted")
        return outcome

    def _keep(self, vpn: MessageVpn, route: Route, message: Message) -> tuple[str, str, bool]:
        """Put a message into the endpoints that match it.

        Returns the reason for which it is refused, or "", the endpoint that gives the reason, and whether any endpoint
        matches.
        """
        if message.block:
            read_headers(message)
        if self.down:
            return self.down, "", False
        if route.missing_queue:
            if message.hops == 0:
                return refusals.QUEUE_NOT_FOUND, "", False
            # It came over a bridge. Its publisher named a queue of another message VPN, and refusing it here
            # would hold the bridge for ever: here it has no eligible destination.
            return "", "", False
        matched = matching_endpoints(route, message)
        size = message.size
        destinations = matched
        if matched:
            full = self.obstacle(vpn, size * len(matched))
            if full or obstructed(matched, message, size):
                reason, where = rejection(route, matched, message, size, full)
                if reason:
                    return reason, where, True
                destinations = willing(vpn, matched, message, size, full)
        if self.replay_logs:
            destinations = self._logged(vpn, message, size, destinations)
        if destinations:
            if route.many_links and message.message_id == 0:
                message.message_id = vpn.context.ids.new_message_id()
            self._add(message, size, destinations)
            vpn.context.work += len(destinations)
        return "", "", bool(matched)

    def foreseen(self, vpn: MessageVpn, message: Message) -> str:
        """Return why a guaranteed message would be refused now, and by which queue, "" where it would not. Counts
        nothing.

        Raises TopicError for a bad topic.
        """
        route = vpn.route(message.topic)
        if self.down:
            return self.down
        if route.missing_queue:
            return refusals.QUEUE_NOT_FOUND if message.hops == 0 else ""
        matched = matching_endpoints(route, message)
        full = self.obstacle(vpn, message.size * len(matched)) if matched else ""
        for endpoint in matched:
            reason = full or endpoint.obstacle(message, message.size)
            if reason and refuses(route, message, endpoint, reason):
                return full or f"{endpoint.name}: {reason}"
        return ""

    def pass_on(self, vpn: MessageVpn, route: Route, message: Message, kept: bool) -> int:
        """Deliver a message, which endpoints have or none matches, to all others; the outcome."""
        demoted = False
        if not route.missing_queue:
            if message.retain:
                retain(vpn, message)
            if message.deliver_to_one:
                demoted = demote_to_one(vpn, route, message)
            else:
                demoted = demote(vpn, route, message)
        if demoted and message.traced:
            trace_kept(vpn, DEMOTE, message, "", "")
        if kept or demoted:
            return SPOOLED if kept else DEMOTED
        vpn.discards.add(NO_SUBSCRIPTION_MATCH)
        trace_kept_lost(vpn, DISCARD, message, "", NO_SUBSCRIPTION_MATCH)
        return UNMATCHED

    def _logged(
        self, vpn: MessageVpn, message: Message, size: int, destinations: list[Endpoint]
    ) -> list[Endpoint]:
        """Return the endpoints, with the replay log of the message VPN where it logs the message."""
        log = self.replay_logs.get(vpn.name)
        if log is None or not log.takes(message, size):
            return destinations
        return [*destinations, log.endpoint]

    @property
    def taken(self) -> int:
        """Bytes of all endpoints and of retained messages."""
        return self.usage + self.context.retained.bytes_

    @override
    def obstacle(self, vpn: MessageVpn, size: int) -> str:
        if self.max_usage and self.taken + size > self.max_usage:
            return refusals.SPOOL_OVER_QUOTA
        if vpn.spool_taken + size > vpn.limits.max_msg_spool_usage:
            return refusals.SPOOL_OVER_QUOTA
        return ""

    @override
    def crowded(self) -> bool:
        return self.ledger.pending_bytes > limits.LARGE_UNIT_BYTES and not self.down

    @override
    def await_commit(self, job: Job) -> None:
        self._large.append(job)

    def _let_in(self) -> None:
        """Let large messages go on that wait for a unit with room."""
        waiting = self._large
        self._large = []
        for job in waiting:
            self.context.jobs.add(job)

    def _reject(
        self,
        vpn: MessageVpn,
        message: Message,
        callback: CompletionCallback,
        token: int,
        reason: str,
        where: str,
    ) -> int:
        vpn.rejected += 1
        trace_kept_lost(vpn, REJECT, message, where, reason)
        unit = self.unit
        if self.down and not unit.has_callback(callback, self.syncing):
            # Who waits for nothing that is to be synced need not wait for the store to work again.
            unit = self._refused
        unit.call_when_synced(callback, token, REJECTED, reason)
        return REJECTED

    @override
    def promote(self, vpn: MessageVpn, route: Route, message: Message) -> bool:
        if message.block:
            read_headers(message)
        size = message.size
        matched = matching_endpoints(route, message)
        congested = (
            self.down != ""
            or self.ledger.pending_bytes > limits.PROMOTION_BYTES
            or self.obstacle(vpn, size * len(matched)) != ""
        )
        destinations: list[Endpoint] = []
        for endpoint in matched:
            reason = "" if congested else endpoint.obstacle(message, size)
            if congested or reason:
                name = PROMOTION_CONGESTION if congested else refusals.DISCARD_NAMES[reason]
                endpoint.counters.refused.add(name)
                vpn.discards.add(name)
                trace_kept_lost(vpn, DISCARD, message, endpoint.name, name)
            else:
                destinations.append(endpoint)
                if message.traced:
                    trace_kept(vpn, PROMOTE, message, endpoint.name, "")
        if not destinations:
            return False
        if self.replay_logs:
            destinations = self._logged(vpn, message, size, destinations)
        self._add(message, size, destinations)
        return True

    def place(
        self, endpoint: Endpoint, message: Message, *, even_down: bool = False, moved: bool = False
    ) -> str:
        """Put a message into one endpoint, whatever its topic; "" or why that cannot be.

        `even_down` is for one that leaves another endpoint in the same unit; `moved` one that leaves one of the same
        message VPN, which needs no more room for it then.
        """
        size = message.size
        reason = "" if even_down else self.down
        if not (reason or moved):
            reason = self.obstacle(endpoint.vpn, size)
        reason = reason or endpoint.obstacle(message, size)
        if reason:
            endpoint.counters.refused.add(refusals.DISCARD_NAMES[reason])
            return reason
        self._add(message, size, [endpoint])
        return ""

    def _add(self, message: Message, size: int, destinations: list[Endpoint]) -> None:
        context = self.context
        if message.ingress_ns == 0:
            message.ingress_ns = context.steady_ns
        data = to_record(message, context.now_ns, context.steady_ns)
        expires_ns = wall_expiry_ns(message, context.now_ns, context.steady_ns)
        numbers = [endpoint.number for endpoint in destinations]
        ledger = self.ledger
        unit = self.unit
        count = len(unit.ids)
        spool_id = ledger.next_id
        try:
            ledger.add(data, size, message.priority, message.lane, expires_ns, numbers)
            unit.ids.append(spool_id)
            unit.messages.append(message)
            unit.destinations.append(destinations)
        except Exception:
            unit.cut(count, len(unit.callbacks))
            if ledger.next_id > spool_id:
                for number in numbers:
                    ledger.settle(number, spool_id)
            raise
        message.holders = len(destinations)
        # Nothing below can raise: `take_back` undoes all of it or nothing.
        for endpoint in destinations:
            endpoint.pending += 1
            endpoint.spooled_count += 1
            endpoint.spooled_bytes += size
            counters = endpoint.counters
            counters.spooled += 1
            counters.spooled_bytes += size
            counters.peak_bytes = max(counters.peak_bytes, endpoint.spooled_bytes)
            endpoint.vpn.spooled_bytes += size
            self.usage += size
        if message.traced:
            for endpoint in destinations:
                endpoint.trace(ENQUEUE, spool_id, message)

    def has_taken(self, message: Message) -> bool:
        """True when `message` is the newest of the unit being built."""
        messages = self.unit.messages
        return bool(messages) and messages[-1] is message

    def take_back(self, before: tuple[int, int]) -> None:
        """Undo what raised half-way, in the unit, which `before` is a `mark` of, and in the endpoints."""
        unit = self.unit
        messages, callbacks = before
        for index in range(messages, len(unit.ids)):
            spool_id = unit.ids[index]
            size = unit.messages[index].size
            for endpoint in unit.destinations[index]:
                endpoint.pending -= 1
                endpoint.spooled_count -= 1
                endpoint.spooled_bytes -= size
                endpoint.counters.spooled -= 1
                endpoint.counters.spooled_bytes -= size
                endpoint.vpn.spooled_bytes -= size
                self.usage -= size
                self.ledger.settle(endpoint.number, spool_id)
        unit.cut(messages, callbacks)

    def when_synced(self, callback: CompletionCallback, token: int) -> None:
        """Call `callback` with SYNCED when everything given to the ledger up to now is synced."""
        self.unit.call_when_synced(callback, token, SYNCED, "")

    def when_room(self, callback: CompletionCallback, token: int) -> None:
        """Call `callback` with SYNCED, once, when an endpoint has more room than now."""
        if not self._hungry:
            self._freed = False
        self._hungry.append((callback, token))

    # -- giving ----------------------------------------------------------------------------------

    def message(self, spool_id: int) -> Message:
        """The message of an id that is in the synced spool. Raises SpoolError when the store lost it."""
        found = self.bodies.kept.get(spool_id)
        if found is not None:
            return found
        return self.bodies.read(self.ledger, self.context, spool_id)

    def settle(
        self, endpoint: Endpoint, spool_id: int, size: int, cause: int, reason: str = ""
    ) -> None:
        """Take a message out of an endpoint, for a cause of counters.py. All of it is noted, or nothing."""
        try:
            self.ledger.settle(endpoint.number, spool_id)
        except SpoolError as error:
            # No consumer gets it again while the router runs, but the store still has it.
            self.trouble(
                f"a message that has left {endpoint.name} in message VPN {endpoint.vpn.name} may come back with"
                f" the next start: {error}"
            )
        # Nothing below can raise, up to `_gone`.
        counters = endpoint.counters
        if cause == ACKED:
            counters.acked += 1
        elif cause == DISCARDED:
            counts = counters.discarded.counts
            counts[reason] = counts.get(reason, 0) + 1
        elif cause == MOVED:
            counters.moved += 1
        else:
            counters.deleted += 1
        endpoint.spooled_count -= 1
        endpoint.spooled_bytes -= size
        endpoint.vpn.spooled_bytes -= size
        self.usage -= size
        self._freed = True
        self.gone_from = endpoint
        self.gone_id = spool_id
        try:
            self._gone(endpoint, spool_id)
        except Exception as error:  # noqa: BLE001 - given to the barrier: the message is gone all the same
            self.context.barrier.caught(error, SPOOL, endpoint.name, endpoint.vpn.name, "goes on")

    def _gone(self, endpoint: Endpoint, spool_id: int) -> None:
        """Drop the body and the notes of a message that has left an endpoint."""
        message = self.bodies.kept.get(spool_id)
        if message is not None:
            message.holders -= 1
            if message.holders <= 0:
                self.bodies.drop(spool_id)
        if endpoint.redeliveries and endpoint.redeliveries.pop(spool_id, -1) > 0:
            self.ledger.delete(keys.redeliveries(endpoint.number, spool_id))
        if endpoint.watched is not None:
            endpoint.watched.lost(spool_id)
        if endpoint.when_empty is not None:
            endpoint.look_if_empty(endpoint.when_empty)
        if self.fault is not None:
            self.fault("endpoint-settled")

    def trouble(self, text: str) -> None:
        """Count and report a failure of the store with a single message."""
        self.store_failures += 1
        told = self.context.operator_warnings
        if len(told) < limits.TROUBLES:
            told.append(text)

    def unreadable(self, endpoint: Endpoint, spool_id: int, why: str) -> None:
        """A message of an endpoint cannot be read: it is looked at again in the next round, and told then."""
        ids = self._unread.setdefault(endpoint, ([], why))[0]
        ids.append(spool_id)

    def _set_aside(self) -> None:
        """Set aside what is damaged of the messages that could not be read, and tell the operator how many."""
        unread, self._unread = self._unread, {}
        for endpoint, (ids, why) in unread.items():
            where = f"of {endpoint.name} in message VPN {endpoint.vpn.name}"
            try:
                lost = endpoint.set_aside(ids)
            except Exception as error:  # noqa: BLE001 - given to the barrier: the others are looked at as well
                self.context.barrier.caught(
                    error, SPOOL, endpoint.name, endpoint.vpn.name, "goes on"
                )
                continue
            self.damaged += lost
            if lost:
                self.trouble(f"{lost:,} messages {where} are damaged and lost: {why}")
            left = endpoint.count_unreadable(ids)
            if left:
                self.trouble(
                    f"{left:,} messages {where} cannot be read, and are tried again with the next start: {why}"
                )

    def release(self, vpn: MessageVpn, size: int) -> None:
        """Give back `size` bytes that endpoints of `vpn` no longer use."""
        vpn.spooled_bytes -= size
        self.usage -= size
        self._freed = True

    def pending_bytes_of(self, endpoint: Endpoint) -> int:
        """Bytes of messages for an endpoint that are on their way into the synced spool. Looks at all."""
        found = self.unit.bytes_of(endpoint)
        return found if self.syncing is None else found + self.syncing.bytes_of(endpoint)

    def first_in_flight(self) -> int:
        """The lowest id that is not in the synced spool yet; the next one where all are."""
        if self.syncing is not None and self.syncing.ids:
            return self.syncing.ids[0]
        return self.unit.ids[0] if self.unit.ids else self.ledger.next_id

    def destinations_of(self, spool_id: int) -> list[Endpoint]:
        """The endpoints of a message that is on its way into the synced spool."""
        for unit in (self.unit, self.syncing):
            if unit is not None and spool_id in unit.ids:
                return unit.destinations[unit.ids.index(spool_id)]
        return []

    def request_mark(self, endpoint: Endpoint, spool_id: int) -> None:
        """Note in the store that messages of `endpoint` may have been delivered; it is woken when that is synced."""
        if endpoint.mark_requested >= spool_id:
            return
        # Ids that nobody has yet are not marked: after a restart they are new.
        upto = min(spool_id + AHEAD, self.ledger.next_id - 1)
        self._mark(endpoint, upto)

    def _mark(self, endpoint: Endpoint, spool_id: int) -> None:
        """Write a mark with the unit being built."""
        self.ledger.put(keys.mark(endpoint.number), keys.pack_id(spool_id))
        unit = self.unit
        unit.marks.append(endpoint)
        unit.marked.append(spool_id)
        endpoint.mark_requested = spool_id

    def _mark_ahead(self) -> None:
        """Mark messages that will be delivered as soon as they are synced, in the same unit."""
        unit = self.unit
        if not unit.ids:
            return
        last = unit.ids[-1]
        marked: dict[Endpoint, None] = {}
        before: list[Endpoint] | None = None
        for destinations in unit.destinations:
            if destinations is before:
                continue
            before = destinations
            for endpoint in destinations:
                if endpoint.flows and endpoint.durable and endpoint.mark_requested < last:
                    marked[endpoint] = None
        for endpoint in marked:
            self._mark(endpoint, last)

    # -- rounds ----------------------------------------------------------------------------------

    def end_round(self) -> Batch | None:
        """Deliver what can be delivered; return the batch to commit.

        None while one is being synced, or where there is nothing to commit.
        """
        barrier = self.context.barrier
        while self.later:
            self.later.pop().wake()
        self._deliver()
        if self._unread:
            self._set_aside()
        if self._purging.busy:
            try:
                why = self._purging.run(self.ledger, self.bodies, self.unit)
            except Exception as error:  # noqa: BLE001 - given to the barrier
                why = str(error)
                barrier.caught(error, SPOOL, "", "", "purging goes on")
            if why:
                self.trouble(f"a message that was purged may come back with the next start: {why}")
        if self._freed and self._hungry:
            hungry = self._hungry
            self._hungry = []
            self._freed = False
            for callback, token in hungry:
                try:
                    callback.on_outcome(token, SYNCED, "")
                except Exception as error:  # noqa: BLE001 - given to the barrier
                    barrier.of(callback.owning_connection(), error)
        if self._refused.callbacks:
            refused, self._refused = self._refused, UnitOfWork()
            try:
                refused.run_callbacks(barrier)
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier.caught(error, SPOOL, "", "", "told in the next round")
                self._refused.take_callbacks(refused)
        batch: Batch | None = None
        idle = self.syncing is None and self.finishing is None
        if idle and (self.ledger.pending or not self.unit.empty):
            batch = self._seal()
        if self._large and not self.crowded():
            self._let_in()
        return batch

    def _seal(self) -> Batch | None:
        """End the unit being built. If this raises, the unit stays as it is and is tried again a second later."""
        context = self.context
        ledger = self.ledger
        unit = self.unit
        fresh = UnitOfWork()
        if self._rests_ns and context.now_ns < self._rests_ns:
            return None
        batch: Batch | None = None
        try:
            self._mark_ahead()
            if not ledger.pending:
                self.unit = fresh
                unit.run_callbacks(context.barrier)
                self._deliver()
                return None
            batch = ledger.seal()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            fault = context.barrier.caught(error, SPOOL, "", "", "the unit is tried again")
            if self.unit is fresh:
                # There was nothing to write, and telling the receipts raised.
                fresh.take_callbacks(unit)
                return None
            # The unit may have been sealed before the exception.
            batch = ledger.sealed
            if batch is None:
                self._rests_ns = context.now_ns + RETRY_NS
                self.down = refusals.SERVICE_UNAVAILABLE
                self.trouble(
                    f"fault {fault}: guaranteed messages are refused until a unit can be written"
                )
                return None
        for mended in ledger.faults:
            context.barrier.caught(mended, SPOOL, "", "", "made good")
        ledger.faults.clear()
        self.unit = fresh
        self.syncing = unit
        self.sealed = batch
        ledger.sealed = None
        if self.fault is not None and any(key[:1] == keys.BODIES for key in batch.deletes):
            self.fault("segment-deleted")
        return batch

    def _deliver(self) -> None:
        """Deliver until this round has done enough; the rest in the next one."""
        context = self.context
        context.work = 0
        while self.dirty and context.work <= limits.TURN_WORK:
            endpoint = self.dirty.pop(0)
            context.work += DISPATCH_WORK
            try:
                endpoint.dispatch()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                self._undelivered(endpoint, error)

    def _undelivered(self, endpoint: Endpoint, error: Exception) -> None:
        """Close the flow whose delivery raised; the other flows go on."""
        flow, self.failing = self.failing, None
        endpoint.dirty = False
        context = self.context
        owning_connection = None if flow is None else flow.owning_connection()
        context.barrier.of(owning_connection, error)
        if owning_connection is None:
            context.timers.arm(context.now_ns + RETRY_NS, endpoint, 0)
        else:
            self.later.append(endpoint)

    def committed(self, most: int = EVERYTHING) -> None:
        """Finish the unit that `end_round` returned: it is synced. Only `most` steps of it are done now.

        Call again while `unfinished`, also after an exception: each step is done once. Until then no unit is sealed.
        """
        unit = self.finishing
        if unit is None:
            unit = self.syncing
            if unit is None:
                raise AssertionError("nothing was being synced")
            self.finishing = unit
        self.down = ""
        self.sealed = None
        while unit.marks:
            endpoint = unit.marks.pop()
            endpoint.mark = max(endpoint.mark, unit.marked.pop())
            endpoint.wake()
        end = min(len(unit.ids), unit.arrived + most)
        most -= end - unit.arrived
        while unit.arrived < end:
            self._arrived(unit, unit.arrived)
            unit.arrived += 1
            unit.placed = 0
        if end == len(unit.ids):
            self.syncing = None
            unit.run_callbacks(self.context.barrier, unit.answered + most)
            if unit.answered == len(unit.callbacks):
                self.finishing = None
        self._deliver()

    @property
    def unfinished(self) -> bool:
        """True when `committed` has not yet done everything."""
        return self.finishing is not None

    def _arrived(self, unit: UnitOfWork, index: int) -> None:
        barrier = self.context.barrier
        spool_id = unit.ids[index]
        message = unit.messages[index]
        destinations = unit.destinations[index]
        if unit.placed == 0:
            try:
                self.bodies.keep(spool_id, message)
            except Exception as error:  # noqa: BLE001 - given to the barrier: it can be read from the store
                barrier.caught(error, SPOOL, "", "", "goes on")
        while unit.placed < len(destinations):
            endpoint = destinations[unit.placed]
            unit.placed += 1
            endpoint.pending -= 1
            try:
                endpoint.arrive(spool_id, message)
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier.caught(error, SPOOL, endpoint.name, endpoint.vpn.name, "goes on")
                endpoint.mend(spool_id, message)
                endpoint.wake()

    def failed(self, reason: str) -> None:
        """The commit failed and is tried again: until it succeeds, nothing more is taken."""
        now_ns = self.context.now_ns
        if not self.down:
            self._delayed_ns = now_ns
        self.down = refusals.SERVICE_UNAVAILABLE
        self._let_in()
        if now_ns - self._delayed_ns >= limits.SPOOL_DELAY_S * SECOND_NS:
            self._delayed_ns = now_ns
            why = f"the message spool cannot be written, and whether it has what is not answered is open: {reason}"
            waiting = [] if self.syncing is None else self.syncing.callbacks
            for callback in dict.fromkeys(waiting + self.unit.callbacks):
                self.context.jobs.add(DelayNotice(callback, why))

    # -- endpoints -------------------------------------------------------------------------------

    def number(self) -> int:
        """A new endpoint number, like none before it in this store."""
        number = self._next_number
        self._next_number = number + 1
        self.ledger.put(keys.endpoint(0), self._next_number.to_bytes(4, "big"))
        return number

    def start_numbers(self, number: int) -> None:
        """New endpoints are numbered from here on, as the store knows already."""
        self._next_number = number

    def purge(self, endpoint: Endpoint, waiting: WaitingList) -> None:
        """Delete waiting messages, some of them each round; they have left their endpoint."""
        self._purging.add(endpoint.number, waiting)

    def purge_number(self, number: int, waiting: WaitingList) -> None:
        """Delete waiting messages, some of them each round, where only the number of their endpoint is left."""
        self._purging.add(number, waiting)

    def when_purged(self, callback: CompletionCallback, token: int) -> None:
        """Call `callback` with SYNCED when all that was purged up to now has left the store."""
        self._purging.call_when_done(callback, token)

    @property
    def busy(self) -> bool:
        """Return whether the next round has work even without new input."""
        idle = self.syncing is None and self.finishing is None
        if idle and (self.ledger.pending or not self.unit.empty):
            return True
        work = (
            self.dirty
            or self.later
            or self._purging.busy
            or self._refused.callbacks
            or self._unread
        )
        return bool(work or (self._freed and self._hungry))


def spool_of(context: RouterContext) -> Spool | None:
    """The message spool of a router, None where guaranteed messaging is off."""
    return cast("Spool | None", context.spool)
