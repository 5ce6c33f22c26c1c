"""Fits trends to queues and bridges, and says when they will be full, or says nothing where that would be a guess.

A queue's level is a sum of what came in less what went out, so that its values follow from each other and a line
through them would look far too certain. What is fitted is the growth in each stretch of time: its mean, and from its
scatter how far the mean may be off. A bridge's load is fitted by a line. Neighbouring stretches are alike, in traffic
that comes in waves: by the correlation of neighbours r, n of them say as much as n (1 - r) / (1 + r) independent ones.

Of series that scatter independently one in twenty gets a wrong interval. Of those whose neighbours are alike, random
walks among them, most get none, and one in ten a wrong one: tests/report/planning/test_growth.py measures that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_GROWTH
from vpnrouter.report.planning.traffic import Traffic
from vpnrouter.report.rules.queues import FULL
from vpnrouter.report.schema import GROWTH, Rows
from vpnrouter.units import DAY_NS

Figures = NDArray[np.float64]
Endpoint = tuple[str, str, str]
"""Router, message VPN and name."""

QUEUE: Final = "queue"
BRIDGE: Final = "bridge"

SHORT: Final = "too short"
NOISY: Final = "no clear trend"
FALLING: Final = "falls"
FAR: Final = "too far ahead"
NO_QUOTA: Final = "quota not known"
NO_RATE: Final = "sampling rate not known"
"""Reasons for which a row says less."""

_LEAST_STRETCHES: Final = 20
"""Whole stretches: fewer show what happened, and no trend."""

_LEAST_FREE: Final = 6.0
"""Independent stretches, of those there are: with less the interval says nothing."""

_REACH: Final = 10.0
"""Times the observed time that a trend is followed ahead: nobody knows next year's load from an hour."""

_DOUBLED: Final = 2.0
"""Times its highest load: where a bridge's growth is followed to."""

_PLACE: Final = ("router", "vpn", "endpoint")
_GONE: Final = ("dead_letter", "discard")
"""Events by which a message leaves without a consumer; `expire` comes before one of these."""


def levels(endpoints: DataFrame, losses: DataFrame, most: int = REPORT_GROWTH) -> Rows:
    """Return from ENDPOINTS and LOSSES by how many messages endpoints grew in each stretch: `router`, `vpn`,
    `endpoint`, `start_ns`, `weight` (estimated; null where a rate is not known), `enqueued` and `bytes`.

    They are those of the endpoints that changed the most, at most so many of them. One Spark job.
    """
    nothing = F.lit(0).cast("long")
    came = endpoints.select(*_PLACE, "start_ns", "weight", "enqueued", "bytes")
    gone = losses.where(
        F.col("event").isin(*_GONE) & ~F.col("reason").isin(*FULL) & (F.col("endpoint") != "")
    ).select(
        *_PLACE,
        "start_ns",
        (-F.col("weight")).alias("weight"),
        nothing.alias("enqueued"),
        nothing.alias("bytes"),
    )
    known = F.count("weight") == F.count(F.lit(1))
    figures = (
        F.when(known, F.sum("weight")).alias("weight"),
        F.sum("enqueued").alias("enqueued"),
        F.sum("bytes").alias("bytes"),
    )
    both = came.unionByName(gone).groupBy(*_PLACE, "start_ns").agg(*figures)
    chosen = (
        both.groupBy(*_PLACE)
        .agg(F.sum("weight").alias("net"), F.sum("enqueued").alias("came"))
        .where(F.col("came") > 0)
        .orderBy(F.abs("net").desc_nulls_last(), F.desc("came"), *_PLACE)
        .limit(most)
        .select(*_PLACE)
    )
    rows: Rows = (
        both.join(F.broadcast(chosen), list(_PLACE))
        .orderBy(*_PLACE, "start_ns")
        .toArrow()
        .to_pylist()
    )
    return rows


class Trend(NamedTuple):
    """A growth and its interval, each per stretch. `sure` is the least that it is if none of many such trends is to be
    called one by chance.
    """

    mean: float
    low: float
    high: float
    sure: float


def mean_growth(steps: Sequence[float], many: int = 1) -> Trend | None:
    """Return the mean of the growth in each stretch, of one of so many series; None if too few or too alike to say."""
    values: Figures = np.asarray(steps, dtype=np.float64)
    mean = float(values.mean())
    return _interval(mean, values - mean, 1, math.sqrt(len(values)), many)


def line(values: Sequence[float], many: int = 1) -> tuple[Trend | None, float]:
    """Return the slope of a line through values, one a stretch, of one of so many series, and its height at the end."""
    heights: Figures = np.asarray(values, dtype=np.float64)
    at = np.arange(len(heights)) - (len(heights) - 1) / 2
    width = float(at @ at)
    slope = float(at @ heights) / width
    left = heights - heights.mean() - slope * at
    return _interval(slope, left, 2, math.sqrt(width), many), float(heights.mean() + slope * at[-1])


def _interval(value: float, left: Figures, fitted: int, spread: float, many: int) -> Trend | None:
    """Return a fitted value with its interval, from what it leaves unexplained; `spread` divides that."""
    count = len(left)
    squares = float(left @ left)
    # What is even to the last digit has no scatter to be alike in.
    even = squares <= 1e-18 * max(1.0, value * value) * count
    alike = 0.0
    if not even:
        # What was fitted took some of it: Kendall's correction, for few stretches.
        seen = float(left[1:] @ left[:-1]) / squares
        alike = min(1.0, max(0.0, (seen + fitted / count) / (1 - 4 / count)))
    free = count * (1 - alike) / (1 + alike)
    if free < _LEAST_FREE + fitted - 1:
        return None
    error = math.sqrt(squares / (count - fitted)) / spread * math.sqrt(count / free)
    off = _student(free - fitted, _CHANCE) * error
    sure = value - _student(free - fitted, _CHANCE / many) * error
    return Trend(value, value - off, value + off, sure)


