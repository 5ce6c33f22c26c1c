"""The report page's tables, cell by cell: what stands there, what it sorts by, how long its bar
is.
"""

from dataclasses import dataclass
from typing import Any, Final

from vpnrouter.topology.limits import REPORT_PAGE_ROWS
from vpnrouter.topology.page.charts import bar as bar_length
from vpnrouter.topology.page.drawing import came_back
from vpnrouter.topology.page.figures import NONE, count, duration, moment, size, visible

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A column's head; `numeric` columns are aligned right and sort the greatest first."""

    label: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`text` is shown, `key` sorted by, `bar` (0..100) drawn beneath; `alarm` draws the eye."""

    text: str
    key: int | str
    bar: float | None = None
    alarm: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table. Row i has the id `NAME-i`; `total` counts the rows of the file that has all."""

    name: str
    headings: list[Heading]
    rows: list[list[Cell]]
    titles: list[str]
    total: int


_UNKNOWN_LAST: Final = -1


def _number(value: int | None, *, bar: float | None = None, alarm: bool = False) -> Cell:
    return Cell(
        text=count(value), key=_UNKNOWN_LAST if value is None else value, bar=bar, alarm=alarm
    )


def _bytes(value: int | None) -> Cell:
    return Cell(text=size(value), key=_UNKNOWN_LAST if value is None else value)


def _time(value: int | None) -> Cell:
    return Cell(text=duration(value), key=-(1 << 62) if value is None else value)


def _text(value: str | None) -> Cell:
    shown = visible(value) if value else NONE
    return Cell(text=shown, key=shown)


def _place(router: str, vpn: str | None) -> Cell:
    shown = f"{visible(router)}/{visible(vpn)}"
    return Cell(text=shown, key=shown)


def edge_sheet(edges: Rows, *, estimated: bool) -> Sheet:
    """Every bridge: the drawing's arrows point here."""
    most = max((edge["messages"] for edge in edges), default=0)
    headings = [
        Heading(label="Bridge"),
        Heading(label="From", hint="the remote message VPN, where messages come from"),
        Heading(label="To", hint="the local message VPN, which attracts them"),
        Heading(label="Messages", numeric=True, hint="traced messages that crossed"),
        *([Heading(label="Estimated", numeric=True)] if estimated else []),
        Heading(label="Bytes", numeric=True),
        Heading(label="Sent", numeric=True, hint="as the remote router traced it"),
        Heading(label="Received", numeric=True, hint="as the local router traced it"),
        Heading(label="Guaranteed", numeric=True),
        Heading(label="Latency p50", numeric=True, hint="from bridge_send to bridge_receive"),
        Heading(label="p95", numeric=True),
        Heading(label="p99", numeric=True),
        Heading(label="Age p50", numeric=True, hint="from first ingress to bridge_receive"),
        Heading(label="Link up", numeric=True),
        Heading(label="Link down", numeric=True),
    ]
    rows = [
        [
            _text(edge["bridge"]),
            _place(edge["from_router"], edge["from_vpn"]),
            _place(edge["to_router"], edge["to_vpn"]),
            _number(edge["messages"], bar=bar_length(edge["messages"], most)),
            *([_number(edge["messages_estimated"])] if estimated else []),
            _bytes(edge["bytes"]),
            _number(edge["sent"]),
            _number(edge["received"]),
            _number(edge["guaranteed"]),
            _time(edge["latency_p50_ns"]),
            _time(edge["latency_p95_ns"]),
            _time(edge["latency_p99_ns"]),
            _time(edge["age_p50_ns"]),
            _number(edge["link_ups"]),
            _number(edge["link_downs"], alarm=came_back(edge)),
        ]
        for edge in edges
    ]
    titles = [
        f"{visible(edge['bridge']) if edge['bridge'] else 'bridge'}: "
        f"{_place(edge['from_router'], edge['from_vpn']).text} → "
        f"{_place(edge['to_router'], edge['to_vpn']).text}"
        for edge in edges
    ]
    return Sheet(name="edges", headings=headings, rows=rows, titles=titles, total=len(rows))


def node_sheet(nodes: Rows, *, estimated: bool) -> Sheet:
    """Every message VPN: the drawing's cards point here."""
    most = max((node["ingress"] or 0 for node in nodes), default=0)
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
            _text(node["router"]),
            _text(node["vpn"]),
            _number(node["ingress"], bar=bar_length(node["ingress"] or 0, most)),
            *([_number(node["ingress_estimated"])] if estimated else []),
            _bytes(node["ingress_bytes"]),
            _number(node["delivered"]),
            _bytes(node["delivered_bytes"]),
            _number(node["bridged_in"]),
            _number(node["bridged_out"]),
            _number(node["spooled"]),
            _number(node["discarded"], alarm=bool(node["discarded"])),
            _number(node["rejected"], alarm=bool(node["rejected"])),
            Cell(text=moment(node["first_ns"]), key=moment(node["first_ns"])),
            Cell(text=moment(node["last_ns"]), key=moment(node["last_ns"])),
        ]
        for node in nodes
    ]
    titles = [_place(node["router"], node["vpn"]).text for node in nodes]
    return Sheet(name="nodes", headings=headings, rows=rows, titles=titles, total=len(rows))


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
            _text(topic["topic"]),
            _place(topic["router"], topic["vpn"]),
            _number(
                topic["published"] + topic["bridged_in"],
                bar=bar_length(topic["published"] + topic["bridged_in"], most),
            ),
            _number(topic["published"]),
            *([_number(topic["published_estimated"])] if estimated else []),
            _bytes(topic["published_bytes"]),
            _number(topic["bridged_in"]),
            _number(topic["bridged_out"]),
            _number(topic["delivered"]),
            _number(topic["discarded"], alarm=topic["discarded"] > 0),
        ]
        for topic in shown
    ]
    titles = [visible(topic["topic"]) for topic in shown]
    return Sheet(name="topics", headings=headings, rows=rows, titles=titles, total=total)


def discard_sheet(discards: Rows, *, estimated: bool) -> Sheet:
    """Where and why messages ended early, as many rows as the page bears."""
    shown = discards[:REPORT_PAGE_ROWS]
    most = max((row["messages"] for row in shown), default=0)
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
            _text(row["reason"]),
            _text(row["event"].replace("_", " ")),
            _place(row["router"], row["vpn"]),
            _text(row["place"]),
            _number(row["messages"], bar=bar_length(row["messages"], most)),
            *([_number(row["messages_estimated"])] if estimated else []),
            _bytes(row["bytes"]),
            _text(row["example_topic"]),
            Cell(text=moment(row["last_ns"]), key=moment(row["last_ns"])),
        ]
        for row in shown
    ]
    titles = [visible(row["reason"]) for row in shown]
    return Sheet(name="discards", headings=headings, rows=rows, titles=titles, total=len(discards))
