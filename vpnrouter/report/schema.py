"""Declares the columns of trace rows and result tables, and the finding.

All counts are of traced events. `*_estimated` columns are the same scaled by the sampling rate of the router at which
each message entered; they are null where that rate is not known for every row counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

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

DATE: Final = "date"
"""The column by which result tables are partitioned: the last day (UTC) that the report covers."""

BRIDGE_CLIENT: Final = "#bridge/"
"""Prefix of the client name under which a bridge logs in: "#bridge/ROUTER/VPN/BRIDGE"."""


class Edge(NamedTuple):
    """A bridge, from the remote message VPN, where messages come from, to the local one. Its name is "" if unknown."""

    from_router: str
    from_vpn: str
    to_router: str
    to_vpn: str
    bridge: str

    @property
    def client(self) -> str:
        """The client name under which the bridge logs in to the remote router."""
        return f"{BRIDGE_CLIENT}{self.to_router}/{self.to_vpn}/{self.bridge}"


EDGE: Final = Edge._fields
"""The columns that name an edge."""


def edge_named(row: Mapping[str, Any]) -> Edge:
    """Return the edge of a row that has the columns EDGE."""
    return Edge._make((*(row[name] for name in EDGE[:4]), row["bridge"] or ""))


def struct(**fields: DataType) -> StructType:
    """Return nullable columns of a schema, in the same order."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def _named(names: str, kind: DataType) -> dict[str, DataType]:
    """Return columns of one type, from their names with spaces between."""
    return dict.fromkeys(names.split(), kind)


text: Final = partial(_named, kind=StringType())
long: Final = partial(_named, kind=LongType())
integer: Final = partial(_named, kind=IntegerType())
real: Final = partial(_named, kind=DoubleType())
flag: Final = partial(_named, kind=BooleanType())
_EDGE: Final = text(" ".join(EDGE))
_TYPES: Final = {
    "int64": LongType(),
    "int32": IntegerType(),
    "string": StringType(),
    "bool": BooleanType(),
}

TRACE_FILE: Final = struct(**{column.name: _TYPES[column.type] for column in COLUMNS})
"""A trace row as docs/traces.md has it; `router` comes from the file or from its directory."""

TRACE_READ: Final = struct(
    **{
        field.name: LongType() if isinstance(field.dataType, IntegerType) else field.dataType
        for field in TRACE_FILE.fields
    }
)
"""As what a trace row is read: a file may hold wider integers, and Spark widens only."""

TRACES: Final = StructType([*TRACE_FILE.fields, StructField("weight", DoubleType())])
"""What every job takes: a trace row and how many messages it stands for (null: not known)."""

NODES: Final = struct(
    **text("router vpn"),
    **flag("traced"),
    **long("ingress ingress_bytes ingress_estimated delivered delivered_bytes"),
    **long("delivered_estimated bridged_in bridged_out spooled discarded rejected first_ns"),
    **long("last_ns"),
)
"""One row a message VPN. `traced` is false for one known only as the other end of a bridge."""

EDGES: Final = struct(
    **_EDGE,
    **long("messages messages_estimated bytes sent received direct guaranteed peak_messages"),
    **long("latency_samples latency_p50_ns latency_p95_ns latency_p99_ns"),
    **flag("latency_corrected"),
    **long("latency_error_ns link_ups link_downs up_ns first_ns last_ns"),
    **flag("configured cut"),
    **real("centrality"),
)
"""One row a bridge, from the remote message VPN, where messages come from, to the local one.

`peak_messages` are those of its busiest stretch of the timeline. `latency_corrected`: the difference of the two
clocks is known and taken off; `latency_error_ns` bounds the error that is left, null otherwise. `link_ups`,
`link_downs` and `up_ns` (time up, nanoseconds) are those of the end that saw more. `configured` is null without
configurations to compare with. `cut`: what hangs together would fall apart without it. `centrality`: share of the
shortest ways between message VPNs that lead over it.
"""

RATES: Final = struct(
    **_EDGE,
    **long("start_ns messages bytes guaranteed"),
)
"""One row a bridge and stretch of time in which messages crossed it."""

