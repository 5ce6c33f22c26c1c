"""The bound on lines of one name."""

from vpnrouter.events.log import RateLimit
from vpnrouter.units import SECOND_NS


def test_each_name_has_its_own_second() -> None:
    """The first ones pass, the others are counted; a second later they pass again."""
    limit = RateLimit(2)
    assert [limit.admits("A", 10) for _ in range(5)] == [True, True, False, False, False]
    assert limit.admits("B", 10)
    assert limit.suppressed() == {"A": 3}
    assert limit.suppressed() == {}
    assert not limit.admits("A", 9 + SECOND_NS)
    assert limit.admits("A", 10 + SECOND_NS)


def test_zero_lets_all_through() -> None:
    """Nothing is counted without a bound."""
    limit = RateLimit(0)
    assert all(limit.admits("A", 1) for _ in range(1_000))
    assert limit.suppressed() == {}


def test_a_clock_that_is_set_back_begins_anew() -> None:
    """Nobody waits for a time that was already."""
    limit = RateLimit(1)
    assert limit.admits("A", 10 * SECOND_NS)
    assert limit.admits("A", 1)
