"""The tables of the report page: what flows, and what the rows mean. Cells know their text and their weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.report.page.charts import bar as bar_length
from vpnrouter.report.page.figures import (
    NONE,
    Places,
    came_back,
    count,
    decimal,
    duration,
    moment,
    name_of,
    place_of,
    share,
    size,
    title_of,
    visible,
)
from vpnrouter.report.schema import Rows

TROUBLE: Final = "trouble"
SUBSCRIPTIONS: Final = "subscriptions"
STRUCTURE: Final = "structure"
DRIFT: Final = "drift"
AREAS: Final = (TROUBLE, SUBSCRIPTIONS, STRUCTURE, DRIFT)

_AREA_OF: Final = {
    **dict.fromkeys(
        ("loop", "loop_stopped", "duplicate", "two_ways", "black_hole", "stalled_bridge",
         "head_of_line", "hot_bridge", "skewed_partition", "flapping_link", "clock_skew"),
        TROUBLE,
    ),
    **dict.fromkeys(
        ("never_matched", "covered", "overlapping", "over_broad", "wasted_crossing", "not_examined"),
        SUBSCRIPTIONS,
    ),
    **dict.fromkeys(("articulation", "cut_bridge"), STRUCTURE),
    **dict.fromkeys(
        ("missing_vpn", "missing_bridge", "unknown_vpn", "unknown_bridge", "missing_subscription",
         "unknown_subscription"),
        DRIFT,
    ),
}  # fmt: skip

_SECONDS: Final = {"stalled_bridge", "head_of_line", "clock_skew", "never_matched"}
_SHARES: Final = {"hot_bridge", "over_broad", "wasted_crossing"}


def area_of(kind: str) -> str:
    """The area that a kind belongs to; a kind that is not known here is trouble."""
    return _AREA_OF.get(kind, TROUBLE)


def label_of(kind: str) -> str:
    """The kind "stalled_bridge" as "stalled bridge"."""
    return visible(kind).replace("_", " ")


def value_of(finding: dict[str, Any]) -> str:
    """The finding's value in the unit that its kind gives it."""
    value: float | None = finding["value"]
    if value is None:
        return NONE
    kind = finding["kind"]
    if kind in _SECONDS:
        return duration(round(value * 1_000_000_000))
    if kind in _SHARES:
        return share(value)
    if kind == "skewed_partition":
        return f"{value:.3g} × the mean"
    return decimal(value)


Tone = Literal["", "error", "warning", "info", "good"]

_UNKNOWN: Final = -(1 << 62)
"""Sorts below every value."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A column's head; `numeric` columns are aligned right and sort the greatest first."""

    label: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`text` is shown, `key` sorted by, `bar` (0..100) drawn beneath; `alarm` draws the eye.

    `shape` is the id of what the text leads to in the drawing, `tone` the look of a badge, and `long` says
    that the text may take several lines.
    """

    text: str
    key: int | float | str
    bar: float | None = None
    alarm: bool = False
    shape: str | None = None
    tone: Tone = ""
    long: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table. Row i has the id `NAME-numbers[i]`; `total` counts the rows of the file that has all.

    `choices` are the columns whose values one can choose from to see only such rows.
    """

    name: str
    headings: list[Heading]
    rows: list[list[Cell]]
    titles: list[str]
    total: int
    numbers: list[int] = field(default_factory=list)
    choices: tuple[int, ...] = ()

    def ids(self) -> list[str]:
        """The rows' ids."""
        numbers = self.numbers or range(len(self.rows))
        return [f"{self.name}-{at}" for at in numbers]

    def options(self, column: int) -> list[str]:
        """The different texts of a column, in order."""
        return sorted({row[column].text for row in self.rows})


def number(value: int | None, *, most: int | None = None, alarm: bool = False) -> Cell:
    """A count; with `most`, the greatest of the column, a bar beneath."""
    return Cell(
        text=count(value),
        key=_UNKNOWN if value is None else value,
        bar=None if most is None else bar_length(value or 0, most),
        alarm=alarm,
    )


def real(value: float | None) -> Cell:
    """A number with a fraction, three digits."""
    return Cell(
        text=NONE if value is None else f"{value:.3g}", key=_UNKNOWN if value is None else value
    )


def octets(value: int | None) -> Cell:
    """A number of bytes."""
    return Cell(text=size(value), key=_UNKNOWN if value is None else value)


def time(value: int | None, *, alarm: bool = False) -> Cell:
    """A duration, nanoseconds."""
    return Cell(text=duration(value), key=_UNKNOWN if value is None else value, alarm=alarm)


