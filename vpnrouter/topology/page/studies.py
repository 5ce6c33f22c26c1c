"""The tables of what the rows mean: findings, changes, delays, clocks, ways, structure."""

from typing import Final

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.topology.page.cells import (
    Cell,
    Heading,
    Sheet,
    Tone,
    greatest,
    number,
    octets,
    place,
    real,
    text,
    time,
    when,
    yes_no,
)
from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.figures import NONE, decimal, duration
from vpnrouter.topology.page.kinds import area_of, label_of, value_of
from vpnrouter.topology.page.places import Places, place_of

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
            place(row["router"], row["vpn"], shape=_card(places, row["router"], row["vpn"])),
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
            place(row["router"], row["vpn"], shape=_card(places, row["router"], row["vpn"])),
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
            place(row["router"], row["vpn"], shape=_card(places, row["router"], row["vpn"])),
            place(
                row["other_router"],
                row["other_vpn"],
                shape=_card(places, row["other_router"], row["other_vpn"]),
            ),
            number(row["links"], alarm=row["links"] == 1),
            number(row["hops"]),
            number(row["widest"]),
        ]
        for row in shown
    ]
    titles = [f"{row[0].text} and {row[1].text}" for row in rows]
    return Sheet(name="pairs", headings=headings, rows=rows, titles=titles, total=len(pairs))


def _card(places: Places, router: str, vpn: str) -> str | None:
    at = places.node(router, vpn)
    return f"node-{at}" if at in places.drawn_nodes else None
