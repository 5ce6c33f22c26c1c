"""What the report page is made of: the rows of all result tables."""

from dataclasses import dataclass, field
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The rows of the tables that `vpnrouter.topology.schema` describes, under the same names.

    `nodes` and `edges` are the mesh and both ends of every edge are among the nodes. Every other table may
    be empty: then its part of the page says so or is left out. `topic_count` counts all topics,
    of which `topics` may be the busiest. `timeline_width_ns` is the length of a stretch of
    `timeline` and of `rates`, nanoseconds. `span` is the time reported on, first and last
    nanosecond. `notes` are sentences about the report itself.
    """

    nodes: Rows
    edges: Rows
    topics: Rows = field(default_factory=list)
    topic_count: int = 0
    discards: Rows = field(default_factory=list)
    timeline: Rows = field(default_factory=list)
    timeline_width_ns: int = 1_000_000_000
    rates: Rows = field(default_factory=list)
    latencies: Rows = field(default_factory=list)
    end_to_end: Rows = field(default_factory=list)
    clocks: Rows = field(default_factory=list)
    links: Rows = field(default_factory=list)
    ways: Rows = field(default_factory=list)
    lengths: Rows = field(default_factory=list)
    vpns: Rows = field(default_factory=list)
    pairs: Rows = field(default_factory=list)
    findings: Rows = field(default_factory=list)
    advice: Rows = field(default_factory=list)
    changes: Rows = field(default_factory=list)
    span: tuple[int, int] = (0, 0)
    notes: list[str] = field(default_factory=list)
