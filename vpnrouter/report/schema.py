"""Declares the shape of every frame that goes into the jobs and comes out of them, and of a finding.

All counts are of traced events. `*_estimated` columns are the same scaled by the sampling rate of
the router at which each message entered; they are null where that rate is not known for every row
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pyspark.sql import DataFrame
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

from vpnrouter.trace.schema import COLUMNS

Rows = list[dict[str, Any]]
"""Rows of a table on the driver, by column."""

Edge = tuple[str, str, str, str, str]
"""A bridge: router and message VPN that messages come from, those they come to, its name ("" where none is known)."""

EDGE: Final = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
"""The columns that name an edge: the remote message VPN, where messages come from, the local one, and the bridge."""

BRIDGE_CLIENT: Final = "#bridge/"
"""How the client name begins under which a bridge logs in: "#bridge/ROUTER/VPN/BRIDGE"."""


def edge_named(row: Mapping[str, Any]) -> Edge:
    """The edge of a row that has the columns of one."""
    return (
        row["from_router"],
        row["from_vpn"],
        row["to_router"],
        row["to_vpn"],
        row["bridge"] or "",
    )


def struct(**fields: DataType) -> StructType:
    """Columns, all of which may be null, in the order given."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_TEXT: Final = StringType()
_LONG: Final = LongType()
_EDGE: Final = dict.fromkeys(EDGE, _TEXT)

_TYPES: Final = {"int64": _LONG, "int32": IntegerType(), "string": _TEXT}

TRACE_FILE: Final = struct(**{column.name: _TYPES[column.type] for column in COLUMNS})
"""A trace row as docs/traces.md has it; `router` comes from the file or from its directory."""

TRACES: Final = StructType([*TRACE_FILE.fields, StructField("weight", DoubleType())])
"""What every job takes: a trace row and how many messages it stands for (null: not known)."""

