"""Live traces: what happens to messages as they go by, of those that are sampled."""

from typing import ClassVar, Final

from vpnrouter.limits import TUI_TAIL_ROWS
from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.pieces import Line, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.tail import TailView
from vpnrouter.tui.widgets.table import Column, Entry

SECOND_NS: Final = 1_000_000_000

FILTERS: Final = ("topic", "event", "msgVpnName", "traceId")
"""What the API filters by; a bare word is a topic."""

STYLES: Final = {"discard": "warn", "reject": "bad", "expire": "warn", "dead_letter": "bad"}


class Traces(TailView):
    """The router keeps none of them for whoever comes later: they begin with the first look."""

    PLACE = "traces"
    HINT = "orders/>  or  topic=orders/> event=discard msgVpnName=blue"
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("UTC", 8),
        Column("event", 14),
        Column("VPN", 8),
        Column("topic", 16, share=2),
        Column("to/by", 12, share=1),
        Column("bytes", 6, right=True),
        Column("trace", 8),
    )

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._mark = "0"
        self._missed = 0
        self._tracing = True

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        if self.paused:
            return
        query = {"after": self._mark, "count": str(TUI_TAIL_ROWS)} | conditions(self.filter)
        answer = await router.api.get(paths.TRACES, query)
        meta = answer["meta"]
        self._mark = str(meta.get("mark", self._mark))
        self._missed += int(meta.get("missed", 0))
        self._tracing = bool(meta.get("tracing", True))
        self.add(answer["data"])

    def restart(self) -> None:
        """See TailView.restart."""
        self.kept.clear()
        self._missed = 0

    def note(self) -> Line:
        """Whether anything is traced, and what was too much to show."""
        if not self._tracing:
            return text(("this router traces nothing: no traces in its configuration", "warn"))
        missed = f"  {self._missed:,} were too many to show" if self._missed else ""
        return (*super().note(), (missed, "note"))

    def entry(self, key: str, row: Row) -> Entry:
        """See TailView.entry."""
        event = str(row.get("event", ""))
        who = next(
            (str(row[name]) for name in ("endpoint", "bridge", "client") if row.get(name)), ""
        )
        why = str(row.get("reason") or "")
        return Entry(
            key,
            (
                (fmt.clock(_number(row, "ts_ns", "tsNs") / SECOND_NS), "dim"),
                (event, STYLES.get(event, "accent")),
                (str(row.get("vpn") or row.get("msgVpnName") or fmt.NONE), ""),
                (str(row.get("topic") or fmt.NONE), "title"),
                (why or who or fmt.NONE, "warn" if why else ""),
                (fmt.size(_number(row, "size_bytes", "sizeBytes")), ""),
                (str(row.get("trace_id") or row.get("traceId") or fmt.NONE), "dim"),
            ),
        )


def conditions(written: str) -> dict[str, str]:
    """The filter as the API takes it: `topic=a/> event=discard`, or a topic alone."""
    found = {}
    for word in written.split():
        name, separator, value = word.partition("=")
        if separator and name in FILTERS:
            found[name] = value
        else:
            found["topic"] = word
    return found


def _number(row: Row, *names: str) -> int:
    return next((int(row[name]) for name in names if row.get(name)), 0)
