"""Saves the counters of endpoints, bridges and connectors in the message spool, so that they go on over a restart.

A sheet is written with the unit that is being built, so its counts of an endpoint are true of the store with that
unit. Changed sheets are written once a minute and at a clean stop. After a crash, messages that are missing are
discarded as UNACCOUNTED, so that every sheet is in balance from the start.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter import limits
from vpnrouter.bridges.counters import COUNTS, Counters
from vpnrouter.connectors.link_state import COUNTS as LINK_COUNTS
from vpnrouter.core.discard_reasons import UNACCOUNTED
from vpnrouter.core.guaranteed.endpoint import endpoint_of, endpoints_of
from vpnrouter.settings.kinds import BRIDGE, CONNECTOR
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.connectors.link_state import LinkCounters
    from vpnrouter.core.discard_reasons import DiscardCounts
    from vpnrouter.core.guaranteed.counters import EndpointCounters
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.management.server_hooks import RunningKind
    from vpnrouter.server.bridges.runner import BridgeRunner
    from vpnrouter.server.connectors.runner import ConnectorRunner
    from vpnrouter.settings.kinds import Kind
    from vpnrouter.spool.store import Store


EVERY_S: Final = 60.0
"""Seconds between two looks at all sheets."""

OWN: Final = "o"
PEER: Final = "p"

_ENDPOINT: Final = (
    "acked",
    "deleted",
    "delivered",
    "moved",
    "recovered",
    "redelivered",
    "spooled",
    "spooled_bytes",
)
_ENDPOINT_REASONS: Final = ("discarded", "refused")

_BRIDGE_REASONS: Final = ("discarded_rx", "discarded_tx")
_LINK_REASONS: Final = ("discarded",)

Row = dict[str, object]


def _row(
    counters: EndpointCounters | Counters | LinkCounters,
    names: tuple[str, ...],
    reasons: tuple[str, ...],
) -> Row:
    row: Row = {name: getattr(counters, name) for name in names}
    return row | {name: getattr(counters, name).counts for name in reasons}


def _fill(
    counters: EndpointCounters | Counters | LinkCounters,
    value: bytes,
    names: tuple[str, ...],
    reasons: tuple[str, ...],
) -> bool:
    """Copy a sheet into fresh counters. False, with nothing copied, for one that is damaged or of another version."""
    try:
        row = json.loads(value)
        numbers = {name: int(row[name]) for name in names}
        counts = {
            name: {str(reason): int(count) for reason, count in row[name].items()}
            for name in reasons
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    for name, number in numbers.items():
        setattr(counters, name, number)
    for name, found in counts.items():
        discards: DiscardCounts = getattr(counters, name)
        discards.counts = found
    return True


def restore_endpoints(spool: Spool, store: Store, endpoints: dict[int, Endpoint]) -> None:
    """Set the counters of endpoints by their sheets. Call this when it is known what waits in each endpoint."""
    for key, value in store.scan(keys.SHEET_ENDPOINT):
        endpoint = endpoints.get(keys.endpoint_of_counters(key))
        if endpoint is None:
            spool.ledger.delete(key)
            continue
        counters = endpoint.counters
        found = counters.recovered
        if not _fill(counters, value, _ENDPOINT, _ENDPOINT_REASONS):
            counters.recovered = found
            continue
        missing = counters.imbalance(endpoint.spooled_count)
        if missing > 0:
            counters.discarded.add(UNACCOUNTED, missing)
        else:
            # These messages came after the sheet was written, and are here.
            counters.spooled -= missing


def _balance(counters: Counters) -> None:
    """Discard what was in flight when the sheet was written: nothing is in flight now."""
    missing = counters.rx_imbalance(0)
    if missing > 0:
        counters.discard_rx(UNACCOUNTED, missing)
    else:
        counters.data_rx_msg_count -= missing
    missing = counters.tx_imbalance(0)
    if missing > 0:
        counters.discard_tx(UNACCOUNTED, missing)
    else:
        counters.offered_tx_msg_count -= missing


@final
class SavedCounters:
    """Reads the sheets of bridges and connectors at the start, and writes all sheets that have changed."""

    def __init__(
        self,
        spool: Spool,
        store: Store,
        book: LinkRegistry,
        objects: Mapping[Kind, RunningKind],
    ) -> None:
        self._spool = spool
        self._book = book
        self._runners: Sequence[BridgeRunner] = objects[BRIDGE].running
        self._connectors: Sequence[ConnectorRunner] = objects[CONNECTOR].running
        self._written: dict[bytes, int] = {}
        self._own: dict[str, Counters] = {}
        for key, value in store.scan(keys.SHEET_BRIDGE):
            whose, name = keys.bridge_of_counters(key)
            counters = Counters()
            if whose in {OWN, PEER} and _fill(counters, value, COUNTS, _BRIDGE_REASONS):
                _balance(counters)
                if whose == OWN:
                    self._own[name] = counters
                elif len(book.saved_counters) < limits.LINK_REMOTE_RECORDS:
                    book.saved_counters[name] = counters
                    continue
            if whose != OWN:
                spool.ledger.delete(key)

    def restore_bridges(self) -> None:
        """Give configured bridges the counters of their sheets; sheets of other bridges are deleted."""
        for runner in self._runners:
            counters = self._own.pop(_name(runner), None)
            if counters is not None:
                runner.record.counters = counters
        for name in self._own:
            self._spool.ledger.delete(keys.bridge_counters(OWN, name))
        self._own.clear()

    def restore_links(self, store: Store) -> None:
        """Set the counters of configured links by their sheets; sheets of other links are deleted."""
        links = {
            keys.connector_counters(runner.vpn.name, runner.name, name): link
            for runner in self._connectors
            for name, link in runner.links.items()
        }
        for key, value in store.scan(keys.SHEET_CONNECTOR):
            link = links.get(key)
            if link is None:
                self._spool.ledger.delete(key)
            elif _fill(link.counters, value, LINK_COUNTS, _LINK_REASONS):
                link.counters.balance(link.in_flight)
                self._written[key] = hash(value)

    async def keep(self) -> None:
        """Write the sheets that have changed once in EVERY_S, some at a time, until cancelled."""
        while True:
            await trio.sleep(EVERY_S)
            before, self._written = self._written, {}
            for at, (key, row) in enumerate(self._rows()):
                self._write(key, row, before)
                if at % limits.SHEETS_AT_ONCE == limits.SHEETS_AT_ONCE - 1:
                    await trio.sleep(0.05)
            self._forget(before)

    def write_all(self) -> None:
        """Write all sheets that have changed, at once: the router stops."""
        before, self._written = self._written, {}
        for key, row in self._rows():
            self._write(key, row, before)
        self._forget(before)

    def _forget(self, before: dict[bytes, int]) -> None:
        """Delete the sheets of links that are not configured any more: one of that name begins anew."""
        for key in before.keys() - self._written.keys():
            if key.startswith(keys.SHEET_CONNECTOR):
                self._spool.ledger.delete(key)

    def _write(self, key: bytes, row: Row, before: dict[bytes, int]) -> None:
        value = json.dumps(row).encode()
        self._written[key] = hash(value)
        if before.get(key) != hash(value):
            self._spool.ledger.put(key, value)

    def _rows(self) -> Iterator[tuple[bytes, Row]]:
        for vpn in list(self._book.router.vpns.values()):
            yield from self._endpoints(list(endpoints_of(vpn).values()))
            sessions = [endpoint_of(client) for client in vpn.clients.values()]
            yield from self._endpoints([one for one in sessions if one is not None])
        for runner in list(self._runners):
            if runner.half is not None:
                runner.half.link.tally()
            yield self._bridge(OWN, _name(runner), runner.record)
        for name, record in list(self._book.records.items()):
            for link in record.sending:
                link.tally()
            yield self._bridge(PEER, name, record)
        for connector in list(self._connectors):
            for name, each in connector.links.items():
                key = keys.connector_counters(connector.vpn.name, connector.name, name)
                yield key, _row(each.counters, LINK_COUNTS, _LINK_REASONS)

    @staticmethod
    def _endpoints(endpoints: list[Endpoint]) -> Iterator[tuple[bytes, Row]]:
        for endpoint in endpoints:
            if endpoint.durable and not endpoint.deleted:
                counters = endpoint.counters
                yield (
                    keys.endpoint_counters(endpoint.number),
                    _row(counters, _ENDPOINT, _ENDPOINT_REASONS),
                )

    @staticmethod
    def _bridge(whose: str, name: str, record: Bridge) -> tuple[bytes, Row]:
        return keys.bridge_counters(whose, name), _row(record.counters, COUNTS, _BRIDGE_REASONS)


def _name(runner: BridgeRunner) -> str:
    return f"{runner.vpn.name}\0{runner.name}"
