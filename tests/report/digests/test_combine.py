"""vpnrouter.report.digests.digest: digests of parts put together."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.testing import assertSchemaEqual

from vpnrouter.report.digests.digest import Digests, combined, digested
from vpnrouter.report.digests.schema import DIGESTS
from vpnrouter.report.spark import Quiet

pytestmark = pytest.mark.spark

SECOND = 1_000_000_000
SECOND_COPY_NS = 5 * SECOND + 43_000_001
"""When, by its clock, core gave the subscriber message 5 for the second time."""


def listed(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows, in an order of their own."""
    return sorted((row.asDict() for row in frame.collect()), key=repr)


def test_two_halves_are_the_whole(small_mesh: Digests, small_mesh_traces: DataFrame) -> None:
    """Odd and even messages apart, each half with traffic both ways; and the two copies of one message apart,
    which alone is not found again.
    """
    copy = (F.col("event") == "deliver") & (F.col("ts_ns") == SECOND_COPY_NS)
    even = (F.coalesce("message_id", F.lit(0)) % 2 == 0) | copy
    assert small_mesh_traces.where(copy).count() == 1
    one, other = small_mesh_traces.where(even), small_mesh_traces.where(~even)
    with (
        digested(one, one, None, SECOND, 2, Quiet()) as first,
        digested(other, other, None, SECOND, 2, Quiet()) as second,
    ):
        assert first.clocks == second.clocks == small_mesh.clocks
        for name, schema in DIGESTS.items():
            together = combined(name, first.frames[name].unionByName(second.frames[name]))
            assertSchemaEqual(together.schema, schema)
            whole = listed(small_mesh.frames[name])
            if name == "doubles":
                assert "deliver" in {row["kind"] for row in whole}
                whole = [row for row in whole if row["kind"] != "deliver"]
            assert whole
            assert listed(together) == whole, name


def test_figures_add_up(digest_of: Callable[..., DataFrame]) -> None:
    """Counts are summed, times span, of examples and ages the least is kept; other columns tell rows apart."""
    loss = {"router": "edge", "vpn": "blue", "event": "discard", "reason": "slow", "start_ns": 0}
    rows = [
        {**loss, "count": 2, "bytes": 20, "weight": 4.0, "first_ns": 5, "last_ns": 6}
        | {"example_topic": "b", "example_path": None},
        {**loss, "count": 3, "bytes": 30, "weight": 6.0, "first_ns": 2, "last_ns": 3}
        | {"example_topic": "a", "example_path": "x/y"},
        {**loss, "count": 1, "bytes": 1, "weight": 1.0, "start_ns": 10},
    ]
    later, found = sorted(
        listed(combined("losses", digest_of("losses", rows))), key=lambda r: r["count"]
    )
    assert (found["count"], found["bytes"], found["weight"]) == (5, 50, 10.0)
    assert (found["first_ns"], found["last_ns"]) == (2, 6)
    assert (found["example_topic"], found["example_path"]) == ("a", "x/y")
    assert (later["start_ns"], later["count"]) == (10, 1)


def test_a_weight_is_known_when_all_are(digest_of: Callable[..., DataFrame]) -> None:
    """One part that cannot tell makes the sum unknown."""
    use = {"topic": "a", "router": "edge", "vpn": "blue", "event": "ingress", "count": 1}
    rows = [{**use, "weight": 2.0}, {**use, "weight": None}]
    (found,) = listed(combined("uses", digest_of("uses", rows)))
    assert (found["count"], found["weight"]) == (2, None)


def test_states_stay_rows(digest_of: Callable[..., DataFrame]) -> None:
    """A link that came up twice in one nanosecond came up twice."""
    row = {"ts_ns": 1, "router": "edge", "vpn": "blue", "event": "link_up"}
    assert len(listed(combined("states", digest_of("states", [row, row])))) == 2


def test_nothing_is_nothing(digest_of: Callable[..., DataFrame]) -> None:
    """No rows give no rows, not one of zeros."""
    assert listed(combined("places", digest_of("places", []))) == []
