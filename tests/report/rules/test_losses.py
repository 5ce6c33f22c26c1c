"""vpnrouter.report.rules.context: what of the losses the rules look at."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.report.rules.context import losses_by_place

pytestmark = pytest.mark.spark

DigestOf = Callable[[str, list[dict[str, Any]]], DataFrame]


def row(event: str, reason: str, **more: Any) -> dict[str, Any]:
    """A row of LOSSES at b/y."""
    empty = {"endpoint": "", "bridge": "", "client": "", "crossed": True, "count": 1, "bytes": 5}
    times = {"first_ns": 1, "last_ns": 2}
    return {"router": "b", "vpn": "y", "event": event, "reason": reason, **empty, **times, **more}


def test_losses_are_put_together_by_place(digest_of: DigestOf) -> None:
    """What tells of no trouble is left out; who had been there, and the spans of rejects, are kept."""
    rows = [
        row("discard", "loop-detected", example_path="b/y>a/x", weight=2.0),
        row("discard", "loop-detected", example_path="c/z>b/y", count=2, weight=4.0, last_ns=9),
        row("discard", "loop-detected", example_path="a/x", count=4),
        row("discard", "duplicate", count=8, weight=1.0),
        row("discard", "duplicate", count=8),
        row("reject", "full", endpoint="q", first_ns=3, last_ns=4),
        row("reject", "full", endpoint="q", first_ns=5, last_ns=6, count=7),
        row("discard", "transmit-congestion", client="#bridge/c/z/n", crossed=False),
        row("discard", "transmit-congestion", client="phone"),
        row("reject", "rejected", endpoint="q"),
        row("reject", "full", endpoint="q", crossed=False),
        row("discard", "no-subscription-match"),
        row("expire", "max-ttl-expired"),
    ]
    found = [
        one.asDict(recursive=True) for one in losses_by_place(digest_of("losses", rows)).collect()
    ]
    figures = [(one["reason"], one["back"], one["count"], one["weight"]) for one in found]
    assert figures[:2] == [("duplicate", None, 16, None), ("full", None, 8, None)]
    assert sorted(figures[2:], key=repr) == [
        ("loop-detected", False, 4, None),
        ("loop-detected", True, 3, 6.0),
        ("transmit-congestion", None, 1, None),
    ]
    rejects = found[1]
    assert sorted(span["first_ns"] for span in rejects["spans"]) == [3, 5]
    assert (rejects["first_ns"], rejects["last_ns"], rejects["bytes"]) == (3, 6, 10)
    assert all(not one["spans"] for one in found if one["event"] == "discard")
