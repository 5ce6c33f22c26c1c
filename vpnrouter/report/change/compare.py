"""Compares two ranges of time, and keeps the differences that chance does not explain (CHANGES).

Counts of independent events scatter by the square root of their number (Poisson). Each count stands for so many
messages by its weight (sampling). A difference counts if it exceeds both a factor and a number of standard deviations.
Both bounds are wide: traffic comes in bursts, and a report compares thousands of figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from vpnrouter.limits import REPORT_CHANGES, REPORT_TOPICS
from vpnrouter.report.schema import CHANGES, Rows

FACTOR: Final = 1.5
"""Rates within this factor of each other are the same."""

SCATTERS: Final = 5.0
"""Differences within so many standard deviations are chance: one in three million, for independent events."""


class Count(NamedTuple):
    """`events` seen, the `messages` that they stand for, and the seconds in which."""

    events: int
    messages: float
    seconds: float

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def weight(self) -> float:
        """Messages that an event stands for."""
        return self.messages / self.events if self.events else 1.0


def differ(before: Count, after: Count, factor: float = FACTOR) -> bool:
    """Return whether the rates differ by more than the factor and by more than chance explains."""
    low, high = sorted((before.rate, after.rate))
    if high <= low * factor:
        return False
    # Where nothing was seen, the weight is that of the other range.
    weights = [
        one.weight if one.events else other.weight
        for one, other in ((before, after), (after, before))
    ]
    noise = sum(
        (weight / one.seconds) ** 2 * max(1, one.events)
        for weight, one in zip(weights, (before, after), strict=True)
    )
    return bool((high - low) ** 2 > SCATTERS**2 * noise)


def count_of(row: dict[str, object] | None, name: str, seconds: float) -> Count:
    """Return a column of a result table as events, and its `*_estimated` column, if known, as messages."""
    events = _number(row, name)
    estimated = None if row is None else row.get(f"{name}_estimated")
    messages = float(events) if estimated is None else float(_number(row, f"{name}_estimated"))
    return Count(events, messages, seconds)


def comparable(before: dict[str, object], after: dict[str, object], name: str) -> bool:
    """Return whether both rows have an estimate or neither: a count and an estimate cannot be compared."""
    column = f"{name}_estimated"
    return (before.get(column) is None) == (after.get(column) is None)


def _number(row: dict[str, object] | None, name: str) -> int:
    value = None if row is None else row.get(name)
    return value if isinstance(value, int) else 0


Tables = Mapping[str, Rows]
"""Result tables by name; nodes, edges, topics and findings are looked at."""

Key = tuple[str | None, ...]


class _Compared(NamedTuple):
    """How a table is compared: what CHANGES calls its rows, the columns that name a row, and the counts compared, the
    first of which shows how busy a row is.
    """

    what: str
    table: str
    key: Mapping[str, str]
    counts: tuple[str, ...]


_BETWEEN: Final = {
    "router": "to_router",
    "vpn": "to_vpn",
    "peer_router": "from_router",
    "peer_vpn": "from_vpn",
    "bridge": "bridge",
}
_TABLES: Final = (
    _Compared("finding", "findings", {}, ()),
    _Compared("bridge", "edges", _BETWEEN, ("messages", "link_downs")),
    _Compared(
        "vpn",
        "nodes",
        {"router": "router", "vpn": "vpn"},
        ("ingress", "delivered", "bridged_in", "spooled", "discarded", "rejected"),
    ),
    _Compared(
        "topic",
        "topics",
        {"topic": "topic", "router": "router", "vpn": "vpn"},
        ("published", "bridged_in", "delivered", "discarded"),
    ),
)
_FINDING_KEY: Final = ("kind", "router", "vpn", "peer_router", "peer_vpn", "bridge")
_FINDING_MORE: Final = ("client", "endpoint", "topic", "reason")

_LATENCIES: Final = ("latency_p50_ns", "latency_p95_ns", "latency_p99_ns")
_SAMPLES: Final = {"latency_p50_ns": 30, "latency_p95_ns": 200, "latency_p99_ns": 1_000}
"""Samples on both sides below which a percentile is not compared: ten beyond it, at least."""

_LATENCY_FACTOR: Final = 1.5
_LATENCY_NS: Final = 1_000_000
"""Latencies that differ by less are the same: a scheduler's whim is as long."""

_LEAST_SECONDS: Final = 1.0
"""A range of time is taken to be at least as long."""


def compare(before: Tables, after: Tables, before_seconds: float, after_seconds: float) -> Rows:
    """Return rows of CHANGES: findings first, then bridges, message VPNs and topics.

    Of each, new and gone rows come before more and less, the largest first, at most REPORT_CHANGES. A row that only one
    side has is null on the other. Counts are per second; a finding's figures are its messages.
    """
    seconds = max(before_seconds, _LEAST_SECONDS), max(after_seconds, _LEAST_SECONDS)
    rows: Rows = []
    for compared in _TABLES:
        old, new = (tables.get(compared.table, []) for tables in (before, after))
        if compared.table == "findings":
            change_rows = list(_findings(old, new))
        else:
            change_rows = list(_compared(compared, old, new, seconds))
        change_rows.sort(key=_weight)
        rows.extend(change_rows[:REPORT_CHANGES])
    return rows


