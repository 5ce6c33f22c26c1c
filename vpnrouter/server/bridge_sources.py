"""The bridges of a router as monitoring asks for them: its own, and those of others that log in here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

from vpnrouter.bridges.counters import Counters
from vpnrouter.bridges.rates import RateMeter
from vpnrouter.bridges.states import Outbound
from vpnrouter.bridges.status import (
    BridgeStatus,
    GuaranteedCounts,
    RemoteStatus,
    Surroundings,
    counts_of,
    remotes_of,
    status_of,
)
from vpnrouter.core.discards import TTL_EXCEEDED
from vpnrouter.wire.link.frames import ZSTD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.inbound_flow import InboundFlow
    from vpnrouter.bridges.link import Link
    from vpnrouter.server.bridge_runner import BridgeRunner


@final
class OwnBridge:
    """A bridge of the configuration. What the peer's bridge sends over the same connection counts in."""

    def __init__(self, runner: BridgeRunner) -> None:
        self.runner = runner
        self._meter = RateMeter()

    def status(self, now_ns: int) -> BridgeStatus:
        """See BridgeSource.status."""
        runner = self.runner
        record = runner.record
        half = runner.half
        link = None if half is None or half.over else half.link
        flow = None if link is None or half is None else half.flow
        bound = flow is not None and flow.bound_since_ns >= 0
        counters, peer = self._counters(link)
        record.outbound_state = Outbound.NOT_APPLICABLE
        record.outbound_failure_reason = ""
        if peer is not None:
            record.outbound_state = peer.outbound_state
            record.outbound_failure_reason = peer.outbound_failure_reason
        return status_of(
            record,
            now_ns,
            Surroundings(
                counters=counters,
                rates=self._meter.bridge_rates(),
                rx_in_flight=0 if half is None else half.in_flight,
                bound_to_queue=bound,
                local_queue_name=_local_queue(link),
                tx_in_flight=0 if peer is None else _in_flight(peer),
                outbound_bridge_name=_peer_bridge(link),
                compressed=link is not None and link.features & ZSTD != 0,
                ttl_exceeded_event_raised=TTL_EXCEEDED in counters.discarded_rx.counts,
                guaranteed=GuaranteedCounts()
                if runner.flow is None
                else counts_of(runner.flow.taker),
                remotes=runner_remotes(runner, flow, bound),
            ),
        )

    def sample(self, now_ns: int) -> None:
        """See BridgeSource.sample."""
        half = self.runner.half
        counters, _ = self._counters(None if half is None or half.over else half.link)
        _sample(self._meter, now_ns, counters)

    def _counters(self, link: Link | None) -> tuple[Counters, Bridge | None]:
        """Everything counted until now, and the peer's record when its bridge shares the connection."""
        if link is None:
            return self.runner.record.counters, None
        link.tally()
        outbound = link.outbound
        if outbound is None or outbound.record is None:
            return self.runner.record.counters, None
        both = Counters()
        both.add(self.runner.record.counters)
        both.add(outbound.record.counters)
        return both, outbound.record


@final
class PeerBridge:
    """A bridge of another router, by its record."""

    def __init__(self, record: Bridge, book: LinkBook, key: str) -> None:
        self._record = record
        self._book = book
        self._key = key
        self._meter = RateMeter()

    def status(self, now_ns: int) -> BridgeStatus:
        """See BridgeSource.status."""
        record = self._record
        link = self._tally()
        return status_of(
            record,
            now_ns,
            Surroundings(
                rates=self._meter.bridge_rates(),
                tx_in_flight=_in_flight(record),
                local_queue_name=_local_queue(link),
                outbound_bridge_name=_peer_bridge(link),
                compressed=link is not None and link.features & ZSTD != 0,
            ),
        )

    def sample(self, now_ns: int) -> None:
        """See BridgeSource.sample."""
        self._tally()
        _sample(self._meter, now_ns, self._record.counters)

    def _tally(self) -> Link | None:
        for half in self._record.sending:
            half.link.tally()
        return self._book.serving.get(self._key)


@final
class BridgeSources(Mapping[tuple[str, str], OwnBridge | PeerBridge]):
    """All bridges by message VPN and name.

    A peer's bridge stands under the name of its client; while it shares the connection of an own one it is
    shown there. `runners` may change while the router runs.
    """

    def __init__(self, book: LinkBook, runners: Sequence[BridgeRunner]) -> None:
        self._book = book
        self._runners = runners
        self._own: dict[int, OwnBridge] = {}
        self._peers: dict[str, PeerBridge] = {}

    def __getitem__(self, key: tuple[str, str]) -> OwnBridge | PeerBridge:
        return self._all()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[tuple[str, str], OwnBridge | PeerBridge]:
        found: dict[tuple[str, str], OwnBridge | PeerBridge] = {}
        kept: dict[int, OwnBridge] = {}
        for runner in self._runners:
            source = self._own.get(id(runner))
            if source is None or source.runner is not runner:
                source = OwnBridge(runner)
            kept[id(runner)] = source
            found[(runner.approach.vpn.name, runner.approach.name)] = source
        self._own = kept
        book = self._book
        for key, record in book.records.items():
            link = book.serving.get(key)
            peer = self._peers.get(key)
            if peer is None:
                peer = PeerBridge(record, book, key)
                self._peers[key] = peer
            if link is None or link.inbound is None:
                found[(record.facts.msg_vpn, record.facts.name)] = peer
        for gone in self._peers.keys() - book.records.keys():
            del self._peers[gone]
        return found


def _in_flight(record: Bridge) -> int:
    return sum(half.in_flight for half in record.sending)


def _peer_bridge(link: Link | None) -> str:
    return "" if link is None or link.client is None else link.client.peer_bridge


def _local_queue(link: Link | None) -> str:
    """The queues here that the peer's bridge is bound to."""
    flows = None if link is None or link.outbound is None else link.outbound.flows
    return "" if flows is None else ", ".join(flows.queues())


def runner_remotes(
    runner: BridgeRunner, flow: InboundFlow | None, bound: bool
) -> tuple[RemoteStatus, ...]:
    """The remotes of a bridge, with what its flow says of the queue of the one in use."""
    approach = runner.approach
    queues = {
        (each.name, each.location): each.queue_binding or ""
        for each in approach.written.remote_msg_vpns
    }
    found = []
    for one in remotes_of(runner.record, approach.remotes.all(), approach.failures):
        queue = queues.get((one.remote_msg_vpn_name, one.remote_msg_vpn_location), "")
        if one.up and flow is not None:
            since_ns = flow.bound_since_ns
            age_ns = flow.now_ns - since_ns if bound else 0
            one = replace(  # noqa: PLW2901 - the same, and more of it
                one,
                bound_to_queue=bound,
                last_queue_bind_failure_reason=flow.reason,
                queue_bound_uptime=age_ns // 1_000_000_000,
            )
        found.append(replace(one, queue_binding=queue))
    return tuple(found)


def _sample(meter: RateMeter, now_ns: int, counters: Counters) -> None:
    meter.sample(
        now_ns,
        counters.data_rx_msg_count,
        counters.data_rx_byte_count,
        counters.data_tx_msg_count,
        counters.data_tx_byte_count,
    )
