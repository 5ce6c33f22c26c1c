"""Builds the tables of the report page; each column is declared once, its heading together with its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.report.page.charts import bar as bar_length
from vpnrouter.report.page.contents import (
    NONE,
    Row,
    ShapeIndex,
    count,
    decimal,
    duration,
    has_reconnected,
    moment,
    name_of,
    place_of,
    share,
    size,
    title_of,
    visible,
    yes_or_no,
)
from vpnrouter.report.page.outside import IN, Outside
from vpnrouter.report.schema import EDGE, RANKS, Rows

TROUBLE: Final = "trouble"
SUBSCRIPTIONS: Final = "subscriptions"
STRUCTURE: Final = "structure"
DRIFT: Final = "drift"
AREAS: Final = (TROUBLE, SUBSCRIPTIONS, STRUCTURE, DRIFT)

_AREA_OF: Final = {
    **dict.fromkeys(
        ("loop", "loop_stopped", "duplicate", "two_ways", "black_hole", "stalled_bridge",
         "head_of_line", "hot_bridge", "skewed_partition", "flapping_link", "clock_skew",
         "clock_moved", "refused_bridge", "full_queue", "growing_queue"),
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

KINDS: Final = tuple(_AREA_OF)
"""All kinds of findings."""

_SECONDS: Final = {"stalled_bridge", "head_of_line", "clock_skew", "clock_moved", "never_matched"}
_SHARES: Final = {"hot_bridge", "over_broad", "wasted_crossing"}


def area_of(kind: str) -> str:
    """Return the area that a kind belongs to; a kind that is not known here is trouble."""
    return _AREA_OF.get(kind, TROUBLE)


def label_of(kind: str) -> str:
    """Return the kind "stalled_bridge" as "stalled bridge"."""
    return visible(kind).replace("_", " ")


def value_of(finding: dict[str, Any]) -> str:
    """Return the finding's value in the unit that its kind gives it."""
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
    """`text` is shown, `key` sorted by, `bar` (0..100) drawn beneath; `alarm` highlights it. `shape` is the id of the
    shape that the text links to, `tone` the look of a badge; a `long` text may take several lines.
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
        """Return the rows' ids."""
        numbers = self.numbers or range(len(self.rows))
        return [f"{self.name}-{at}" for at in numbers]

    def options(self, column: int) -> list[str]:
        """Return the different texts of a column, in order."""
        return sorted({row[column].text for row in self.rows})


def number(value: int | None, *, most: int | None = None, alarm: bool = False) -> Cell:
    """Return a count; with `most`, the greatest of the column, a bar beneath."""
    return Cell(
        text=count(value),
        key=_UNKNOWN if value is None else value,
        bar=None if most is None else bar_length(value or 0, most),
        alarm=alarm,
    )


def real(value: float | None) -> Cell:
    """Return a number with a fraction, three digits."""
    return Cell(
        text=NONE if value is None else f"{value:.3g}", key=_UNKNOWN if value is None else value
    )


def octets(value: int | None) -> Cell:
    """Return a number of bytes."""
    return Cell(text=size(value), key=_UNKNOWN if value is None else value)


def time(value: int | None, *, alarm: bool = False) -> Cell:
    """Return a duration, nanoseconds."""
    return Cell(text=duration(value), key=_UNKNOWN if value is None else value, alarm=alarm)


def when(value: int | None) -> Cell:
    """Return a moment, nanoseconds since 1970."""
    return Cell(text=moment(value), key=moment(value))


def text(value: str | None, *, long: bool = False, shape: str | None = None) -> Cell:
    """Return a name or a sentence, any control characters spelt out."""
    shown = visible(value) if value else NONE
    return Cell(text=shown, key=shown, long=long, shape=shape)


def place(router: str | None, vpn: str | None, shape: str | None = None) -> Cell:
    """Return a message VPN's name."""
    shown = name_of(router, vpn)
    return Cell(text=shown, key=shown, shape=shape)


def yes_no(value: bool | None) -> Cell:
    """Return a cell with yes, no or unknown."""
    shown = yes_or_no(value)
    return Cell(text=shown, key=shown)


