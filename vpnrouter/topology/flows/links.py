"""When each bridge's link was up.

Both ends write down what happens to their link; the end that saw more counts, of equals the local one.
Times are by that end's clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vpnrouter.limits import REPORT_LINK_CHANGES, REPORT_LINKS
from vpnrouter.topology.flows.ends import EDGE, Edge, edge_named, edge_of
from vpnrouter.topology.tables import Rows
from vpnrouter.wire.link import codes

_TAKEN_OVER: Final = codes.REASONS[codes.TAKEN_OVER]


@dataclass(slots=True)
class Span:
    """A time that a link was up, nanoseconds since 1970; `down_ns` is None while it lasts."""

    up_ns: int
    down_ns: int | None = None
    reason: str | None = None


def spans_of(
    changes: Iterable[Mapping[str, Any]], first_seen: Mapping[Edge, int]
) -> dict[Edge, list[Span]]:
    """Rows of `gather.link_changes` in; the times up of each link out, in order.

    A link that goes down first was up before the traces begin: its time up starts when the edge was
    first seen.
    """
    chosen: dict[Edge, Mapping[str, Any]] = {}
    for row in changes:
        edge = edge_of(row) if row["changes"] else None
        if edge is None:
            continue
        before = chosen.get(edge)
        if before is None or _saw(row) > _saw(before):
            chosen[edge] = row
    return {edge: _spans(chosen[edge]["changes"], first_seen.get(edge)) for edge in sorted(chosen)}


def links(spans: Mapping[Edge, Sequence[Span]]) -> Rows:
    """LINKS, ordered by ends, name and time: the latest REPORT_LINKS times that links were up."""
    listed = [(edge, span) for edge, of_edge in spans.items() for span in of_edge]
    if len(listed) > REPORT_LINKS:
        listed = sorted(listed, key=lambda one: one[1].up_ns)[-REPORT_LINKS:]
        listed.sort(key=lambda one: (one[0], one[1].up_ns))
    return [
        {
            **dict(zip(EDGE, edge, strict=True)),
            "up_ns": span.up_ns,
            "down_ns": span.down_ns,
            "reason": span.reason,
        }
        for edge, span in listed
    ]


def time_up(spans: Iterable[Span], end_ns: int) -> int:
    """Nanoseconds that a link was up; a time that has not ended lasts until `end_ns`."""
    return sum(
        max(0, (end_ns if span.down_ns is None else span.down_ns) - span.up_ns) for span in spans
    )


def flaps(rows: Iterable[Mapping[str, Any]]) -> dict[Edge, int]:
    """LINKS in; how often each link went down and came up again.

    The last down does not count: a router that stops takes its links down, and that is no fault.
    """
    counts: dict[Edge, int] = {}
    for row in sorted(rows, key=lambda one: (edge_named(one), one["up_ns"])):
        edge = edge_named(row)
        counts[edge] = counts.get(edge, -1) + 1
    return counts


def _saw(row: Mapping[str, Any]) -> tuple[int, bool]:
    return len(row["changes"]), not row["remote"]


def _spans(changes: Sequence[Mapping[str, Any]], first_seen_ns: int | None) -> list[Span]:
    """The times up that follow from the ups and downs that one end saw.

    | link | up                          | down                                   |
    |------|-----------------------------|----------------------------------------|
    | new  | begin                       | it was up since it was first seen: end |
    | down | begin                       | said twice: nothing                    |
    | up   | the down is missing: end    | end, unless it is the end of the link  |
    |      | the one, begin the other    | that this one took over                |
    """
    spans: list[Span] = []
    up = False
    overlapped = False
    for at, change in enumerate(changes):
        ts_ns = change["ts_ns"]
        if change["up"]:
            if up:
                spans[-1].down_ns = ts_ns
            overlapped = up
            spans.append(Span(ts_ns))
            up = True
        elif up:
            if overlapped and change["reason"] == _TAKEN_OVER:
                spans[-2].reason = _TAKEN_OVER
                overlapped = False
                continue
            spans[-1].down_ns = ts_ns
            spans[-1].reason = change["reason"]
            up = False
        elif at == 0 and len(changes) < REPORT_LINK_CHANGES:
            # Of a list that was cut the first up may be what was cut off.
            begin = ts_ns if first_seen_ns is None else min(first_seen_ns, ts_ns)
            spans.append(Span(begin, ts_ns, change["reason"]))
    return spans
