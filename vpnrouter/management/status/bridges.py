"""Makes the status of a router's own bridges and of those that log in here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.bridges.bridge import Outbound
from vpnrouter.bridges.counters import Counters
from vpnrouter.bridges.look import GUARANTEED, BridgeLook
from vpnrouter.bridges.status import (
    VIRTUAL_ROUTER,
    BridgeStatus,
    LocalSubscriptionStatus,
    RateMeter,
    RemoteSubscriptionStatus,
)
from vpnrouter.config.configured_bridge import ConfiguredBridge, subscriptions
from vpnrouter.core.discard_reasons import TTL_EXCEEDED
from vpnrouter.management.status.stats_baseline import bridge_base, bridge_counts
from vpnrouter.settings.shown import fill
from vpnrouter.wire.link import codes
from vpnrouter.wire.link.frames import DELIVER_ALWAYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.driver import BridgeDriver
    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.bridge import Bridge as BridgeConfig
    from vpnrouter.management.server_hooks import ServerHooks


DISCONNECTED: Final = "disconnected by the operator"


@final
class BridgeBaselines:
    """What the counts of bridges stood at when they were cleared, by their records."""

    def __init__(self) -> None:
        self._bases: dict[Bridge, tuple[Counters, int]] = {}

    def clear(self, record: Bridge) -> None:
        """Begin the counts anew; they have been brought up to date."""
        self._bases[record] = (bridge_base(record.counters), record.failures)

    def shown(self, record: Bridge, *, whole: bool = False) -> Counters:
        """The counts to show, with `whole` all of them. Not to be changed."""
        base = None if whole else self._bases.get(record)
        return record.counters if base is None else bridge_counts(record.counters, base[0])

    def failures(self, record: Bridge, *, whole: bool = False) -> int:
        """How many failures are not shown."""
        base = None if whole else self._bases.get(record)
        return 0 if base is None else base[1]

    def __len__(self) -> int:
        return len(self._bases)

    def keep(self, records: Iterable[Bridge]) -> None:
        """Forget those of all others."""
        for record in self._bases.keys() - set(records):
            del self._bases[record]


@final
class OwnBridge:
    """A bridge of the configuration. What the peer's bridge sends over the same connection counts in."""

    def __init__(self, runner: BridgeDriver, cleared: BridgeBaselines, edge: ServerHooks) -> None:
        self.runner = runner
        self._edge = edge
        self._meter = RateMeter()
        self._cleared = cleared
        self._guaranteed: tuple[FlowReceiver, dict[str, int]] | None = None
        self._ttl_seen = 0

    def status(self, now_ns: int) -> BridgeStatus:
        """The bridge at `now_ns` (monotonic), with counts since they were cleared."""
        return fill(BridgeStatus, self.look(now_ns, whole=False))

    def look(self, now_ns: int, *, whole: bool) -> BridgeLook:
        """The bridge at `now_ns` (monotonic), with counts since they were cleared.

        With `whole`, counts since the start of the router, and no rates.
        """
        runner = self.runner
        record = runner.record
        half = runner.half
        link = None if half is None or half.over else half.link
        counters, peer = self._counters(link, whole=whole)
        record.outbound_state = Outbound.NOT_APPLICABLE
        record.outbound_failure_reason = ""
        if peer is not None:
            record.outbound_state = peer.outbound_state
            record.outbound_failure_reason = peer.outbound_failure_reason
        written = _written(runner)
        return BridgeLook(
            record,
            now_ns,
            counters=counters,
            driver=runner,
            link=link,
            sender=peer,
            enabled=written.enabled,
            paused=written.paused,
            bindings={
                (each.name, each.location): each.queue_binding or ""
                for each in written.remote_msg_vpns
            },
            guaranteed_base=None if whole else self._guaranteed_base(),
            failures_cleared=self._cleared.failures(record, whole=whole),
            rates=None if whole else self._meter.bridge_rates().attributes(),
            ttl_exceeded=not whole and self.ttl_exceeded(),
        )

    def remote_subscriptions(self) -> list[RemoteSubscriptionStatus]:
        """What the bridge asks its remote for, and whether it was granted."""
        runner, half = self.runner, self.runner.half
        stands = half is not None and half.welcomed and not half.over
        granted = half.wanted if half is not None and stands else {}
        refused = half.refused if half is not None and stands else {}
        return [
            RemoteSubscriptionStatus(
                runner.record.facts.msg_vpn,
                runner.record.facts.name,
                VIRTUAL_ROUTER,
                text,
                bool(flags & DELIVER_ALWAYS),
                text in granted and text not in refused,
                refused.get(text, ""),
            )
            for flags, text in subscriptions(_written(runner))
        ]

    def local_subscriptions(self) -> list[LocalSubscriptionStatus]:
        """What the remote's bridge asks for here, over the same connection."""
        runner, half = self.runner, self.runner.half
        link = None if half is None or half.over else half.link
        return _local(link, runner.record.facts.msg_vpn, runner.record.facts.name)

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from."""
        half = self.runner.half
        link = None if half is None or half.over else half.link
        counters, _ = self._counters(link, whole=True)
        _sample(self._meter, now_ns, counters)

    def _counters(self, link: Link | None, *, whole: bool) -> tuple[Counters, Bridge | None]:
        """The counts to show, and the peer's record when its bridge shares the connection."""
        if link is not None:
            link.tally()
        own = self._cleared.shown(self.runner.record, whole=whole)
        peer = None if link is None else link.peer_half
        if peer is None or peer.record is None:
            return own, None
        both = Counters()
        both.add(own)
        both.add(self._cleared.shown(peer.record, whole=whole))
        return both, peer.record

    def _guaranteed_base(self) -> dict[str, int] | None:
        """What the counts of guaranteed messages stood at when they were cleared."""
        taker = self.runner.taker
        base = self._guaranteed
        return None if taker is None or base is None or base[0] is not taker else base[1]

    def disconnect(self) -> bool:
        """Say goodbye on the link, or have a bridge go on that has stopped; False when no link is up or on its way."""
        runner = self.runner
        if runner.machine.stopped:
            runner.machine.go_on()
            runner.poke()
            return True
        half = runner.half
        if half is None or half.over:
            return False
        half.link.goodbye(codes.ADMINISTRATIVE, DISCONNECTED)
        self._edge.flush()
        return True

    def clear_stats(self) -> None:
        """Begin the counts of the bridge anew, and those of the peer's bridge on the same link."""
        half, taker = self.runner.half, self.runner.taker
        link = None if half is None or half.over else half.link
        _, peer = self._counters(link, whole=True)
        self._cleared.clear(self.runner.record)
        if peer is not None:
            self._cleared.clear(peer)
        if taker is not None:
            self._guaranteed = (taker, {name: getattr(taker, name) for name in GUARANTEED})

    def clear_event(self, event: str) -> None:
        """Mark `event` as seen; only `ttl-exceeded` is raised by a bridge."""
        if event == TTL_EXCEEDED:
            self._ttl_seen = self._ttl_discards()

    def ttl_exceeded(self) -> bool:
        """Return whether messages came with their time to live used up, and nobody has marked that as seen."""
        return self._ttl_discards() > self._ttl_seen

    def _ttl_discards(self) -> int:
        half = self.runner.half
        if half is not None and not half.over:
            half.link.tally()
        return self.runner.record.counters.discarded_rx.counts.get(TTL_EXCEEDED, 0)


