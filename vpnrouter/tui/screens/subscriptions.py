"""Subscriptions, and those that match a topic, as the router routes a message."""

from typing import ClassVar

from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import SUBSCRIPTION
from vpnrouter.tui import api
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, attribute, own
from vpnrouter.tui.format import Line, Piece
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.screens.clients import Client
from vpnrouter.tui.screens.queues import Queue
from vpnrouter.tui.screens.view import PagedView
from vpnrouter.tui.widgets.table import Table

OWN_KEYS = (
    Key("w", "topic", "who gets?", "what matches this topic? An empty one shows all again"),
    Key("v", "msg_vpn", "VPN", "the next message VPN, and all of them"),
)

LOGGED_IN = frozenset({"client", "bridge"})
"""Holders that are clients; the others are queues and topic endpoints."""


class Subscriptions(PagedView):
    """The subscriptions of a router or of one message VPN, or those among them that match a topic."""

    PLACE = "subscriptions"
    NAME = "subscriptionTopic"
    KEYS: ClassVar[tuple[Key, ...]] = (PagedView.KEYS[0], *OWN_KEYS, *PagedView.KEYS[1:])
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(OWN_KEYS)
    COLUMNS: ClassVar[Columns] = Columns(
        [
            attribute(SUBSCRIPTION["subscriptionTopic"], 22, share=2, style="title"),
            own(SUBSCRIPTION["holder"].title, 14, lambda _, row: _holder(row)),
            attribute(SUBSCRIPTION["name"], 18, share=1),
            attribute(SUBSCRIPTION["msgVpnName"], 8),
            attribute(SUBSCRIPTION["qos"], 3),
            attribute(SUBSCRIPTION["shareName"], 8),
        ],
    )
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("all", ""),
        ("of clients", "holder==client"),
        ("of queues", "holder==queue"),
        ("of bridges", "holder==bridge"),
        ("guaranteed", "qos>0"),
        ("away", "connected==false"),
    )

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router, msg_vpn)
        self._topic = ""

    def place(self) -> str:
        """Name the list, or the topic whose receivers are shown."""
        if self._topic:
            return f"who gets {self._topic} in {self._msg_vpn}?"
        return super().place()

    def path(self) -> str:
        """Give the path of the subscriptions, or of those that match the topic."""
        if self._topic:
            return api.matches(self._msg_vpn)
        return api.subscriptions(self._msg_vpn)

    def more(self) -> dict[str, str]:
        """Give the topic as a query parameter, if its receivers are shown."""
        return {"topic": self._topic} if self._topic else {}

    async def fetch(self, router: Router) -> None:
        """Request a page. A topic without a chosen message VPN is looked up in the first one."""
        if not router.store.msg_vpns:
            await router.fetch_msg_vpns()
        if self._topic and not self._msg_vpn:
            self._msg_vpn = next(iter(self._msg_vpns()), "")
        if self._msg_vpn or not self._topic:
            await super().fetch(router)

    def none(self) -> str:
        """Say that nobody gets the topic, or that there are no subscriptions."""
        return "nobody gets it" if self._topic and not self.where else super().none()

    def note(self) -> Line:
        """Say which rows these are, and whether they are those that match a topic."""
        which = " match" if self._topic else ""
        return (*super().note(), (which, "accent"))

    def key(self, row: Row) -> str:
        """The key of a subscription, which begins with its message VPN and holder."""
        names = ("msgVpnName", "holder", "name", "shareName", "subscriptionTopic")
        return "\0".join(str(row[name]) for name in names)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the client or the queue that holds the subscription."""
        vpn, holder, name = event.key.split("\0")[:3]
        view = Client if holder in LOGGED_IN else Queue
        self.show_open(view(self.router, vpn, name))

    def action_topic(self) -> None:
        """Ask for a topic."""
        self.ui.ask("Who gets this topic?", self._set_topic, "such as orders/eu/1", self._topic)

    def action_msg_vpn(self) -> None:
        """Go to the next message VPN, or to all of them if no topic is given."""
        names = [*self._msg_vpns(), *([] if self._topic else [""])]
        if names:
            place = names.index(self._msg_vpn) + 1 if self._msg_vpn in names else 0
            self._msg_vpn = names[place % len(names)]
            self.restart()

    def _msg_vpns(self) -> list[str]:
        return [row["msgVpnName"] for row in self.router.store.msg_vpns]

    def _set_topic(self, topic: str | None) -> None:
        if topic is not None:
            self._topic = topic
            self.restart()


def _holder(row: Row) -> Piece:
    """What holds the subscription, and whether it is away."""
    if row.get("connected", True):
        return (row["holder"], "accent")
    return (f"{row['holder']} away", "note")
