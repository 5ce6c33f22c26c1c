"""All connectors; and one connector with its links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import CONNECTOR, NONE
from vpnrouter.settings.kinds import CONNECTOR as KIND
from vpnrouter.text import counted
from vpnrouter.tui import actions
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, attribute, own
from vpnrouter.tui.format import Line, Piece, folded, pairs, state, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.problems import LINK_WORDS, LOSSES, is_down
from vpnrouter.tui.router_state import DEAD_LETTERS, losses_of
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Table

LABELS: Final = 13
"""Columns for labels."""

SPARK: Final = 16


class Connector(View):
    """One connector of one router, with its links."""

    KEYS: ClassVar[tuple[Key, ...]] = actions.KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str, connector: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._connector = connector

    def place(self) -> str:
        """Name the connector and its message VPN."""
        return f"connector {self._msg_vpn}/{self._connector}"

    def body(self) -> ComposeResult:
        """Give the lines about the connector."""
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """Request from a router its connectors."""
        await router.fetch_connectors()

    def draw(self) -> None:
        """Show the connector and each of its links, or that it is not there."""
        row = _found(self.router, [self._msg_vpn, self._connector])
        missing = [text(("this connector is not there", "warn"))]
        width = self.size.width
        self.lines("body").show(
            missing if row is None else connector_lines(self.router, row, width)
        )

    def action_do(self, name: str) -> None:
        """Do the action `name` to the connector."""
        actions.begin(name, self, self.router, KIND, self._msg_vpn, self._connector)


def connector_lines(router: Router, row: Row, width: int) -> Sequence[Line]:
    """A connector and its links in lines of at most `width` columns."""
    lines = [text((row["connectorName"], "title"), "  ", state(row["state"]))]
    lines += [text((part, "bad")) for part in folded(row["failure"], width) if part]
    attempts = row["failedAttempts"]
    since = f", since {fmt.duration(row['uptime'])}" if row["uptime"] else ""
    lines += pairs(
        [
            ("provider", row["provider"] or NONE),
            ("protocol", f"{row['protocol'] or NONE}{since}"),
            ("attempts", (f"{attempts:,} failed", "warn") if attempts else "none failed"),
            ("waiting", (f"{row['waitingMsgCount']:,}", "warn" if row["waitingMsgCount"] else "")),
            ("memory", fmt.size(row["memoryBytes"])),
        ],
        LABELS,
    )
    for label, way in (("received", "Rx"), ("sent", "Tx")):
        low = way.lower()
        meter = ("connector", row["msgVpnName"], row["connectorName"], way)
        spark = sparkline(router.store.meters.history(meter), SPARK)
        carried = (
            f"  {counted(row[f'{low}MsgCount'], 'message')}, {fmt.size(row[f'{low}ByteCount'])}"
        )
        rate = f"{fmt.rate(row[f'{low}MsgRate'])}/s "
        lines += [text((f"{label:<{LABELS + 2}}", "head"), rate, (spark, "good"), carried)]
    for link in row["links"]:
        lines += _link(router, link, width)
    return lines


COUNTS: Final = (
    ("delivered", "delivered"),
    ("duplicate", "duplicates"),
    ("returned", "returned"),
    ("deadLetter", "dead letters"),
    ("discarded", "discarded"),
    ("inFlight", "in flight"),
)
"""What became of the messages of a link: as its attributes begin, and in words."""


def _link(router: Router, link: Row, width: int) -> list[Line]:
    """One link: where it leads, what it does and why, what it has counted."""
    key = ("connector", link["msgVpnName"], link["connectorName"], "link", link["linkName"])
    spark = sparkline(router.store.meters.history(key), SPARK)
    arrow = ARROWS[link["direction"]]
    lines: list[Line] = [
        (),
        text(
            (f"{arrow} {link['linkName']}", "title"),
            "  ",
            state(link["state"]),
            f" {fmt.duration(link['stateSince'])}  {fmt.rate(link['msgRate'])}/s ",
            (spark, "good"),
        ),
    ]
    lines += [
        text((part, state(link["state"])[1] or "warn"))
        for part in folded(link["stateReason"], width)
        if part
    ]
    target = "the same topic" if link["target"] in SAME else link["target"]
    way = f"{link['source']} to {target}, {link['qualityOfService']}"
    lines += [text(part) for part in folded(way, width)]
    counts = [
        f"{link[f'{name}MsgCount']:,} {words}" for name, words in COUNTS if link[f"{name}MsgCount"]
    ]
    of = f": {', '.join(counts)}" if counts else ""
    lines += [text(part) for part in folded(f"{counted(link['msgCount'], 'message')}{of}", width)]
    further = [
        (link["waitingMsgCount"], "waiting"),
        (link["parkedMsgCount"], "parked"),
        (link["refusedMsgCount"], "refusals"),
    ]
    if shown := ", ".join(f"{count:,} {words}" for count, words in further if count):
        lines.append(text((shown, "warn")))
    lines += [
        text(
            (f"  {reason} ", "dim"),
            (f"{count:,}", "warn" if reason in LOSSES or reason == DEAD_LETTERS else "dim"),
        )
        for reason, count in sorted(losses_of(link).items())
        if count
    ]
    return lines


SAME: Final = ("", "AS_SOURCE")
"""Targets of links that keep the topics of messages."""

ARROWS: Final = {"in": "◄", "out": "►"}

RANKS: Final = {
    "stopped": 0,
    "waiting": 0,
    "connecting": 1,
    "logging-in": 1,
    "paused": 2,
    "idle": 2,
    "up": 3,
}
"""The order of states; disabled connectors come last."""

TROUBLED: Final = 2
"""The place in that order of one that is up, with links in trouble."""


class Connectors(View):
    """The connectors of all routers, or of one message VPN; those that are down on top."""

    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "open the connector: its links and their counts"),
        Key("d", "down_only", "down only", "only those that are not up or have links in trouble"),
        *actions.KEYS,
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._down_only = False

    def place(self) -> str:
        """Name the screen `connectors`."""
        return "connectors"

    def body(self) -> ComposeResult:
        """Give the table of connectors."""
        yield Table(COLUMNS.titles, empty="no connectors", id="body")

    async def fetch(self, router: Router) -> None:
        """Request from a router its connectors."""
        await router.fetch_connectors()

    def draw(self) -> None:
        """Show the chosen connectors, those that are down first."""
        rows = [
            (place, row)
            for place, router in enumerate(self.ui.routers)
            if self._router in {None, router}
            for row in router.store.connectors
            if self._msg_vpn in {"", row["msgVpnName"]}
            if not self._down_only or row["state"] not in {"up", "idle"} or _wanting(row)
        ]
        rows.sort(key=lambda each: _rank(each[1]))
        self.query_one("#body", Table).fill(
            [COLUMNS.entry(_key(place, row), self.ui.routers[place], row) for place, row in rows]
        )

    def note(self) -> Line:
        """Say what is wrong with the connector under the cursor, or which connectors are shown."""
        row = self._chosen()
        why = "" if row is None else _why(row)
        if row is not None and why:
            word, style = state(row["state"])
            return text((f"{row['connectorName']} {word}: ", style), why)
        which = f"of message VPN {self._msg_vpn}" if self._msg_vpn else "of all message VPNs"
        only = "those in trouble" if self._down_only else "all"
        return text((f"connectors {which}: {only}; links: up, of those enabled", "dim"))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the connector."""
        place, vpn, name = event.key.split("\0")
        self.ui.router = self.ui.routers[int(place)]
        self.show_open(Connector(self.ui.router, vpn, name))

    def _chosen(self) -> Row | None:
        key = self.query_one("#body", Table).key
        if not key:
            return None
        place, *names = key.split("\0")
        return _found(self.ui.routers[int(place)], names)

    def action_down_only(self) -> None:
        """Leave out those that are up and well, or show all."""
        self._down_only = not self._down_only
        self.redraw()

    def action_do(self, name: str) -> None:
        """Do the action `name` to the connector under the cursor."""
        key = self.query_one("#body", Table).key
        if key:
            place, vpn, one = key.split("\0")
            actions.begin(name, self, self.ui.routers[int(place)], KIND, vpn, one)


