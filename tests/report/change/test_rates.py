import random

import pytest

from vpnrouter.report.change.compare import Count, comparable, count_of, differ


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Count(1_000, 1_000, 60), Count(1_400, 1_400, 60), False),  # within the factor
        (Count(1_000, 1_000, 60), Count(1_600, 1_600, 60), True),
        (Count(1_000, 1_000, 60), Count(500, 500, 30), False),  # the same rate
        (Count(4, 4, 60), Count(9, 9, 60), False),  # chance
        (Count(0, 0, 60), Count(20, 20, 60), False),
        (Count(0, 0, 60), Count(60, 60, 60), True),
        (Count(30, 3_000, 60), Count(60, 6_000, 60), False),  # few were traced
        (Count(0, 0, 60), Count(20, 2_000, 60), False),
    ],
)
def test_when_rates_differ(before: Count, after: Count, expected: bool) -> None:
    """By more than the factor, and by more than chance; it is the same the other way round."""
    assert differ(before, after) is expected
    assert differ(after, before) is expected


def test_equal_traffic_raises_no_alarm() -> None:
    """Five thousand pairs of counts of the same rate, from none to hundreds: not one differs."""
    draw = random.Random(8)
    for _ in range(5_000):
        mean = draw.choice([0.5, 3, 20, 200])
        one, other = (sum(draw.random() < mean / 1_000 for _ in range(1_000)) for _ in range(2))
        assert not differ(Count(one, one, 10), Count(other, other, 10)), (one, other)


def test_columns() -> None:
    """The estimate counts as messages where there is one; both must have one, or neither."""
    row: dict[str, object] = {"ingress": 5, "ingress_estimated": 500, "delivered": 7}
    assert count_of(row, "ingress", 2.0) == (5, 500.0, 2.0)
    assert count_of(row, "delivered", 2.0).rate == 3.5
    assert count_of(None, "ingress", 2.0) == (0, 0.0, 2.0)
    other: dict[str, object] = {"ingress": 5, "ingress_estimated": None}
    assert not comparable(row, other, "ingress")
    assert comparable(other, other, "ingress")
