"""vpnrouter.management.status.stats_baseline: cleared counts stay in balance, and faults are not cleared away."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.counters import Counters
from vpnrouter.core.guaranteed.counters import EndpointCounters
from vpnrouter.management.status.stats_baseline import (
    EndpointBaselines,
    bridge_base,
    bridge_counts,
    endpoint_counts,
    reasons_since,
)

COUNT = st.integers(0, 9)
flows = st.tuples(
    COUNT, COUNT, st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 9)), COUNT
)


class Held:
    """What is asked of an endpoint."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.counters = EndpointCounters()
        self.spooled_bytes = 0

    def go_on(self, given: Any) -> None:
        """Messages come and go; `held` of them are there then."""
        acked, moved, discarded, more = given
        counters = self.counters
        gone = acked + moved + sum(discarded.values())
        counters.spooled += gone + more
        counters.acked += acked
        counters.moved += moved
        counters.redelivered += acked
        counters.bind_failures["full"] = counters.bind_failures.get("full", 0) + moved
        for reason, count in discarded.items():
            counters.discarded.add(reason, count)
        counters.peak_bytes = max(counters.peak_bytes, self.spooled_bytes)


@given(flows, flows, COUNT, st.integers(-2, 2))
def test_endpoints(before: Any, after: Any, recovered: int, fault: int) -> None:
    """What is shown is what happened since; the balance is what it was, be it 0 or a fault."""
    endpoint: Any = Held(1)
    live = endpoint.counters
    live.recovered = recovered
    endpoint.go_on(before)
    live.spooled += fault
    cleared = EndpointBaselines()
    assert cleared.counters(endpoint) is live
    held = recovered + before[3]
    assert live.imbalance(held) == fault
    endpoint.spooled_bytes, live.peak_bytes = 5, 50
    cleared.clear(endpoint)
    shown = cleared.counters(endpoint)
    assert (shown.spooled, shown.acked, shown.moved, shown.peak_bytes) == (0, 0, 0, 5)
    assert (shown.discarded.counts, shown.bind_failures) == ({}, {})
    assert shown.recovered == held + fault
    assert shown.imbalance(held) == fault
    endpoint.go_on(after)
    shown = cleared.counters(endpoint)
    assert (shown.acked, shown.redelivered) == (after[0], after[0])
    assert shown.discarded.counts == after[2]
    assert shown.imbalance(held + after[3]) == fault
    assert live.imbalance(held + after[3]) == fault


def _counts_of(live: object) -> list[str]:
    """Names of the numbers that can be written; compiled classes have no list of them."""
    found = []
    for name in dir(live):
        if name[0] != "_" and isinstance(getattr(live, name), int):
            try:
                setattr(live, name, getattr(live, name))
            except AttributeError:
                continue
            found.append(name)
    assert len(found) > 10
    return found


def test_everything_is_taken_off() -> None:
    """No count of an endpoint or a bridge is forgotten when another one is added."""
    for kind, since in ((EndpointCounters, endpoint_counts), (Counters, bridge_counts)):
        live, base = kind(), kind()
        names = _counts_of(live)
        for number, name in enumerate(names, 100):
            setattr(live, name, number)
            setattr(base, name, 90)
        shown = since(live, base)  # type: ignore[operator]
        for number, name in enumerate(names, 100):
            kept = name.startswith(("last_", "peak_"))
            assert getattr(shown, name) == (number if kept else number - 90), name


@given(flows, flows, COUNT, st.integers(-2, 2))
def test_bridges(before: Any, after: Any, in_flight: int, fault: int) -> None:
    """The same for a bridge, in both directions; what was in flight comes afterwards."""
    live = Counters()

    def go_on(given: Any) -> None:
        delivered, sent, discarded, _ = given
        lost = sum(discarded.values())
        live.data_rx(delivered + lost, 100, 7)
        live.delivered_rx_msg_count += delivered
        live.offered_tx_msg_count += sent + lost
        live.data_tx(sent, 100, 8)
        for reason, count in discarded.items():
            live.discard_rx(reason, count)
            live.discard_tx(reason, count)

    go_on(before)
    live.data_rx_msg_count += in_flight + fault
    live.offered_tx_msg_count += in_flight + fault
    base = bridge_base(live)
    shown = bridge_counts(live, base)
    assert shown.data_rx_msg_count == shown.offered_tx_msg_count == in_flight + fault
    assert (shown.delivered_rx_msg_count, shown.discarded_rx_msg_count) == (0, 0)
    go_on(after)
    shown = bridge_counts(live, base)
    assert shown.rx_imbalance(in_flight) == live.rx_imbalance(in_flight) == fault
    assert shown.tx_imbalance(in_flight) == live.tx_imbalance(in_flight) == fault
    assert shown.delivered_rx_msg_count == after[0]
    assert shown.discarded_tx.counts == after[2]
    assert (shown.last_data_rx_ns, shown.last_data_tx_ns) == (7, 8)


def test_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the one that was cleared longest ago shows everything again."""
    monkeypatch.setattr(limits, "CLEARED_COUNTS", 2)
    cleared = EndpointBaselines()
    endpoints: list[Any] = [Held(number) for number in range(3)]
    for number in (0, 1, 0, 2):
        endpoints[number].counters.acked += 4
        cleared.clear(endpoints[number])
    assert [cleared.counters(each).acked for each in endpoints] == [0, 4, 0]


def test_reasons() -> None:
    """What did not happen again is left out."""
    assert reasons_since({"a": 3, "b": 2}, {"a": 3, "b": 1}) == {"b": 1}
    live = {"a": 1}
    assert reasons_since(live, {}) == live
    assert reasons_since(live, {}) is not live
