"""The state of a link, and counts that an earlier life of the router has left."""

import pytest

from vpnrouter.connectors.link_state import (
    LinkCounters,
    LinkEvent,
    LinkOwner,
    LinkState,
    LinkStatus,
)


class Owner(LinkOwner):
    """Counts what it is told."""

    told = 0

    def link_changed(self, link: str) -> None:
        self.told += 1


@pytest.mark.parametrize("paused", [False, True])
def test_paused(paused: bool) -> None:
    """A pause is shown instead of what a link does while nothing keeps it from that; it is told once."""
    owner = Owner()
    status = LinkStatus(owner, "l", enabled=True, now_ns=1, paused=paused)
    for _ in range(2):
        status.pause(True, 2)
    assert owner.told == (0 if paused else 1)
    assert (status.state, status.since_ns, status.reason) == (LinkState.PAUSED, 2 - paused, "")
    status.happened(LinkEvent.CONNECTED, 3)
    assert status.opens
    status.happened(LinkEvent.OPENED, 4)
    assert (status.state, status.is_open) == (LinkState.PAUSED, True)
    status.hold("its queue is full", 5)
    assert (status.state, status.reason) == (LinkState.PAUSED, "its queue is full")
    status.pause(False, 6)
    assert (status.state, status.since_ns) == (LinkState.HELD, 6)
    status.hold("", 7)
    status.pause(True, 8)
    status.happened(LinkEvent.REFUSED, 9, "why")
    assert (status.state, status.reason, status.is_open) == (LinkState.REFUSED, "why", False)
    assert LinkStatus(owner, "l", enabled=False, now_ns=1, paused=True).state is LinkState.DISABLED


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
