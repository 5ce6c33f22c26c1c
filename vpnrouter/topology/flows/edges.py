"""The bridges as directed edges, from the remote message VPN to the local one that attracts.

Both routers tell of an edge: the remote one of what it sent, the local one of what arrived, and both of the
link's ups and downs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vpnrouter.topology.flows.clocks import one_clock
from vpnrouter.topology.flows.ends import CHANGES, CROSSINGS, EDGE, Edge, edge_of
from vpnrouter.topology.flows.latencies import Latency
from vpnrouter.topology.flows.links import Span, time_up
from vpnrouter.topology.schema import EDGES
from vpnrouter.topology.tables import Rows

_NO_LATENCY: Final = Latency(0, None, None, None)


@dataclass(slots=True)
class Side:
    """What one of the two routers saw of the messages; `weight` is None when it is not known."""

    messages: int = 0
    weight: float | None = 0.0
    bytes: int = 0
    direct: int = 0
    peak: int = 0
    stretches: int = 0


@dataclass(slots=True)
class Seen:
    """What was seen of an edge, by both routers; ups and downs are those of the end that saw more."""

    first_ns: int | None = None
    last_ns: int | None = None
    send: Side = field(default_factory=Side)
    receive: Side = field(default_factory=Side)
    link_ups: int = 0
    link_downs: int = 0

    @property
    def sent_counts(self) -> bool:
        """Whether the sender saw more than the receiver, so that its figures stand for the edge."""
        return self.send.messages > self.receive.messages

    @property
    def fuller(self) -> Side:
        """The side that saw more messages; of equals the receiver."""
        return self.send if self.sent_counts else self.receive


def seen_edges(totals: Iterable[Mapping[str, Any]]) -> dict[Edge, Seen]:
    """Rows of `gather.totals` in; every edge that messages or links tell of, in order."""
    found: dict[Edge, Seen] = {}
    for row in totals:
        event = row["event"]
        if event not in CROSSINGS and event not in CHANGES:
            continue
        edge = edge_of(row)
        if edge is None:
            continue
        seen = found.setdefault(edge, Seen())
        if row["first_ns"] is not None:
            first_ns, last_ns = row["first_ns"], row["last_ns"]
            seen.first_ns = first_ns if seen.first_ns is None else min(seen.first_ns, first_ns)
            seen.last_ns = last_ns if seen.last_ns is None else max(seen.last_ns, last_ns)
        if event == "link_up":
            seen.link_ups = max(seen.link_ups, row["count"])
        elif event == "link_down":
            seen.link_downs = max(seen.link_downs, row["count"])
        else:
            side = Side(
                row["count"],
                row["weight"],
                row["bytes"],
                row["direct"],
                row["peak"],
                row["stretches"],
            )
            if event == "bridge_send":
                seen.send = side
            else:
                seen.receive = side
    return dict(sorted(found.items()))


def edges(
    seen: Mapping[Edge, Seen],
    latencies: Mapping[Edge, Latency],
    spans: Mapping[Edge, Sequence[Span]],
    last_seen: Mapping[str, int],
    references: Mapping[str, str],
) -> Rows:
    """EDGES, ordered by ends and name; `configured`, `cut` and `centrality` are null.

    `spans` are the times that links were up (`links.spans_of`), those that have not ended last until one of the
    two routers was last seen (`nodes.last_seen`); without any, the time up is null. `references` are those of the
    clocks (`clocks.comparable`).
    """
    rows = []
    for edge, one in seen.items():
        side = one.fuller
        latency = latencies.get(edge, _NO_LATENCY)
        ends = [last_seen[router] for router in (edge[0], edge[2]) if router in last_seen]
        up = spans.get(edge)
        rows.append(
            {
                **dict.fromkeys(EDGES.names),
                **dict(zip(EDGE, edge, strict=True)),
                "messages": side.messages,
                "messages_estimated": None if side.weight is None else round(side.weight),
                "bytes": side.bytes,
                "sent": one.send.messages,
                "received": one.receive.messages,
                "direct": side.direct,
                "guaranteed": side.messages - side.direct,
                "peak_messages": side.peak,
                "latency_samples": latency.samples,
                "latency_p50_ns": latency.p50_ns,
                "latency_p95_ns": latency.p95_ns,
                "latency_p99_ns": latency.p99_ns,
                "latency_corrected": one_clock(references, edge[0], edge[2]),
                "link_ups": one.link_ups,
                "link_downs": one.link_downs,
                "up_ns": None if not up else time_up(up, max(ends, default=up[-1].up_ns)),
                "first_ns": one.first_ns,
                "last_ns": one.last_ns,
            }
        )
    return rows