@final
class PeerBridge:
    """A bridge of another router, by its record."""

    def __init__(
        self,
        record: Bridge,
        book: LinkRegistry,
        key: str,
        cleared: BridgeBaselines,
        edge: ServerHooks,
    ) -> None:
        self._edge = edge
        self.record = record
        self._book = book
        self.key = key
        self._meter = RateMeter()
        self._cleared = cleared

    def status(self, now_ns: int) -> BridgeStatus:
        """The bridge at `now_ns` (monotonic), with counts since they were cleared."""
        return fill(BridgeStatus, self.look(now_ns, whole=False))

    def look(self, now_ns: int, *, whole: bool) -> BridgeLook:
        """The bridge at `now_ns` (monotonic), with counts since they were cleared.

        With `whole`, counts since the start of the router, and no rates.
        """
        record = self.record
        link = self._tally()
        return BridgeLook(
            record,
            now_ns,
            counters=self._cleared.shown(record, whole=whole),
            link=link,
            sender=record,
            failures_cleared=self._cleared.failures(record, whole=whole),
            rates=None if whole else self._meter.bridge_rates().attributes(),
        )

    def remote_subscriptions(self) -> list[RemoteSubscriptionStatus]:
        """Nothing: the peer's bridge has local subscriptions only."""
        return []

    def local_subscriptions(self) -> list[LocalSubscriptionStatus]:
        """What the peer's bridge asks for here."""
        facts = self.record.facts
        return _local(self._book.serving.get(self.key), facts.msg_vpn, facts.name)

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from."""
        self._tally()
        _sample(self._meter, now_ns, self.record.counters)

    def ttl_exceeded(self) -> bool:
        """Return False: the peer's router raises this event."""
        return False

    def disconnect(self) -> bool:
        """Say goodbye on the link that serves the peer's bridge; False when there is none."""
        link = self._book.serving.get(self.key)
        if link is None:
            return False
        link.goodbye(codes.ADMINISTRATIVE, DISCONNECTED)
        self._edge.flush()
        return True

    def clear_stats(self) -> None:
        """Begin the counts of the bridge anew."""
        self._tally()
        self._cleared.clear(self.record)

    def clear_event(self, event: str) -> None:
        """Do nothing: a peer's bridge raises no event here."""

    def _tally(self) -> Link | None:
        for link in self.record.sending:
            link.tally()
        return self._book.serving.get(self.key)


