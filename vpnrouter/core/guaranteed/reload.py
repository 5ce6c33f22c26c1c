"""Changed attributes of an endpoint that goes on, with its messages and its consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed import expiry
from vpnrouter.core.guaranteed.binding import unbind_all, unbind_forbidden
from vpnrouter.core.guaranteed.dispatch import next_active
from vpnrouter.core.guaranteed.operations import keep_newest
from vpnrouter.core.guaranteed.partitions import Partitions, lane_of
from vpnrouter.core.guaranteed.unreadable import readable
from vpnrouter.core.guaranteed.waiting import Waiting

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.terms import EndpointTerms

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
                expiry.note(endpoint, message_id, message)
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
