"""vpnrouter.report.flows.ends: what the driver takes of the large digests."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.flows import ends
from vpnrouter.report.flows.ends import link_changes, rows_in, table_of, totals
from vpnrouter.report.schema import LENGTHS

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]
AT_CORE = {"router": "core", "vpn": "yellow", "peer_router": "edge", "peer_vpn": "blue"}


def test_rows_come_in_batches_and_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes into a table comes out, in order, columns of other names left behind."""
    monkeypatch.setattr(ends, "_BATCH_ROWS", 2)
    rows = [{"hops": number, "messages": 10 * number} for number in range(5)]
    table = table_of([{**row, "more": "x"} for row in rows], LENGTHS)
    assert table.column_names == ["hops", "messages"]
    assert list(rows_in(table)) == rows
    assert list(rows_in(table_of([], LENGTHS))) == []


@pytest.mark.spark
def test_stretches_and_modes_add_up(digest_of: DigestOf) -> None:
    """One row an event and place, with the peak of all modes together; a weight unknown stays so."""
    receive = {**AT_CORE, "event": "bridge_receive", "bridge": "fares", "remote": False}
    figures = {"first_ns": 5, "last_ns": 6, "weight": 2.0, "bytes": 10}
    rows = [
        {**receive, **figures, "mode": "direct", "start_ns": 0, "count": 3},
        {**receive, **figures, "mode": "persistent", "start_ns": 0, "count": 4, "first_ns": 1},
        {**receive, **figures, "mode": "direct", "start_ns": 9, "count": 5, "last_ns": 12},
        {"router": "core", "vpn": "yellow", "event": "deliver", "start_ns": 0, "count": 1},
    ]
    deliver, crossed = sorted(
        rows_in(totals(digest_of("places", rows))), key=lambda row: row["count"]
    )
    assert crossed == {
        **receive,
        "count": 12,
        "direct": 8,
        "weight": 6.0,
        "bytes": 30,
        "first_ns": 1,
        "last_ns": 12,
        "peak": 7,
        "stretches": 2,
    }
    assert (deliver["weight"], deliver["bytes"], deliver["bridge"]) == (None, 0, "")
    assert deliver["remote"] is False


@pytest.mark.spark
def test_each_end_of_a_link_has_its_changes_in_order(
    digest_of: DigestOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest ones of each end; subscriptions only say when a message VPN was seen."""
    monkeypatch.setattr(ends, "REPORT_LINK_CHANGES", 2)
    link = {**AT_CORE, "bridge": "fares"}
    rows = [
        {**link, "event": "link_up", "ts_ns": 30},
        {**link, "event": "link_down", "ts_ns": 20, "reason": "gone"},
        {**link, "event": "link_up", "ts_ns": 10},
        {**link, "event": "link_up", "ts_ns": 11, "client": "#bridge/x"},
        {"router": "core", "vpn": "yellow", "event": "subscribe", "ts_ns": 3, "topic": "a"},
        {"router": "core", "vpn": "yellow", "event": "unsubscribe", "ts_ns": 4, "topic": "a"},
        {**link, "vpn": "misspelt", "event": "link_rejected", "ts_ns": 5},
    ]
    found = sorted(
        rows_in(link_changes(digest_of("states", rows))), key=lambda row: row["first_ns"]
    )
    assert [(row["first_ns"], row["last_ns"], row["remote"]) for row in found] == [
        (3, 4, None),
        (10, 30, False),
        (11, 11, True),
    ]
    assert [[tuple(one.values()) for one in row["changes"]] for row in found] == [
        [],
        [(20, False, "gone"), (30, True, None)],
        [(11, True, None)],
    ]