def _found(router: Router, names: list[str]) -> Row | None:
    rows = router.store.connectors
    return next((r for r in rows if [r["msgVpnName"], r["connectorName"]] == names), None)


def _key(place: int, row: Row) -> str:
    return f"{place}\0{row['msgVpnName']}\0{row['connectorName']}"


def _wanting(row: Row) -> bool:
    return any(link["state"] in LINK_WORDS for link in row["links"])


def _rank(row: Row) -> int:
    return TROUBLED if row["state"] == "up" and _wanting(row) else RANKS.get(row["state"], 4)


def _why(row: Row) -> str:
    """Why the connector is down, or which of its links are in trouble."""
    return str(row["failure"] or (CONNECTOR["troubles"].value(row) if _wanting(row) else ""))


def _links(_: Router, row: Row) -> Piece:
    enabled = [link for link in row["links"] if link["enabled"]]
    up = sum(link["state"] == "up" for link in enabled)
    return (f"{up}/{len(enabled)}", "" if up == len(enabled) else "warn")


def _failure(_: Router, row: Row) -> Piece:
    why = _why(row)
    return (why, "bad" if is_down(row) else "warn") if why else (NONE, "dim")


COLUMNS: Final = Columns(
    [
        attribute(CONNECTOR["connectorName"], 11, share=1, style="title"),
        attribute(CONNECTOR["msgVpnName"], 7),
        attribute(CONNECTOR["state"], 10),
        attribute(CONNECTOR["provider"], 14, share=1),
        own("Links", 5, _links, right=True),
        attribute(CONNECTOR["rxMsgRate"], 5),
        attribute(CONNECTOR["txMsgRate"], 5),
        attribute(CONNECTOR["waitingMsgCount"], 5),
        own("Failure", 8, _failure, share=2),
    ],
)
