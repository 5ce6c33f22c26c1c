"""The two ends of a bridge, the times that its link was up, and lengths of stretches of time."""

from __future__ import annotations

from typing import Any

import pytest

from vpnrouter.report.flows import collect
from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.collect import (
    edge_of,
    rows_in,
    table_of,
    width_for,
)
from vpnrouter.report.flows.tables import UpTime, flaps, links, spans_of, time_up
from vpnrouter.report.schema import LENGTHS, Edge, edge_named
from vpnrouter.wire.link import codes

FARES = Edge("edge", "blue", "core", "yellow", "fares")
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}
AT_EDGE = {"router": "edge", "vpn": "blue", "peer_router": "core", "peer_vpn": "yellow"}


def test_messages_run_from_the_remote_end() -> None:
    """Rows of both ends name the same edge; one without an end names none."""
    assert edge_of({**AT_CORE, "bridge": "fares", "remote": False}) == FARES
    assert edge_of({**AT_EDGE, "bridge": "fares", "remote": True}) == FARES
    assert edge_of({**AT_EDGE, "bridge": None, "remote": True}) == FARES._replace(bridge="")
    for name in AT_CORE:
        assert edge_of({**AT_CORE, "bridge": "fares", "remote": False, name: None}) is None
    assert edge_named({**FARES._asdict(), "more": 1}) == FARES


def test_rows_come_in_batches_and_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes into a table comes out, in order, columns of other names left behind."""
    monkeypatch.setattr(collect, "_BATCH_ROWS", 2)
    rows = [{"hops": number, "messages": 10 * number} for number in range(5)]
    table = table_of([{**row, "more": "x"} for row in rows], LENGTHS)
    assert table.column_names == ["hops", "messages"]
    assert list(rows_in(table)) == rows
    assert list(rows_in(table_of([], LENGTHS))) == []


TAKEN_OVER = codes.REASONS[codes.TAKEN_OVER]


def end(*changes: tuple[int, bool, str | None], remote: bool = False) -> dict[str, Any]:
    """What one end of the link saw: (time, up, reason)."""
    near, far = (FARES[:2], FARES[2:4]) if remote else (FARES[2:4], FARES[:2])
    return {
        **dict(zip(("router", "vpn"), near, strict=True)),
        **dict(zip(("peer_router", "peer_vpn"), far, strict=True)),
        "bridge": "fares",
        "remote": remote,
        "changes": [dict(zip(("ts_ns", "up", "reason"), one, strict=True)) for one in changes],
    }


@pytest.mark.parametrize(
    ("changes", "spans"),
    [
        ([(1, True, None)], [UpTime(1)]),
        ([(1, True, None), (3, False, "gone")], [UpTime(1, 3, "gone")]),
        (
            [(1, True, None), (3, False, "gone"), (5, True, None)],
            [UpTime(1, 3, "gone"), UpTime(5)],
        ),
        # Up before the traces begin: since the first sight of the edge, at 0.
        ([(3, False, "gone"), (5, True, None)], [UpTime(0, 3, "gone"), UpTime(5)]),
        # The same said twice.
        ([(1, True, None), (3, False, "gone"), (4, False, "too")], [UpTime(1, 3, "gone")]),
        # A crash has lost the first down.
        (
            [(1, True, None), (5, True, None), (9, False, "gone")],
            [UpTime(1, 5), UpTime(5, 9, "gone")],
        ),
        # The new connection is up before the old one is let go.
        (
            [(1, True, None), (5, True, None), (6, False, TAKEN_OVER), (9, False, "gone")],
            [UpTime(1, 5, TAKEN_OVER), UpTime(5, 9, "gone")],
        ),
        # A link may be taken over by one that the traces do not tell of.
        ([(1, True, None), (6, False, TAKEN_OVER)], [UpTime(1, 6, TAKEN_OVER)]),
    ],
)
def test_ups_and_downs_make_spans(
    changes: list[tuple[int, bool, str | None]], spans: list[UpTime]
) -> None:
    """Every sequence, complete or not, gives times that do not overlap."""
    assert spans_of([end(*changes)], {FARES: 0}) == {FARES: spans}


def test_a_down_alone_is_seen_when_it_happens() -> None:
    """Without any earlier sight of the edge the time up is of no length."""
    assert spans_of([end((3, False, "gone"))], {}) == {FARES: [UpTime(3, 3, "gone")]}
    assert spans_of([end((3, False, "gone"))], {FARES: 4}) == {FARES: [UpTime(3, 3, "gone")]}


def test_the_end_that_saw_more_counts() -> None:
    """Of equals the local one; rows that are no link's are passed over."""
    more = end((1, True, None), (2, False, "a"), (3, True, None), remote=True)
    less = end((1, True, None), (2, False, "b"))
    for rows in ([more, less], [less, more]):
        assert [span.reason for span in spans_of(rows, {})[FARES]] == ["a", None]
    equal = end((5, True, None), (6, False, "c"), remote=True)
    for rows in ([equal, less], [less, equal]):
        assert [span.reason for span in spans_of(rows, {})[FARES]] == ["b"]
    nobody = {**less, "bridge": None, "peer_router": None, "peer_vpn": None, "remote": None}
    assert spans_of([{**nobody, "changes": []}, {**nobody, "router": None}], {}) == {}


def test_of_a_list_that_was_cut_the_begin_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first down may belong to an up that was cut off."""
    monkeypatch.setattr(module, "REPORT_LINK_CHANGES", 3)
    cut = end((3, False, "a"), (4, True, None), (5, False, "b"))
    assert spans_of([cut], {FARES: 0}) == {FARES: [UpTime(4, 5, "b")]}


def test_the_latest_spans_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """By edge and time, as many as the table may have; flaps are all downs but the last."""
    other = FARES._replace(bridge="more")
    spans = {FARES: [UpTime(1, 2, "a"), UpTime(7, 8, "b"), UpTime(9)], other: [UpTime(3, 5, "c")]}
    rows = links(spans)
    assert [(row["bridge"], row["up_ns"], row["down_ns"], row["reason"]) for row in rows] == [
        ("fares", 1, 2, "a"),
        ("fares", 7, 8, "b"),
        ("fares", 9, None, None),
        ("more", 3, 5, "c"),
    ]
    assert flaps(reversed(rows)) == {FARES: 2, other: 0}
    monkeypatch.setattr(module, "REPORT_LINKS", 3)
    assert [row["up_ns"] for row in links(spans)] == [7, 9, 3]


def test_time_up_is_summed_to_the_end() -> None:
    """A time that lasts counts to the end given, and never less than nothing."""
    assert time_up([UpTime(1, 4), UpTime(6)], 10) == 7
    assert time_up([UpTime(6)], 5) == 0


SECOND = 1_000_000_000
DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("span_ns", "width_ns"),
    [
        (0, SECOND // 1_000),
        (60 * SECOND, SECOND),
        (60 * SECOND + 1, 2 * SECOND),
        (DAY, 30 * 60 * SECOND),
        (365 * DAY, 7 * DAY),
        (100_000 * DAY, 30 * DAY),
    ],
)
def test_the_width_is_usual_and_fits(span_ns: int, width_ns: int) -> None:
    """The shortest usual stretch of which at most 60 cover the span, 30 days at the most."""
    assert width_for(span_ns) == width_ns
