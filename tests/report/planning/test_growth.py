"""How queues and bridges grow, and when nothing is said about it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.planning.growth import (
    Trend,
    growth,
    levels,
    line,
    mean_growth,
    whole_stretches,
)
from vpnrouter.report.planning.traffic import Traffic
from vpnrouter.report.rules.queues import FULL
from vpnrouter.report.schema import GROWTH, Rows
from vpnrouter.units import DAY_NS

HOUR: Final = DAY_NS // 24
Q: Final = ("core", "yellow", "q")


def steps(weights: Sequence[float | None], size: int = 100, **more: Any) -> Rows:
    """Rows of `levels`, an hour apart, of messages of one size."""
    names = dict(zip(("router", "vpn", "endpoint"), Q, strict=True))
    return [
        {**names, "start_ns": at * HOUR, "weight": weight, "enqueued": 10, "bytes": 10 * size}
        | more
        for at, weight in enumerate(weights)
    ]


def judged(
    traffic: Callable[..., Traffic], rows: Rows, hours: int, quota: int | None = None
) -> dict[str, Any]:
    """The row of that queue."""
    quotas = {} if quota is None else {Q: quota}
    listed = growth(traffic(["a>b"], {}), rows, quotas, range(0, hours * HOUR, HOUR))
    (row,) = [row for row in listed if row["what"] == "queue"]
    assert row.keys() == set(GROWTH.names)
    return row


def even(count: int, mean: float, scatter: float = 0.0) -> list[float]:
    """Growth around a mean, that scatters up and down independently."""
    draw = random.Random(5)
    return [mean + draw.gauss(0, scatter) for _ in range(count)]


def test_an_even_queue(traffic: Callable[..., Traffic]) -> None:
    """30 hours of 50 messages of 100 bytes: 120 kB a day; 150 kB are in it, and 60 kB of 210 are left: half a day."""
    row = judged(traffic, steps(even(30, 50.0)), 30, 210_000)
    assert (row["unit"], row["level"], row["limit"]) == ("bytes", 150_000.0, 210_000.0)
    assert row["per_day"] == pytest.approx(120_000.0)
    assert (row["days"], row["days_low"], row["days_high"]) == pytest.approx((0.5, 0.5, 0.5))
    assert (row["stretches"], row["reason"]) == (30, None)


def test_scatter_widens_the_interval(traffic: Callable[..., Traffic]) -> None:
    """The interval of the days is that of the growth, the other way round."""
    row = judged(traffic, steps(even(48, 50.0, 20.0)), 48, 500_000)
    assert row["per_day_low"] < row["per_day"] < row["per_day_high"]
    assert row["per_day_low"] < 120_000 < row["per_day_high"]
    room = 500_000 - row["level"]
    assert row["days_low"] == pytest.approx(room / row["per_day_high"])
    assert row["days_low"] < row["days"] < row["days_high"]


@pytest.mark.parametrize(
    ("weights", "hours", "quota", "reason"),
    [
        (even(30, 50.0), 19, 210_000, "too short"),
        (even(30, 1.0, 20.0), 30, 210_000, "no clear trend"),
        ([*[100.0] * 10, *[-100.0] * 10, *[100.0] * 10], 30, 900_000, "no clear trend"),
        (even(30, -50.0, 5.0), 30, 210_000, "falls"),
        (even(30, 50.0, 5.0), 30, None, "quota not known"),
        # At 5 kB an hour, 1.5 MB are as far as ten times the 30 hours that were seen.
        (even(30, 50.0), 30, 150_000 + 1_510_000, "too far ahead"),
        ([*even(29, 50.0), None], 30, 210_000, "sampling rate not known"),
    ],
)
def test_nothing_is_said(
    traffic: Callable[..., Traffic],
    weights: list[float],
    hours: int,
    quota: int | None,
    reason: str,
) -> None:
    """Where it would be a guess."""
    row = judged(traffic, steps(weights), hours, quota)
    assert (row["days"], row["days_low"], row["days_high"]) == (None, None, None)
    assert row["reason"] == reason


def test_a_reach_of_ten_times_is_told(traffic: Callable[..., Traffic]) -> None:
    """Just within it, and a queue that is over its quota now."""
    row = judged(traffic, steps(even(30, 50.0)), 30, 150_000 + 1_490_000)
    assert row["days"] == pytest.approx(298 / 24)
    assert judged(traffic, steps(even(30, 50.0)), 30, 100_000)["days"] == 0.0


def test_bridges_grow_along_a_line() -> None:
    """The slope, its interval and the height at the end, against the textbook's figures; white noise has none."""
    values = [1.0, 3.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0, 9.0, 11.0, 10.0, 12.0] * 2
    values = [value + (at // 12) * 12 for at, value in enumerate(values)]
    trend, end = line(values)
    mean = sum(range(24)) / 24
    width = sum((at - mean) ** 2 for at in range(24))
    slope = sum((at - mean) * value for at, value in enumerate(values)) / width
    middle = sum(values) / 24
    assert trend is not None
    assert (trend.mean, end) == (pytest.approx(slope), pytest.approx(middle + slope * (23 - mean)))
    left = [value - middle - slope * (at - mean) for at, value in enumerate(values)]
    error = (sum(one * one for one in left) / 22 / width) ** 0.5
    # At least what Student's distribution has for 22 degrees of freedom, which 24 independent stretches leave.
    assert trend.high - trend.mean >= 2.0739 * error * 0.999
    assert line([5.0] * 24) == (Trend(0.0, 0.0, 0.0, 0.0), 5.0)


def test_a_bridge_is_followed_to_twice_its_peak(traffic: Callable[..., Traffic]) -> None:
    """In messages per second; a bridge without rates has no row; queues that are full sooner come first."""
    rates = {"a>b": range(0, 400, 4)}
    made = traffic(["a>b", "b>c"], {"a>b": sum(rates["a>b"])}, rates=rates, stretches=100)
    second = 1_000_000_000
    row, *more = growth(made, [], {}, range(0, 100 * second, second))
    assert more == []
    assert row.keys() == set(GROWTH.names)
    assert (row["router"], row["peer_router"], row["unit"]) == ("b", "a", "messages/s")
    assert (row["level"], row["limit"]) == pytest.approx((396.0, 792.0))
    assert row["per_day"] == pytest.approx(4 * 86_400)
    assert row["days"] * 86_400 == pytest.approx(99.0)
    rows = growth(made, steps(even(30, 50.0)), {Q: 160_000}, range(0, 100 * second, second))
    assert [(one["what"], one["reason"]) for one in rows] == [
        ("bridge", None),
        ("queue", "no clear trend"),
    ]


def test_whole_stretches() -> None:
    """Those that begin before the time observed, or end after it, are left out."""
    assert whole_stretches((5, 39), 10) == range(10, 40, 10)
    assert whole_stretches((10, 38), 10) == range(10, 30, 10)
    assert list(whole_stretches((11, 18), 10)) == []


def _series(draw: random.Random, count: int, alike: float) -> list[float]:
    values = [0.0]
    for _ in range(count + 50):
        values.append(alike * values[-1] + draw.gauss(0, 1))
    return values[-count:]


@pytest.mark.parametrize("alike", [0.0, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("count", [20, 30, 60])
def test_few_intervals_are_wrong(count: int, alike: float) -> None:
    """Of series without any trend, whose neighbours are more or less alike, up to a random walk."""
    draw = random.Random(count)
    tries = 600
    wrong = {"line": 0, "mean": 0}
    for _ in range(tries):
        values = _series(draw, count, alike)
        slope, _ = line(values)
        wrong["line"] += slope is not None and not slope.low <= 0 <= slope.high
        if alike < 1.0:
            mean = mean_growth([value + 5 for value in values])
            wrong["mean"] += mean is not None and not mean.low <= 5 <= mean.high
    assert max(wrong.values()) <= 0.12 * tries
    if not alike:
        assert max(wrong.values()) <= 0.06 * tries


def test_of_many_bridges_few_grow_by_chance(traffic: Callable[..., Traffic]) -> None:
    """Of 300 bridges whose load only scatters none is said to grow, though some intervals are above 0."""
    draw = random.Random(3)
    second = 1_000_000_000
    names = [f"a>b>{at}" for at in range(300)]
    rates = {name: [draw.randrange(50, 150) for _ in range(40)] for name in names}
    rates["a>b>7"] = [50 + 3 * at + draw.randrange(30) for at in range(40)]
    made = traffic(names, {}, rates=rates, stretches=40)
    rows = growth(made, [], {}, range(0, 40 * second, second))
    assert [row["bridge"] for row in rows if row["days"] is not None] == ["7"]
    assert sum((row["per_day_low"] or 0.0) > 0 for row in rows) > 2


def test_levels(digest_of: Callable[[str, Rows], DataFrame]) -> None:
    """What came in less what left, with partitions and causes together; what found no room never was in it, and an
    expired message is counted where it went.
    """
    place = {"router": "core", "vpn": "yellow"}
    q = {**place, "endpoint": "q"}
    load = {"acknowledged": 0, "enqueued": 10, "bytes": 100}
    endpoints = [
        {**q, "partition": 0, "start_ns": 0, **load, "weight": 20.0},
        {**q, "partition": 1, "start_ns": 0, **load, "weight": 4.0},
        {**q, "start_ns": 60, **load, "weight": -5.0},
        {**place, "endpoint": "small", "start_ns": 0, **load, "weight": 1.0},
        {**place, "endpoint": "unknown", "start_ns": 0, **load, "weight": None},
    ]
    lost = {**q, "start_ns": 0, "count": 3, "weight": 3.0, "reason": "ttl-exceeded"}
    losses = [
        {**lost, "event": "expire"},
        {**lost, "event": "dead_letter", "count": 2, "weight": 2.0},
        {**lost, "event": "discard", "count": 1, "weight": 1.0},
        {**lost, "event": "discard", "reason": FULL[0], "weight": 50.0},
        {**lost, "event": "discard", "start_ns": 120, "weight": 7.0},
        {**lost, "event": "discard", "endpoint": "", "weight": 7.0},
        {**lost, "event": "discard", "endpoint": "never", "weight": 7.0},
    ]
    frames = digest_of("endpoints", endpoints), digest_of("losses", losses)
    found = [tuple(row[n] for n in ("endpoint", "start_ns", "weight", "enqueued", "bytes"))
             for row in levels(*frames)]  # fmt: skip
    assert found == [
        ("q", 0, 21.0, 20, 200),
        ("q", 60, -5.0, 10, 100),
        ("q", 120, -7.0, 0, 0),
        ("small", 0, 1.0, 10, 100),
        ("unknown", 0, None, 10, 100),
    ]
    assert {row["endpoint"] for row in levels(*frames, most=1)} == {"q"}
