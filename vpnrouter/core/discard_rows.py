"""Adds up discards of untraced messages and writes them as trace rows once a second.

A router discards because it has too much to do, so a discard only counts here: in the outbox that had no room, in the
route without receivers, or under its key. One row then says how many messages it stands for. Traced messages have
rows of their own and are not among them, so the rows of a reason add up to the router's counter of that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_SUBSCRIPTION_MATCH,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.outbox import RefusedFrames
from vpnrouter.core.timers import TimerTarget
from vpnrouter.trace.events import DIRECT, DISCARD
from vpnrouter.trace.recorder import Context
from vpnrouter.wire.varint import topic_in

if TYPE_CHECKING:
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.message import Source
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber


ROW_INTERVAL_NS: Final = 1_000_000_000
"""How long losses are added up before they are told."""

Key = tuple[int, str, int, str, str, str, str, str, int, str, bytes]
"""Event, message VPN, mode, client, endpoint, reason, bridge, "router/vpn" at its other end, hops, path,
topic."""


@final
class OutboxDiscards(RefusedFrames):
    """Counts what the outbox of `subscriber` in the message VPN `vpn` had no room for and no row reports yet."""

    __slots__ = ("count", "first", "listed", "losses", "subscriber", "vpn")

    def __init__(self, losses: DiscardRows, vpn: str, subscriber: Subscriber) -> None:
        self.losses = losses
        self.vpn = vpn
        self.subscriber = subscriber
        self.count = 0
        self.first = b""
        self.listed = False

    @override
    def add(self, data: bytes, start: int, size: int, count: int) -> None:
        if self.count == 0:
            self.first = data[start : start + size]
            if not self.listed:
                self.listed = True
                self.losses.outbox(self)
        self.count += count

    @override
    def told(self, count: int) -> None:
        self.count -= count

    @override
    def dropped(self, count: int) -> None:
        subscriber = self.subscriber
        link = subscriber.is_link
        self.losses.add(
            (
                DISCARD,
                self.vpn,
                DIRECT,
                subscriber.client_name,
                "",
                CLIENT_NOT_CONNECTED,
                subscriber.bridge_of(False) if link else "",
                subscriber.vpn_id,
                0,
                "",
                b"",
            ),
            count,
        )


@final
class DiscardRows(TimerTarget):
    """The discards and rejects that no row reports yet; `discards` and `rejects` say which of them get rows at all.

    At most `most` keys have topics, and as many again have clients; beyond, only message VPN and reason are told apart.
    """

    __slots__ = (
        "_armed",
        "_context",
        "_outboxes",
        "_places",
        "_routes",
        "discards",
        "most",
        "rejects",
    )

    def __init__(self, router_context: RouterContext, discards: bool, rejects: bool) -> None:
        self._context = router_context
        self.discards = discards
        self.rejects = rejects
        self.most = limits.TRACE_LOSSES
        self._armed = False
        self._outboxes: list[OutboxDiscards] = []
        # Each with its message VPN.
        self._routes: list[tuple[str, Route]] = []
        self._places: dict[Key, int] = {}

    def of(self, vpn: str, subscriber: Subscriber) -> OutboxDiscards | None:
        """Return the counter for the outbox of a new connection; None where discards get no rows."""
        return OutboxDiscards(self, vpn, subscriber) if self.discards else None

    def outbox(self, refused: OutboxDiscards) -> None:
        """Note an outbox that has discards to report."""
        self._outboxes.append(refused)
        if not self._armed:
            self._arm()

    def unmatched(self, publisher: Publisher, route: Route, count: i64) -> None:
        """Count messages of the batch path without a receiver."""
        if not self.discards:
            return
        source = publisher.subscriber
        if route.lost_of is source:
            route.lost += count
            return
        if route.lost_of is None and len(self._routes) < self.most:
            route.lost_of = source
            route.lost = count
            self._routes.append((publisher.vpn.name, route))
            if not self._armed:
                self._arm()
            return
        # Several publish to the topic, or too many topics are unwanted.
        came = source.is_link
        self.add(
            (
                DISCARD,
                publisher.vpn.name,
                DIRECT,
                source.client_name,
                "",
                NO_SUBSCRIPTION_MATCH,
                source.bridge_of(True) if came else "",
                source.vpn_id,
                1 if came else 0,
                source.vpn_id,
                route.raw,
            ),
            count,
        )

    def add(self, key: Key, count: int) -> None:
        """Count messages that were discarded or rejected under one key."""
        if not (self.discards if key[0] == DISCARD else self.rejects):
            return
        places = self._places
        known = places.get(key, 0)
        if not known:
            if not self._armed:
                self._arm()
            if len(places) >= self.most:
                key = (
                    key[0],
                    key[1],
                    key[2],
                    key[3],
                    key[4],
                    key[5],
                    key[6],
                    key[7],
                    key[8],
                    key[9],
                    b"",
                )
                known = places.get(key, 0)
                if not known and len(places) >= 2 * self.most:
                    key = (key[0], key[1], key[2], "", "", key[5], "", "", 0, "", b"")
                    known = places.get(key, 0)
        places[key] = known + count

    def _arm(self) -> None:
        self._armed = True
        router_context = self._context
        router_context.timers.arm(router_context.now_ns + ROW_INTERVAL_NS, self, 0)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Write the rows that are due."""
        self._armed = False
        self.tell()

    def tell(self) -> None:
        """Write the rows; also when the router stops, before the recorder's last block is cut."""
        self._tell_routes()
        self._tell_outboxes()
        places = self._places
        self._places = {}
        for key, count in places.items():
            peer_router, _, peer_vpn = key[7].partition("/")
            context = Context(
                key[0],
                key[1],
                key[2],
                client=key[3],
                endpoint=key[4],
                reason=key[5],
                bridge=key[6],
                peer_router=peer_router if key[6] else "",
                peer_vpn=peer_vpn if key[6] else "",
                hops=key[8],
                path=key[9],
            )
            self._record(context, key[10], count)

    def _tell_routes(self) -> None:
        routes = self._routes
        self._routes = []
        contexts: dict[Source, Context] = {}
        for vpn, route in routes:
            source = route.lost_of
            if source is None:
                continue
            context = contexts.get(source)
            if context is None:
                came = source.is_link
                bridge = source.bridge_of(True) if came else ""
                context = _context(vpn, source, NO_SUBSCRIPTION_MATCH, bridge)
                if came:
                    context.hops = 1
                    context.path = source.vpn_id
                contexts[source] = context
            self._record(context, route.raw, int(route.lost))
            route.lost = 0
            route.lost_of = None

    def _tell_outboxes(self) -> None:
        outboxes = self._outboxes
        self._outboxes = []
        told = 0
        for refused in outboxes:
            refused.listed = False
            count = refused.count
            refused.count = 0
            first = refused.first
            refused.first = b""
            if count <= 0:
                continue
            if told >= self.most:
                key: Key = (
                    DISCARD,
                    refused.vpn,
                    DIRECT,
                    "",
                    "",
                    TRANSMIT_CONGESTION,
                    "",
                    "",
                    0,
                    "",
                    b"",
                )
                self._places[key] = self._places.get(key, 0) + count
                continue
            told += 1
            subscriber = refused.subscriber
            bridge = subscriber.bridge_of(False) if subscriber.is_link else ""
            context = _context(refused.vpn, subscriber, TRANSMIT_CONGESTION, bridge)
            self._record(context, topic_in(first, link=subscriber.is_link), count)

    def _record(self, context: Context, topic: bytes, count: int) -> None:
        router_context = self._context
        router_context.recorder.record(
            context,
            router_context.wall_ns,
            topic,
            trace_high=0,
            trace_low=0,
            message_id=count,
            size=-1,
            since_ingress_ns=-1,
            origin_ts_ns=0,
        )


def _context(vpn: str, subscriber: Source, reason: str, bridge: str) -> Context:
    peer_router, _, peer_vpn = subscriber.vpn_id.partition("/")
    return Context(
        DISCARD,
        vpn,
        DIRECT,
        client=subscriber.client_name,
        reason=reason,
        bridge=bridge,
        peer_router=peer_router,
        peer_vpn=peer_vpn,
    )