def when(value: int | None) -> Cell:
    """A moment, nanoseconds since 1970."""
    return Cell(text=moment(value), key=moment(value))


def text(value: str | None, *, long: bool = False, shape: str | None = None) -> Cell:
    """A name or a sentence, any control characters spelt out."""
    shown = visible(value) if value else NONE
    return Cell(text=shown, key=shown, long=long, shape=shape)


def place(router: str | None, vpn: str | None, shape: str | None = None) -> Cell:
    """A message VPN's name."""
    shown = name_of(router, vpn)
    return Cell(text=shown, key=shown, shape=shape)


def yes_no(value: bool | None) -> Cell:
    """A truth that may not be known."""
    shown = NONE if value is None else "yes" if value else "no"
    return Cell(text=shown, key=shown)


def greatest(rows: Sequence[dict[str, Any]], name: str) -> int:
    """The greatest value of a column, 0 for none: what bars are measured by."""
    return max((row[name] or 0 for row in rows), default=0)


def edge_sheet(edges: Rows, places: Places, *, estimated: bool) -> Sheet:
    """The busiest bridges, as many as the page bears; the drawing's arrows point here."""
    shown = _busiest(edges, "messages")
    most = greatest(edges, "messages")
    planned = any(edge["configured"] is not None for edge in edges)
    headings = [
        Heading(label="Bridge"),
        Heading(label="From", hint="the remote message VPN, where messages come from"),
        Heading(label="To", hint="the local message VPN, which attracts them"),
        Heading(label="Messages", numeric=True, hint="traced messages that crossed"),
        *([Heading(label="Estimated", numeric=True)] if estimated else []),
        Heading(label="Bytes", numeric=True),
        Heading(label="Peak", numeric=True, hint="messages in its busiest stretch of time"),
        Heading(label="Sent", numeric=True, hint="as the remote router traced it"),
        Heading(label="Received", numeric=True, hint="as the local router traced it"),
        Heading(label="Guaranteed", numeric=True),
        Heading(label="Latency p50", numeric=True, hint="from bridge_send to bridge_receive"),
        Heading(label="p95", numeric=True),
        Heading(label="p99", numeric=True),
        Heading(label="Clocks corrected", hint="the difference of the two clocks is taken off"),
        Heading(label="Link up", numeric=True, hint="times that the link came up"),
        Heading(label="Link down", numeric=True, hint="times that the link went down"),
        Heading(label="Time up", numeric=True),
        Heading(label="Only way", hint="without it the mesh falls apart"),
        *([Heading(label="Configured")] if planned else []),
    ]
    rows = [
        [
            text(edge["bridge"], shape=f"edge-{at}" if at in places.drawn_edges else None),
            place(edge["from_router"], edge["from_vpn"]),
            place(edge["to_router"], edge["to_vpn"]),
            number(edge["messages"], most=most),
            *([number(edge["messages_estimated"])] if estimated else []),
            octets(edge["bytes"]),
            number(edge["peak_messages"]),
            number(edge["sent"]),
            number(edge["received"]),
            number(edge["guaranteed"]),
            time(edge["latency_p50_ns"]),
            time(edge["latency_p95_ns"]),
            time(edge["latency_p99_ns"]),
            yes_no(edge["latency_corrected"]),
            number(edge["link_ups"]),
            number(edge["link_downs"], alarm=came_back(edge)),
            time(edge["up_ns"]),
            yes_no(edge["cut"]),
            *([yes_no(edge["configured"])] if planned else []),
        ]
        for at, edge in shown
    ]
    return Sheet(
        name="edges",
        headings=headings,
        rows=rows,
        titles=[title_of(edge) for _, edge in shown],
        total=len(edges),
        numbers=[at for at, _ in shown],
    )


