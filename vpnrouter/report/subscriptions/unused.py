"""Finds subscriptions that another one of the client covers or overlaps, or that nothing matched.

An unmatched subscription is reported only if it was held for a fair part of the time and enough messages entered its
message VPN meanwhile. Where only some messages are traced, a rare topic may have been published and not be among them.
How many topics of a message VPN were missed is estimated from those seen once and those seen twice (Chao's lower bound
of unseen species, Scandinavian Journal of Statistics 11, 1984, in its bias-corrected form); if a single one is
expected, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    REPORT_CLIENT_FILTERS,
    REPORT_CLIENTS,
    REPORT_FILTER_PAIRS,
    REPORT_SUBSCRIPTION_FINDINGS,
    REPORT_UNMET_SUBSCRIPTIONS,
)
from vpnrouter.report.schema import INFO, WARNING, Finding, Rows
from vpnrouter.report.subscriptions.held import DIALECTS, bridge_of, unmet
from vpnrouter.topics.algebra import covers, witness
from vpnrouter.topics.grammar import Filter, parse_filter

_NAMED: Final = 20
"""Clients named as not examined."""

Written = tuple[str, str]
"""A filter as written and its dialect, "mqtt" or "smf"."""


def overlaps(held: DataFrame) -> list[Finding]:
    """Return the findings `covered`, `overlapping` and `not_examined`, from the frame of `held`; one small job.

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
    """Return the findings of `overlaps` from rows with router, vpn, client, count and filters (filter, syntax)."""
    pairs = _Pairs()
    covered: list[Finding] = []
    overlapping: list[Finding] = []
    skipped: list[Mapping[str, Any]] = []
    budget = REPORT_FILTER_PAIRS
    # The many clients with few subscriptions are cheap, so they come first.
    for row in sorted(rows, key=lambda row: int(row["count"])):
        filters = sorted({(one["filter"], one["syntax"]) for one in row["filters"]})
        work = len(filters) * (len(filters) - 1) // 2
        if row["count"] > REPORT_CLIENT_FILTERS or work > budget:
            skipped.append(row)
            continue
        budget -= work
        _compare(row, pairs, filters, covered, overlapping)
    return [
        *covered,
        *overlapping,
        *(_not_examined(row) for row in skipped[: -_NAMED - 1 : -1]),
    ]


@final
class _Pairs:
    """Relations of two filters, computed once for each pair."""

    def __init__(self) -> None:
        self._parsed: dict[Written, Filter | None] = {}
        self._covers: dict[tuple[Written, Written], bool] = {}
        self._witness: dict[tuple[Written, Written], str | None] = {}

    def parsed(self, written: Written) -> Filter | None:
        """Return the filter; None for one that the router would have refused."""
        if written not in self._parsed:
            try:
                self._parsed[written] = parse_filter(written[0], DIALECTS[written[1]])
            except TopicError:
                self._parsed[written] = None
        return self._parsed[written]

    def covers(self, a: Written, b: Written) -> bool:
        """Return whether `a` matches every topic that `b` does."""
        answer = self._covers.get((a, b))
        if answer is None:
            answer = covers(self._of(a), self._of(b))
            self._covers[a, b] = answer
        return answer

    def witness(self, a: Written, b: Written) -> str | None:
        """Return a topic that both match."""
        if (a, b) not in self._witness:
            self._witness[a, b] = witness(self._of(a), self._of(b))
        return self._witness[a, b]

    def _of(self, written: Written) -> Filter:
        filter_ = self.parsed(written)
        if filter_ is None:
            raise AssertionError(written)
        return filter_


def _compare(
    row: Mapping[str, Any],
    pairs: _Pairs,
    written: list[Written],
    covered: list[Finding],
    overlapping: list[Finding],
) -> None:
    """Add the findings about one client's subscriptions."""
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
    """Return a filter for people, with its dialect where that differs from its neighbour's."""
    return filter_[0] if filter_[1] == beside[1] else f"{filter_[0]} ({filter_[1]})"


def _finding(kind: str, row: Mapping[str, Any], filter_: Written, detail: str) -> Finding:
    return Finding(
        kind=kind,
        severity=INFO,
        **_client(row),
        topic=filter_[0],
        detail=detail,
    )


