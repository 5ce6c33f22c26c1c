"""The overview: trouble on top, the worst first; below it the message VPNs with their rates."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Line, state, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.bridge import Bridge
from vpnrouter.tui.screens.msg_vpn import MsgVpn
from vpnrouter.tui.screens.queue import Queue
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.trouble import DOWN, LOSSES, STALLED, STYLES, Trouble, troubles
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Column, Entry, Table

MOST_TROUBLES: Final = 8
"""Lines of trouble that are seen at a time; the table scrolls."""

QUIET: Final = "no trouble: all is up, nothing stalls, nothing is lost"

SPARK: Final = 10
"""Columns of a sparkline."""

TROUBLES: Final = (
    Column("trouble", 9),
    Column("what", 6),
    Column("VPN", 8),
    Column("name", 12),
    Column("why", 20, share=1),
)

MSG_VPNS: Final = (
    Column("message VPN", 12, share=1),
    Column("router", 8),
    Column("state", 8),
    Column("clients", 7, right=True),
    Column("in/s", 5, right=True),
    Column("", SPARK),
    Column("out/s", 5, right=True),
    Column("", SPARK),
    Column("lost", 5, right=True),
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
        """See View.body."""
        trouble = Table(TROUBLES, id="trouble")
        trouble.styles.height = 2
        yield trouble
        gap = Lines(id="gap")
        gap.styles.height = 1
        yield gap
        yield Table(MSG_VPNS, empty="no message VPN", id="vpns")

    def on_mount(self) -> None:
        """The message VPNs have the cursor first: trouble may come and go."""
        super().on_mount()
        self.query_one("#vpns", Table).focus()

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        await router.see_msg_vpns()
        await router.see_bridges()
        await router.see_queues()

    def draw(self) -> None:
        """See View.draw."""
        rows = self._troubles()
        trouble = self.query_one("#trouble", Table)
        height = 1 + max(1, min(MOST_TROUBLES, len(rows)))
        if trouble.size.height != height:
            trouble.styles.height = height
        asked = all(router.connection.answered_at is not None for router in self.ui.routers)
        trouble.fill(
            [_trouble(place, router, one) for place, router, one in rows],
            QUIET if asked else "asking …",
        )
        self.query_one("#vpns", Table).fill(
            [
                _msg_vpn(place, router, row)
                for place, router in enumerate(self.ui.routers)
                for row in router.store.msg_vpns
            ]
        )

    def note(self) -> Line:
        """How much there is, and how much of it is well."""
        trouble = self.query_one("#trouble", Table)
        if trouble.has_focus and trouble.cursor < len(found := self._troubles()):
            _, router, one = found[trouble.cursor]
            where = "/".join(part for part in (router.label, one.msg_vpn, one.name) if part)
            return text((f"{one.word} {where}: ", STYLES[one.rank]), one.why)
        bridges = [row for router in self.ui.routers for row in router.store.bridges]
        down = sum(row["health"] == "down" for row in bridges)
        worst = sum(one.rank in {DOWN, STALLED} for _, _, one in self._troubles())
        vpns = sum(len(router.store.msg_vpns) for router in self.ui.routers)
        return text(
            f"{vpns:,} message VPNs, {len(bridges):,} bridges, ",
            (f"{down:,} down", "bad" if down else "good"),
            ", ",
            (f"{worst:,} urgent", "bad" if worst else "good"),
            ("   1-9 screens", "dim"),
        )

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open what the row is about."""
        place, kind, vpn, name = event.key.split("\0")[:4]
        router = self.ui.routers[int(place)]
        self.ui.router = router
        match kind:
            case "bridge":
                self.show_open(Bridge(router, vpn, name))
            case "queue":
                self.show_open(Queue(router, vpn, name))
            case _:
                self.show_open(MsgVpn(router, vpn))

    def _troubles(self) -> Sequence[tuple[int, Router, Trouble]]:
        found = [
            (place, router, one)
            for place, router in enumerate(self.ui.routers)
            for one in troubles(router.store)
        ]
        return sorted(found, key=lambda each: each[2].rank)


def _trouble(place: int, router: Router, one: Trouble) -> Entry:
    style = STYLES[one.rank]
    kind = "VPN" if one.kind == "msgVpn" else one.kind
    return Entry(
        "\0".join((str(place), one.kind, one.msg_vpn, one.name, one.word)),
        (
            (one.word, style),
            (kind, ""),
            (one.msg_vpn, ""),
            (one.name or router.label, "title"),
            (one.why, style if one.rank <= STALLED else ""),
        ),
    )


def _msg_vpn(place: int, router: Router, row: Row) -> Entry:
    meters, name = router.store.meters, row["msgVpnName"]
    come, gone = ("vpn", name, "rxMsgRate"), ("vpn", name, "txMsgRate")
    lost = sum(count for why, count in row["discarded"].items() if why in LOSSES)
    return Entry(
        "\0".join((str(place), "msgVpn", name, "")),
        (
            (name, "title"),
            (router.label, "dim"),
            state(row["state"] if row["enabled"] else "disabled"),
            (fmt.figure(row["msgVpnConnections"]), ""),
            (fmt.rate(meters.rate(come)), ""),
            (sparkline(meters.history(come), SPARK), "good"),
            (fmt.rate(meters.rate(gone)), ""),
            (sparkline(meters.history(gone), SPARK), "accent"),
            (fmt.figure(lost) if lost else fmt.NONE, "warn" if lost else "dim"),
        ),
    )
