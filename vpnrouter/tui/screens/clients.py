"""Clients: who is connected from where, what each sends and gets, who is slow."""

from typing import ClassVar

from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.client_actions import disconnect
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Piece
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.client import Client
from vpnrouter.tui.screens.paged import PagedView
from vpnrouter.tui.widgets.table import Column, Entry, Table

DISCONNECT = Key("x", "disconnect", "disconnect", "disconnect the client", changes=True)


class Clients(PagedView):
    """The clients of a router, or of one message VPN; sessions whose clients are away included."""

    PLACE = "clients"
    NAME = "clientName"
    KEYS: ClassVar[tuple[Key, ...]] = (*PagedView.KEYS, DISCONNECT)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of([DISCONNECT])
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("client", 18, share=2),
        Column("VPN", 8),
        Column("state", 6),
        Column("address", 15, share=1),
        Column("in/s", 5, right=True),
        Column("out/s", 5, right=True),
        Column("lost", 5, right=True),
        Column("up", 7, right=True),
    )
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("all", ""),
        ("slow", "slowSubscriber==true"),
        ("losing messages", "txDiscardedMsgCount>0"),
        ("away", "connected==false"),
        ("connected within a minute", "connected==true,uptime<60"),
    )

    def path(self) -> str:
        """See PagedView.path."""
        if self._msg_vpn:
            return f"{paths.MONITOR}{paths.msg_vpn(self._msg_vpn)}/clients"
        return paths.ALL_CLIENTS

    def seen(self, router: Router, row: Row) -> None:
        """See PagedView.seen."""
        router.store.saw_client(router.clock(), row)

    def entry(self, router: Router, row: Row) -> Entry:
        """See PagedView.entry."""
        vpn, name = row["msgVpnName"], row["clientName"]
        rate = router.store.meters.rate
        lost = row["txDiscardedMsgCount"] + row["rxDiscardedMsgCount"]
        return Entry(
            f"{vpn}\0{name}",
            (
                (name, "title"),
                (vpn, ""),
                state_of(row),
                (row["clientAddress"] or fmt.NONE, "dim"),
                (fmt.rate(rate(("client", vpn, name, "rx"))), ""),
                (fmt.rate(rate(("client", vpn, name, "tx"))), ""),
                (fmt.figure(lost) if lost else fmt.NONE, "warn" if lost else "dim"),
                (fmt.duration(row["uptime"]) if row["connected"] else fmt.NONE, ""),
            ),
        )

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the client."""
        self.show_open(Client(self.router, *event.key.split("\0")))

    def action_disconnect(self) -> None:
        """Disconnect the client under the cursor."""
        if self.table.key:
            disconnect(self, self.router, *self.table.key.split("\0"))


def state_of(row: Row) -> Piece:
    """A client's state in one word."""
    if not row["connected"]:
        return ("away", "note")
    return ("slow", "warn") if row["slowSubscriber"] else ("up", "good")