NODES: Final = struct(
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

EDGES: Final = struct(
    **_EDGE,
    messages=_LONG,
    messages_estimated=_LONG,
    bytes=_LONG,
    sent=_LONG,
    received=_LONG,
    direct=_LONG,
    guaranteed=_LONG,
    peak_messages=_LONG,
    latency_samples=_LONG,
    latency_p50_ns=_LONG,
    latency_p95_ns=_LONG,
    latency_p99_ns=_LONG,
    latency_corrected=BooleanType(),
    link_ups=_LONG,
    link_downs=_LONG,
    up_ns=_LONG,
    first_ns=_LONG,
    last_ns=_LONG,
    configured=BooleanType(),
    cut=BooleanType(),
    centrality=DoubleType(),
)
"""One row a bridge, from the remote message VPN, where messages come from, to the local one.

`peak_messages` are those of its busiest stretch of the timeline. `latency_corrected`: the difference of the two
clocks is known and taken off. `link_ups`, `link_downs` and `up_ns` (time up, nanoseconds) are those of the end
that saw more. `configured` is null without configurations to compare with. `cut`: what hangs together would
fall apart without it. `centrality`: share of the shortest ways between message VPNs that lead over it.
"""

RATES: Final = struct(
    **_EDGE,
    start_ns=_LONG,
    messages=_LONG,
    bytes=_LONG,
    guaranteed=_LONG,
)
"""One row a bridge and stretch of time in which messages crossed it."""

LATENCIES: Final = struct(
    **_EDGE,
    latency_ns=_LONG,
    messages=_LONG,
)
"""How long messages took over each bridge: a histogram; `latency_ns` is the middle of its bucket."""

END_TO_END: Final = struct(
    origin_router=_TEXT,
    origin_vpn=_TEXT,
    router=_TEXT,
    vpn=_TEXT,
    messages=_LONG,
    p50_ns=_LONG,
    p95_ns=_LONG,
    p99_ns=_LONG,
    corrected=BooleanType(),
)
"""One row a pair of message VPNs: from first ingress to delivery, or to an endpoint."""

CLOCKS: Final = struct(
    router=_TEXT,
    reference=_TEXT,
    offset_ns=_LONG,
    error_ns=_LONG,
    pairs=_LONG,
)
"""How far each router's clock is ahead of the reference's, from messages that crossed both ways; `error_ns` bounds
the error, `pairs` are the routers it was compared with. A router that exchanged none both ways has null
for the offset and the error. Each group of routers that can be compared has a reference of its own.
"""

LINKS: Final = struct(
    **_EDGE,
    up_ns=_LONG,
    down_ns=_LONG,
    reason=_TEXT,
)
"""One row a time that a link was up; `down_ns` is null for one that has not ended."""

WAYS: Final = struct(
    way=_TEXT,
    hops=IntegerType(),
    messages=_LONG,
    bytes=_LONG,
)
"""The ways that messages took, "router/vpn>router/vpn", the last one included."""

LENGTHS: Final = struct(hops=IntegerType(), messages=_LONG)
"""How many messages entered a message VPN after so many bridges; 0 bridges: published there."""

VPNS: Final = struct(
    router=_TEXT,
    vpn=_TEXT,
    component=IntegerType(),
    articulation=BooleanType(),
    centrality=DoubleType(),
    bridges_in=IntegerType(),
    bridges_out=IntegerType(),
)
"""Where each message VPN stands in the mesh. Components are numbered from 1, the largest first. An articulation
point holds parts of the mesh together that fall apart without it.
"""

PAIRS: Final = struct(
    router=_TEXT,
    vpn=_TEXT,
    other_router=_TEXT,
    other_vpn=_TEXT,
    links=IntegerType(),
    hops=IntegerType(),
    widest=_LONG,
)
"""Pairs of message VPNs: `links` is how many links have to go before they are apart, counted up to 8, `hops` the
shortest way, `widest` the messages that crossed the narrowest step of the widest way, a step being all
bridges between two message VPNs.
"""

CHANGES: Final = struct(
    what=_TEXT,
    change=_TEXT,
    router=_TEXT,
    vpn=_TEXT,
    peer_router=_TEXT,
    peer_vpn=_TEXT,
    bridge=_TEXT,
    topic=_TEXT,
    measure=_TEXT,
    before=DoubleType(),
    after=DoubleType(),
)
"""What differs between two ranges of time: `what` is vpn, bridge, topic or finding; `change` is new, gone, more or
less; figures are per second where they count, nanoseconds where they are durations.
"""

ADVICE: Final = struct(
    rank=IntegerType(),
    action=_TEXT,
    router=_TEXT,
    vpn=_TEXT,
    peer_router=_TEXT,
    peer_vpn=_TEXT,
    bridge=_TEXT,
    client=_TEXT,
    endpoint=_TEXT,
    topic=_TEXT,
    advice=_TEXT,
    evidence=_TEXT,
    effect=_TEXT,
    score=DoubleType(),
)
"""What to change, the most useful first: a sentence each for what, why, and what it will do."""

TOPICS: Final = struct(
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

DISCARDS: Final = struct(
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

TIMELINE: Final = struct(
    start_ns=_LONG,
    ingress=_LONG,
    bridged=_LONG,
    delivered=_LONG,
    discarded=_LONG,
)
"""One row a stretch of time in which anything happened, named by its begin."""


FINDINGS: Final = struct(
    kind=_TEXT,
    severity=_TEXT,
    router=_TEXT,
    vpn=_TEXT,
    peer_router=_TEXT,
    peer_vpn=_TEXT,
    bridge=_TEXT,
    client=_TEXT,
    endpoint=_TEXT,
    topic=_TEXT,
    reason=_TEXT,
    messages=_LONG,
    bytes=_LONG,
    value=DoubleType(),
    first_ns=_LONG,
    last_ns=_LONG,
    detail=_TEXT,
)
"""One row a thing worth knowing about the mesh; docs/report-findings.md lists the kinds.

`severity` is error, warning or info. `router` and `vpn` are where it is; for a bridge they are its local end, which
attracts, and the peer is the remote end, where messages come from. `topic` is a filter for kinds about
subscriptions. `messages` and `bytes` are those concerned, as traced. `value` is a figure whose meaning the
kind gives. `detail` is a sentence for people. What does not apply is null.
"""


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """`frame` with exactly the columns of `schema`, in its order and with its types."""
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in schema.fields))


ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"

Severity = Literal["error", "warning", "info"]

_RANKS: Final = {ERROR: 0, WARNING: 1, INFO: 2}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing worth knowing; the fields are the columns of `vpnrouter.report.schema.FINDINGS`."""

    kind: str
    severity: Severity
    router: str | None = None
    vpn: str | None = None
    peer_router: str | None = None
    peer_vpn: str | None = None
    bridge: str | None = None
    client: str | None = None
    endpoint: str | None = None
    topic: str | None = None
    reason: str | None = None
    messages: int | None = None
    bytes: int | None = None
    value: float | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    detail: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then the rest; within these by kind, then by messages, then by place."""
    return sorted(
        findings,
        key=lambda one: (
            _RANKS[one.severity],
            one.kind,
            -(one.messages or 0),
            *(str(getattr(one, name) or "") for name in ("router", "vpn", "bridge", "client")),
            one.topic or "",
        ),
    )


def rows_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings as rows of FINDINGS."""
    return [asdict(one) for one in findings]
