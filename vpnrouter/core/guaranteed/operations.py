"""What management does with an endpoint: look at messages, copy, move and delete them, and change attributes.

Each is one step between two rounds, and lands in the store with the unit being built.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed import lifecycle
from vpnrouter.core.guaranteed.counters import DELETED, MOVED, pools, take_out, waits
from vpnrouter.core.guaranteed.dispatch import next_active, unbind_all, unbind_forbidden
from vpnrouter.core.guaranteed.flow import Partitions, lane_of
from vpnrouter.core.guaranteed.lifecycle import readable
from vpnrouter.core.guaranteed.terms import QUEUE
from vpnrouter.core.guaranteed.traces import trace_replaced
from vpnrouter.core.guaranteed.waiting import Waiting
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Receipt, Unit
    from vpnrouter.core.guaranteed.stored import Bodies
    from vpnrouter.core.guaranteed.terms import EndpointTerms
    from vpnrouter.core.message import Message
    from vpnrouter.spool.ledger import Ledger


ROUND: Final = 20_000
"""Messages that leave the store in one round."""

SYNCED: Final = 4
"""What Purging asks of `Spool.when_synced`."""


@final
class Purging:
    """Ids that are to leave, by endpoint number, and those who are told when they have."""

    __slots__ = ("_doomed", "_receipts", "_tokens")

    def __init__(self) -> None:
        self._doomed: list[tuple[int, Waiting]] = []
        self._receipts: list[Receipt] = []
        self._tokens: list[int] = []

    @property
    def busy(self) -> bool:
        """True while there is something left to do."""
        return bool(self._doomed or self._receipts)

    def add(self, number: int, waiting: Waiting) -> None:
        """Let all of these go."""
        self._doomed.append((number, waiting))

    def tell(self, receipt: Receipt, token: int) -> None:
        """Tell `receipt` when all that is here now has left."""
        self._receipts.append(receipt)
        self._tokens.append(token)

    def run(self, ledger: Ledger, bodies: Bodies, unit: Unit) -> str:
        """Delete some messages, in the unit being built. Returns why one of them stays in the store, "" normally."""
        left = ROUND
        trouble = ""
        while self._doomed and left:
            number, waiting = self._doomed[-1]
            while waiting.count and left:
                left -= 1
                spool_id = waiting.pop()
                try:
                    ledger.settle(number, spool_id)
                except SpoolError as error:
                    trouble = str(error)
                bodies.drop(spool_id)
            if not waiting.count:
                self._doomed.pop()
        if not self._doomed:
            for index in range(len(self._receipts)):
                unit.tell(self._receipts[index], self._tokens[index], SYNCED, "")
            self._receipts = []
            self._tokens = []
        return trouble


NOT_FOUND: Final = "400 Message Not Found"
IN_HAND: Final = "400 Message Is Delivered And Not Acknowledged"

LAST_VALUE: Final = "last-value"


@final
class Row:
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
        plane = endpoint.vpn.plane
        self.msg_id = msg_id
        self.message = message
        self.topic = message.topic
        self.size = message.size
        self.priority = message.priority
        self.dmq_eligible = message.dmq_eligible
        self.spooled_time_ns = message.ingress_ns
        self.expiry_time_ns = 0
        terms = endpoint.terms
        if message.expires_ns:
            self.expiry_time_ns = message.expires_ns - plane.now_ns + plane.steady_ns
        if terms.respect_ttl_enabled and terms.max_ttl:
            latest_ns = message.ingress_ns + terms.max_ttl * 1_000_000_000
            self.expiry_time_ns = min(self.expiry_time_ns or latest_ns, latest_ns)
        self.redelivery_count = max(0, endpoint.redeliveries.get(msg_id, 0))
        self.undelivered = not in_hand
        self.partition = lane_of(msg_id, message, len(endpoint.waiting))


def browse(endpoint: Endpoint, after_id: int, count: int) -> list[Row]:
    """At most `count` messages beyond `after_id`, by id: those that wait and those that consumers have.

    Nothing changes. Raises SpoolError when the store cannot be read.
    """
    in_hand: dict[int, Message] = {}
    for flow in endpoint.flows:
        in_hand.update(flow.unacked)
    ids = [number for number in in_hand if number > after_id]
    ids += [number for number in endpoint.delayed.ids() if number > after_id]
    for pool in pools(endpoint):
        ids += pool.after(after_id, count)
    ids.sort()
    rows: list[Row] = []
    for number in ids[:count]:
        message = in_hand.get(number)
        held = message is not None
        if message is None:
            message = endpoint.spool.message(number)
        rows.append(Row(endpoint, number, message, held))
    return rows


def find(endpoint: Endpoint, message_id: int) -> Message | None:
    """One message, wherever in the endpoint it is; None when it is not there."""
    for flow in endpoint.flows:
        message = flow.unacked.get(message_id)
        if message is not None:
            return message
    return endpoint.spool.message(message_id) if waits(endpoint, message_id) else None


def copy(endpoint: Endpoint, message_id: int, target: Endpoint) -> str:
    """Put a copy of a message into another endpoint; "" or why that cannot be (the field's strings)."""
    message = find(endpoint, message_id)
    if message is None:
        return NOT_FOUND
    return _place(message, target)


def move(endpoint: Endpoint, message_id: int, target: Endpoint) -> str:
    """Put a message into another endpoint instead, in one unit; "" or why that cannot be.

    Not one that a consumer has.
    """
    if not waits(endpoint, message_id):
        return NOT_FOUND if find(endpoint, message_id) is None else IN_HAND
    message = endpoint.spool.message(message_id)
    reason = _place(message, target)
    if reason:
        return reason
    take_out(endpoint, message_id)
    endpoint.forget(message_id, message.size, MOVED)
    endpoint.wake()
    return ""


def delete_message(endpoint: Endpoint, message_id: int) -> str:
    """Delete one message; "" or why that cannot be. Not one that a consumer has."""
    if not take_out(endpoint, message_id):
        return NOT_FOUND if find(endpoint, message_id) is None else IN_HAND
    endpoint.lose(message_id, DELETED)
    endpoint.wake()
    return ""


def purge(endpoint: Endpoint) -> int:
    """Delete all messages that wait, but not those that consumers have; returns how many.

    They are no longer the endpoint's at once and leave the store in the rounds to come
    (`Spool.when_purged` tells when that is synced); a crash before that brings the rest back.
    """
    spool = endpoint.spool
    if endpoint.watched is not None:
        endpoint.watched.purged(endpoint)
    kept_bytes = 0
    kept_count = 0
    for flow in endpoint.flows:
        for message in flow.unacked.values():
            kept_count += 1
            kept_bytes += message.size
    kept_count += endpoint.pending
    kept_bytes += spool.pending_bytes_of(endpoint)
    count = endpoint.spooled_count - kept_count
    size = endpoint.spooled_bytes - kept_bytes
    delayed = Waiting()
    delayed.extend(array("Q", endpoint.delayed.ids()), 0)
    for pool in [*pools(endpoint), delayed]:
        if pool.count:
            spool.purge(endpoint, pool)
    _empty(endpoint)
    _forget_redeliveries(endpoint)
    endpoint.counters.deleted += count
    endpoint.spooled_count = kept_count
    endpoint.spooled_bytes = kept_bytes
    spool.release(endpoint.vpn, size)
    endpoint.wake()
    return count


def _empty(endpoint: Endpoint) -> None:
    endpoint.waiting = [Waiting() for _ in endpoint.waiting]
    endpoint.unsorted = []
    endpoint.held = None
    endpoint.held_due_ns = 0
    if endpoint.ahead is not None:
        endpoint.ahead = Waiting()
    endpoint.delayed.clear()
    endpoint.expiring.take_all()


def _forget_redeliveries(endpoint: Endpoint) -> None:
    held: set[int] = set()
    for flow in endpoint.flows:
        held.update(flow.unacked)
    ledger = endpoint.spool.ledger
    kept: dict[int, int] = {}
    for message_id, count in endpoint.redeliveries.items():
        if message_id in held:
            kept[message_id] = count
        elif count > 0:
            ledger.delete(keys.redeliveries(endpoint.number, message_id))
    endpoint.redeliveries = kept


def keep_newest(endpoint: Endpoint) -> None:
    """The endpoint is a last value queue from now on: of what waits only the newest stays."""
    unreadable: set[int] = set()
    message = None
    while message is None:
        newest = 0
        for pool in pools(endpoint):
            newest = max(newest, pool.last())
        for number in endpoint.delayed.ids():
            if number not in unreadable:
                newest = max(newest, number)
        if not newest:
            return
        take_out(endpoint, newest)
        message = readable(endpoint, newest)
        if message is None:
            # It goes with the rest: the newest message that can be read is kept.
            unreadable.add(newest)
    size = message.size
    # Purge counts by what is left over: the newest is put aside for that time.
    endpoint.spooled_count -= 1
    endpoint.spooled_bytes -= size
    count = purge(endpoint)
    endpoint.counters.deleted -= count
    endpoint.counters.discarded.add(LAST_VALUE, count)
    trace_replaced(endpoint, LAST_VALUE, count)
    endpoint.spooled_count += 1
    endpoint.spooled_bytes += size
    endpoint.newest = newest
    endpoint.ready(newest, message)


def delete(endpoint: Endpoint, reason: str) -> int:
    """Delete an endpoint with all that it holds; its flows are told `reason`. Returns how many messages.

    Its subscriptions go, and its definition in the store. Its number never comes back.
    """
    if endpoint.deleted:
        return 0
    vpn = endpoint.vpn
    if endpoint.replay is not None:
        endpoint.replay.cancel()
    unbind_all(endpoint, reason)
    count = purge(endpoint)
    endpoint.deleted = True
    if endpoint.partitions is not None:
        endpoint.partitions.stop()
    endpoint.disarm()
    vpn.drop(endpoint)
    place = (endpoint.kind, endpoint.name)
    if vpn.endpoints.get(place) is endpoint:
        del vpn.endpoints[place]
    if endpoint.kind == QUEUE:
        vpn.forget_all_routes()
    ledger = endpoint.spool.ledger
    ledger.delete(keys.endpoint(endpoint.number))
    ledger.delete(keys.mark(endpoint.number))
    ledger.delete(keys.sheet_endpoint(endpoint.number))
    return count


def _place(message: Message, target: Endpoint) -> str:
    twin = message.copy()
    twin.ingress_ns = 0
    return target.spool.place(target, twin)


SORTED: Final = 5_000
"""Messages that are sorted into other partitions or priorities in one round; nothing is delivered until
all are."""


def take_terms(endpoint: Endpoint, terms: EndpointTerms) -> None:
    """Go on under other attributes.

    Where egress is disabled all flows are unbound, where the permission is less those that may not consume any
    more. Where partitions, priorities or life times change, what waits is sorted again; nothing is delivered
    meanwhile, so that the order holds. A smaller quota keeps what is there; a last value queue keeps the newest.
    New life times and delays hold for messages that are here already.
    """
    before = endpoint.terms
    endpoint.terms = terms
    if before.egress_enabled and not terms.egress_enabled:
        unbind_all(endpoint, endpoint.shutdown_reason())
    if before.permission != terms.permission or before.owner != terms.owner:
        unbind_forbidden(endpoint)
    if (
        _lanes(before) != _lanes(terms)
        or before.respect_msg_priority_enabled != terms.respect_msg_priority_enabled
        or (terms.respect_ttl_enabled and not before.respect_ttl_enabled)
    ):
        _unsort(endpoint, _lanes(terms))
    if before.exclusive != terms.exclusive:
        _change_access(endpoint)
    elif endpoint.partitions is not None:
        endpoint.partitions.changed()
    if terms.last_value and not before.last_value:
        keep_newest(endpoint)
    _life_times(endpoint, before)
    if endpoint.held is not None and before.delivery_delay != terms.delivery_delay:
        endpoint.held_due_ns = endpoint.vpn.plane.now_ns + 1
    endpoint.arm()
    endpoint.wake()


def _lanes(terms: EndpointTerms) -> int:
    return terms.partition_count if terms.partitioned else 1


def _unsort(endpoint: Endpoint, lanes: int) -> None:
    """Everything that waits is to be sorted again, into so many lanes."""
    for pool in endpoint.waiting:
        if pool.count:
            endpoint.unsorted.append(pool)
    endpoint.waiting = [Waiting() for _ in range(lanes)]
    if endpoint.partitions is not None:
        endpoint.partitions.stop()
        endpoint.partitions = None
    if endpoint.terms.partitioned:
        endpoint.partitions = Partitions(endpoint, lanes)
        endpoint.partitions.changed()
    for flow in endpoint.flows:
        if flow.selector is not None:
            flow.start_over()


def sort_some(endpoint: Endpoint) -> None:
    """Sort a bounded number of messages; the rest in the next rounds."""
    left = SORTED
    lanes = len(endpoint.waiting)
    ttl = endpoint.terms.respect_ttl_enabled
    plain = lanes == 1 and not ttl and not endpoint.terms.respect_msg_priority_enabled
    while endpoint.unsorted and left:
        pool = endpoint.unsorted[-1]
        while pool.count and left:
            left -= 1
            message_id = pool.pop()
            if plain:
                endpoint.waiting[0].add(message_id, 0)
                continue
            message = readable(endpoint, message_id)
            if message is None:
                continue
            lane = 0 if lanes == 1 else lane_of(message_id, message, lanes)
            endpoint.waiting[lane].add(message_id, endpoint.level_of(message))
            if ttl:
                lifecycle.note_expiry(endpoint, message_id, message)
        if not pool.count:
            endpoint.unsorted.pop()
    if endpoint.unsorted:
        endpoint.spool.later.append(endpoint)


def _change_access(endpoint: Endpoint) -> None:
    """Exclusive or not: who is active."""
    if endpoint.terms.exclusive:
        for flow in endpoint.flows[1:]:
            flow.active = True
        next_active(endpoint)
        return
    for flow in endpoint.flows:
        if not flow.active:
            flow.active = True
            flow.activated(True)


def _life_times(endpoint: Endpoint, before: EndpointTerms) -> None:
    terms = endpoint.terms
    now_ns = endpoint.vpn.plane.now_ns
    if not terms.respect_ttl_enabled:
        endpoint.oldest_due_ns = 0
        endpoint.expiring.take_all()
        return
    if terms.max_ttl and (terms.max_ttl != before.max_ttl or not before.respect_ttl_enabled):
        endpoint.oldest_due_ns = now_ns + 1
