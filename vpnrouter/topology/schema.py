"""The shape of every frame: what goes into the jobs and what comes out of them.

All counts are of traced events. `*_estimated` columns are the same scaled by the sampling rate of
the router at which each message entered; they are null where that rate is not known for every row
counted.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_TEXT: Final = StringType()
_LONG: Final = LongType()

TRACE_FILE: Final = _struct(
    ts_ns=_LONG,
    router=_TEXT,
    vpn=_TEXT,
    event=_TEXT,
    trace_id=_TEXT,
    message_id=_LONG,
    topic=_TEXT,
    mode=_TEXT,
    size_bytes=_LONG,
    client=_TEXT,
    endpoint=_TEXT,
    bridge=_TEXT,
    peer_router=_TEXT,
    peer_vpn=_TEXT,
    hops=IntegerType(),
    path=_TEXT,
    reason=_TEXT,
    since_ingress_ns=_LONG,
    origin_router=_TEXT,
    origin_vpn=_TEXT,
    origin_ts_ns=_LONG,
)
"""A trace row as docs/traces.md has it; `router` comes from the file or from its directory."""

TRACES: Final = StructType([*TRACE_FILE.fields, StructField("weight", DoubleType())])
"""What every job takes: a trace row and how many messages it stands for (null: not known)."""

NODES: Final = _struct(
    router=_TEXT,
    vpn=_TEXT,
    traced=BooleanType(),
    ingress=_LONG,
    ingress_bytes=_LONG,
    ingress_estimated=_LONG,
    delivered=_LONG,
    delivered_bytes=_LONG,
    delivered_estimated=_LONG,
    bridged_in=_LONG,
    bridged_out=_LONG,
    spooled=_LONG,
    discarded=_LONG,
    rejected=_LONG,
    first_ns=_LONG,
    last_ns=_LONG,
)
"""One row a message VPN. `traced` is false for one known only as the other end of a bridge."""

EDGES: Final = _struct(
    from_router=_TEXT,
    from_vpn=_TEXT,
    to_router=_TEXT,
    to_vpn=_TEXT,
    bridge=_TEXT,
    messages=_LONG,
    messages_estimated=_LONG,
    bytes=_LONG,
    sent=_LONG,
    received=_LONG,
    direct=_LONG,
    guaranteed=_LONG,
    latency_samples=_LONG,
    latency_p50_ns=_LONG,
    latency_p95_ns=_LONG,
    latency_p99_ns=_LONG,
    age_p50_ns=_LONG,
    age_p95_ns=_LONG,
    age_p99_ns=_LONG,
    link_ups=_LONG,
    link_downs=_LONG,
    first_ns=_LONG,
    last_ns=_LONG,
)
"""One row a bridge, from the remote message VPN, where messages come from, to the local one."""

TOPICS: Final = _struct(
    topic=_TEXT,
    router=_TEXT,
    vpn=_TEXT,
    published=_LONG,
    published_bytes=_LONG,
    published_estimated=_LONG,
    bridged_in=_LONG,
    bridged_out=_LONG,
    delivered=_LONG,
    discarded=_LONG,
)
"""One row a topic and message VPN in which messages on it were seen."""

DISCARDS: Final = _struct(
    router=_TEXT,
    vpn=_TEXT,
    event=_TEXT,
    reason=_TEXT,
    place=_TEXT,
    messages=_LONG,
    messages_estimated=_LONG,
    bytes=_LONG,
    example_topic=_TEXT,
    first_ns=_LONG,
    last_ns=_LONG,
)
"""One row an event that ended a message's way early, its reason and its place (endpoint, bridge or
client).
"""

TIMELINE: Final = _struct(
    start_ns=_LONG,
    ingress=_LONG,
    bridged=_LONG,
    delivered=_LONG,
    discarded=_LONG,
)
"""One row a stretch of time in which anything happened, named by its begin."""


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """`frame` with exactly the columns of `schema`, in its order and with its types."""
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in schema.fields))


def count_where(condition: Column) -> Column:
    """How many rows of a group meet `condition`."""
    return F.count(F.when(condition, F.lit(1)))


def estimate_where(condition: Column) -> Column:
    """How many messages the rows that meet `condition` stand for; null when that is not known of
    one of them.
    """
    unknown = F.count(F.when(condition & F.col("weight").isNull(), F.lit(1)))
    total = F.coalesce(F.sum(F.when(condition, F.col("weight"))), F.lit(0.0))
    return F.when(unknown == 0, F.round(total).cast("long"))
