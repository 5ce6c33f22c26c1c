"""The overview: trouble on top, the worst first, below it the message VPNs; and one message VPN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import MSG_VPN, NONE
from vpnrouter.text import counted
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, RowColumn, attribute, own, rates
from vpnrouter.tui.format import Line, Piece, pairs, state, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.problems import LOSSES, Problem, problems_of
from vpnrouter.tui.router_state import once
from vpnrouter.tui.screens.bridges import Bridge, Bridges
from vpnrouter.tui.screens.clients import Clients
from vpnrouter.tui.screens.connectors import Connector, Connectors
from vpnrouter.tui.screens.queues import Queue, Queues
from vpnrouter.tui.screens.subscriptions import Subscriptions
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Column, Entry, Table

VPN_SPARK: Final = 40
"""Columns of a sparkline."""


class MsgVpn(View):
    """One message VPN of one router."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("b", "into('bridges')", "bridges", "its bridges"),
        Key("u", "into('queues')", "queues", "its queues"),
        Key("c", "into('clients')", "clients", "its clients"),
        Key(
            "s", "into('subscriptions')", "subscriptions", "its subscriptions, and who gets a topic"
        ),
        Key("o", "into('connectors')", "", "its connectors"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn

    def place(self) -> str:
        """Name the message VPN."""
        return f"message VPN {self._msg_vpn}"

    def body(self) -> ComposeResult:
        """Give the lines about the message VPN."""
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """Request from a router its message VPNs."""
        await router.fetch_msg_vpns()

    def draw(self) -> None:
        """Show the message VPN's state, counts and rates, or that it is not there."""
        rows = self.router.store.msg_vpns
        row = next((each for each in rows if each["msgVpnName"] == self._msg_vpn), None)
        missing = [text(("this message VPN is not there", "warn"))]
        self.lines("body").show(missing if row is None else _lines(self.router, row))

    def action_into(self, what: str) -> None:
        """Open the list `what` of the message VPN, such as `queues`."""
        router, name = self.router, self._msg_vpn
        self.ui.router = router
        views: dict[str, View] = {
            "bridges": Bridges(router, name),
            "queues": Queues(router, name),
            "clients": Clients(router, name),
            "subscriptions": Subscriptions(router, name),
            "connectors": Connectors(router, name),
        }
        self.show_open(views[what])


def _lines(router: Router, row: Row) -> Sequence[Line]:
    meters, name = router.store.meters, row["msgVpnName"]
    lines: list[tuple[str, str | Piece]] = [
        ("state", state(row["state"] if row["enabled"] else "disabled")),
        ("clients", _of(row["msgVpnConnections"], row["maxConnectionCount"])),
        ("subscriptions", _of(row["subscriptionCount"], row["maxSubscriptionCount"])),
        ("bridges", f"{row['bridgeCount']:,}"),
    ]
    found = pairs(lines, 16)
    for label, way in (("in", "rx"), ("out", "tx")):
        key = ("vpn", name, f"{way}MsgRate")
        carried = f"{counted(row[f'{way}MsgCount'], 'message')}, {fmt.size(row[f'{way}ByteCount'])}"
        found.append(())
        found += pairs([(label, f"{fmt.rate(meters.rate(key)):>6} messages a second")], 16)
        found.append(text(" " * 18, (sparkline(meters.history(key), VPN_SPARK), "good")))
        found += pairs([("since the start", carried)], 16)
    found += [(), text(("discarded", "title"), f"  {row['discardedMsgCount']:,}")]
    for reason, count in sorted(row["discarded"].items(), key=lambda each: -each[1]):
        rate = meters.rate(("vpn", name, "discarded", reason))
        style = "warn" if reason in LOSSES else "dim"
        found.append(text((f"  {reason:<26}", style), f"{count:>14,} {fmt.rate(rate):>8}/s"))
    return found


def _of(count: int, most: int) -> str:
    return f"{count:,} of {most:,}" if most else f"{count:,}"


LEAST_TROUBLES: Final = 8
"""Lines of trouble that are seen at a time where there are that many; the table scrolls. A higher terminal shows more
of them, as far as the message VPNs leave room.
"""

QUIET: Final = "no trouble: all is up, nothing stalls, nothing is lost"

SPARK: Final = 10
"""Columns of a sparkline."""

TROUBLES: Final = (
    Column("Trouble", 9),
    Column("What", 9),
    Column("VPN", 8, middle=True),
    Column("Name", 12, middle=True),
    Column("Why", 20, share=1),
)


def _meter(row: Row) -> tuple[str, ...]:
    return ("vpn", row["msgVpnName"])


def _history(way: str, style: str) -> RowColumn:
    """The last rates as a sparkline."""

    def cell(router: Router, row: Row) -> Piece:
        history = router.store.meters.history((*_meter(row), way))
        return (sparkline(history, SPARK), style)

    return own("", SPARK, cell)


def _lost(_: Router, row: Row) -> Piece:
    lost = sum(count for why, count in row["discarded"].items() if why in LOSSES)
    return (fmt.figure(lost), "warn") if lost else (NONE, "dim")


WAYS: Final = ("rxMsgRate", "txMsgRate")
RX, TX = rates(_meter, WAYS)

MSG_VPNS: Final = Columns(
    [
        attribute(MSG_VPN["msgVpnName"], 12, share=1, style="title"),
        own("Router", 8, lambda router, _: (router.label, "dim")),
        attribute(MSG_VPN["adminState"], 8),
        attribute(MSG_VPN["msgVpnConnections"], 7),
        RX,
        _history(WAYS[0], "good"),
        TX,
        _history(WAYS[1], "accent"),
        own("Lost", 5, _lost, right=True),
    ],
)


class Overview(View):
    """All routers at a glance."""

    PLACE = "overview"
    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "open the trouble, or the message VPN"),
        Key("tab", "app.focus_next", "tables", "between trouble and message VPNs"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])

    def body(self) -> ComposeResult:
        """Give the table of trouble, and below it the table of message VPNs."""
        trouble = Table(TROUBLES, id="trouble")
        trouble.styles.height = 2
        yield trouble
        gap = Lines(id="gap")
        gap.styles.height = 1
        yield gap
        yield Table(MSG_VPNS.titles, empty="no message VPN", id="vpns")

    def on_mount(self) -> None:
        """Focus the message VPNs first, since trouble may come and go."""
        super().on_mount()
        self.query_one("#vpns", Table).focus()

    async def fetch(self, router: Router) -> None:
        """Request from a router its message VPNs, bridges, connectors and the queues that hold messages."""
        await router.fetch_router()
        await router.fetch_msg_vpns()
        await router.fetch_bridges()
        await router.fetch_connectors()
        await router.fetch_queues()

    def draw(self) -> None:
        """Show the trouble of all routers, the worst first, and their message VPNs."""
        rows = self._troubles()
        trouble = self.query_one("#trouble", Table)
        vpns = self.query_one("#vpns", Table)
        # Of what both tables have together; the titles of each are a line.
        left = trouble.size.height + vpns.size.height - 2
        room = max(LEAST_TROUBLES, left - sum(len(one.store.msg_vpns) for one in self.ui.routers))
        height = 1 + max(1, min(room, len(rows)))
        if trouble.size.height != height:
            trouble.styles.height = height
        answered = all(router.connection.answered_at is not None for router in self.ui.routers)
        trouble.fill(
            [_trouble(place, router, one) for place, router, one in rows],
            QUIET if answered else "asking …",
        )
        vpns.fill(
            [
                MSG_VPNS.entry(f"{place}\0msgVpn\0{row['msgVpnName']}\0", router, row)
                for place, router in enumerate(self.ui.routers)
                for row in router.store.msg_vpns
            ]
        )

    def note(self) -> Line:
        """Describe the trouble under the cursor, or count what there is and what is down."""
        trouble = self.query_one("#trouble", Table)
        if trouble.has_focus and trouble.cursor < len(found := self._troubles()):
            _, router, one = found[trouble.cursor]
            where = "/".join(part for part in (router.label, one.msg_vpn, one.name) if part)
            return text((f"{one.word} {where}: ", one.style), one.why)
        bridges = once([(one.label, row) for one in self.ui.routers for row in one.store.bridges])
        down = sum(row["health"] == "down" for _, row, _ in bridges)
        worst = sum(one.is_urgent for _, _, one in self._troubles())
        vpns = sum(len(router.store.msg_vpns) for router in self.ui.routers)
        return text(
            f"{counted(vpns, 'message VPN')}, {counted(len(bridges), 'bridge')}, ",
            (f"{down:,} down", "bad" if down else "good"),
            ", ",
            (f"{worst:,} urgent", "bad" if worst else "good"),
            ("   0-9 screens", "dim"),
        )

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open what the row is about."""
        place, kind, vpn, name = event.key.split("\0")[:4]
        router = self.ui.routers[int(place)]
        self.ui.router = router
        match kind:
            case "bridge":
                self.show_open(Bridge(router, vpn, name))
            case "connector":
                self.show_open(Connector(router, vpn, name))
            case "queue":
                self.show_open(Queue(router, vpn, name))
            case "msgVpn":
                self.show_open(MsgVpn(router, vpn))

    def _troubles(self) -> Sequence[tuple[int, Router, Problem]]:
        found = [
            (place, router, one)
            for place, router in enumerate(self.ui.routers)
            for one in problems_of(router.store, self.ui.wall())
        ]
        return sorted(found, key=lambda each: each[2].place)


def _trouble(place: int, router: Router, one: Problem) -> Entry:
    kind = "VPN" if one.kind == "msgVpn" else one.kind
    return Entry(
        "\0".join((str(place), one.kind, one.msg_vpn, one.name, one.word)),
        (
            (one.word, one.style),
            (kind, ""),
            (one.msg_vpn, ""),
            (one.name or router.label, "title"),
            (one.why, one.style if one.is_urgent else ""),
        ),
    )