def node_sheet(nodes: Rows, places: Places, *, estimated: bool) -> Sheet:
    """The busiest message VPNs, as many as the page bears; the drawing's cards point here."""
    shown = _busiest(nodes, "ingress")
    most = greatest(nodes, "ingress")
    headings = [
        Heading(label="Router"),
        Heading(label="Message VPN"),
        Heading(label="In", numeric=True, hint="messages published here"),
        *([Heading(label="In, estimated", numeric=True)] if estimated else []),
        Heading(label="Bytes in", numeric=True),
        Heading(label="Delivered", numeric=True, hint="to subscribers; one message may have many"),
        Heading(label="Bytes delivered", numeric=True),
        Heading(label="Bridged in", numeric=True),
        Heading(label="Bridged out", numeric=True),
        Heading(label="Spooled", numeric=True),
        Heading(label="Discarded", numeric=True),
        Heading(label="Rejected", numeric=True),
        Heading(label="First seen"),
        Heading(label="Last seen"),
    ]
    rows = [
        [
            text(node["router"]),
            text(node["vpn"], shape=f"node-{at}" if at in places.drawn_nodes else None),
            number(node["ingress"], most=most),
            *([number(node["ingress_estimated"])] if estimated else []),
            octets(node["ingress_bytes"]),
            number(node["delivered"]),
            octets(node["delivered_bytes"]),
            number(node["bridged_in"]),
            number(node["bridged_out"]),
            number(node["spooled"]),
            number(node["discarded"], alarm=bool(node["discarded"])),
            number(node["rejected"], alarm=bool(node["rejected"])),
            when(node["first_ns"]),
            when(node["last_ns"]),
        ]
        for at, node in shown
    ]
    return Sheet(
        name="nodes",
        headings=headings,
        rows=rows,
        titles=[name_of(node["router"], node["vpn"]) for _, node in shown],
        total=len(nodes),
        numbers=[at for at, _ in shown],
    )


def topic_sheet(topics: Rows, total: int, *, estimated: bool) -> Sheet:
    """The busiest topics, as many as the page bears."""
    shown = topics[:REPORT_PAGE_ROWS]
    most = max((topic["published"] + topic["bridged_in"] for topic in shown), default=0)
    headings = [
        Heading(label="Topic"),
        Heading(label="Message VPN"),
        Heading(label="In", numeric=True, hint="published here, or arrived over a bridge"),
        Heading(label="Published", numeric=True),
        *([Heading(label="Estimated", numeric=True)] if estimated else []),
        Heading(label="Bytes", numeric=True),
        Heading(label="Bridged in", numeric=True),
        Heading(label="Bridged out", numeric=True),
        Heading(label="Delivered", numeric=True),
        Heading(label="Discarded", numeric=True),
    ]
    rows = [
        [
            text(topic["topic"]),
            place(topic["router"], topic["vpn"]),
            number(topic["published"] + topic["bridged_in"], most=most),
            number(topic["published"]),
            *([number(topic["published_estimated"])] if estimated else []),
            octets(topic["published_bytes"]),
            number(topic["bridged_in"]),
            number(topic["bridged_out"]),
            number(topic["delivered"]),
            number(topic["discarded"], alarm=topic["discarded"] > 0),
        ]
        for topic in shown
    ]
    titles = [row[0].text for row in rows]
    return Sheet(name="topics", headings=headings, rows=rows, titles=titles, total=total)