@final
class Bridges(Mapping[tuple[str, str], OwnBridge | PeerBridge]):
    """All bridges by message VPN and name.

    A peer's bridge stands under the name of its client; while it shares the connection of an own one it is
    shown there.
    """

    def __init__(self, book: LinkRegistry, edge: ServerHooks) -> None:
        self._book = book
        self._edge = edge
        self._own: dict[int, OwnBridge] = {}
        self._peers: dict[str, PeerBridge] = {}
        self._found: dict[tuple[str, str], OwnBridge | PeerBridge] = {}
        self._cleared = BridgeBaselines()

    def __getitem__(self, key: tuple[str, str]) -> OwnBridge | PeerBridge:
        # A page asks for one after the other: all of them need not be looked through each time.
        source = self._found.get(key)
        return source if source is not None and self._is_here(source) else self._all()[key]

    def _is_here(self, source: OwnBridge | PeerBridge) -> bool:
        if isinstance(source, OwnBridge):
            return source.runner in self._edge.bridges
        link = self._book.serving.get(source.key)
        known = self._book.records.get(source.key) is source.record
        return known and (link is None or link.own_half is None)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def now(self) -> dict[tuple[str, str], OwnBridge | PeerBridge]:
        """All bridges at this moment; to look up many, call this once."""
        return self._all()

    def _all(self) -> dict[tuple[str, str], OwnBridge | PeerBridge]:
        found: dict[tuple[str, str], OwnBridge | PeerBridge] = {}
        kept: dict[int, OwnBridge] = {}
        for runner in self._edge.bridges:
            source = self._own.get(id(runner))
            if source is None or source.runner is not runner:
                source = OwnBridge(runner, self._cleared, self._edge)
            kept[id(runner)] = source
            found[(runner.record.facts.msg_vpn, runner.record.facts.name)] = source
        self._own = kept
        book = self._book
        for key, record in book.records.items():
            link = book.serving.get(key)
            peer = self._peers.get(key)
            if peer is None:
                peer = PeerBridge(record, book, key, self._cleared, self._edge)
                self._peers[key] = peer
            if link is None or link.own_half is None:
                found[(record.facts.msg_vpn, record.facts.name)] = peer
        for gone in self._peers.keys() - book.records.keys():
            del self._peers[gone]
        if self._cleared:
            own = [runner.record for runner in self._edge.bridges]
            self._cleared.keep([*own, *book.records.values()])
        self._found = found
        return found


SAMPLE_S: Final = 1.0
"""Seconds between samples of the counts of bridges and connectors."""


async def keep_rates(bridges: Bridges, edge: ServerHooks) -> None:
    """Sample the counts of all bridges and of other running objects about once a second, for ever."""
    while True:
        now_ns = time.monotonic_ns()
        for source in bridges.now().values():
            source.sample(now_ns)
        for objects in edge.objects.values():
            objects.sample(now_ns)
        await trio.sleep(SAMPLE_S)


def _local(link: Link | None, msg_vpn: str, name: str) -> list[LocalSubscriptionStatus]:
    """What the peer's bridge that is logged in over `link` asks for here."""
    client = None if link is None else link.client
    if client is None:
        return []
    return [
        LocalSubscriptionStatus(
            msg_vpn,
            name,
            VIRTUAL_ROUTER,
            one.key,
            "da" if one.deliver_always or not one.dto_priority else f"p{one.dto_priority}",
        )
        for one in client.subscriptions.values()
    ]


def _written(bridge: BridgeDriver) -> BridgeConfig:
    """The configuration of one of the router's own bridges."""
    configured = bridge.links.configured
    if not isinstance(configured, ConfiguredBridge):
        raise TypeError(configured)
    return configured.bridge


def _sample(meter: RateMeter, now_ns: int, counters: Counters) -> None:
    meter.sample(
        now_ns,
        counters.data_rx_msg_count,
        counters.data_rx_byte_count,
        counters.data_tx_msg_count,
        counters.data_tx_byte_count,
    )