def _client(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "router": row["router"],
        "vpn": row["vpn"],
        "client": row["client"],
        "bridge": bridge_of(row["client"]),
    }


def _not_examined(row: Mapping[str, Any]) -> Finding:
    return Finding(
        kind="not_examined",
        severity=INFO,
        **_client(row),
        value=float(row["count"]),
        detail=f"its {row['count']:,} subscriptions were not compared with each other",
    )


HELD_SHARE: Final = 0.1
"""Part of the observed time for which a subscription must have been held. A client that came for a moment, or
just before the end, says nothing about its subscriptions."""

HELD_SECONDS: Final = 10
"""Least time for which it must have been held, whatever was observed: clients subscribe before others publish."""

MESSAGES: Final = 100
"""Traced messages that must have entered its message VPN meanwhile: what would match one in thirty of them is
then missed by chance in fewer than one case in twenty."""

UNSEEN_TOPICS: Final = 0.5
"""Topics expected to have been published and not traced, from which on nothing is said of a message VPN."""

_ENTERED: Final = ("ingress", "bridge_receive")

Place = tuple[str, str]


@final
@dataclass(frozen=True)
class _Traffic:
    """What entered a message VPN: `stretches` are (begin, messages), `complete` that all was traced."""

    stretches: list[tuple[int, int]]
    complete: bool
    unseen: float

    def between(self, since_ns: int, until_ns: int) -> int:
        """Return messages of the stretches that begin in a span of time."""
        return sum(count for start, count in self.stretches if since_ns <= start < until_ns)


def never_matched(
    held: DataFrame, digests: Mapping[str, DataFrame], span: tuple[int, int]
) -> list[Finding]:
    """Return the findings `never_matched`, from the frame of `held`, USES and PLACES.

    `router` and `vpn` are where the client holds the subscription, also when it is a bridge's, whose name is
    then in `bridge`. `value` is for how many seconds it was held, `messages` how many entered meanwhile and did
    not match. The longest held come first. Two jobs more where there are any candidates.
    """
    least_ns = max(HELD_SECONDS * 1_000_000_000, round((span[1] - span[0]) * HELD_SHARE))
    lasting = held.where(F.col("current") & (F.col("held_ns") >= least_ns) & ~F.col("exception"))
    rows: Rows = (
        unmet(lasting, digests["uses"])
        .orderBy(F.col("held_ns").desc(), "router", "vpn", "client", "filter")
        .limit(REPORT_UNMET_SUBSCRIPTIONS)
        .select("router", "vpn", "client", "filter", "since_ns", "until_ns", "held_ns")
        .toArrow()
        .to_pylist()
    )
    if not rows:
        return []
    traffic = _traffic(digests, sorted({(row["router"], row["vpn"]) for row in rows}))
    findings = [_never_matched(row, traffic, span) for row in rows]
    return [finding for finding in findings if finding is not None]


ALIKE: Final = 10
"""Subscriptions from which on those that differ in one level are told together: what each device of a fleet holds."""