_CHANCE: Final = 0.025
"""That a growth is above its interval, or below."""


def _student(free: float, chance: float) -> float:
    """Return what Student's distribution exceeds with that chance, by its expansion around the normal distribution;
    right within 1 % for 2.5 % and four degrees of freedom and more.
    """
    z = NormalDist().inv_cdf(1.0 - chance)
    return (
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )


def growth(
    traffic: Traffic, queues: Rows, quotas: Mapping[Endpoint, int], stretches: range
) -> Rows:
    """Return GROWTH: what is full the soonest first, then what grows, then the rest.

    `queues` are rows of `levels`, `quotas` bytes by endpoint, as far as they are configured. `stretches` are the begins
    of those that lie wholly in the time observed, nanoseconds since 1970.
    """
    many = int(traffic.known.sum()) + len({tuple(row[name] for name in _PLACE) for row in queues})
    rows = [*_queues(queues, quotas, stretches, many), *_bridges(traffic, stretches, many)]

    def urgency(row: dict[str, Any]) -> tuple[float, ...]:
        days = math.inf if row["days"] is None else row["days"]
        return (days, -(row["per_day"] or 0.0) / max(1.0, row["level"] or 0.0))

    rows.sort(key=urgency)
    return rows[:REPORT_GROWTH]


def _queues(
    rows: Rows, quotas: Mapping[Endpoint, int], stretches: range, many: int
) -> Iterable[dict[str, Any]]:
    by_endpoint: dict[Endpoint, Rows] = {}
    for one in rows:
        by_endpoint.setdefault((one["router"], one["vpn"], one["endpoint"]), []).append(one)
    for endpoint, listed in by_endpoint.items():
        row: dict[str, Any] = {
            **dict.fromkeys(GROWTH.names),
            "what": QUEUE,
            **dict(zip(_PLACE, endpoint, strict=True)),
            "unit": "bytes",
            "stretches": len(stretches),
        }
        enqueued = sum(part["enqueued"] for part in listed)
        size = sum(part["bytes"] for part in listed) / enqueued if enqueued else 0.0
        quota = quotas.get(endpoint)
        row["limit"] = None if quota is None else float(quota)
        if any(part["weight"] is None for part in listed):
            row["reason"] = NO_RATE
        else:
            at = {part["start_ns"]: part["weight"] * size for part in listed}
            row["level"] = max(0.0, sum(at.values()))
            if len(stretches) < _LEAST_STRETCHES:
                row["reason"] = SHORT
            else:
                trend = mean_growth([at.get(start, 0.0) for start in stretches], many)
                _judge(row, trend, row["level"], stretches, NO_QUOTA)
        yield row


def _bridges(traffic: Traffic, stretches: range, many: int) -> Iterable[dict[str, Any]]:
    begin = traffic.first_ns
    for number, edge in enumerate(traffic.edges):
        if not traffic.known[number]:
            continue
        row: dict[str, Any] = {
            **dict.fromkeys(GROWTH.names),
            "what": BRIDGE,
            "router": edge["to_router"],
            "vpn": edge["to_vpn"],
            "peer_router": edge["from_router"],
            "peer_vpn": edge["from_vpn"],
            "bridge": edge["bridge"] or None,
            "unit": "messages/s",
            "stretches": len(stretches),
        }
        seconds = stretches.step / 1e9
        row["limit"] = _DOUBLED * traffic.peak(number) / seconds
        if len(stretches) < _LEAST_STRETCHES:
            row["reason"] = SHORT
        else:
            first = (stretches.start - begin) // stretches.step
            values = traffic.rates[number, first : first + len(stretches)] / seconds
            trend, level = line(values.tolist(), many)
            row["level"] = max(0.0, level)
            _judge(row, trend, row["level"], stretches, "")
        yield row


def _judge(
    row: dict[str, Any], trend: Trend | None, level: float, stretches: range, unlimited: str
) -> None:
    """Fill in the growth per day, and the days until the limit if there is something to say about them."""
    a_day = DAY_NS / stretches.step
    if trend is None:
        row["reason"] = NOISY
        return
    row["per_day"], row["per_day_low"], row["per_day_high"] = (one * a_day for one in trend[:3])
    if trend.high < 0:
        row["reason"] = FALLING
    elif trend.sure <= 0:
        row["reason"] = NOISY
    elif row["limit"] is None:
        row["reason"] = unlimited
    else:
        room = max(0.0, row["limit"] - level)
        days = room / row["per_day"]
        if days > _REACH * len(stretches) / a_day:
            row["reason"] = FAR
            return
        row["days"] = days
        row["days_low"] = room / row["per_day_high"]
        row["days_high"] = room / row["per_day_low"]


def whole_stretches(span: tuple[int, int], width_ns: int) -> range:
    """Return the begins of the stretches that lie wholly in the time observed."""
    first = -(-span[0] // width_ns) * width_ns
    last = (span[1] + 1) // width_ns * width_ns
    return range(first, max(first, last), width_ns)
