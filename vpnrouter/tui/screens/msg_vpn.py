"""One message VPN: its rates, its bounds, what it discards and why."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Line, Piece, pairs, state, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.bridges import Bridges
from vpnrouter.tui.screens.clients import Clients
from vpnrouter.tui.screens.queues import Queues
from vpnrouter.tui.screens.subscriptions import Subscriptions
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.trouble import LOSSES
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline

SPARK: Final = 40
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
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn

    def place(self) -> str:
        """See View.place."""
        return f"message VPN {self._msg_vpn}"

    def body(self) -> ComposeResult:
        """See View.body."""
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        await router.see_msg_vpns()

    def draw(self) -> None:
        """See View.draw."""
        rows = self.router.store.msg_vpns
        row = next((each for each in rows if each["msgVpnName"] == self._msg_vpn), None)
        gone = [text(("this message VPN is not there", "warn"))]
        self.lines("body").show(gone if row is None else _lines(self.router, row))

    def action_into(self, what: str) -> None:
        """Show what is in it."""
        router, name = self.router, self._msg_vpn
        self.ui.router = router
        views: dict[str, View] = {
            "bridges": Bridges(router, name),
            "queues": Queues(router, name),
            "clients": Clients(router, name),
            "subscriptions": Subscriptions(router, name),
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
        counted = f"{row[f'{way}MsgCount']:,} messages, {fmt.size(row[f'{way}ByteCount'])}"
        found.append(())
        found += pairs([(label, f"{fmt.rate(meters.rate(key)):>6} messages a second")], 16)
        found.append(text(" " * 18, (sparkline(meters.history(key), SPARK), "good")))
        found += pairs([("since the start", counted)], 16)
    found += [(), text(("discarded", "title"), f"  {row['discardedMsgCount']:,}")]
    for reason, count in sorted(row["discarded"].items(), key=lambda each: -each[1]):
        rate = meters.rate(("vpn", name, "discarded", reason))
        style = "warn" if reason in LOSSES else "dim"
        found.append(text((f"  {reason:<26}", style), f"{count:>14,} {fmt.rate(rate):>8}/s"))
    return found


def _of(count: int, most: int) -> str:
    return f"{count:,} of {most:,}" if most else f"{count:,}"