_ANY: Final = "*"


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings `never_matched` in which those of clients with one pattern are one, without a client.

    `topic` is the pattern, `cmd/*/#`: the level that differs is a star. The largest groups come first.
    """
    left = [finding for finding in findings if finding.bridge is None]
    others = [finding for finding in findings if finding.bridge is not None]
    members: dict[tuple[str, ...], set[int]] = {}
    for number, finding in enumerate(left):
        for pattern in _patterns(finding.topic or ""):
            key = (finding.router or "", finding.vpn or "", *pattern)
            members.setdefault(key, set()).add(number)
    groups: list[Finding] = []
    told: set[int] = set()
    # Of equals the one without a star: these subscriptions are the same.
    for key in sorted(members, key=lambda key: (-len(members[key]), _ANY in key[2:], key)):
        mine = members[key] - told
        if len(mine) >= ALIKE:
            groups.append(_group("/".join(key[2:]), [left[number] for number in sorted(mine)]))
            told |= mine
    return [
        *groups,
        *others,
        *(finding for number, finding in enumerate(left) if number not in told),
    ]


def _patterns(topic: str) -> Iterator[tuple[str, ...]]:
    """Yield a filter by its levels, as it is and with each one of them left open."""
    levels = tuple(topic.split("/"))
    yield levels
    for at in range(len(levels)):
        yield (*levels[:at], _ANY, *levels[at + 1 :])


def _group(pattern: str, findings: list[Finding]) -> Finding:
    clients = len({finding.client for finding in findings})
    passed = max(finding.messages or 0 for finding in findings)
    first = findings[0]
    return replace(
        first,
        client=None,
        topic=pattern,
        messages=passed,
        value=max(finding.value or 0.0 for finding in findings),
        first_ns=min(finding.first_ns or 0 for finding in findings),
        last_ns=max(finding.last_ns or 0 for finding in findings),
        detail=f"{pattern}: {clients:,} clients hold such a subscription, which matched none of up to {passed:,} traced"
        f" messages that entered {first.router}/{first.vpn} meanwhile",
    )


def _never_matched(
    row: Mapping[str, Any], traffic: Mapping[Place, _Traffic], span: tuple[int, int]
) -> Finding | None:
    entered = traffic.get((row["router"], row["vpn"]))
    if entered is None or (not entered.complete and entered.unseen >= UNSEEN_TOPICS):
        return None
    until_ns = span[1] + 1 if row["until_ns"] is None else row["until_ns"]
    passed = entered.between(row["since_ns"], until_ns)
    if passed < MESSAGES:
        return None
    seconds = row["held_ns"] / 1e9
    held = "held" if row["until_ns"] is None else "was held"
    return Finding(
        kind="never_matched",
        # A client that waits for something costs nothing; a bridge that does attracts it from afar.
        severity=INFO if bridge_of(row["client"]) is None else WARNING,
        **_client(row),
        topic=row["filter"],
        messages=passed,
        value=seconds,
        first_ns=row["since_ns"],
        last_ns=until_ns if row["until_ns"] is not None else span[1],
        detail=(
            f"{held} for {seconds:,.0f} s and matched none of the {passed:,} traced messages that entered "
            f"{row['router']}/{row['vpn']} meanwhile"
        ),
    )


def _traffic(digests: Mapping[str, DataFrame], places: list[Place]) -> dict[Place, _Traffic]:
    """Return what entered the message VPNs `places`; two small jobs."""
    uses = digests["uses"]
    # As an Arrow table, Spark takes it without a Python process of its own.
    named = [{"router": router, "vpn": vpn} for router, vpn in places]
    vpn_frame = F.broadcast(uses.sparkSession.createDataFrame(pa.Table.from_pylist(named)))
    stretches: Rows = (
        digests["places"]
        .where(F.col("event").isin(*_ENTERED))
        .join(vpn_frame, ["router", "vpn"], "left_semi")
        .groupBy("router", "vpn", "start_ns")
        .agg(F.sum("count").alias("count"))
        .toArrow()
        .to_pylist()
    )
    topics = (
        uses.where(F.col("event").isin(*_ENTERED))
        .join(vpn_frame, ["router", "vpn"], "left_semi")
        .groupBy("router", "vpn", "topic")
        .agg(
            F.sum("count").alias("count"),
            # Half a message more than was seen is already a sampling rate below 1.
            F.min(F.coalesce(F.col("weight") < F.col("count") + 0.5, F.lit(False))).alias("all"),
        )
    )
    counted: Rows = (
        topics.groupBy("router", "vpn")
        .agg(
            F.count_if(F.col("count") == 1).alias("once"),
            F.count_if(F.col("count") == 2).alias("twice"),
            F.min("all").alias("complete"),
        )
        .toArrow()
        .to_pylist()
    )
    by_place: dict[Place, list[tuple[int, int]]] = {}
    for row in stretches:
        by_place.setdefault((row["router"], row["vpn"]), []).append((row["start_ns"], row["count"]))
    return {
        (row["router"], row["vpn"]): _Traffic(
            by_place.get((row["router"], row["vpn"]), []),
            row["complete"],
            unseen_topics(row["once"], row["twice"]),
        )
        for row in counted
    }


def unseen_topics(once: int, twice: int) -> float:
    """Return the least number of topics that were published and not traced, from those seen once and twice."""
    return once * (once - 1) / (2 * (twice + 1))