def greatest(rows: Sequence[dict[str, Any]], name: str) -> int:
    """Return the greatest value of a column, 0 for none: what bars are measured by."""
    return max((row[name] or 0 for row in rows), default=0)


@dataclass(frozen=True)
class Column:
    """A column of a sheet: its head, and the cell that each row has in it."""

    heading: Heading
    cell: Callable[[Row], Cell]


def column(
    label: str,
    cell: str | Callable[[Row], Cell],
    make: Callable[[Any], Cell] = text,
    hint: str = "",
) -> Column:
    """Return a column of names or truths; `cell` makes the cell of a row, or names the field for `make`."""
    make_cell = (lambda row: make(row[cell])) if isinstance(cell, str) else cell
    return Column(Heading(label=label, hint=hint), make_cell)


def figures(
    label: str,
    cell: str | Callable[[Row], Cell],
    make: Callable[[Any], Cell] = number,
    hint: str = "",
) -> Column:
    """Return a column of numbers; the rest as for `column`."""
    plain_column = column(label, cell, make)
    return Column(Heading(label=label, numeric=True, hint=hint), plain_column.cell)


def _sheet(
    name: str,
    columns: Sequence[Column],
    shown: Rows,
    total: int,
    title: Callable[[Row, list[Cell]], str] = lambda _, cells: cells[0].text,
    numbers: Sequence[int] = (),
    choices: tuple[int, ...] = (),
) -> Sheet:
    """Return the rows `shown` of `total`; `title` makes a row's title from it and its cells."""
    rows = [[one.cell(row) for one in columns] for row in shown]
    return Sheet(
        name=name,
        headings=[one.heading for one in columns],
        rows=rows,
        titles=[title(row, cells) for row, cells in zip(shown, rows, strict=True)],
        total=total,
        numbers=list(numbers),
        choices=choices,
    )


def edge_sheet(edges: Rows, shapes: ShapeIndex, *, estimated: bool) -> Sheet:
    """Return the busiest bridges; the drawing's arrows link here."""
    shown = _busiest(edges, "messages")
    most = greatest(edges, "messages")
    planned = any(edge["configured"] is not None for edge in edges)

    def bridge(row: Row) -> Cell:
        at = shapes.edge(row)
        return text(row["bridge"], shape=f"edge-{at}" if at in shapes.drawn_edges else None)

    columns = [
        column("Bridge", bridge),
        column(
            "From",
            lambda row: place(row["from_router"], row["from_vpn"]),
            hint="the remote message VPN, where messages come from",
        ),
        column(
            "To",
            lambda row: place(row["to_router"], row["to_vpn"]),
            hint="the local message VPN, which attracts them",
        ),
        figures("Messages", "messages", _barred(most), "traced messages that crossed"),
        *([figures("Estimated", "messages_estimated")] if estimated else []),
        figures("Bytes", "bytes", octets),
        figures("Peak", "peak_messages", hint="messages in its busiest stretch of time"),
        figures("Sent", "sent", hint="as the remote router traced it"),
        figures("Received", "received", hint="as the local router traced it"),
        figures("Guaranteed", "guaranteed"),
        figures("Latency p50", "latency_p50_ns", time, "from bridge_send to bridge_receive"),
        figures("p95", "latency_p95_ns", time),
        figures("p99", "latency_p99_ns", time),
        column("Clocks corrected", "latency_corrected", yes_no, _CORRECTED),
        figures("Give or take", "latency_error_ns", time, _ERROR),
        figures("Link up", "link_ups", hint="times that the link came up"),
        figures(
            "Link down",
            lambda row: number(row["link_downs"], alarm=has_reconnected(row)),
            hint="times that the link went down",
        ),
        figures("Time up", "up_ns", time),
        column("Only way", "cut", yes_no, "without it the mesh falls apart"),
        *([column("Configured", "configured", yes_no)] if planned else []),
    ]
    return _sheet(
        "edges",
        columns,
        [edge for _, edge in shown],
        len(edges),
        title=lambda row, _: title_of(row),
        numbers=[at for at, _ in shown],
    )


