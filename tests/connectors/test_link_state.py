"""Counts of a link that an earlier life of the router has left."""

import pytest

from vpnrouter.connectors.link_state import LinkCounters


@pytest.mark.parametrize(
    ("counted", "delivered", "in_flight", "messages", "unaccounted"),
    [
        pytest.param(0, 0, 0, 0, 0, id="new"),
        pytest.param(0, 0, 5, 5, 0, id="set aside, and nothing was counted"),
        pytest.param(9, 4, 5, 9, 0, id="as it was"),
        pytest.param(9, 4, 7, 11, 0, id="more was set aside afterwards"),
        pytest.param(9, 4, 2, 9, 3, id="some have gone, nobody knows where to"),
        pytest.param(9, 9, 0, 9, 0, id="nothing was left open"),
    ],
)
def test_balance(
    counted: int, delivered: int, in_flight: int, messages: int, unaccounted: int
) -> None:
    """Every message is accounted for, whatever is there now; a second time changes nothing."""
    counters = LinkCounters()
    counters.messages, counters.delivered = counted, delivered
    for _ in range(2):
        counters.balance(in_flight)
        assert counters.messages == messages == counters.outcomes + in_flight
        assert counters.discarded.counts == (
            {"unaccounted-after-crash": unaccounted} if unaccounted else {}
        )
