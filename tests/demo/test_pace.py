"""How far ahead is published."""

import numpy as np

from vpnrouter.demo.clients import AHEAD, STALL_S, WINDOW, Pace

FLIGHTS = 10 * WINDOW
EACH = np.arange(FLIGHTS + 1, dtype=np.int64)


def test_bounded() -> None:
    """While nobody receives anything, no more than the windows allowed ahead are granted."""
    pace = Pace({"all": EACH}, FLIGHTS)
    grants = [pace.grant(0.0) for _ in range(AHEAD + 3)]
    assert [grant for grant in grants if grant is not None] == [
        WINDOW * (at + 1) for at in range(AHEAD)
    ]


def test_follows_the_slowest() -> None:
    """The next window waits for the subscriber that is furthest behind."""
    pace = Pace({"quick": EACH, "slow": EACH // 2}, FLIGHTS)
    while pace.grant(0.0):
        pass
    pace.received({"quick": AHEAD * WINDOW, "slow": WINDOW // 2 - 1}, 0.1)
    assert pace.grant(0.1) is None
    pace.received({"slow": WINDOW // 2}, 0.1)
    assert pace.grant(0.1) == (AHEAD + 1) * WINDOW


def test_complete() -> None:
    """It is over when everything is granted and received."""
    pace = Pace({"all": EACH}, FLIGHTS)
    now_s = 0.0
    while (granted := pace.grant(now_s)) is not None:
        assert not pace.complete(now_s)
        pace.received({"all": granted}, now_s)
    assert pace.granted == FLIGHTS
    assert pace.complete(now_s)
    assert pace.given_up == set()


def test_gives_up() -> None:
    """A subscriber that lacks messages is not waited for once nothing has moved for long enough."""
    pace = Pace({"good": EACH, "lacking": EACH}, FLIGHTS)
    while pace.grant(0.0):
        pass
    pace.received({"good": pace.granted, "lacking": 1}, 1.0)
    assert pace.grant(1.0 + STALL_S - 0.1) is None
    assert pace.grant(1.0 + STALL_S) == (AHEAD + 1) * WINDOW
    assert pace.given_up == {"lacking"}


def test_fewer_than_a_window() -> None:
    """A short run is one window of its own length."""
    pace = Pace({"all": np.arange(8, dtype=np.int64)}, 7)
    assert pace.grant(0.0) == 7
    assert pace.grant(0.0) is None