def node_sheet(nodes: Rows, shapes: ShapeIndex, *, estimated: bool) -> Sheet:
    """Return the busiest message VPNs; the drawing's cards link here."""
    shown = _busiest(nodes, "ingress")
    most = greatest(nodes, "ingress")
    columns = [
        column("Router", "router"),
        column("Message VPN", lambda row: text(row["vpn"], shape=_card(shapes, row))),
        figures("In", "ingress", _barred(most), "messages published here"),
        *([figures("In, estimated", "ingress_estimated")] if estimated else []),
        figures("Bytes in", "ingress_bytes", octets),
        figures("Delivered", "delivered", hint="to subscribers; one message may have many"),
        figures("Bytes delivered", "delivered_bytes", octets),
        figures("Bridged in", "bridged_in"),
        figures("Bridged out", "bridged_out"),
        figures("Spooled", "spooled"),
        figures("Discarded", "discarded", _alarming),
        figures("Rejected", "rejected", _alarming),
        column("First seen", "first_ns", when),
        column("Last seen", "last_ns", when),
    ]
    return _sheet(
        "nodes",
        columns,
        [node for _, node in shown],
        len(nodes),
        title=lambda row, _: name_of(row["router"], row["vpn"]),
        numbers=[at for at, _ in shown],
    )


def topic_sheet(topics: Rows, total: int, *, estimated: bool) -> Sheet:
    """Return the busiest topics."""
    shown = topics[:REPORT_PAGE_ROWS]
    most = max((topic["published"] + topic["bridged_in"] for topic in shown), default=0)
    columns = [
        column("Topic", "topic"),
        column("Message VPN", lambda row: place(row["router"], row["vpn"])),
        figures(
            "In",
            lambda row: number(row["published"] + row["bridged_in"], most=most),
            hint="published here, or arrived over a bridge",
        ),
        figures("Published", "published"),
        *([figures("Estimated", "published_estimated")] if estimated else []),
        figures("Bytes", "published_bytes", octets),
        figures("Bridged in", "bridged_in"),
        figures("Bridged out", "bridged_out"),
        figures("Delivered", "delivered"),
        figures("Discarded", "discarded", _alarming),
    ]
    return _sheet("topics", columns, shown, total)


