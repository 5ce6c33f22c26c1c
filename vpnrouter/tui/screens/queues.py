"""Queues: depth, consumers, what comes and goes, what is lost."""

from typing import ClassVar

from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.keys import bindings_of
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.paged import PagedView
from vpnrouter.tui.screens.queue import Queue
from vpnrouter.tui.trouble import FULL, quota
from vpnrouter.tui.widgets.table import Column, Entry, Table


class Queues(PagedView):
    """The queues of a router, or of one message VPN."""

    PLACE = "queues"
    NAME = "queueName"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(())
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("queue", 18, share=1),
        Column("VPN", 8),
        Column("depth", 6, right=True),
        Column("bytes", 6, right=True),
        Column("full", 4, right=True),
        Column("readers", 7, right=True),
        Column("in/s", 5, right=True),
        Column("out/s", 5, right=True),
        Column("lost", 5, right=True),
        Column("oldest", 7, right=True),
    )
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("all", ""),
        ("with messages", "msgCount>0"),
        ("messages and no reader", "msgCount>0,bindCount==0"),
        ("egress off", "egressEnabled==false"),
        ("of sessions", "endpointType==session"),
    )

    def path(self) -> str:
        """See PagedView.path."""
        if self._msg_vpn:
            return f"{paths.MONITOR}{paths.msg_vpn(self._msg_vpn)}/queues"
        return paths.ALL_QUEUES

    def seen(self, router: Router, row: Row) -> None:
        """See PagedView.seen."""
        router.store.saw_queue(router.clock(), row)

    def entry(self, router: Router, row: Row) -> Entry:
        """See PagedView.entry."""
        vpn, name = row["msgVpnName"], row["queueName"]
        meters, used = router.store.meters, quota(row)
        lost = sum(row["discarded"].values()) + sum(row["refused"].values())
        alone = row["msgCount"] and not row["bindCount"] and row["endpointType"] != "session"
        return Entry(
            f"{vpn}\0{name}",
            (
                (name, "title"),
                (vpn, ""),
                (fmt.figure(row["msgCount"]), "warn" if alone else ""),
                (fmt.size(row["msgSpoolUsage"]), ""),
                (f"{used:.0%}" if used else fmt.NONE, "bad" if used >= FULL else ""),
                (fmt.figure(row["bindCount"]), "warn" if alone else ""),
                (fmt.rate(meters.rate(("queue", vpn, name, "in"))), ""),
                (fmt.rate(meters.rate(("queue", vpn, name, "out"))), ""),
                (fmt.figure(lost) if lost else fmt.NONE, "warn" if lost else "dim"),
                (fmt.age(row["oldestMsgAgeMs"]), ""),
            ),
        )

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the queue."""
        self.show_open(Queue(self.router, *event.key.split("\0")))
