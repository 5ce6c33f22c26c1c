"""All bridges: state, direction, backlog, rates, and why the last failure was."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.bridge_actions import ACTIONS, BridgeAction
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Line, state, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.bridge import Bridge
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.trouble import why_down
from vpnrouter.tui.widgets.table import Column, Entry, Table

COLUMNS: Final = (
    Column("bridge", 14, share=1),
    Column("VPN", 8),
    Column("state", 8),
    Column("from/to", 15, share=1),
    Column("in/s", 5, right=True),
    Column("out/s", 5, right=True),
    Column("wait", 5, right=True),
    Column("last failure", 11, share=2),
)

RANKS: Final = {"down": 0, "stalled": 1, "unbound": 1, "incomplete": 2, "up": 3}
"""The order of healths; disabled bridges come last."""

WANTING: Final = frozenset({"down", "stalled", "unbound", "incomplete"})
"""Healths that have a reason."""


class Bridges(View):
    """The bridges of all routers, or of one message VPN; those that are down on top."""

    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "open the bridge: both ends, remotes, counts"),
        Key("d", "down_only", "down only", "only those that are not up, or all"),
        *(Key(one.key, f"do('{one.name}')", one.name, one.help, changes=True) for one in ACTIONS),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._down_only = False

    def place(self) -> str:
        """See View.place."""
        return "bridges"

    def body(self) -> ComposeResult:
        """See View.body."""
        yield Table(COLUMNS, empty="no bridges", id="body")

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        await router.see_bridges()

    def draw(self) -> None:
        """See View.draw."""
        rows = [
            (place, row)
            for place, router in enumerate(self.ui.routers)
            if self._router in {None, router}
            for row in router.store.bridges
            if self._msg_vpn in {"", row["msgVpnName"]}
            if not self._down_only or row["health"] != "up"
        ]
        rows.sort(key=lambda each: RANKS.get(each[1]["health"], len(RANKS)))
        self.query_one("#body", Table).fill([_entry(*each) for each in rows])

    def note(self) -> Line:
        """Why the bridge under the cursor is down, or what is left out."""
        row = self._chosen()
        if row is not None and row["health"] in WANTING:
            since = f" {fmt.age(row['stateAgeMs'])}" if row["health"] in {"down", "stalled"} else ""
            word, style = state(row["health"])
            return text((f"{row['bridgeName']} {word}{since}: ", style), why_down(row))
        which = f"of message VPN {self._msg_vpn}" if self._msg_vpn else "of all message VPNs"
        only = "those that are not up" if self._down_only else "all"
        return text((f"bridges {which}: {only}; wait: messages known to wait", "dim"))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the bridge."""
        place, vpn, name = event.key.split("\0")
        self.ui.router = self.ui.routers[int(place)]
        self.show_open(Bridge(self.ui.router, vpn, name))

    def _chosen(self) -> Row | None:
        key = self.query_one("#body", Table).key
        if not key:
            return None
        place, *names = key.split("\0")
        rows = self.ui.routers[int(place)].store.bridges
        return next((r for r in rows if [r["msgVpnName"], r["bridgeName"]] == names), None)

    def action_down_only(self) -> None:
        """Leave out those that are up, or show all."""
        self._down_only = not self._down_only
        self.redraw()

    def action_do(self, name: str) -> None:
        """Do something to the bridge under the cursor."""
        key = self.query_one("#body", Table).key
        if key:
            place, vpn, bridge = key.split("\0")
            router = self.ui.routers[int(place)]
            BridgeAction.of(name).begin(self, router, vpn, bridge)


def _entry(place: int, row: Row) -> Entry:
    waiting = row["backlogMsgCount"]
    why = why_down(row) if row["health"] in WANTING else ""
    if not why and row["lastFailureAgeMs"] >= 0:
        why = f"{fmt.age(row['lastFailureAgeMs'])} ago"
    return Entry(
        f"{place}\0{row['msgVpnName']}\0{row['bridgeName']}",
        (
            (row["bridgeName"], "title"),
            (row["msgVpnName"], ""),
            state(row["health"]),
            (f"{direction(row)} {far_end(row)}", ""),
            (fmt.rate(row["rxMsgRate"]), ""),
            (fmt.rate(row["txMsgRate"]), ""),
            (fmt.figure(waiting) if waiting else fmt.NONE, "warn" if waiting else "dim"),
            (why or fmt.NONE, state(row["health"])[1] if row["health"] in WANTING else "dim"),
        ),
    )


def direction(row: Row) -> str:
    """An arrow: messages come (`◄`), go (`►`), or both."""
    comes = row["inboundState"] != "not-applicable"
    goes = row["outboundState"] != "not-applicable"
    return "◄►" if comes and goes else "◄" if comes else "►"


def far_end(row: Row) -> str:
    """Router and message VPN at the other end, or where they are looked for."""
    if row["remoteMsgVpnName"]:
        router = row["remoteRouterName"] or row["remoteAddress"]
        return f"{router}/{row['remoteMsgVpnName']}"
    remotes = [
        f"{each['remoteMsgVpnName']}@{each['remoteMsgVpnLocation']}"
        for each in row.get("remotes", ())
    ]
    return remotes[0] if remotes else "?"
