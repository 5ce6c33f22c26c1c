"""Names the reasons for discards, in the field's words, and counts discards by reason."""

from __future__ import annotations

from typing import Final, final

NO_SUBSCRIPTION_MATCH: Final = "no-subscription-match"
TOPIC_PARSE_ERROR: Final = "topic-parse-error"
PARSE_ERROR: Final = "parse-error"
MSG_TOO_BIG: Final = "msg-too-big"
TTL_EXCEEDED: Final = "ttl-exceeded"
TTL_EXPIRED: Final = "ttl-expired"
"""Of what a bridge or a connector was to carry: its life time was over, and `expired` is discard."""
PUBLISH_TOPIC_ACL: Final = "publish-topic-acl"
SUBSCRIBE_TOPIC_ACL: Final = "subscribe-topic-acl"
"""Kept for a client in its endpoint when its ACL profile still allowed it to be sent."""
TRANSMIT_CONGESTION: Final = "transmit-congestion"
CLIENT_NOT_CONNECTED: Final = "client-not-connected"
NO_LOCAL_DELIVERY: Final = "no-local-delivery"
LOOP_DETECTED: Final = "loop-detected"
DUPLICATE: Final = "duplicate"
NOT_SUBSCRIBED: Final = "not-subscribed"
"""Of what a bridge brings only: it had not asked for it, or the queue that the topic names is not open to it."""
RETURNED: Final = "returned-to-remote-queue"
"""Of a bridge's guaranteed messages only: the link was lost before it was taken, and it comes again."""
REFUSED: Final = "refused"
"""Of a bridge's guaranteed messages only: refused here and given up, for the remote's dead message queue."""
UNACCOUNTED: Final = "unaccounted-after-crash"
"""What was there when the counts were written last, and not when the router was back: nobody knows where it went."""
PAUSED: Final = "paused"
"""Of a link of a connector only: it came at most once while the link was paused."""
NOT_TRANSFORMED: Final = "not-transformed"
"""A step of the link's transform could not change it."""
FAULT: Final = "router-fault"
"""A fault of the router, which was contained, cut it off."""

REASONS: Final = (
    NO_SUBSCRIPTION_MATCH,
    TOPIC_PARSE_ERROR,
    PARSE_ERROR,
    MSG_TOO_BIG,
    TTL_EXCEEDED,
    TTL_EXPIRED,
    PUBLISH_TOPIC_ACL,
    SUBSCRIBE_TOPIC_ACL,
    TRANSMIT_CONGESTION,
    CLIENT_NOT_CONNECTED,
    NO_LOCAL_DELIVERY,
    LOOP_DETECTED,
    DUPLICATE,
    NOT_SUBSCRIBED,
    RETURNED,
    REFUSED,
    UNACCOUNTED,
    PAUSED,
    NOT_TRANSFORMED,
    FAULT,
)


@final
class DiscardCounts:
    """How many messages were discarded, by reason."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, reason: str, count: int = 1) -> None:
        """Count `count` messages discarded for `reason`, one of REASONS."""
        self.counts[reason] = self.counts.get(reason, 0) + count

    def merge(self, other: DiscardCounts) -> None:
        """Add what `other` counted."""
        for reason, count in other.counts.items():
            self.add(reason, count)

    def total(self) -> int:
        """The sum of the counts of all reasons."""
        return sum(self.counts.values())
