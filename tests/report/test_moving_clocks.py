"""Clocks that are wrong, that are set and that drift: latencies are corrected, and none is wrong without a finding."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from vpnrouter.report import follow
from vpnrouter.report.analysis import analyse
from vpnrouter.report.build import Engine, ReportRequest
from vpnrouter.report.digests.digest import digested
from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.follow import Follower, FollowTimes
from vpnrouter.report.output import Output, Summary
from vpnrouter.report.traces.rows import TraceRows
from vpnrouter.report.traces.storage import Storages

MS = 1_000_000
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
TOOK = 2 * MS
LONG_S = 200
EVERY_S = 4
PATIENCE_S = 240.0
VPN = "v"

Tables = dict[str, list[dict[str, Any]]]

Clock = Callable[[int], int]
"""What a clock shows, by the nanoseconds since the begin."""


def _set(by_ns: int) -> Clock:
    """A clock that is set half-way."""
    return lambda at: at if at < LONG_S * SECOND // 2 else at + by_ns


@dataclass(frozen=True, kw_only=True)
class Case:
    """The clock of `edge`, the ways of messages, and the finding about clocks: kind, severity, how far ahead.

    A followed report does not correct a clock that `is_moving`.
    """

    clock: Clock
    ways: tuple[str, ...] = ("edge core", "core edge", "core west", "west core")
    told: tuple[str, str, float] | None = None
    corrected: bool = True
    is_moving: bool = False


ONE_WAY = ("edge core", "core west", "west core")
BACK = ("core edge", "core west", "west core")
CASES = {
    "right": Case(clock=lambda at: at),
    "40 ms ahead": Case(clock=lambda at: at + 40 * MS, told=("clock_skew", "warning", 0.04)),
    "a day ahead": Case(clock=lambda at: at + DAY, told=("clock_skew", "warning", 86_400.0)),
    "set back": Case(
        clock=_set(-5 * SECOND), told=("clock_moved", "warning", -4.996), is_moving=True
    ),
    "set ahead": Case(
        clock=_set(5 * SECOND), told=("clock_moved", "warning", 4.996), is_moving=True
    ),
    "500 millionths fast": Case(
        clock=lambda at: at + at // 2_000, told=("clock_moved", "warning", 0.094), is_moving=True
    ),
    "a day ahead, nothing comes back": Case(
        clock=lambda at: at + DAY,
        ways=ONE_WAY,
        told=("clock_skew", "warning", 86_400.0),
        corrected=False,
    ),
    "a day behind, nothing comes back": Case(
        clock=lambda at: at - DAY,
        ways=ONE_WAY,
        told=("clock_skew", "info", -86_400.0),
        corrected=False,
    ),
    "a day ahead, nothing goes out": Case(
        clock=lambda at: at + DAY, ways=BACK, told=("clock_skew", "info", 86_400.0), corrected=False
    ),
}


Rows = dict[str, list[dict[str, Any]]]


def rows_of(names: Iterable[str], begin_ns: int, first_s: int = 0, last_s: int = LONG_S) -> Rows:
    """Messages over all ways of these cases, each under way for two milliseconds, by router.

    Each case has routers of its own, with its name: `edge of right`. The clock of the case is edge's.
    """
    rows: Rows = {}
    for place, name in enumerate(names):
        case = CASES[name]

        def shown(router: str, at_ns: int, clock: Clock = case.clock) -> int:
            return begin_ns + (clock(at_ns) if router.startswith("edge") else at_ns)

        for at_s in range(first_s, last_s, EVERY_S):
            for number, way in enumerate(case.ways):
                start, goal = (f"{router} of {name}" for router in way.split())
                _cross(rows, start, goal, at_s * 100 + place * 10 + number, at_s * SECOND, shown)
    return rows


def _cross(
    rows: Rows,
    start: str,
    goal: str,
    number: int,
    at_ns: int,
    shown: Callable[[str, int], int],
) -> None:
    of = {
        "trace_id": f"{number:032x}",
        "message_id": number,
        "topic": "t",
        "mode": "direct",
        "size_bytes": 1,
        "vpn": VPN,
        "origin_ts_ns": shown(start, at_ns),
    }
    crossing = {**of, "origin_router": start, "origin_vpn": VPN, "hops": 1}
    bridge = {"bridge": "b", "peer_vpn": VPN}
    sent = {"ts_ns": shown(start, at_ns), "client": f"#bridge/{goal}/{VPN}/b", "peer_router": goal}
    came = {"ts_ns": shown(goal, at_ns + TOOK), "path": f"{start}/{VPN}"}
    rows.setdefault(start, []).extend(
        [
            {**of, "event": "ingress", "ts_ns": shown(start, at_ns), "client": "pub", "hops": 0},
            {**crossing, **bridge, **sent, "event": "bridge_send"},
        ]
    )
    rows.setdefault(goal, []).extend(
        [
            {**crossing, **bridge, **came, "event": "bridge_receive", "peer_router": start},
            {**crossing, **came, "event": "deliver", "client": "sub"},
        ]
    )


def edge_ends(row: dict[str, Any]) -> tuple[str, str]:
    """The routers of a bridge, the sender first."""
    return row["from_router"], row["to_router"]


def assert_honest(name: str, tables: Tables, *, follows: bool = False) -> None:
    """What is said to be corrected is right; of the rest a finding names the two routers."""
    case = CASES[name]
    is_corrected = case.corrected and not (follows and case.is_moving)

    def mine(table: str, column: str) -> list[dict[str, Any]]:
        ends = [f"{router} of {name}" for router in ("edge", "core", "west")]
        return [row for row in tables[table] if row[column] in ends]

    found = [row for row in mine("findings", "router") if row["kind"].startswith("clock_")]
    named = {frozenset((row["router"], row["peer_router"])) for row in found}
    durations = [
        (
            *edge_ends(row),
            row["latency_corrected"],
            row["latency_error_ns"],
            row["latency_p50_ns"],
            row["latency_p99_ns"],
        )
        for row in mine("edges", "from_router")
    ] + [
        (
            row["origin_router"],
            row["router"],
            row["corrected"],
            row["error_ns"],
            row["p50_ns"],
            row["p99_ns"],
        )
        for row in mine("end_to_end", "router")
    ]
    assert len(durations) == 2 * len(case.ways)
    edge = f"edge of {name}"
    for start, goal, corrected, error_ns, *figures in durations:
        assert corrected is (is_corrected or edge not in {start, goal})
        assert error_ns is None or corrected
        # Half of both ways is the bound; that of a clock which may drift is wider.
        assert not corrected or figures == [None, None] or 0 < error_ns <= 3 * TOOK
        # Of messages that were not followed there is none.
        right = all(one is None or one == pytest.approx(TOOK, rel=0.02) for one in figures)
        assert right or frozenset((start, goal)) in named, (start, goal, figures)
        assert right or not corrected
    if case.told is None:
        assert found == []
        return
    (finding,) = found
    kind, severity, seconds = case.told
    assert (finding["kind"], finding["severity"]) == (kind, severity)
    assert edge in {finding["router"], finding["peer_router"]}
    ahead = finding["value"] if finding["router"] == edge else -finding["value"]
    assert ahead == pytest.approx(seconds, rel=0.02)


@pytest.fixture(scope="module")
def reported(spark: SparkSession, frame_of: Callable[..., DataFrame]) -> Tables:
    """The tables of one report on the routers of all cases."""
    traces = frame_of(rows_of(CASES, 1_371_000_000 * SECOND))
    width_ns = 5 * SECOND
    with digested(
        TraceRows(rows=traces, in_full=traces), None, width_ns, 2, NoProgress(), small=True
    ) as digests:
        return analyse(spark, digests, width_ns, lambda _: None).tables


@pytest.mark.parametrize("name", CASES)
def test_no_latency_is_wrong_without_a_word(reported: Tables, name: str) -> None:
    """Of a report on the whole time."""
    assert_honest(name, reported)


@dataclass
class Fed:
    """A followed report that gets the next files after each report, until it tells of all messages."""

    write: Callable[[int], None]
    parts: int
    is_done: Callable[[], bool]
    summaries: list[Summary] = field(default_factory=list)

    def on_report(self, summary: Summary) -> None:
        """Write the next files."""
        self.summaries.append(summary)
        if len(self.summaries) < self.parts:
            self.write(len(self.summaries))

    def run(self, request: ReportRequest) -> None:
        """Follow; the first files are there."""
        self.write(0)
        give_up_s = time.monotonic() + PATIENCE_S
        ended = self.is_done

        def stop() -> bool:
            assert time.monotonic() < give_up_s, self.summaries[-1:]
            return len(self.summaries) >= self.parts and ended()

        Follower(request, FollowTimes(every_s=0.5, late_s=3), NoProgress(), self.on_report).run(
            stop
        )


FOLLOWED = ("right", "a day ahead", "set back", "500 millionths fast")
PARTS = 3


@pytest.fixture(scope="module")
def followed(
    spark: SparkSession, tracefiles: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tables, list[str]]:
    """The tables and the notes of a report on routers of these cases, whose files came one after the other."""

    @contextmanager
    def shared(asked: ReportRequest, *_: Any, **__: Any) -> Iterator[Engine]:
        yield Engine(spark=spark, traces=Storages(), output=Output(asked.output))

    root = tmp_path_factory.mktemp("followed")
    begin_ns = time.time_ns() - 300 * SECOND
    output = root / "out"

    def write(part: int) -> None:
        bounds = (LONG_S * part // PARTS, LONG_S * (part + 1) // PARTS)
        first_s, last_s = (-(-at // EVERY_S) * EVERY_S for at in bounds)
        for router, listed in rows_of(FOLLOWED, begin_ns, first_s, last_s).items():
            tracefiles.write(root / "traces", router, listed, part=part, sample=1.0)

    def tables() -> Tables:
        names = ("edges", "end_to_end", "findings")
        return {name: json.loads((output / f"{name}.json").read_text()) for name in names}

    def is_done() -> bool:
        rows = [
            row
            for row in tables()["edges"]
            if "core" in row["from_router"] and "west" in row["to_router"]
        ]
        # The last ones wait for what comes later.
        return len(rows) == len(FOLLOWED) and all(
            row["latency_samples"] >= LONG_S // EVERY_S * (PARTS - 1) // PARTS - 3 for row in rows
        )

    fed = Fed(write, PARTS, is_done)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow, "engine_for", shared)
        fed.run(
            ReportRequest(
                traces=[str(root / "traces")], output=str(output), formats=frozenset({"json"})
            )
        )
    return tables(), fed.summaries[-1].notes


@pytest.mark.long
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_followed_report_is_as_honest(followed: tuple[Tables, list[str]], name: str) -> None:
    """A clock that is a day ahead makes no other router's rows late, and what it left out is told."""
    tables, notes = followed
    assert_honest(name, tables, follows=True)
    assert any("a router's clock is ahead" in note for note in notes)