def discard_sheet(discards: Rows, shapes: ShapeIndex, *, estimated: bool) -> Sheet:
    """Return where and why messages were discarded."""
    shown = discards[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    columns = [
        column("Reason", "reason"),
        column("Event", lambda row: text((row["event"] or "").replace("_", " "))),
        column("Message VPN", lambda row: _placed(shapes, row)),
        column("Endpoint, bridge or client", "place"),
        figures("Messages", "messages", _barred(most)),
        *([figures("Estimated", "messages_estimated")] if estimated else []),
        figures("Bytes", "bytes", octets),
        column("A topic of these", "example_topic"),
        column("Last seen", "last_ns", when),
    ]
    return _sheet("discards", columns, shown, len(discards), choices=(0, 1))


def _busiest(rows: Rows, name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return rows and their indices, the busiest if the page cannot show all."""
    numbered = list(enumerate(rows))
    if len(rows) <= REPORT_PAGE_SHAPE_ROWS:
        return numbered
    numbered.sort(key=lambda pair: -(pair[1][name] or 0))
    return numbered[:REPORT_PAGE_SHAPE_ROWS]


def _barred(most: int) -> Callable[[Any], Cell]:
    """Return a function that makes counts with bars; `most` is the greatest of the column."""
    return partial(number, most=most)


def _alarming(value: int | None) -> Cell:
    """Return a count that is highlighted unless it is 0."""
    return number(value, alarm=bool(value))


def _card(shapes: ShapeIndex, row: Row, router: str = "router", vpn: str = "vpn") -> str | None:
    at = shapes.node(row[router], row[vpn])
    return f"node-{at}" if at in shapes.drawn_nodes else None


def _placed(shapes: ShapeIndex, row: Row, router: str = "router", vpn: str = "vpn") -> Cell:
    """Return the message VPN in two fields, linked to its card."""
    return place(row[router], row[vpn], shape=_card(shapes, row, router, vpn))


_CORRECTED: Final = "the difference of the two clocks is taken off"
_ERROR: Final = "a bound of the error that the clocks leave"
_TONES: Final[dict[str, Tone]] = {"error": "error", "warning": "warning", "info": "info"}
_CHANGE_TONES: Final[dict[str, Tone]] = {"new": "good", "gone": "error", "more": "info"}


def finding_sheet(findings: Rows, shapes: ShapeIndex) -> Sheet:
    """Return the worst findings."""
    order = sorted(range(len(findings)), key=lambda at: RANKS.get(findings[at]["severity"], 3))
    shown = [findings[at] for at in order[:REPORT_PAGE_SHAPE_ROWS]]

    def severity(row: Row) -> Cell:
        key = str(RANKS.get(row["severity"], 3))
        return Cell(text=row["severity"] or NONE, key=key, tone=_TONES.get(row["severity"], ""))

    def value(row: Row) -> Cell:
        return Cell(text=value_of(row), key=row["value"] if row["value"] is not None else -1)

    columns = [
        column("Severity", severity),
        column("About", lambda row: text(area_of(row["kind"]))),
        column("Kind", lambda row: text(label_of(row["kind"]))),
        column(
            "Where",
            lambda row: text(place_of(row), shape=shapes.shape(row)),
            hint="a message VPN, or a bridge with the way that messages take",
        ),
        column("What was found", lambda row: text(row["detail"] or row["reason"], long=True)),
        column("Topic or filter", "topic"),
        column("Client or endpoint", lambda row: text(row["endpoint"] or row["client"])),
        figures("Messages", "messages", hint="those concerned, as traced"),
        figures("Bytes", "bytes", octets),
        figures("Value", value, hint="what it means depends on the kind"),
        column(
            "Last seen",
            lambda row: when(row["last_ns"] if row["last_ns"] is not None else row["first_ns"]),
        ),
    ]
    return _sheet(
        "findings",
        columns,
        shown,
        len(findings),
        title=lambda row, _: label_of(row["kind"]),
        choices=(0, 1, 2),
    )


def change_sheet(changes: Rows, shapes: ShapeIndex) -> Sheet:
    """Return what differs between the two ranges of time."""

    def change(row: Row) -> Cell:
        tone = _CHANGE_TONES.get(row["change"], "warning")
        return Cell(text=row["change"] or NONE, key=row["change"] or "", tone=tone)

    def ratio(row: Row) -> Cell:
        before, after = row["before"], row["after"]
        if not before or after is None:
            return Cell(text=NONE, key=-1.0)
        return Cell(text=f"× {after / before:.3g}", key=after / before)

    columns = [
        column("Change", change),
        column("What", "what"),
        column("Where", lambda row: text(place_of(row), shape=shapes.shape(row))),
        column("Topic", "topic"),
        column(
            "Measure",
            lambda row: text((row["measure"] or "").removesuffix("_ns").replace("_", " ")),
        ),
        figures("Before", lambda row: _measured(row, "before"), hint="counts are per second"),
        figures("After", lambda row: _measured(row, "after"), hint="counts are per second"),
        figures("After : before", ratio),
    ]
    shown = changes[:REPORT_PAGE_SHAPE_ROWS]
    return _sheet(
        "changes", columns, shown, len(changes), lambda _, cells: cells[2].text, choices=(0, 1)
    )


def _measured(row: Row, name: str) -> Cell:
    value: float | None = row[name]
    if value is not None and (row["measure"] or "").endswith("_ns"):
        return Cell(text=duration(round(value)), key=value)
    return Cell(text=decimal(value), key=-1.0 if value is None else value)


def provider_sheet(
    providers: Rows, shapes: ShapeIndex, outside: Outside, *, estimated: bool
) -> Sheet:
    """Return what the links of connectors carried, the busiest."""
    shown = providers[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    sums: dict[str, int] = {}
    for row in providers:
        sums[row["direction"]] = sums.get(row["direction"], 0) + row["messages"]

    def part(row: Row) -> Cell:
        whole = sums[row["direction"]]
        return Cell(
            text=share(row["messages"] / whole) if whole else NONE,
            key=row["messages"] / whole if whole else -1.0,
        )

    def direction(row: Row) -> Cell:
        shown = "in, from it" if row["direction"] == IN else "out, to it"
        return Cell(text=shown, key=shown)

    columns = [
        column("Provider", lambda row: text(row["provider"], shape=outside.shape(row))),
        column("Direction", direction),
        column("Connector", "connector"),
        column("Link", "link"),
        column("Message VPN", lambda row: _placed(shapes, row)),
        figures("Messages", "messages", _barred(most), "traced messages that it carried"),
        *([figures("Estimated", "messages_estimated")] if estimated else []),
        figures("Share", part, hint="of all messages from providers, or to them"),
        figures("Bytes", "bytes", octets),
        figures("Guaranteed", "guaranteed"),
        figures("Redelivered", "redelivered", hint="sent to the provider again"),
        column("Last seen", "last_ns", when),
    ]
    return _sheet("providers", columns, shown, len(providers), choices=(0, 1))


def usage_sheet(usage: Rows, shapes: ShapeIndex, *, estimated: bool) -> Sheet:
    """Return who used what on which day, the most bytes first, and what the table does not list in the first row."""

    def weight(row: Row) -> int:
        parts = (row["published_bytes"], row["delivered_bytes"], row["crossing_bytes"])
        return sum(part or 0 for part in parts)

    def who(row: Row) -> Cell:
        if row["what"] == "rest":
            return text(f"{count(row['rows'])} more rows together")
        if row["what"] == "bridge":
            at = shapes.edge(row)
            return text(title_of(row), shape=f"edge-{at}" if at in shapes.drawn_edges else None)
        return text(row["client"])

    shown = sorted(usage, key=lambda row: (row["what"] != "rest", -weight(row)))[:REPORT_PAGE_ROWS]
    most = max(map(weight, shown), default=0)
    columns = [
        column("Day", "day"),
        column("Message VPN", lambda row: _placed(shapes, row)),
        column("Of a", "what"),
        column("Client or bridge", who),
        figures("Published", "published"),
        *([figures("Published, estimated", "published_estimated")] if estimated else []),
        figures("Bytes published", "published_bytes", octets),
        figures("Delivered", "delivered"),
        *([figures("Delivered, estimated", "delivered_estimated")] if estimated else []),
        figures("Bytes delivered", "delivered_bytes", octets),
        figures(
            "Crossings", "crossings", hint="of this bridge, by what entered in the message VPN"
        ),
        *([figures("Crossings, estimated", "crossings_estimated")] if estimated else []),
        figures("Bytes across", "crossing_bytes", octets),
        figures(
            "All bytes",
            lambda row: Cell(
                text=size(weight(row)), key=weight(row), bar=bar_length(weight(row), most)
            ),
        ),
    ]
    return _sheet(
        "usage", columns, shown, len(usage), lambda _, cells: cells[3].text, choices=(0, 2)
    )


def delay_sheet(end_to_end: Rows, shapes: ShapeIndex) -> Sheet:
    """Return the delays from first ingress to delivery, by pair of message VPNs, the busiest."""
    shown = sorted(end_to_end, key=lambda row: -(row["messages"] or 0))[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    columns = [
        column("Published in", lambda row: place(row["origin_router"], row["origin_vpn"])),
        column("Delivered in", lambda row: _placed(shapes, row)),
        figures("Messages", "messages", _barred(most)),
        figures(
            "p50",
            lambda row: time(row["p50_ns"], alarm=(row["p50_ns"] or 0) < 0),
            hint="from first ingress to delivery",
        ),
        figures("p95", "p95_ns", time),
        figures("p99", "p99_ns", time),
        column("Clocks corrected", "corrected", yes_no, _CORRECTED),
        figures("Give or take", "error_ns", time, _ERROR),
    ]
    return _sheet(
        "end_to_end",
        columns,
        shown,
        len(end_to_end),
        lambda _, cells: f"{cells[0].text} → {cells[1].text}",
    )


def _pace(value: float | None) -> Cell:
    return Cell(text=decimal(value), key=0.0 if value is None else value)


def clock_sheet(clocks: Rows) -> Sheet:
    """Return the corrections of clocks, the largest first."""
    columns = [
        column("Router", "router"),
        column("Against", "reference", hint="the router whose clock counts in its group"),
        figures("Ahead by", "offset_ns", time, "taken off before latencies are reckoned"),
        figures("Give or take", "error_ns", time),
        figures("Compared with", "pairs", hint="routers, by traffic both ways"),
        column("From", "first_ns", when, "of a clock that was set or drifts, by itself"),
        column("To", "last_ns", when),
        figures("Millionths fast", "drift_ppm", _pace),
    ]
    shown = sorted(clocks, key=lambda row: -abs(row["offset_ns"] or 0))[:REPORT_PAGE_ROWS]
    return _sheet("clocks", columns, shown, len(clocks))


def way_sheet(ways: Rows) -> Sheet:
    """Return the most frequent paths."""
    shown = sorted(ways, key=lambda row: -(row["messages"] or 0))[:REPORT_PAGE_ROWS]
    most = greatest(shown, "messages")
    columns = [
        column("Way", lambda row: text((row["way"] or "").replace(">", " → "), long=True)),
        figures("Bridges", "hops"),
        figures("Messages", "messages", _barred(most)),
        figures("Bytes", "bytes", octets),
    ]
    return _sheet("ways", columns, shown, len(ways))


def vpn_sheet(vpns: Rows, shapes: ShapeIndex) -> Sheet:
    """Return the message VPNs, articulation points first."""
    columns = [
        column("Message VPN", lambda row: _placed(shapes, row)),
        column("Articulation point", "articulation", yes_no, "without it the mesh falls apart"),
        figures("Centrality", "centrality", real, "share of the shortest ways through it"),
        figures("Bridges in", "bridges_in"),
        figures("Bridges out", "bridges_out"),
        figures("Component", "component", hint="1 is the largest"),
    ]
    shown = sorted(vpns, key=lambda row: (not row["articulation"], -(row["centrality"] or 0.0)))
    return _sheet("vpns", columns, shown[:REPORT_PAGE_ROWS], len(vpns), choices=(1,))


def pair_sheet(pairs: Rows, shapes: ShapeIndex) -> Sheet:
    """Return the pairs of message VPNs with the fewest links between them."""
    columns = [
        column("Message VPN", lambda row: _placed(shapes, row)),
        column("and", lambda row: _placed(shapes, row, "other_router", "other_vpn")),
        figures(
            "Links to lose",
            lambda row: number(row["links"], alarm=row["links"] == 1),
            hint="bridges that can go before they part",
        ),
        figures("Shortest way", "hops", hint="bridges"),
        figures("Widest way", "widest", hint="messages over its narrowest bridge"),
    ]
    shown = sorted(pairs, key=lambda row: (row["links"] or 0, -(row["hops"] or 0)))
    return _sheet(
        "pairs",
        columns,
        shown[:REPORT_PAGE_ROWS],
        len(pairs),
        lambda _, cells: f"{cells[0].text} and {cells[1].text}",
    )


_EFFECTS: Final = {"lost": "apart", "rise": "carries more"}
_WITHOUT: Final = ("router", "bridge")


def what_if_sheet(what_if: Rows, shapes: ShapeIndex) -> Sheet:
    """Return what comes when something goes or the load of a message VPN doubles, as the table has it."""

    def effect(row: Row) -> Cell:
        if row["effect"] in _EFFECTS:
            return text(_EFFECTS[row["effect"]])
        return text(f"without a {row['kind']}" if row["kind"] in _WITHOUT else row["kind"])

    def rises(row: Row) -> Cell:
        if row["rise_to_router"] is None:
            return text(None)
        edge = {name: row[f"rise_{name}"] for name in EDGE}
        at = shapes.edge(edge)
        return text(title_of(edge), shape=f"edge-{at}" if at in shapes.drawn_edges else None)

    def factor(value: float | None) -> Cell:
        shown = NONE if value is None else f"× {value:.3g}"
        return Cell(text=shown, key=_UNKNOWN if value is None else value, alarm=(value or 0) > 1)

    columns = [
        column("Question", "question"),
        column("Kind", effect),
        column("Where", lambda row: text(place_of(row) or None, shape=_of_shape(row, shapes))),
        figures("Pairs apart", "pairs_lost", _alarming, "pairs of message VPNs with traffic"),
        figures("Lost per s", "lost_per_s", real, "messages between these"),
        figures("Own per s", "own_per_s", real, "messages that enter or are received in what goes"),
        figures("Rerouted per s", "rerouted_per_s", real, "crossings that have another way"),
        figures("Bridges rise", "rising"),
        column("Rises most", rises),
        figures("Before per s", "before_per_s", real),
        figures("After per s", "after_per_s", real),
        figures("Of its peak", lambda row: factor(row["peak_factor"]), hint=_OF_PEAK),
        column("In words", lambda row: text(row["detail"], long=True)),
    ]
    shown = what_if[:REPORT_PAGE_ROWS]
    return _sheet("what_if", columns, shown, len(what_if), choices=(1,))


_OF_PEAK: Final = "its busiest stretch of time then, against its busiest now"


def _of_shape(row: Row, shapes: ShapeIndex) -> str | None:
    return None if row["router"] is None else shapes.shape(row)


def blast_radius_sheet(radii: Rows, shapes: ShapeIndex) -> Sheet:
    """Return the message VPNs on which the most depends."""
    columns = [
        column("Message VPN", lambda row: _placed(shapes, row)),
        figures("Messages over bridges per s", "beyond_per_s", real, "with others, or through it"),
        figures("Own messages per s", "local_per_s", real, "that entered and were received in it"),
        figures("VPNs", "vpns", hint="that send to or through it, or get from or through it"),
        figures("Senders", "senders"),
        figures("Receivers", "receivers"),
        figures("Clients", "clients", hint="of its own"),
        figures("Endpoints", "endpoints", hint="of its own"),
        figures("Clients of the others", "clients_beyond"),
        figures("Endpoints of the others", "endpoints_beyond"),
    ]
    return _sheet("blast_radius", columns, radii[:REPORT_PAGE_ROWS], len(radii))


def growth_sheet(growth: Rows, shapes: ShapeIndex) -> Sheet:
    """Return how queues and bridges grow, those that are full the soonest first."""

    def amount(name: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            value: float | None = row[name]
            if value is None or row["unit"] != "bytes":
                return real(value)
            return Cell(text=size(round(value)), key=value)

        return cell

    def days(row: Row) -> Cell:
        if row["days"] is None:
            return Cell(text=NONE, key=_UNKNOWN)
        shown = f"{row['days']:.3g} ({row['days_low']:.3g} to {row['days_high']:.3g})"
        return Cell(text=shown, key=row["days"], alarm=row["what"] == "queue")

    columns = [
        column("What", "what"),
        column("Where", lambda row: text(place_of(row), shape=shapes.shape(row))),
        column("Endpoint", "endpoint"),
        column("In", "unit"),
        figures("Level", amount("level"), hint="of a queue: what it took on in this time"),
        figures("Growth per day", amount("per_day")),
        figures("at least", amount("per_day_low")),
        figures("at most", amount("per_day_high")),
        figures(
            "Limit", amount("limit"), hint="quota of a queue; twice the highest load of a bridge"
        ),
        figures("Days until then", days, hint="if it goes on so; with the interval"),
        column("No days because", "reason"),
    ]
    return _sheet(
        "growth",
        columns,
        growth[:REPORT_PAGE_ROWS],
        len(growth),
        lambda _, cells: cells[1].text,
        choices=(0, 10),
    )
