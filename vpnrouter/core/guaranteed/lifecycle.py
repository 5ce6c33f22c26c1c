"""What becomes of a message while it waits in an endpoint: delay, expiry, redelivery, and the dead message queue.

Deliverable marks: up to which id an endpoint's messages may have been delivered before a crash.

A message is delivered only when that is written down, so that after a crash it is known to be perhaps a
second time.

Life times of messages in an endpoint: the message's own, and the endpoint's `max_ttl`.

A message's own time stands in seconds' buckets. `max_ttl` counts from the arrival, and ids rise with it:
it is enough to look at the oldest, which costs no memory and survives a restart.

Messages that wait for a time: `delivery_delay` after their arrival, and before they are tried again.

The first kind is due in the order of ids, so that only the oldest is looked at; what is left of the
delay survives a restart, since it counts from the arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from vpnrouter.core.guaranteed.counters import DISCARDED, MOVED, holds, pools, take_out
from vpnrouter.core.guaranteed.traces import trace_at, trace_lost_at, trace_replaced
from vpnrouter.core.guaranteed.waiting import Waiting
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.trace.events import DEAD_LETTER, DISCARD, EXPIRE
from vpnrouter.wire.mqtt.fields import read_string
from vpnrouter.wire.mqtt.properties import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    RESPONSE_TOPIC,
    USER_PROPERTY,
    read_number,
    rule_for,
    with_user_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from array import array

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Unit
    from vpnrouter.core.message import Message
    from vpnrouter.spool.ledger import Ledger


AHEAD: Final = 100_000
"""Ids by which a mark is written ahead of a delivery, so that a backlog drains without waiting often."""


def mark(ledger: Ledger, unit: Unit, endpoint: Endpoint, spool_id: int) -> None:
    """Write a mark with the unit being built."""
    ledger.put(keys.mark(endpoint.number), keys.pack_id(spool_id))
    unit.marks.append(endpoint)
    unit.marked.append(spool_id)
    endpoint.mark_wanted = spool_id


def mark_ahead(ledger: Ledger, unit: Unit) -> None:
    """Messages that will be delivered as soon as they are synced: the mark goes with them."""
    if not unit.ids:
        return
    last = unit.ids[-1]
    marked: dict[Endpoint, None] = {}
    before: list[Endpoint] | None = None
    for takers in unit.takers:
        if takers is before:
            continue
        before = takers
        for endpoint in takers:
            if endpoint.flows and endpoint.durable and endpoint.mark_wanted < last:
                marked[endpoint] = None
    for endpoint in marked:
        mark(ledger, unit, endpoint, last)


YEAR_NS: Final = 365 * 24 * 3600 * 1_000_000_000


def readable(endpoint: Endpoint, message_id: int) -> Message | None:
    """The message, which no longer waits or is about to; None when it cannot be read.

    Such a one stays in the store, counts as there, and is tried again after the next start; the edge tells
    what is in `plane.troubles`.
    """
    try:
        return endpoint.spool.message(message_id)
    except SpoolError as error:
        tell(endpoint, error)
        endpoint.delayed.add(message_id, endpoint.vpn.plane.now_ns + 100 * YEAR_NS)
        return None


def size_in_store(endpoint: Endpoint, message_id: int) -> int:
    """The bytes that a message counts for, even if it cannot be read; 0 where its size is lost as well."""
    try:
        return endpoint.spool.message(message_id).size
    except SpoolError as error:
        tell(endpoint, error)
    try:
        return endpoint.spool.ledger.size(message_id)
    except SpoolError:
        return 0


def tell(endpoint: Endpoint, error: SpoolError) -> None:
    """Count a message of the endpoint that cannot be read, and tell the operator."""
    text = (
        f"a message of {endpoint.name} in message VPN {endpoint.vpn.name} cannot be read: {error}"
    )
    endpoint.spool.trouble(text)


REASON_PROPERTY: Final = "dead-letter-reason"
"""Why the message is a dead letter."""

SOURCE_PROPERTY: Final = "dead-letter-queue"
"""Where it was; one for each endpoint that gave it up, oldest first."""

_BEGIN: Final = b"dead-letter-"


def sources(block: bytes) -> list[str]:
    """The endpoints that gave a message up before; `block` are its properties."""
    found: list[str] = []
    if _BEGIN in block:
        _split(block, found)
    return found


def addressed(block: bytes, reason: str, source: str) -> bytes:
    """The properties of a message that `source` gives up for `reason`."""
    before: list[str] = []
    if _BEGIN in block:
        block = _split(block, before)
    pairs = [(REASON_PROPERTY, reason)]
    pairs += [(SOURCE_PROPERTY, name) for name in before if name != source]
    pairs.append((SOURCE_PROPERTY, source))
    return with_user_properties(block, pairs)


def _split(block: bytes, found: list[str]) -> bytes:
    """`block` without what this file adds; the endpoints go to `found`."""
    parts: list[bytes] = []
    pos = 0
    end = len(block)
    while pos < end:
        begin = pos
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            text, pos = read_string(block, pos, end)
            if name == SOURCE_PROPERTY:
                found.append(text)
                continue
            if name == REASON_PROPERTY:
                continue
        elif identifier in (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA):
            # Two bytes of length, and the bytes.
            pos += 2 + int.from_bytes(block[pos : pos + 2], "big")
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
        parts.append(block[begin:pos])
    return b"".join(parts)


REJECTED: Final = "rejected"
EXPIRED: Final = "max-ttl-expired"
REDELIVERED: Final = "max-redelivery-exceeded"


def dead_letter(endpoint: Endpoint, message_id: int, message: Message, reason: str) -> None:
    """Move a message to the dead message queue, in one unit with its leaving here; else discard it.

    It goes to no queue that gave it up before: two queues that name each other must not play ball.
    """
    counters = endpoint.counters
    traced = message.traced
    if traced and reason == EXPIRED:
        trace_at(endpoint, EXPIRE, message_id, message, reason)
    if message.dmq_eligible or not endpoint.terms.respect_dmq_eligible_enabled:
        queue = cast("Endpoint | None", endpoint.vpn.queue(endpoint.terms.dead_msg_queue))
        if queue is not None and queue is not endpoint and queue.name not in sources(message.block):
            copy = message.copy()
            copy.expires_ns = 0
            # It arrives anew: the queue's own life time begins now.
            copy.ingress_ns = 0
            copy.block = addressed(message.block, reason, endpoint.name)
            if not endpoint.spool.place(queue, copy, even_down=True):
                counters.to_dmq[reason] = counters.to_dmq.get(reason, 0) + 1
                endpoint.forget(message_id, message.size, MOVED)
                if traced:
                    trace_at(endpoint, DEAD_LETTER, message_id, message, reason)
                return
            counters.to_dmq_failed[reason] = counters.to_dmq_failed.get(reason, 0) + 1
    endpoint.forget(message_id, message.size, DISCARDED, reason)
    trace_lost_at(endpoint, DISCARD, message_id, message, reason)


SECOND_NS: Final = 1_000_000_000

PRIORITIES: Final = 10
"""0 to 9."""

EXPIRIES_AT_ONCE: Final = 2_000
"""Messages that expire, or whose delay ends, in one go; the rest in the next round."""

SWEEP: Final = 1_024
"""Settled messages among those with a life time that are not worth a sweep."""


def expires_ns(endpoint: Endpoint, message: Message) -> int:
    """When the message expires here (monotonic): the earlier of its own time and `max_ttl`; 0 for never."""
    terms = endpoint.terms
    if not terms.respect_ttl_enabled:
        return 0
    end_ns = message.expires_ns
    if terms.max_ttl:
        plane = endpoint.vpn.plane
        latest_ns = message.ingress_ns - plane.steady_ns + plane.now_ns + terms.max_ttl * SECOND_NS
        end_ns = min(end_ns, latest_ns) if end_ns else latest_ns
        # Only 0 is never.
        return end_ns or 1
    return end_ns


def expired(endpoint: Endpoint, message: Message) -> bool:
    """True when its time is over."""
    end_ns = expires_ns(endpoint, message)
    return end_ns != 0 and end_ns <= endpoint.vpn.plane.now_ns


def note_expiry(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """Note when a message that has arrived expires, where life times are respected."""
    if message.expires_ns:
        expiring = endpoint.expiring
        expiring.add(message_id, message.expires_ns)
        endpoint.arm()
        if expiring.count > SWEEP + 2 * endpoint.spooled_count:
            _sweep(endpoint)
    if endpoint.terms.max_ttl and endpoint.oldest_due_ns == 0:
        endpoint.oldest_due_ns = (
            endpoint.vpn.plane.now_ns + (endpoint.terms.max_ttl + 1) * SECOND_NS
        )
        endpoint.arm()


def run_expiry(endpoint: Endpoint, now_ns: int) -> None:
    """Let expire what is over; a bounded number now, the rest in the next round."""
    left = EXPIRIES_AT_ONCE
    for message_id in endpoint.expiring.due(now_ns, EXPIRIES_AT_ONCE):
        left -= 1
        if take_out(endpoint, message_id):
            message = readable(endpoint, message_id)
            if message is not None:
                _expire(endpoint, message_id, message)
    if 0 < endpoint.oldest_due_ns <= now_ns:
        endpoint.oldest_due_ns = 0
        if endpoint.terms.respect_ttl_enabled and endpoint.terms.max_ttl:
            _oldest(endpoint, now_ns, left)


def _expire(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """Let a message that was taken out expire. If this raises, it is put back and tried again."""
    try:
        endpoint.expire(message_id, message)
    except Exception:
        endpoint.mend(message_id, message)
        endpoint.expiring.add(message_id, endpoint.vpn.plane.now_ns)
        raise


def _oldest(endpoint: Endpoint, now_ns: int, left: int) -> None:
    """Let the oldest messages expire, and find out when the next of them will."""
    first_ns = 0
    for pool in pools(endpoint):
        for priority in range(PRIORITIES):
            while True:
                ids = pool.of_priority(priority, 0, 1)
                if not ids:
                    break
                message_id = ids[0]
                message = readable(endpoint, message_id)
                if message is None:
                    left -= 1
                    pool.remove(message_id)
                    if left > 0:
                        continue
                    first_ns = now_ns + 1
                    break
                end_ns = expires_ns(endpoint, message)
                if end_ns > now_ns or left <= 0:
                    first_ns = min(first_ns, end_ns) if first_ns else end_ns
                    break
                left -= 1
                pool.remove(message_id)
                _expire(endpoint, message_id, message)
    if first_ns:
        # Whole seconds, so that a stream of messages costs one look a second.
        endpoint.oldest_due_ns = max(-(-first_ns // SECOND_NS) * SECOND_NS, now_ns + 1)
    elif endpoint.spooled_count:
        # Flows hold the rest: those that come back are looked at then.
        endpoint.oldest_due_ns = now_ns + endpoint.terms.max_ttl * SECOND_NS


def _sweep(endpoint: Endpoint) -> None:
    """Forget the life times of messages that are settled."""
    expiring = endpoint.expiring
    for second, ids in expiring.take_all().items():
        for message_id in ids:
            if holds(endpoint, message_id):
                expiring.add(message_id, second * SECOND_NS)


def hold(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """Keep a message back that has just arrived."""
    held = endpoint.held
    if held is None:
        held = Waiting()
        endpoint.held = held
    held.add(message_id, 0)
    if endpoint.held_due_ns == 0:
        endpoint.held_due_ns = _due(endpoint, message)
        endpoint.arm()


def hold_recovered(endpoint: Endpoint, ids: array[int]) -> None:
    """Keep messages back that were here before a restart; those whose delay is over leave in rounds."""
    held = endpoint.held
    if held is None:
        held = Waiting()
        endpoint.held = held
    held.extend(ids, 0)
    endpoint.held_due_ns = endpoint.vpn.plane.now_ns + 1


def run_delay(endpoint: Endpoint, now_ns: int) -> None:
    """Let messages go whose delay is over; a bounded number now, the rest in the next round."""
    for message_id in endpoint.delayed.due(now_ns, EXPIRIES_AT_ONCE):
        message = readable(endpoint, message_id)
        if message is not None:
            endpoint.ready(message_id, message)
    held = endpoint.held
    if held is None or endpoint.held_due_ns == 0 or endpoint.held_due_ns > now_ns:
        return
    endpoint.held_due_ns = 0
    left = EXPIRIES_AT_ONCE
    while held.count:
        if left == 0:
            endpoint.held_due_ns = now_ns + 1
            return
        left -= 1
        message_id = held.first()
        message = readable(endpoint, message_id)
        if message is None:
            held.pop()
            continue
        due_ns = _due(endpoint, message)
        if due_ns > now_ns:
            endpoint.held_due_ns = due_ns
            return
        held.pop()
        endpoint.ready(message_id, message)
    endpoint.held = None


def _due(endpoint: Endpoint, message: Message) -> int:
    """When the delivery delay of a message is over (monotonic)."""
    plane = endpoint.vpn.plane
    arrived_ns = message.ingress_ns - plane.steady_ns + plane.now_ns
    return max(1, arrived_ns + endpoint.terms.delivery_delay * SECOND_NS)


MILLISECOND_NS: Final = 1_000_000

MOST: Final = 0xFFFF
"""What a stored redelivery count can say."""

UNCOUNTED: Final = -1
"""A redelivery count that says: delivered before, or perhaps, and that does not count."""

LAST_VALUE: Final = "last-value"


def failed(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """A consumer could not take the message, or went while it had it: count, and try again or give up."""
    terms = endpoint.terms
    count = min(max(endpoint.redeliveries.get(message_id, 0), 0) + 1, MOST)
    if not terms.redelivery_enabled or 0 < terms.max_redelivery_count < count:
        dead_letter(endpoint, message_id, message, REDELIVERED)
        return
    endpoint.redeliveries[message_id] = count
    endpoint.spool.ledger.put(
        keys.redeliveries(endpoint.number, message_id), count.to_bytes(2, "big")
    )
    delay_ms = 0.0
    if terms.redelivery_delay_enabled:
        growth = (terms.redelivery_delay_multiplier / 100) ** min(count - 1, 64)
        delay_ms = min(
            terms.redelivery_delay_initial_interval * growth, terms.redelivery_delay_max_interval
        )
    again(endpoint, message_id, message, int(delay_ms * MILLISECOND_NS))


def again(endpoint: Endpoint, message_id: int, message: Message, delay_ns: int) -> None:
    """Deliver the message once more, after a delay."""
    if message_id < endpoint.newest and endpoint.terms.last_value:
        endpoint.forget(message_id, message.size, DISCARDED, LAST_VALUE)
        trace_replaced(endpoint, LAST_VALUE, 1)
        return
    if message_id not in endpoint.redeliveries:
        endpoint.redeliveries[message_id] = UNCOUNTED
    if expired(endpoint, message):
        endpoint.expire(message_id, message)
    elif delay_ns:
        endpoint.delayed.add(message_id, endpoint.vpn.plane.now_ns + delay_ns)
        endpoint.arm()
    else:
        endpoint.ready(message_id, message)
