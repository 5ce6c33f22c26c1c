"""Counts the messages and bytes of an endpoint."""

from __future__ import annotations

from typing import Final, final

from vpnrouter.core.discard_reasons import DiscardCounts

ACKED: Final = 0
DISCARDED: Final = 1
MOVED: Final = 2
DELETED: Final = 3
"""Causes for which a message leaves an endpoint. A discarded one has a reason as well."""


@final
class EndpointCounters:
    """Counters of one endpoint, over restarts (server/spool/saved_counters.py); they only grow.

    For an endpoint, recovered + spooled = acked + discarded + deleted + moved + in the spool, at every
    instant (promise BALANCE). `discarded` holds what the endpoint did not take at all under
    `refused`, and what it had taken and lost under `discarded`.
    """

    __slots__ = (
        "acked",
        "bind_failures",
        "bind_request_count",
        "bind_success_count",
        "deleted",
        "delivered",
        "discarded",
        "last_replay_failure_reason",
        "moved",
        "peak_bytes",
        "recovered",
        "redelivered",
        "refused",
        "replay_failure_count",
        "replay_start_count",
        "replay_state",
        "replay_success_count",
        "spooled",
        "spooled_bytes",
        "to_dmq",
        "to_dmq_failed",
    )

    def __init__(self) -> None:
        self.acked = 0
        self.bind_failures: dict[str, int] = {}
        self.bind_request_count = 0
        self.bind_success_count = 0
        self.deleted = 0
        self.delivered = 0
        self.discarded = DiscardCounts()
        self.moved = 0
        self.peak_bytes = 0
        self.recovered = 0
        self.redelivered = 0
        self.refused = DiscardCounts()
        self.replay_start_count = 0
        self.replay_success_count = 0
        self.replay_failure_count = 0
        self.replay_state = ""
        self.last_replay_failure_reason = ""
        self.spooled = 0
        self.spooled_bytes = 0
        self.to_dmq: dict[str, int] = {}
        self.to_dmq_failed: dict[str, int] = {}

    def imbalance(self, in_spool: int) -> int:
        """Messages not accounted for; anything but 0 is a fault of the router."""
        gone = self.acked + self.discarded.total() + self.deleted + self.moved
        return self.recovered + self.spooled - gone - in_spool