def _weight(row: dict[str, Any]) -> tuple[Any, ...]:
    size = abs((row["after"] or 0.0) - (row["before"] or 0.0))
    names = [row[name] or "" for name in CHANGES.names[2:9]]
    return (row["change"] not in {"new", "gone"}, -size, *names)


def _row(
    what: str, change: str, place: Mapping[str, Any], **figures: str | float | None
) -> dict[str, Any]:
    return {**dict.fromkeys(CHANGES.names), "what": what, "change": change, **place, **figures}


def _findings(old: Rows, new: Rows) -> Iterator[dict[str, Any]]:
    """Yield findings that are new or gone. `measure` is the kind; the figures are messages."""
    was, now = ({_key_of(row): row for row in rows} for rows in (old, new))
    for change, rows, others in (("gone", was, now), ("new", now, was)):
        for key in rows.keys() - others.keys():
            row = rows[key]
            place = {name: row.get(name) for name in _FINDING_KEY[1:]}
            place["topic"] = row.get("topic") or row.get("client") or row.get("endpoint")
            messages = row.get("messages")
            figure = None if messages is None else float(messages)
            row_of = partial(_row, "finding", change, place, measure=row["kind"])
            yield row_of(before=figure) if change == "gone" else row_of(after=figure)


def _key_of(row: Mapping[str, Any]) -> Key:
    return tuple(row.get(name) for name in (*_FINDING_KEY, *_FINDING_MORE))


def _compared(
    compared: _Compared, old: Rows, new: Rows, seconds: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    was, now = (
        {tuple(row.get(column) for column in compared.key.values()): row for row in rows}
        for rows in (old, new)
    )
    measure = compared.counts[0]
    floors = _floor(compared, old, seconds[0]), _floor(compared, new, seconds[1])
    for key in sorted(was.keys() | now.keys(), key=repr):
        before, after = was.get(key), now.get(key)
        place = dict(zip(compared.key, key, strict=True))
        if before is not None and after is not None:
            yield from _changed(compared, place, (before, after), seconds)
        elif before is not None:
            count = count_of(before, measure, seconds[0])
            if _beyond(count, floors[1]):
                yield _row(compared.what, "gone", place, measure=measure, before=count.rate)
        elif after is not None:
            count = count_of(after, measure, seconds[1])
            if _beyond(count, floors[0]):
                yield _row(compared.what, "new", place, measure=measure, after=count.rate)


def _floor(compared: _Compared, rows: Rows, seconds: float) -> Count | None:
    """Return what a row must exceed to be new or gone, None for nothing. A topic must be busier than by chance, and
    than the least one listed if the table is full.
    """
    if compared.what != "topic":
        return None
    if len(rows) < REPORT_TOPICS:
        return Count(0, 0.0, seconds)
    return min((count_of(row, compared.counts[0], seconds) for row in rows), key=_rate)


def _rate(count: Count) -> float:
    return count.rate


def _beyond(count: Count, floor: Count | None) -> bool:
    """Return whether a row exceeds the floor."""
    return floor is None or (count.rate > floor.rate and differ(floor, count))


def _changed(
    compared: _Compared,
    place: Mapping[str, Any],
    rows: tuple[dict[str, Any], dict[str, Any]],
    seconds: tuple[float, float],
) -> Iterator[dict[str, Any]]:
    for name in compared.counts:
        before, after = (
            count_of(row, name, length) for row, length in zip(rows, seconds, strict=True)
        )
        if comparable(*rows, name) and differ(before, after):
            change = "more" if after.rate > before.rate else "less"
            yield _row(
                compared.what,
                change,
                place,
                measure=name,
                before=before.rate,
                after=after.rate,
            )
    if compared.what == "bridge":
        yield from _latencies(place, *rows)


def _latencies(
    place: Mapping[str, Any], before: dict[str, Any], after: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield changes of latency, only where both clocks agree: a clock that was set is no change."""
    one_clock = place["router"] == place["peer_router"]
    if not one_clock and not (before.get("latency_corrected") and after.get("latency_corrected")):
        return
    samples = min(before.get("latency_samples") or 0, after.get("latency_samples") or 0)
    for name in _LATENCIES:
        was, now = before.get(name), after.get(name)
        if was is None or now is None or samples < _SAMPLES[name]:
            continue
        low, high = sorted((max(was, 0), max(now, 0)))
        if high > low * _LATENCY_FACTOR and high - low >= _LATENCY_NS:
            change = "more" if now > was else "less"
            yield _row("bridge", change, place, measure=name, before=float(was), after=float(now))
