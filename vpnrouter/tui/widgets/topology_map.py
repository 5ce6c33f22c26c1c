"""The topology in text: message VPNs as columns under their routers, each bridge an arrow across them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vpnrouter.management.answers.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.format import Line, Piece, cut, fit
from vpnrouter.tui.router_state import once

LABEL: Final = 17
"""Columns for the bridge's name."""

NARROWEST: Final = 13
"""Columns for a message VPN."""

BUSY: Final = 1_000.0
"""Messages a second from which a bridge is drawn as a double line."""

Place = tuple[str, str]
"""Router, or where it should be, and message VPN."""


class Arrow(NamedTuple):
    """A bridge: messages go from `there` to `here` (`into`), and the other way (`out`), a second."""

    router: str
    row: Row
    here: int
    there: int | None
    into: float | None
    out: float | None


class Topology(NamedTuple):
    """Message VPNs by router, those of other routers last, and the bridges between them."""

    places: list[Place]
    arrows: list[Arrow]


def topology_of(
    msg_vpns: Sequence[tuple[str, Row]], bridges: Sequence[tuple[str, Row]]
) -> Topology:
    """The map of some routers, given as rows with router names."""
    places: list[Place] = [(router, row["msgVpnName"]) for router, row in msg_vpns]
    known = {place: number for number, place in enumerate(places)}

    def number_of(place: Place) -> int:
        if place not in known:
            known[place] = len(places)
            places.append(place)
        return known[place]

    arrows = []
    for router, row, _ in once(bridges):
        remote = _remote_of(row)
        arrows.append(
            Arrow(
                router,
                row,
                number_of((router, row["msgVpnName"])),
                None if remote is None else number_of(remote),
                row["rxMsgRate"] if row["inboundState"] != "not-applicable" else None,
                row["txMsgRate"] if row["outboundState"] != "not-applicable" else None,
            )
        )
    return Topology(places, arrows)


def heads(drawn: Topology, width: int, first: int) -> list[Line]:
    """Routers and their message VPNs, above the columns from `first` on."""
    each = column_width(drawn, width)
    routers: list[Piece] = [(" " * LABEL, "")]
    vpns: list[Piece] = [(fit("bridge", LABEL), "head")]
    before = ""
    for router, vpn in drawn.places[first:]:
        routers.append((_centred(router if router != before else "", each), "accent"))
        vpns.append((_centred(vpn, each), "title"))
        before = router
    return [cut(tuple(routers), width), cut(tuple(vpns), width)]


def arrow_line(drawn: Topology, arrow: Arrow, width: int, first: int) -> Line:
    """One bridge across the columns from `first` on."""
    each = column_width(drawn, width)
    at = [LABEL + (number - first) * each + each // 2 for number in range(len(drawn.places))]
    cells: list[Piece] = [(" ", "") for _ in range(width)]
    for x in at:
        if LABEL <= x < width:
            cells[x] = ("│", "dim")
    style, stroke = _arrow_style(arrow)
    end = at[arrow.here] + each // 2 - 1 if arrow.there is None else at[arrow.there]
    left, right = sorted((at[arrow.here], end))
    here_is_left = at[arrow.here] <= end
    for x in range(left, right + 1):
        _put(cells, x, stroke, style)
    into_left, into_right = (arrow.into, arrow.out) if here_is_left else (arrow.out, arrow.into)
    _put_ends(cells, left, right, (into_left is not None, into_right is not None), style)
    if arrow.there is None:
        _put(cells, end if here_is_left else left, "?", style)
    _write_on(cells, left, right, _label(arrow, into_left, into_right), style)
    label = (fit(str(arrow.row["bridgeName"]), LABEL - 1, middle=True), style)
    return (label, *_joined(cells[LABEL - 1 :]))


def column_width(drawn: Topology, width: int) -> int:
    """Columns of the terminal for one message VPN."""
    return max(NARROWEST, (width - LABEL) // max(1, len(drawn.places)))


def _remote_of(row: Row) -> Place | None:
    """Where the other end is, or should be."""
    vpn = row["remoteMsgVpnName"]
    if vpn:
        return (row["remoteRouterName"] or row["remoteAddress"] or "?", vpn)
    for remote in row.get("remotes", ()):
        where = row["remoteRouterName"] or remote["remoteMsgVpnLocation"]
        return (where, remote["remoteMsgVpnName"])
    return None


def _arrow_style(arrow: Arrow) -> tuple[str, str]:
    match arrow.row["health"]:
        case "down":
            return "bad", "╌"
        case "disabled" | "msg-vpn-disabled" | "paused":
            return "note", "·"
        case "stalled" | "unbound" | "incomplete":
            return "warn", "─"
    rate = (arrow.into or 0.0) + (arrow.out or 0.0)
    if not rate:
        return "", "─"
    return "good", "═" if rate >= BUSY else "━"


def _label(arrow: Arrow, into_left: float | None, into_right: float | None) -> str:
    if arrow.row["health"] != "up":
        return str(arrow.row["health"]).upper()
    rates = [f"{fmt.figure(rate)}/s" for rate in (into_left, into_right) if rate]
    if into_left and into_right:
        return " ↔ ".join(rates)
    return rates[0] if rates else ""


def _write_on(cells: list[Piece], left: int, right: int, label: str, style: str) -> None:
    """In the middle of what is seen of the line, where it fits."""
    start, end = max(left + 1, LABEL), min(right, len(cells))
    if label and end - start >= len(label) + 2:
        at = start + (end - start - len(label) - 2) // 2
        for place, character in enumerate(f" {label} "):
            _put(cells, at + place, character, style)


def _put_ends(
    cells: list[Piece], left: int, right: int, into: tuple[bool, bool], style: str
) -> None:
    """The ends of an arrow from `left` to `right`, whose messages go `into` the one and the other. Where an end is out
    of sight, its head stands at the edge; `«` and `»` say where an arrow is of which nothing is in sight.
    """
    last = len(cells) - 1
    if right < LABEL:
        _put(cells, LABEL, "«", style)
    elif left > last:
        _put(cells, last, "»", style)
    else:
        if into[0] or left >= LABEL:
            _put(cells, max(left, LABEL), "◄" if into[0] else "├", style)
        if into[1] or right <= last:
            _put(cells, min(right, last), "►" if into[1] else "┤", style)


def _put(cells: list[Piece], x: int, character: str, style: str) -> None:
    if LABEL <= x < len(cells):
        cells[x] = (character, style)


def _joined(cells: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for character, style in cells:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + character, style)
        else:
            found.append((character, style))
    return found


def _centred(string: str, width: int) -> str:
    return fit(fit(string, width - 1).strip().center(width), width)
