"""vpnrouter.report.flows.tables: how long messages took over each bridge."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.digests.sums import middle_ns
from vpnrouter.report.flows import tables as module
from vpnrouter.report.flows.ends import EDGE, rows_in
from vpnrouter.report.flows.tables import Latency, histograms, latencies

FARES = ("edge", "blue", "core", "yellow", "fares")
OTHER = ("edge", "blue", "core", "red", "")


def hop(edge: tuple[str, ...], bucket: int, count: int) -> dict[str, Any]:
    """A row of HOPS."""
    return {**dict(zip(EDGE, edge, strict=True)), "bucket": bucket, "count": count}


def listed(edge: tuple[str, ...], *counts: tuple[int, int]) -> dict[str, Any]:
    """A row of histograms."""
    pairs = [{"bucket": bucket, "count": count} for bucket, count in counts]
    samples = sum(count for _, count in counts)
    return {**dict(zip(EDGE, edge, strict=True)), "samples": samples, "histogram": pairs}


def test_percentiles_are_of_the_whole_histogram() -> None:
    """Buckets in any order, and repeated ones, give the same percentiles and rows in order."""
    found, rows = latencies([listed(FARES, (9, 4), (-3, 50), (9, 46))])
    assert found == {FARES: Latency(100, middle_ns(-3), 9, 9)}
    assert [(row["bridge"], row["latency_ns"], row["messages"]) for row in rows] == [
        ("fares", -2, 50),
        ("fares", 9, 50),
    ]


def test_whole_histograms_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is left out with all after it; percentiles are of every edge."""
    monkeypatch.setattr(module, "REPORT_LATENCIES", 3)
    third = (*FARES[:4], "third")
    rows = [listed(FARES, (1, 9), (2, 9)), listed(OTHER, (1, 4), (2, 4)), listed(third, (5, 1))]
    found, table = latencies(rows)
    assert list(found) == [FARES, OTHER, third]
    assert {row["bridge"] for row in table} == {"fares"}
    assert latencies([]) == ({}, [])


@pytest.mark.spark
def test_digests_put_together_are_one_histogram(
    digest_of: Callable[[str, list[dict[str, Any]]], DataFrame],
) -> None:
    """Edges with most samples first; a bridge without a name is one as well."""
    rows = [hop(OTHER, 7, 1), hop(FARES, 7, 2), hop(FARES, 8, 1), hop(FARES, 7, 3)]
    rows[0]["bridge"] = None
    table = histograms(digest_of("hops", rows))
    assert [row["samples"] for row in rows_in(table)] == [6, 1]
    found, listed_rows = latencies(rows_in(table))
    assert found == {FARES: Latency(6, 7, 8, 8), OTHER: Latency(1, 7, 7, 7)}
    assert [row["messages"] for row in listed_rows] == [5, 1, 1]


def test_the_middle_of_a_bucket() -> None:
    """Halfway between its least duration and that of the next; exact below 64 ns, the same below zero."""
    assert [middle_ns(number) for number in (0, 31, 32, 63)] == [0, 31, 32, 63]
    assert [middle_ns(number) for number in (64, 96, 97, -97)] == [65, 130, 134, -130]
