"""Rule: subscriptions of one client that another one of its own covers, or that overlap it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    REPORT_CLIENT_FILTERS,
    REPORT_CLIENTS,
    REPORT_FILTER_PAIRS,
    REPORT_SUBSCRIPTION_FINDINGS,
)
from vpnrouter.topics.algebra import covers, witness
from vpnrouter.topics.grammar import Filter, parse_filter
from vpnrouter.topology.findings import INFO, Finding
from vpnrouter.topology.subscriptions.bridges import Rows, bridge_of
from vpnrouter.topology.subscriptions.patterns import DIALECTS

_NAMED: Final = 20
"""Clients named as not examined."""

Written = tuple[str, str]
"""A filter as written and its dialect, "mqtt" or "smf"."""


def overlaps(held: DataFrame) -> list[Finding]:
    """The findings `covered`, `overlapping` and `not_examined`, from the frame of `held`; one small job.

    `topic` is the filter that is not needed, or the first one of a pair that overlaps. Only
    current subscriptions count, exceptions do not. Shared subscriptions are compared within their group only.
    """
    subscription = F.struct("filter", "syntax")
    rows: Rows = (
        held.where(F.col("current") & ~F.col("exception"))
        .groupBy("router", "vpn", "client")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.countDistinct("text").alias("texts"),
            # Without any of the characters that wildcards are made of there are only literals.
            F.count_if(F.col("text").rlike("[*+#>]")).alias("wild"),
            # What is beyond the bound is not compared, so that it need not come here.
            F.slice(F.collect_list(subscription), 1, REPORT_CLIENT_FILTERS).alias("filters"),
        )
        .where("count > 1 AND (wild > 0 OR texts < count)")
        .orderBy(F.col("count").desc(), "router", "vpn", "client")
        .limit(REPORT_CLIENTS)
        .toArrow()
        .to_pylist()
    )
    return compared(rows)


def compared(rows: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """The findings of `overlaps` from rows with router, vpn, client, count and filters (filter, syntax)."""
    pairs = _Pairs()
    covered: list[Finding] = []
    overlapping: list[Finding] = []
    skipped: list[Mapping[str, Any]] = []
    budget = REPORT_FILTER_PAIRS
    # The many clients with few subscriptions are cheap, so they come first.
    for row in sorted(rows, key=lambda row: int(row["count"])):
        written = sorted({(one["filter"], one["syntax"]) for one in row["filters"]})
        work = len(written) * (len(written) - 1) // 2
        if row["count"] > REPORT_CLIENT_FILTERS or work > budget:
            skipped.append(row)
            continue
        budget -= work
        _compare(row, pairs, written, covered, overlapping)
    return [
        *covered,
        *overlapping,
        *(_not_examined(row) for row in skipped[: -_NAMED - 1 : -1]),
    ]


@final
class _Pairs:
    """What two filters have to do with each other, worked out once for each pair."""

    def __init__(self) -> None:
        self._parsed: dict[Written, Filter | None] = {}
        self._covers: dict[tuple[Written, Written], bool] = {}
        self._witness: dict[tuple[Written, Written], str | None] = {}

    def parsed(self, written: Written) -> Filter | None:
        """The filter; None for one that the router would have refused."""
        if written not in self._parsed:
            try:
                self._parsed[written] = parse_filter(written[0], DIALECTS[written[1]])
            except TopicError:
                self._parsed[written] = None
        return self._parsed[written]

    def covers(self, a: Written, b: Written) -> bool:
        """Does `a` match every topic that `b` does?"""
        found = self._covers.get((a, b))
        if found is None:
            found = covers(self._of(a), self._of(b))
            self._covers[a, b] = found
        return found

    def witness(self, a: Written, b: Written) -> str | None:
        """A topic that both match."""
        if (a, b) not in self._witness:
            self._witness[a, b] = witness(self._of(a), self._of(b))
        return self._witness[a, b]

    def _of(self, written: Written) -> Filter:
        found = self.parsed(written)
        if found is None:
            raise AssertionError(written)
        return found


def _compare(
    row: Mapping[str, Any],
    pairs: _Pairs,
    written: list[Written],
    covered: list[Finding],
    overlapping: list[Finding],
) -> None:
    """Add what is to be said of one client's subscriptions."""
    groups: dict[str, list[Written]] = {}
    for one in written:
        parsed = pairs.parsed(one)
        if parsed is not None:
            groups.setdefault(parsed.share, []).append(one)
    for group in groups.values():
        left: list[Written] = []
        for at, one in enumerate(group):
            # Of filters that match the same topics the first one stays.
            by = next(
                (
                    other
                    for place, other in enumerate(group)
                    if place != at
                    and pairs.covers(other, one)
                    and (place < at or not pairs.covers(one, other))
                ),
                None,
            )
            if by is None:
                left.append(one)
            else:
                covered.append(_finding("covered", row, one, f"covered by {_named(by, one)}"))
        for at, one in enumerate(left):
            for other in left[at + 1 :]:
                topic = pairs.witness(one, other)
                if topic is not None and len(overlapping) < REPORT_SUBSCRIPTION_FINDINGS:
                    also = f"{_named(other, one)} matches {topic} as well"
                    overlapping.append(_finding("overlapping", row, one, also))


def _named(filter_: Written, beside: Written) -> str:
    """A filter as people write it, with its dialect where that differs from its neighbour's."""
    return filter_[0] if filter_[1] == beside[1] else f"{filter_[0]} ({filter_[1]})"


def _finding(kind: str, row: Mapping[str, Any], filter_: Written, detail: str) -> Finding:
    return Finding(
        kind=kind,
        severity=INFO,
        router=row["router"],
        vpn=row["vpn"],
        client=row["client"],
        bridge=bridge_of(row["client"]),
        topic=filter_[0],
        detail=detail,
    )


def _not_examined(row: Mapping[str, Any]) -> Finding:
    return Finding(
        kind="not_examined",
        severity=INFO,
        router=row["router"],
        vpn=row["vpn"],
        client=row["client"],
        bridge=bridge_of(row["client"]),
        value=float(row["count"]),
        detail=f"its {row['count']:,} subscriptions were not compared with each other",
    )
