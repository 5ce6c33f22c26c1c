"""Makes the figures of queues for metrics: of each as few steps as possible, since there may be many."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.guaranteed import dead_letters, refusals, replay
from vpnrouter.core.guaranteed.endpoint import DAMAGED, LAST_VALUE
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    PARKING,
    QUEUE,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.spool import PROMOTION_CONGESTION
from vpnrouter.errors import SpoolError
from vpnrouter.management.status.queues import EndpointLook, QueueStatus
from vpnrouter.settings.shown import Convert, Row, Split, metrics_of
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool


@final
class IdTimes:
    """Remembers when which id was the next one. Ages are as exact as the looks are close together.

    What was there before the first look is as old as that, at least.
    """

    def __init__(self, most: int = limits.METRICS_ID_TIMES) -> None:
        self._ids: list[int] = []
        self._times_ns: list[int] = []
        self._most = most

    def note(self, next_id: int, now_ns: int) -> None:
        """Note that at `now_ns` the next message was to get `next_id`. Neither goes back."""
        ids = self._ids
        if len(ids) > 1 and ids[-1] == next_id:
            # Nothing came in between: messages from here on are younger. The first look stays.
            self._times_ns[-1] = now_ns
            return
        if len(ids) >= self._most:
            # The first and the last one stay.
            del ids[1:-1:2]
            del self._times_ns[1:-1:2]
        ids.append(next_id)
        self._times_ns.append(now_ns)

    def knows(self, number: int) -> bool:
        """Whether the message `number` came after the first look."""
        return bool(self._ids) and number >= self._ids[0]

    def age_ns(self, number: int, now_ns: int) -> int:
        """How long ago the message `number` was spooled, at most: since the last look that did not know it."""
        at = bisect_right(self._ids, number) - 1
        if not self._times_ns:
            return 0
        return max(0, now_ns - self._times_ns[max(0, at)])


SHOWN: Final = frozenset({QUEUE, TOPIC_ENDPOINT, PARKING, CONNECTOR_LINK})
"""Kinds that have series of their own. Those that belong to one client are added up."""

READS: Final = 16
"""Messages of before the start that are read for their age between two looks; it costs the disk each time."""

LOOKED_THROUGH: Final = 256
"""Messages of one consumer that are looked through for the oldest; of more, the one delivered first counts."""

OTHER: Final = "other"

KNOWN: Final = (
    frozenset(REASONS)
    | frozenset(refusals.DISCARD_NAMES.values())
    | {
        *(dead_letters.CONSUMER, dead_letters.EXPIRED, dead_letters.REDELIVERED),
        *(DAMAGED, LAST_VALUE, replay.TRIMMED, PROMOTION_CONGESTION),
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


CONVERTS: Final[dict[Split, Convert]] = {"reason": by_reason}
"""What becomes of a value by its split: only reasons that are known become labels."""

QUEUES: Final = metrics_of(QueueStatus, CONVERTS)


@final
class QueueNumbers:
    """Makes the figures of endpoints of `spool`."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._times = IdTimes()
        self._left = READS
        self._look: EndpointLook | None = None
        # By number of the endpoint: its oldest message, when that was from before, and since when it waits.
        self._read: dict[int, tuple[int, int]] = {}

    def look(self) -> None:
        """Note what the newest message is; about twice a second."""
        self._times.note(self.spool.ledger.next_id, self.spool.context.now_ns)
        self._left = READS

    def of(self, endpoint: Endpoint) -> Row:
        """Return the row of one queue, topic endpoint or parking lot."""
        # There may be many: one look goes over all of them.
        look = self._look
        if look is None:
            look = self._look = EndpointLook(endpoint, endpoint.counters, self.oldest_s)
        look.endpoint = endpoint
        look.counts = endpoint.counters
        return QUEUES.row(look)

    def oldest_s(self, endpoint: Endpoint) -> float:
        """Seconds that the oldest message of an endpoint has been there, 0 for none."""
        number = oldest_id(endpoint)
        if not number:
            return 0.0
        context = self.spool.context
        if self._times.knows(number):
            return round(self._times.age_ns(number, context.now_ns) / SECOND_NS, 3)
        known = self._read.get(endpoint.number)
        if known is None or known[0] != number:
            if self._left <= 0:
                return round(self._times.age_ns(number, context.now_ns) / SECOND_NS, 3)
            self._left -= 1
            try:
                since_ns = self.spool.message(number).ingress_ns
            except (SpoolError, KeyError):
                return 0.0
            known = (number, since_ns)
            self._read[endpoint.number] = known
        return round(max(0, context.steady_ns - known[1]) / SECOND_NS, 3)


def oldest_id(endpoint: Endpoint) -> int:
    """Spool id of the oldest message that waits or that a consumer has, 0 for none."""
    found: list[int] = []
    for pool in endpoint.pools():
        if pool.count:
            found += pool.oldest()
    for flow in endpoint.holders():
        unacked = flow.unacked
        if unacked:
            found.append(min(unacked) if len(unacked) <= LOOKED_THROUGH else next(iter(unacked)))
    if len(endpoint.schedule.delayed):
        found += endpoint.schedule.delayed.ids()[:1]
    return min(found, default=0)
