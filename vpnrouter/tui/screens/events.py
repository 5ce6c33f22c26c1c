"""The event log of a router: what went up, went down, was refused."""

from typing import ClassVar

from vpnrouter.limits import TUI_TAIL_ROWS
from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.pieces import state
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.tail import TailView
from vpnrouter.tui.widgets.table import Column, Entry

SECOND_NS = 1_000_000_000


class Events(TailView):
    """The log is kept by the router: what happened before one looked is there too."""

    PLACE = "events"
    HINT = "a word of the event, the message VPN, the name or the text"
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("UTC", 8),
        Column("level", 7),
        Column("message VPN", 11),
        Column("name", 12, share=1),
        Column("what", 30, share=3),
    )

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._last: int | None = None

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        if self.paused:
            return
        query = {"count": str(TUI_TAIL_ROWS)}
        if self._last is not None:
            query["after"] = str(self._last)
        answer = await router.api.get(paths.EVENTS, query)
        rows: list[Row] = answer["data"]
        if rows:
            self._last = int(rows[-1]["eventId"])
            self.add(rows)
        elif self._last is not None and int(answer["meta"].get("lastEventId", 0)) < self._last:
            # A router that was started anew counts from the beginning.
            self._last = None

    def wanted(self, row: Row) -> bool:
        """See TailView.wanted."""
        said = " ".join(str(row[name]) for name in ("level", "event", "msgVpnName", "name", "text"))
        return self.filter.lower() in said.lower()

    def entry(self, key: str, row: Row) -> Entry:
        """See TailView.entry."""
        return Entry(
            key,
            (
                (fmt.clock(row["timeNs"] / SECOND_NS), "dim"),
                state(row["level"]),
                (row["msgVpnName"] or fmt.NONE, ""),
                (row["name"] or fmt.NONE, "title"),
                (f"{row['event']} {row['text']}".strip(), ""),
            ),
        )
