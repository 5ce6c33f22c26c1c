"""The numbers of queues for metrics: many at a time, without reading a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.guaranteed import (
    counters as pools,
)
from vpnrouter.core.guaranteed import (
    lifecycle,
    operations,
    reasons,
    replay,
)
from vpnrouter.core.guaranteed.spool import PROMOTION_CONGESTION
from vpnrouter.core.guaranteed.terms import PARKING, QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.losses import REASONS
from vpnrouter.errors import SpoolError
from vpnrouter.management.metrics.figures import QueueFigures
from vpnrouter.server.id_times import IdTimes
from vpnrouter.server.queues import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool

SECOND_NS: Final = 1_000_000_000

SHOWN: Final = frozenset({QUEUE, TOPIC_ENDPOINT, PARKING})
"""Kinds that have series of their own. Those that belong to one client are added up."""

READS: Final = 16
"""Messages of before the start that are read for their age between two looks; it costs the disk each time."""

LOOKED_THROUGH: Final = 256
"""Messages of one consumer that are looked through for the oldest; of more, the one delivered first counts."""

OTHER: Final = "other"

KNOWN: Final = (
    frozenset(REASONS)
    | frozenset(reasons.DISCARD_NAMES.values())
    | {
        *(lifecycle.REJECTED, lifecycle.EXPIRED, lifecycle.REDELIVERED),
        *(operations.LAST_VALUE, replay.TRIMMED, PROMOTION_CONGESTION),
    }
)
"""Reasons that become labels."""


NONE: Final[Mapping[str, int]] = {}


def by_reason(counts: Mapping[str, int]) -> Mapping[str, int]:
    """The counts; what has a reason that is none of KNOWN under OTHER, so that labels stay few."""
    if not counts:
        return NONE
    if counts.keys() <= KNOWN:
        return dict(counts)
    found = {reason: count for reason, count in counts.items() if reason in KNOWN}
    found[OTHER] = sum(counts.values()) - sum(found.values())
    return found


@final
class QueueNumbers:
    """Makes the figures of endpoints of `spool`."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._times = IdTimes()
        self._left = READS
        # By number of the endpoint: its oldest message, when that was from before, and since when it waits.
        self._read: dict[int, tuple[int, int]] = {}

    def look(self) -> None:
        """Note what the newest message is; about twice a second."""
        self._times.note(self.spool.ledger.next_id, self.spool.plane.now_ns)
        self._left = READS

    def of(self, msg_vpn: str, endpoint: Endpoint) -> QueueFigures:
        """One queue, topic endpoint or parking lot."""
        terms = endpoint.terms
        counters = endpoint.counters
        count = endpoint.spooled_count
        flows = endpoint.flows
        unacked = 0
        for flow in flows:
            unacked += len(flow.unacked)
        return QueueFigures(
            msg_vpn,
            PREFIXES[endpoint.kind] + endpoint.name,
            count,
            endpoint.spooled_bytes,
            terms.max_msg_spool_usage,
            unacked,
            len(flows),
            self.oldest_s(endpoint) if count else 0.0,
            int(not terms.ingress_enabled),
            int(not terms.egress_enabled),
            counters.spooled,
            counters.spooled_bytes,
            counters.acked,
            counters.redelivered,
            counters.moved,
            counters.deleted,
            by_reason(counters.discarded.counts),
            by_reason(counters.refused.counts),
            counters.imbalance(count),
        )

    def oldest_s(self, endpoint: Endpoint) -> float:
        """Seconds that the oldest message of an endpoint has been there, 0 for none."""
        number = oldest_id(endpoint)
        if not number:
            return 0.0
        plane = self.spool.plane
        if self._times.knows(number):
            return round(self._times.age_ns(number, plane.now_ns) / SECOND_NS, 3)
        known = self._read.get(endpoint.number)
        if known is None or known[0] != number:
            if self._left <= 0:
                return round(self._times.age_ns(number, plane.now_ns) / SECOND_NS, 3)
            self._left -= 1
            try:
                since_ns = self.spool.message(number).ingress_ns
            except (SpoolError, KeyError):
                return 0.0
            known = (number, since_ns)
            self._read[endpoint.number] = known
        return round(max(0, plane.steady_ns - known[1]) / SECOND_NS, 3)


def oldest_id(endpoint: Endpoint) -> int:
    """Spool id of the oldest message that waits or that a consumer has, 0 for none."""
    found: list[int] = []
    for pool in pools.pools(endpoint):
        if pool.count:
            found += pool.oldest()
    for flow in endpoint.flows:
        unacked = flow.unacked
        if unacked:
            found.append(min(unacked) if len(unacked) <= LOOKED_THROUGH else next(iter(unacked)))
    if len(endpoint.delayed):
        found += endpoint.delayed.ids()[:1]
    return min(found, default=0)
