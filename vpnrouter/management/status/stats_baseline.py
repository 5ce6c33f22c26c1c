"""Counts that an operator cleared: their values at that time are subtracted from what is shown. The counts go on.

Nothing that runs along with the messages is touched, and what is shown stays in balance: what an endpoint
holds, or a bridge has in flight, when its counts are cleared, counts as having come first thing afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.counters import COUNTS, Counters
from vpnrouter.core.guaranteed.counters import EndpointCounters

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint


_ENDPOINT_COUNTS: Final = (
    "acked",
    "bind_request_count",
    "bind_success_count",
    "deleted",
    "delivered",
    "moved",
    "recovered",
    "redelivered",
    "replay_failure_count",
    "replay_start_count",
    "replay_success_count",
    "spooled",
    "spooled_bytes",
)

_ENDPOINT_REASONS: Final = ("bind_failures", "to_dmq", "to_dmq_failed")


@final
class EndpointBaselines:
    """What the counts of endpoints stood at when they were cleared, by the number of the endpoint."""

    def __init__(self) -> None:
        self._bases: dict[int, EndpointCounters] = {}

    def clear(self, endpoint: Endpoint) -> None:
        """Begin the counts of an endpoint anew."""
        live = endpoint.counters
        base = endpoint_counts(live, EndpointCounters())
        # What it holds is what was there when the counts began.
        gone = live.acked + live.discarded.total() + live.deleted + live.moved
        base.recovered = gone - live.spooled
        # A peak is no count: nothing balances it.
        live.peak_bytes = endpoint.spooled_bytes
        self._bases.pop(endpoint.number, None)
        if len(self._bases) >= limits.CLEARED_COUNTS:
            del self._bases[next(iter(self._bases))]
        self._bases[endpoint.number] = base

    def counters(self, endpoint: Endpoint) -> EndpointCounters:
        """The counts to show. Not to be changed."""
        base = self._bases.get(endpoint.number)
        return endpoint.counters if base is None else endpoint_counts(endpoint.counters, base)


def endpoint_counts(live: EndpointCounters, base: EndpointCounters) -> EndpointCounters:
    """What was counted since the counts stood at `base`."""
    shown = EndpointCounters()
    for name in _ENDPOINT_COUNTS:
        setattr(shown, name, getattr(live, name) - getattr(base, name))
    for name in _ENDPOINT_REASONS:
        setattr(shown, name, reasons_since(getattr(live, name), getattr(base, name)))
    shown.discarded.counts = reasons_since(live.discarded.counts, base.discarded.counts)
    shown.refused.counts = reasons_since(live.refused.counts, base.refused.counts)
    shown.peak_bytes = live.peak_bytes
    shown.replay_state = live.replay_state
    shown.last_replay_failure_reason = live.last_replay_failure_reason
    return shown


def bridge_counts(live: Counters, base: Counters) -> Counters:
    """What a bridge counted since its counts stood at `base`."""
    shown = Counters()
    for name in COUNTS:
        setattr(shown, name, getattr(live, name) - getattr(base, name))
    shown.discarded_rx.counts = reasons_since(live.discarded_rx.counts, base.discarded_rx.counts)
    shown.discarded_tx.counts = reasons_since(live.discarded_tx.counts, base.discarded_tx.counts)
    shown.last_data_rx_ns = live.last_data_rx_ns
    shown.last_data_tx_ns = live.last_data_tx_ns
    return shown


def bridge_base(live: Counters) -> Counters:
    """What to take off the counts of a bridge that are cleared now.

    What is in flight came, and was offered, afterwards. A fault that was there is still shown: messages that
    are not accounted for cannot be cleared.
    """
    base = bridge_counts(live, Counters())
    base.data_rx_msg_count = live.delivered_rx_msg_count + live.discarded_rx_msg_count
    base.offered_tx_msg_count = live.data_tx_msg_count + live.discarded_tx_msg_count
    return base


def reasons_since(live: dict[str, int], base: dict[str, int]) -> dict[str, int]:
    """What was counted by reason since; a reason that was not counted again is left out."""
    if not base:
        return dict(live)
    found = {reason: count - base.get(reason, 0) for reason, count in live.items()}
    return {reason: count for reason, count in found.items() if count}
