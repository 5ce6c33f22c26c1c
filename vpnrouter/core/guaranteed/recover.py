"""What a start finds in the spool, given back to the endpoints."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.endpoint import UNCOUNTED
from vpnrouter.core.guaranteed.message_record import from_record
from vpnrouter.core.guaranteed.waiting_list import WaitingList
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.spool.recovery import Recovered
    from vpnrouter.spool.store import Store


def recover(spool: Spool, store: Store, endpoints: dict[int, Endpoint]) -> int:
    """Give the endpoints (by number) their messages from the store; returns how many in all.

    Messages of unknown endpoints leave the store in later rounds. Raises SpoolError for what cannot be read.
    """
    ledger = spool.ledger
    last = ledger.next_id - 1
    count = 0
    ownerless: dict[int, WaitingList] = {}
    for portion in ledger.recover():
        endpoint = endpoints.get(portion.endpoint)
        if endpoint is None:
            ownerless.setdefault(portion.endpoint, WaitingList()).extend(portion.ids, 0)
            continue
        count += len(portion.ids)
        if spool.fault is not None:
            spool.fault("recover-during")
        _hand_over(endpoint, portion)
    for number, waiting in ownerless.items():
        spool.purge_number(number, waiting)
    for key, value in store.scan(keys.MARK):
        endpoint = endpoints.get(keys.endpoint_of(key))
        if endpoint is None:
            ledger.delete(key)
        else:
            # The mark was written ahead; ids beyond the last one given out are new.
            endpoint.marked = min(keys.unpack_id(value), last)
            endpoint.mark = endpoint.marked
            endpoint.mark_requested = endpoint.marked
    for key, value in store.scan(keys.REDELIVERIES):
        endpoint = endpoints.get(keys.endpoint_of(key))
        if endpoint is None:
            ledger.delete(key)
        else:
            endpoint.redeliveries[keys.second_of(key)] = int.from_bytes(value, "big") or UNCOUNTED
    return count


def _hand_over(endpoint: Endpoint, portion: Recovered) -> None:
    context = endpoint.vpn.context
    ids = portion.ids
    size = sum(portion.sizes)
    endpoint.vpn.spooled_bytes += size
    endpoint.spool.usage += size
    expires: list[tuple[int, int]] = []
    if endpoint.settings.respect_ttl_enabled and any(portion.expires):
        for message_id, wall_ns in zip(ids, portion.expires, strict=True):
            if wall_ns:
                expires.append((message_id, wall_ns - context.steady_ns + context.now_ns))
    by_priority = endpoint.settings.respect_msg_priority_enabled
    lanes = len(endpoint.waiting)
    if not by_priority and lanes == 1:
        endpoint.recovered(ids, size, 0, 0, expires)
        return
    groups: dict[tuple[int, int], array[int]] = {}
    for index in range(len(ids)):
        key = (
            portion.priorities[index] if by_priority else 0,
            (portion.lanes[index] or ids[index]) % lanes,
        )
        group = groups.get(key)
        if group is None:
            group = array("Q")
            groups[key] = group
        group.append(ids[index])
    for (priority, lane), group in groups.items():
        endpoint.recovered(group, 0, priority, lane, [])
    endpoint.recovered(array("Q"), size, 0, 0, expires)


def recover_retained(store: Store, vpns: dict[str, MessageVpn]) -> int:
    """Restore retained messages; returns how many. Raises SpoolError for what cannot be read."""
    count = 0
    for key, value in store.scan(keys.RETAINED):
        name, _ = keys.vpn_and_rest(key)
        vpn = vpns.get(name)
        if vpn is None:
            continue
        message = from_record(value, vpn.context.now_ns, vpn.context.steady_ns)
        message.retain = True
        vpn.retained.keep(message)
        count += 1
    return count
