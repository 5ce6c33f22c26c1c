"""Deliverable marks: up to which id an endpoint's messages may have been delivered before a crash.

A message is delivered only when that is written down, so that after a crash it is known to be perhaps a
second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.unit import Unit
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
