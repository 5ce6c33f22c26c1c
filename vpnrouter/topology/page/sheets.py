"""The tables of what flows: bridges, message VPNs, topics, and where messages ended."""

from typing import Any

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.topology.page.cells import (
    Heading,
    Sheet,
    greatest,
    number,
    octets,
    place,
    text,
    time,
    when,
    yes_no,
)
from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.places import Places, came_back, name_of, title_of


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
