"""vpnrouter.report.flows.tables: the busiest topics."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from vpnrouter.report.flows.tables import busiest, topics
from vpnrouter.report.schema import TOPICS

pytestmark = pytest.mark.spark

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def use(topic: str | None, vpn: str, event: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """A row of USES at router "edge"; a message weighs 2 and has 64 bytes."""
    figures = {"count": count, "weight": 2.0 * count, "bytes": 64 * count}
    return {"topic": topic, "router": "edge", "vpn": vpn, "event": event, **figures, **more}


def test_a_topic_is_counted_in_each_vpn(
    digest_of: DigestOf,
    assert_rows: Callable[[DataFrame, StructType, list[tuple[Any, ...]]], None],
) -> None:
    """One topic in two VPNs is two rows, with what happened to its messages in each."""
    rows = [
        use("a/b", "blue", "ingress", client="one"),
        use("a/b", "blue", "ingress", 2, client="two"),
        use("a/b", "blue", "bridge_send", 2, bridge="fares"),
        use("a/b", "yellow", "bridge_receive", bridge="fares"),
        use("a/b", "yellow", "deliver", 3),
        use("a/b", "yellow", "enqueue", 9, endpoint="q"),
        use("a/b", "green", "ingress", weight=None, bytes=None),
        use("a/b", "green", "deliver"),
        use("lost", "blue", "discard", endpoint="no-subscription-match"),
        use("lost", "blue", "discard", weight=None),
        use("kept", "blue", "enqueue"),
        use(None, "blue", "ingress"),
    ]
    assert_rows(
        topics(digest_of("uses", rows)),
        TOPICS,
        [
            ("a/b", "edge", "blue", 3, 192, 6, 0, 2, 0, 0),
            ("a/b", "edge", "yellow", 0, 0, 0, 1, 0, 3, 0),
            ("a/b", "edge", "green", 1, 0, None, 0, 0, 1, 0),
            ("lost", "edge", "blue", 0, 0, 0, 0, 0, 0, 2),
        ],
    )


def test_the_busiest_come_first(digest_of: DigestOf) -> None:
    """Topics are ordered by messages that entered, ties by name, and cut at the bound."""
    rows = [
        use(topic, "blue", "ingress", count)
        for topic, count in zip("bacd", (2, 2, 3, 1), strict=True)
    ]
    found = busiest(topics(digest_of("uses", rows)), 3)
    assert [row.topic for row in found.collect()] == ["c", "a", "b"]
