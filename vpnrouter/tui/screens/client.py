"""One client: its connection, its counts, and what it subscribes to."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.client_actions import disconnect
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pager import Pager
from vpnrouter.tui.pieces import Line, pairs, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Column, Entry, Table

SUBSCRIPTIONS: Final = (
    Column("subscription", 30, share=1),
    Column("syntax", 6),
    Column("QoS", 3, right=True),
    Column("share", 10),
    Column("selector", 12, share=1),
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
        """See View.place."""
        return f"client {self._msg_vpn}/{self._client}"

    def body(self) -> ComposeResult:
        """See View.body."""
        facts = Lines(id="facts")
        facts.styles.height = 11
        yield facts
        yield Table(SUBSCRIPTIONS, empty="no subscriptions", id="body")

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        path = f"{paths.MONITOR}{paths.client(self._msg_vpn, self._client)}"
        self._row = await router.api.one(path)
        router.store.saw_client(router.clock(), self._row)
        number = self._pager.page
        page = await router.api.page(f"{path}/subscriptions", cursor=self._pager.cursor)
        if number != self._pager.page or (not page.rows and self._pager.turn(-1)):
            return
        self._pager.saw(page.total, page.cursor)
        self._subscriptions = page.rows

    def draw(self) -> None:
        """See View.draw."""
        if self._row:
            self.lines("facts").show(_facts(self.router, self._row))
        self.query_one("#body", Table).fill([_entry(row) for row in self._subscriptions])

    def note(self) -> Line:
        """Which subscriptions these are."""
        return text((f"subscriptions: {self._pager.rows_told(len(self._subscriptions))}", "dim"))

    def on_table_past(self, event: Table.Past) -> None:
        """The cursor goes on in the next page, or in the one before."""
        self.action_turn(event.by)

    def action_turn(self, by: int) -> None:
        """To the next page, or the one before."""
        if self._pager.turn(by):
            self.query_one("#body", Table).place(0 if by > 0 else -1)
            self.ui.look_soon()

    def action_disconnect(self) -> None:
        """Disconnect it."""
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
                ("address", f"{row['clientAddress'] or fmt.NONE} {row['tlsVersion']}".strip()),
                ("speaks", f"{row['platform'] or fmt.NONE}, keep-alive {row['keepalive']} s"),
                (
                    "username",
                    f"{row['clientUsername'] or fmt.NONE}, client id {row['clientId'] or fmt.NONE}",
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
                f" {row[f'{way}MsgCount']:,} messages, {fmt.size(row[f'{way}ByteCount'])}",
            )
        )
    lost = row["discarded"]
    lines += pairs(
        [
            ("waiting", f"{fmt.size(row['outboxBytes'])} to be sent, {row['bindCount']:,} flows"),
            ("lost", (fmt.shown(lost), "warn" if lost else "dim")),
        ],
        9,
    )
    return lines


def _entry(row: Row) -> Entry:
    return Entry(
        f"{row['shareName']}\0{row['subscriptionTopic']}\0{row['syntax']}",
        (
            (row["subscriptionTopic"], "title"),
            (row["syntax"], "dim"),
            (str(row["qos"]), ""),
            (row["shareName"] or fmt.NONE, ""),
            (row["selector"] or fmt.NONE, ""),
        ),
    )
