"""vpnrouter.report.rules.places: one partition with most of the load."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.places import loads, skewed_partitions

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def load(partitions: int, most: int, messages: int) -> dict[str, Any]:
    """A row of `loads`."""
    figures = {
        "partitions": partitions,
        "largest": 2,
        "most": most,
        "messages": messages,
        "bytes": 1,
    }
    return {"router": "a", "vpn": "x", "endpoint": "q", **figures}


@pytest.mark.parametrize(
    ("partitions", "most", "messages", "value"),
    [
        (8, 320, 1_000, 2.56),
        (8, 312, 1_000, None),
        (8, 250, 1_000, None),
        (2, 900, 1_000, 1.8),
        (2, 800, 1_000, None),
        (3, 900, 1_000, 2.7),
        (3, 830, 1_000, None),
        (12, 1_000, 1_000, 12.0),
    ],
)
def test_far_above_the_mean_is_skewed(
    partitions: int, most: int, messages: int, value: float | None
) -> None:
    """Two and a half times; of two partitions nine tenths in one. What chance gives is none."""
    found = skewed_partitions([load(partitions, most, messages)])
    assert [one.value for one in found] == ([] if value is None else [pytest.approx(value)])


def test_the_sentence_names_the_partition() -> None:
    """And its share."""
    (found,) = skewed_partitions([load(4, 900, 1_000)])
    assert (found.kind, found.severity, found.endpoint) == ("skewed_partition", "warning", "q")
    assert found.detail == (
        "Partition 2 of q in a/x took 90.0 % of 1,000 messages, 3.6 times the mean of 4 partitions."
    )


@pytest.mark.spark
def test_loads_are_summed_by_partition(digest_of: DigestOf) -> None:
    """Queues without partitions, with one, or with few messages are left out; empty partitions count."""

    def row(endpoint: str, partition: int | None, enqueued: int) -> dict[str, Any]:
        place = {"router": "a", "vpn": "x", "endpoint": endpoint}
        return {**place, "partition": partition, "enqueued": enqueued, "bytes": enqueued}

    rows = [
        row("q", 0, 10),
        row("q", 3, 50),
        row("q", 3, 60),
        row("plain", None, 500),
        row("one", 0, 500),
        row("idle", 0, 2),
        row("idle", 1, 37),
    ]
    found = loads(digest_of("endpoints", rows)).collect()
    assert [
        (one.endpoint, one.partitions, one.largest, one.most, one.messages) for one in found
    ] == [("q", 4, 3, 110, 120)]
