"""Digests of disjoint rows put together: what one digest of all the rows would be.

Only `doubles` is not quite that: a message whose copies lie in different parts is not found. Who cuts rows
into parts keeps those of one message together.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.topology.digests.schema import DIGESTS
from vpnrouter.topology.schema import conform

_SUMS: Final = frozenset(
    {"count", "bytes", "messages", "copies", "enqueued", "acknowledged"},
)
_LEAST: Final = frozenset(
    {"first_ns", "least_age_ns", "example_topic", "example_path", "example_trace"}
)
_MOST: Final = frozenset({"last_ns"})
_AS_THEY_ARE: Final = frozenset({"states"})
"""Digests whose rows are no sums."""


def combined(name: str, parts: DataFrame) -> DataFrame:
    """The rows of several digests called `name` in, one digest out; the same schema."""
    schema = DIGESTS[name]
    if name in _AS_THEY_ARE:
        return conform(parts, schema)
    figures: dict[str, Column] = {}
    for column in schema.names:
        if column in _SUMS:
            figures[column] = F.sum(column)
        elif column in _LEAST:
            figures[column] = F.min(column)
        elif column in _MOST:
            figures[column] = F.max(column)
        elif column == "weight":
            known = F.count("weight") == F.count(F.lit(1))
            figures[column] = F.when(known, F.sum("weight"))
    keys = [column for column in schema.names if column not in figures]
    grouped = parts.groupBy(*keys).agg(*(value.alias(key) for key, value in figures.items()))
    return conform(grouped, schema)
