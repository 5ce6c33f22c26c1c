"""Clients with address, rates and losses; and one client."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import CLIENT, NONE, SUBSCRIPTION, shown
from vpnrouter.text import counted
from vpnrouter.tui import api
from vpnrouter.tui import format as fmt
from vpnrouter.tui.actions import disconnect
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, attribute, rates
from vpnrouter.tui.format import Line, pairs, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pager import Pager
from vpnrouter.tui.screens.view import PagedView, View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Table

SUBSCRIPTIONS: Final = Columns(
    [
        attribute(SUBSCRIPTION["subscriptionTopic"], 30, share=1, style="title"),
        attribute(SUBSCRIPTION["syntax"], 6, style="dim"),
        attribute(SUBSCRIPTION["qos"], 3),
        attribute(SUBSCRIPTION["shareName"], 10),
        attribute(SUBSCRIPTION["selector"], 12, share=1),
    ],
)

SPARK: Final = 16


class Client(View):
    """One client of one router."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("x", "disconnect", "disconnect", "disconnect the client", changes=True),
        Key("n,right", "turn(1)", "next page", "next page of subscriptions"),
        Key("p,left", "turn(-1)", "", "page before"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str, client: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._client = client
        self._row: Row = {}
        self._subscriptions: list[Row] = []
        self._pager = Pager()

    def place(self) -> str:
        """Name the client and its message VPN."""
        return f"client {self._msg_vpn}/{self._client}"

    def body(self) -> ComposeResult:
        """Give the facts about the client, and below them the table of its subscriptions."""
        facts = Lines(id="facts")
        facts.styles.height = 11
        yield facts
        yield Table(SUBSCRIPTIONS.titles, empty="no subscriptions", id="body")

    async def fetch(self, router: Router) -> None:
        """Request the client and one page of its subscriptions."""
        path = f"{api.MONITOR}{api.client(self._msg_vpn, self._client)}"
        self._row = await router.api.one(path)
        router.store.note_client(router.clock(), self._row)
        number = self._pager.page
        page = await router.api.page(f"{path}/subscriptions", cursor=self._pager.cursor)
        if number != self._pager.page or (not page.rows and self._pager.turn(-1)):
            return
        self._pager.update(page.total, page.cursor)
        self._subscriptions = page.rows

    def draw(self) -> None:
        """Show the client's facts and the page of its subscriptions."""
        if self._row:
            self.lines("facts").show(_facts(self.router, self._row))
        self.query_one("#body", Table).fill(
            [SUBSCRIPTIONS.entry(_key(row), self.router, row) for row in self._subscriptions]
        )

    def note(self) -> Line:
        """Say which subscriptions are shown."""
        return text((f"subscriptions: {self._pager.range_text(len(self._subscriptions))}", "dim"))

    def on_table_past(self, event: Table.Past) -> None:
        """Go on in the next page, or in the one before, when the cursor leaves this one."""
        self.action_turn(event.by)

    def action_turn(self, by: int) -> None:
        """Turn to the next page of subscriptions (`by` 1) or the one before (-1)."""
        if self._pager.turn(by):
            self.query_one("#body", Table).place(0 if by > 0 else -1)
            self.ui.look_soon()

    def action_disconnect(self) -> None:
        """Ask for confirmation, then disconnect the client."""
        disconnect(self, self.router, self._msg_vpn, self._client)


def _facts(router: Router, row: Row) -> list[Line]:
    meters, key = router.store.meters, ("client", row["msgVpnName"], row["clientName"])
    up = f"up {fmt.duration(row['uptime'])}" if row["connected"] else "away"
    slow = (", slow", "warn") if row["slowSubscriber"] else ""
    session = "clean session" if row["cleanSession"] else "kept session"
    lines = [
        text((up, "good" if row["connected"] else "note"), slow, f", {session}"),
        *pairs(
            [
                ("address", f"{row['clientAddress'] or NONE} {row['tlsVersion']}".strip()),
                ("speaks", f"{row['platform'] or NONE}, keep-alive {row['keepalive']} s"),
                (
                    "username",
                    f"{row['clientUsername'] or NONE}, client id {row['clientId'] or NONE}",
                ),
                ("profiles", f"{row['clientProfileName']}, ACL {row['aclProfileName']}"),
            ],
            9,
        ),
    ]
    for label, way in (("sent us", "rx"), ("got", "tx")):
        lines.append(
            text(
                (f"{label:<9}  ", "dim"),
                f"{fmt.rate(meters.rate((*key, way))):>6}/s ",
                (sparkline(meters.history((*key, way)), SPARK), "good"),
                f" {counted(row[f'{way}MsgCount'], 'message')}, {fmt.size(row[f'{way}ByteCount'])}",
            )
        )
    lost = row["discarded"]
    lines += pairs(
        [
            (
                "waiting",
                f"{fmt.size(row['outboxBytes'])} to be sent, {counted(row['bindCount'], 'flow')}",
            ),
            ("lost", (shown(lost), "warn" if lost else "dim")),
        ],
        9,
    )
    return lines


def _key(row: Row) -> str:
    return "\0".join((row["shareName"], row["subscriptionTopic"], row["syntax"]))


DISCONNECT = Key("x", "disconnect", "disconnect", "disconnect the client", changes=True)


class Clients(PagedView):
    """The clients of a router, or of one message VPN; sessions whose clients are away included."""

    PLACE = "clients"
    NAME = "clientName"
    KEYS: ClassVar[tuple[Key, ...]] = (*PagedView.KEYS, DISCONNECT)
    BINDINGS: ClassVar[list[BindingType]] = bindings_of([DISCONNECT])
    COLUMNS: ClassVar[Columns] = Columns(
        [
            attribute(CLIENT["clientName"], 18, share=2, style="title"),
            attribute(CLIENT["msgVpnName"], 8),
            attribute(CLIENT["state"], 9),
            attribute(CLIENT["clientAddress"], 15, share=1, style="dim"),
            *rates(lambda row: ("client", row["msgVpnName"], row["clientName"]), ("rx", "tx")),
            attribute(CLIENT["lost"], 5),
            attribute(CLIENT["uptime"], 7),
        ],
    )
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("all", ""),
        ("slow", "slowSubscriber==true"),
        ("losing messages", "txDiscardedMsgCount>0"),
        ("away", "connected==false"),
        ("connected within a minute", "connected==true,uptime<60"),
    )

    def path(self) -> str:
        """Give the path of the clients, of one message VPN or of all."""
        if self._msg_vpn:
            return f"{api.MONITOR}{api.msg_vpn(self._msg_vpn)}/clients"
        return api.ALL_CLIENTS

    def measure(self, router: Router, row: Row) -> None:
        """Measure the client's rates by its message counters."""
        router.store.note_client(router.clock(), row)

    def key(self, row: Row) -> str:
        """The client's message VPN and name."""
        return f"{row['msgVpnName']}\0{row['clientName']}"

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the client."""
        self.show_open(Client(self.router, *event.key.split("\0")))

    def action_disconnect(self) -> None:
        """Ask for confirmation, then disconnect the client under the cursor."""
        if self.table.key:
            disconnect(self, self.router, *self.table.key.split("\0"))