LATENCIES: Final = struct(
    **_EDGE,
    **long("latency_ns messages"),
)
"""How long messages took over each bridge: a histogram; `latency_ns` is the middle of its bucket."""

END_TO_END: Final = struct(
    **text("origin_router origin_vpn router vpn"),
    **long("messages p50_ns p95_ns p99_ns"),
    **flag("corrected"),
    **long("error_ns"),
)
"""One row a pair of message VPNs: from first ingress to delivery, or to an endpoint. `error_ns` bounds the error that
is left of the clocks, null where they are not corrected."""

CLOCKS: Final = struct(
    **text("router reference"),
    **long("offset_ns error_ns pairs first_ns last_ns"),
    **real("drift_ppm"),
)
"""How far each router's clock is ahead of the reference's, from messages that crossed both ways; `error_ns` bounds
the error, `pairs` are the routers it was compared with. A clock that was set or drifts has a row for each stretch of
time, from `first_ns` to before `last_ns` as itself shows them: `offset_ns` is at `first_ns`, and grows by `drift_ppm`
nanoseconds each millisecond; of all others the three are null. A router that exchanged none both ways has null
for the offset and the error. Each group of routers that can be compared has a reference of its own.
"""

LINKS: Final = struct(
    **_EDGE,
    **long("up_ns down_ns"),
    **text("reason"),
)
"""One row a time that a link was up; `down_ns` is null for one that has not ended."""

WAYS: Final = struct(
    **text("way"),
    **integer("hops"),
    **long("messages bytes"),
)
"""The ways that messages took, "router/vpn>router/vpn", the last one included."""

LENGTHS: Final = struct(
    **integer("hops"),
    **long("messages"),
)
"""How many messages entered a message VPN after so many bridges; 0 bridges: published there."""

VPNS: Final = struct(
    **text("router vpn"),
    **integer("component"),
    **flag("articulation"),
    **real("centrality"),
    **integer("bridges_in bridges_out"),
)
"""Where each message VPN stands in the mesh. Components are numbered from 1, the largest first. An articulation
point holds parts of the mesh together that fall apart without it.
"""

PAIRS: Final = struct(
    **text("router vpn other_router other_vpn"),
    **integer("links hops"),
    **long("widest"),
)
"""Pairs of message VPNs: `links` is how many links have to go before they are apart, counted up to 8, `hops` the
shortest way, `widest` the messages that crossed the narrowest step of the widest way, a step being all
bridges between two message VPNs.
"""

WHAT_IF: Final = struct(
    **text("kind effect question router vpn peer_router peer_vpn bridge"),
    **integer("pairs_lost vpns_lost rising exceeding"),
    **real("lost_per_s own_per_s rerouted_per_s"),
    **text(" ".join(f"rise_{name}" for name in EDGE)),
    **real("before_per_s after_per_s rise_factor peak_factor"),
    **text("detail"),
)
"""What comes when a router or a bridge goes, or the load of a message VPN doubles. `kind` is router, bridge, double, or
asked for what the command was asked. `effect` is

* `summary`: all of one question. The place is what goes or doubles; `rise_*` names the bridge that exceeds its busiest
  stretch the most, and the figures behind are of this one.
* `lost`: messages of the peer, where they entered, do not come to the place any more.
* `rise`: the bridge carries more.

Rates are traced messages per second: `lost` between message VPNs that are apart, `own` in what goes itself, `rerouted`
by other ways. `rise_factor` is after / before of all messages, `peak_factor` the busiest stretch then / the busiest
stretch that was.
"""

BLAST_RADIUS: Final = struct(
    **text("router vpn"),
    **long("clients endpoints"),
    **real("local_per_s"),
    **integer("senders receivers vpns"),
    **long("clients_beyond endpoints_beyond"),
    **real("beyond_per_s"),
)
"""What depends on each message VPN. Directly: its clients, its endpoints, and the messages per second that entered and
were received in it. Over bridges: the message VPNs whose messages came into it or led through it (`senders`), those
that got messages from it or through it (`receivers`), both together (`vpns`) with their clients and endpoints, and the
messages per second between these and it, or through it.
"""