def discard_sheet(discards: Rows, places: Places, *, estimated: bool) -> Sheet:
    """Where and why messages ended early, as many rows as the page bears."""
    shown = discards[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    headings = [
        Heading(label="Reason"),
        Heading(label="Event"),
        Heading(label="Message VPN"),
        Heading(label="Endpoint, bridge or client"),
        Heading(label="Messages", numeric=True),
        *([Heading(label="Estimated", numeric=True)] if estimated else []),
        Heading(label="Bytes", numeric=True),
        Heading(label="A topic of these"),
        Heading(label="Last seen"),
    ]
    rows = [
        [
            text(row["reason"]),
            text((row["event"] or "").replace("_", " ")),
            place(row["router"], row["vpn"], shape=_card(places, row)),
            text(row["place"]),
            number(row["messages"], most=most),
            *([number(row["messages_estimated"])] if estimated else []),
            octets(row["bytes"]),
            text(row["example_topic"]),
            when(row["last_ns"]),
        ]
        for row in shown
    ]
    return Sheet(
        name="discards",
        headings=headings,
        rows=rows,
        titles=[row[0].text for row in rows],
        total=len(discards),
        choices=(0, 1),
    )


def _busiest(rows: Rows, name: str) -> list[tuple[int, dict[str, Any]]]:
    """Rows and their places, the busiest first where the page does not bear all."""
    numbered = list(enumerate(rows))
    if len(rows) <= REPORT_PAGE_SHAPE_ROWS:
        return numbered
    numbered.sort(key=lambda pair: -(pair[1][name] or 0))
    return numbered[:REPORT_PAGE_SHAPE_ROWS]


def _card(places: Places, row: dict[str, str]) -> str | None:
    at = places.node(row["router"], row["vpn"])
    return f"node-{at}" if at in places.drawn_nodes else None


_TONES: Final[dict[str, Tone]] = {"error": "error", "warning": "warning", "info": "info"}
_RANKS: Final = {"error": 0, "warning": 1, "info": 2}
_CHANGE_TONES: Final[dict[str, Tone]] = {"new": "good", "gone": "error", "more": "info"}


def finding_sheet(findings: Rows, places: Places) -> Sheet:
    """The worst findings, as many as the page bears."""
    order = sorted(range(len(findings)), key=lambda at: _RANKS.get(findings[at]["severity"], 3))
    shown = [findings[at] for at in order[:REPORT_PAGE_SHAPE_ROWS]]
    headings = [
        Heading(label="Severity"),
        Heading(label="About"),
        Heading(label="Kind"),
        Heading(label="Where", hint="a message VPN, or a bridge with the way that messages take"),
        Heading(label="What was found"),
        Heading(label="Topic or filter"),
        Heading(label="Client or endpoint"),
        Heading(label="Messages", numeric=True, hint="those concerned, as traced"),
        Heading(label="Bytes", numeric=True),
        Heading(label="Value", numeric=True, hint="what it means depends on the kind"),
        Heading(label="Last seen"),
    ]
    rows = [
        [
            Cell(
                text=row["severity"] or NONE,
                key=str(_RANKS.get(row["severity"], 3)),
                tone=_TONES.get(row["severity"], ""),
            ),
            text(area_of(row["kind"])),
            text(label_of(row["kind"])),
            text(place_of(row), shape=places.shape(row)),
            text(row["detail"] or row["reason"], long=True),
            text(row["topic"]),
            text(row["endpoint"] or row["client"]),
            number(row["messages"]),
            octets(row["bytes"]),
            Cell(text=value_of(row), key=row["value"] if row["value"] is not None else -1),
            when(row["last_ns"] if row["last_ns"] is not None else row["first_ns"]),
        ]
        for row in shown
    ]
    return Sheet(
        name="findings",
        headings=headings,
        rows=rows,
        titles=[label_of(row["kind"]) for row in shown],
        total=len(findings),
        choices=(0, 1, 2),
    )


def change_sheet(changes: Rows, places: Places) -> Sheet:
    """What differs between the two ranges of time."""
    shown = changes[:REPORT_PAGE_SHAPE_ROWS]
    headings = [
        Heading(label="Change"),
        Heading(label="What"),
        Heading(label="Where"),
        Heading(label="Topic"),
        Heading(label="Measure"),
        Heading(label="Before", numeric=True, hint="counts are per second"),
        Heading(label="After", numeric=True, hint="counts are per second"),
        Heading(label="After : before", numeric=True),
    ]
    rows = []
    for row in shown:
        before, after = row["before"], row["after"]
        ratio = after / before if before and after is not None else None
        rows.append(
            [
                Cell(
                    text=row["change"] or NONE,
                    key=row["change"] or "",
                    tone=_CHANGE_TONES.get(row["change"], "warning"),
                ),
                text(row["what"]),
                text(place_of(row), shape=places.shape(row)),
                text(row["topic"]),
                text((row["measure"] or "").removesuffix("_ns").replace("_", " ")),
                _measured(row["measure"], before),
                _measured(row["measure"], after),
                Cell(
                    text=NONE if ratio is None else f"× {ratio:.3g}",
                    key=-1.0 if ratio is None else ratio,
                ),
            ]
        )
    return Sheet(
        name="changes",
        headings=headings,
        rows=rows,
        titles=[row[2].text for row in rows],
        total=len(changes),
        choices=(0, 1),
    )


def _measured(measure: str | None, value: float | None) -> Cell:
    if value is not None and (measure or "").endswith("_ns"):
        return Cell(text=duration(round(value)), key=value)
    return Cell(text=decimal(value), key=-1.0 if value is None else value)


def delay_sheet(end_to_end: Rows, places: Places) -> Sheet:
    """From first ingress to delivery, by pair of message VPNs, the busiest."""
    shown = sorted(end_to_end, key=lambda row: -(row["messages"] or 0))[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    headings = [
        Heading(label="Published in"),
        Heading(label="Delivered in"),
        Heading(label="Messages", numeric=True),
        Heading(label="p50", numeric=True, hint="from first ingress to delivery"),
        Heading(label="p95", numeric=True),
        Heading(label="p99", numeric=True),
        Heading(label="Clocks corrected", hint="the difference of the two clocks is taken off"),
    ]
    rows = [
        [
            place(row["origin_router"], row["origin_vpn"]),
            place(row["router"], row["vpn"], shape=_study_card(places, row["router"], row["vpn"])),
            number(row["messages"], most=most),
            time(row["p50_ns"], alarm=(row["p50_ns"] or 0) < 0),
            time(row["p95_ns"]),
            time(row["p99_ns"]),
            yes_no(row["corrected"]),
        ]
        for row in shown
    ]
    titles = [f"{row[0].text} → {row[1].text}" for row in rows]
    return Sheet(
        name="end_to_end", headings=headings, rows=rows, titles=titles, total=len(end_to_end)
    )


def clock_sheet(clocks: Rows) -> Sheet:
    """The corrections of the clocks, the largest first."""
    shown = sorted(clocks, key=lambda row: -abs(row["offset_ns"] or 0))[:REPORT_PAGE_ROWS]
    headings = [
        Heading(label="Router"),
        Heading(label="Against", hint="the router whose clock counts in its group"),
        Heading(label="Ahead by", numeric=True, hint="taken off before latencies are reckoned"),
        Heading(label="Give or take", numeric=True),
        Heading(label="Compared with", numeric=True, hint="routers, by traffic both ways"),
    ]
    rows = [
        [
            text(row["router"]),
            text(row["reference"]),
            time(row["offset_ns"]),
            time(row["error_ns"]),
            number(row["pairs"]),
        ]
        for row in shown
    ]
    titles = [row[0].text for row in rows]
    return Sheet(name="clocks", headings=headings, rows=rows, titles=titles, total=len(clocks))


def way_sheet(ways: Rows) -> Sheet:
    """The ways that most messages took."""
    shown = sorted(ways, key=lambda row: -(row["messages"] or 0))[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    headings = [
        Heading(label="Way"),
        Heading(label="Bridges", numeric=True),
        Heading(label="Messages", numeric=True),
        Heading(label="Bytes", numeric=True),
    ]
    rows = [
        [
            text((row["way"] or "").replace(">", " → "), long=True),
            number(row["hops"]),
            number(row["messages"], most=most),
            octets(row["bytes"]),
        ]
        for row in shown
    ]
    titles = [row[0].text for row in rows]
    return Sheet(name="ways", headings=headings, rows=rows, titles=titles, total=len(ways))


def vpn_sheet(vpns: Rows, places: Places) -> Sheet:
    """Where each message VPN stands in the mesh: those that hold it together first."""
    shown = sorted(vpns, key=lambda row: (not row["articulation"], -(row["centrality"] or 0.0)))[
        :REPORT_PAGE_ROWS
    ]
    headings = [
        Heading(label="Message VPN"),
        Heading(label="Articulation point", hint="without it the mesh falls apart"),
        Heading(label="Centrality", numeric=True, hint="share of the shortest ways through it"),
        Heading(label="Bridges in", numeric=True),
        Heading(label="Bridges out", numeric=True),
        Heading(label="Component", numeric=True, hint="1 is the largest"),
    ]
    rows = [
        [
            place(row["router"], row["vpn"], shape=_study_card(places, row["router"], row["vpn"])),
            yes_no(row["articulation"]),
            real(row["centrality"]),
            number(row["bridges_in"]),
            number(row["bridges_out"]),
            number(row["component"]),
        ]
        for row in shown
    ]
    titles = [row[0].text for row in rows]
    return Sheet(
        name="vpns", headings=headings, rows=rows, titles=titles, total=len(vpns), choices=(1,)
    )


def pair_sheet(pairs: Rows, places: Places) -> Sheet:
    """The pairs of message VPNs that can lose the fewest bridges."""
    shown = sorted(pairs, key=lambda row: (row["links"] or 0, -(row["hops"] or 0)))
    shown = shown[:REPORT_PAGE_ROWS]
    headings = [
        Heading(label="Message VPN"),
        Heading(label="and"),
        Heading(label="Links to lose", numeric=True, hint="bridges that can go before they part"),
        Heading(label="Shortest way", numeric=True, hint="bridges"),
        Heading(label="Widest way", numeric=True, hint="messages over its narrowest bridge"),
    ]
    rows = [
        [
            place(row["router"], row["vpn"], shape=_study_card(places, row["router"], row["vpn"])),
            place(
                row["other_router"],
                row["other_vpn"],
                shape=_study_card(places, row["other_router"], row["other_vpn"]),
            ),
            number(row["links"], alarm=row["links"] == 1),
            number(row["hops"]),
            number(row["widest"]),
        ]
        for row in shown
    ]
    titles = [f"{row[0].text} and {row[1].text}" for row in rows]
    return Sheet(name="pairs", headings=headings, rows=rows, titles=titles, total=len(pairs))


def _study_card(places: Places, router: str, vpn: str) -> str | None:
    at = places.node(router, vpn)
    return f"node-{at}" if at in places.drawn_nodes else None