GROWTH: Final = struct(
    **text("what router vpn endpoint peer_router peer_vpn bridge unit"),
    **real("level per_day per_day_low per_day_high limit days days_low days_high"),
    **integer("stretches"),
    **text("reason"),
)
"""How queues and bridges grow. `what` is queue (`unit` bytes of payload, estimated) or bridge (traced messages per
second, the place being its local end). `level` is what a queue has taken on in the time observed, or the load of a
bridge at its end; `per_day` the growth with its interval, `limit` the quota of a queue, and twice the highest load of a
bridge. `days` until the limit, with their interval, are null where `reason` says why.
"""

CHANGES: Final = struct(
    **text("what change router vpn peer_router peer_vpn bridge topic measure"),
    **real("before after"),
)
"""What differs between two ranges of time: `what` is vpn, bridge, topic or finding; `change` is new, gone, more or
less; figures are per second where they count, nanoseconds where they are durations.
"""

ADVICE: Final = struct(
    **integer("rank"),
    **text("action router vpn peer_router peer_vpn bridge client endpoint topic advice"),
    **text("evidence effect"),
    **real("score"),
)
"""What to change, the most useful first: a sentence each for what, why, and what it will do."""

TOPICS: Final = struct(
    **text("topic router vpn"),
    **long("published published_bytes published_estimated bridged_in bridged_out delivered"),
    **long("discarded"),
)
"""One row a topic and message VPN in which messages on it were seen."""

DISCARDS: Final = struct(
    **text("router vpn event reason place"),
    **long("messages messages_estimated bytes"),
    **text("example_topic"),
    **long("first_ns last_ns"),
)
"""One row an event that ended a message's way early, its reason and its place (endpoint, bridge or
client).
"""

PROVIDERS: Final = struct(
    **text("router vpn connector link provider direction"),
    **long("messages messages_estimated bytes direct guaranteed redelivered first_ns last_ns"),
)
"""One row a link of a connector, provider and direction: `in` from the provider, `out` to it. `redelivered` are those
sent again, which `messages` does not count; times are of both.
"""

USAGE: Final = struct(
    **text("what day router vpn client"),
    **_EDGE,
    **long("published published_bytes published_estimated delivered delivered_bytes"),
    **long("delivered_estimated crossings crossing_bytes crossings_estimated rows"),
)
"""Who used what on which day (UTC, "2026-03-01"). `what` is

* `client`: what a client published and got in the message VPN.
* `bridge`: what entered first in the message VPN and crossed a bridge, anywhere in the mesh.
* `rest`: all rows beyond the table's bound in one; `rows` is how many they are. It is 1 for the others.
"""

TIMELINE: Final = struct(
    **long("start_ns ingress bridged delivered discarded"),
)
"""One row a stretch of time in which anything happened, named by its begin."""


FINDINGS: Final = struct(
    **text("kind severity router vpn peer_router peer_vpn bridge client endpoint topic"),
    **text("reason"),
    **long("messages bytes"),
    **real("value"),
    **long("first_ns last_ns"),
    **text("detail"),
)
"""One row a thing worth knowing about the mesh; docs/report-findings.md lists the kinds.

`severity` is error, warning or info. `router` and `vpn` are where it is; for a bridge they are its local end, which
attracts, and the peer is the remote end, where messages come from. `topic` is a filter for kinds about
subscriptions. `messages` and `bytes` are those concerned, as traced. `value` is a figure whose meaning the
kind gives. `detail` is a sentence for people. What does not apply is null.
"""


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """Return `frame` with exactly the columns of `schema`, in its order and with its types."""
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in schema.fields))


ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"

Severity = Literal["error", "warning", "info"]

RANKS: Final = {ERROR: 0, WARNING: 1, INFO: 2}
"""The order of severities, the worst first."""


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
    """Return errors, then warnings, then the rest; within these by kind, then by messages, then by how far the value is
    from zero, then by place.
    """
    return sorted(
        findings,
        key=lambda one: (
            RANKS[one.severity],
            one.kind,
            -(one.messages or 0),
            -abs(one.value or 0.0),
            *(str(getattr(one, name) or "") for name in ("router", "vpn", "bridge", "client")),
            one.topic or "",
        ),
    )


def rows_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as rows of FINDINGS."""
    return [asdict(finding) for finding in findings]
