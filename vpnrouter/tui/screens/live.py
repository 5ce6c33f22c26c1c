"""Shows the event log and live traces, the newest at the bottom."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.limits import TUI_TAIL, TUI_TAIL_ROWS
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import NONE, shown, words
from vpnrouter.tui import api
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.format import Line, fit, folded, pairs, state, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.table import Column, Entry, Table
from vpnrouter.units import SECOND_NS

DETAIL_LINES: Final = 3
"""Lines of the text of the row under the cursor."""


class LiveRow(View):
    """All that is known of one row, folded."""

    def __init__(self, router: Router, place: str, attributes: Sequence[tuple[str, str]]) -> None:
        super().__init__(router)
        self._place = place
        self._attributes = attributes

    def place(self) -> str:
        """Name the kind of row."""
        return self._place

    def body(self) -> ComposeResult:
        """Give the lines of the attributes."""
        yield Lines(id="body", focusable=True)

    def draw(self) -> None:
        """Show each attribute, its value folded beside its label."""
        label = max((len(name) for name, _ in self._attributes), default=0)
        room = max(1, self.size.width - label - 2)
        lines: list[Line] = []
        for name, value in self._attributes:
            first, *more = folded(value, room)
            lines += [
                *pairs([(name, first)], label),
                *(text(" " * (label + 2) + each) for each in more),
            ]
        self.lines("body").show(lines)


class LiveView(View):
    """Keeps the last rows of one router. Subclasses ask for those behind `mark`."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "all that is known of it"),
        Key("slash", "filter", "filter", "filter"),
        Key("space", "pause", "pause", "stop or go on"),
        Key("c", "clear", "clear", "forget what is shown"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])
    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    HINT: ClassVar[str] = ""

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self.kept: deque[tuple[str, Row]] = deque(maxlen=TUI_TAIL)
        self.filter = ""
        self.paused = False
        self._count = 0

    def entry(self, key: str, row: Row) -> Entry:
        """A row of the table."""
        raise AssertionError(row)

    def whole(self, row: Row) -> str:
        """What stands below the table of the row under the cursor."""
        raise AssertionError(row)

    def add(self, rows: list[Row]) -> None:
        """Keep rows that came; the oldest go when there are more than TUI_TAIL."""
        for row in rows:
            self._count += 1
            self.kept.append((str(self._count), row))

    def is_shown(self, row: Row) -> bool:
        """Whether a row that is kept is shown."""
        return True

    def restart(self) -> None:
        """Apply a new filter; nothing to do where kept rows are filtered when they are shown."""

    def body(self) -> ComposeResult:
        """Give the table, whose cursor follows the last row, and the lines of the row under it."""
        yield Table(self.COLUMNS, empty="nothing yet", follows=True, id="body")
        detail = Lines(id="detail")
        detail.styles.height = 1 + DETAIL_LINES
        yield detail

    def draw(self) -> None:
        """Show the kept rows that meet the filter."""
        table = self.query_one("#body", Table)
        table.fill([self.entry(key, row) for key, row in self.kept if self.is_shown(row)])
        row = self._row(table.key)
        lines = [] if row is None else folded(self.whole(row), self.size.width)
        if len(lines) > DETAIL_LINES:
            # Where the rest is.
            last = fit("".join(lines[DETAIL_LINES - 1 :]), max(0, self.size.width - 3))
            lines = [*lines[: DETAIL_LINES - 1], f"{last} ⏎"]
        rule = text(("─" * self.size.width, "dim"))
        self.lines("detail").show([rule, *(text(each) for each in lines)])

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show all attributes of the row."""
        row = self._row(event.key)
        if row is not None:
            values = [(words(name), shown(value)) for name, value in row.items()]
            self.show_open(LiveRow(self.router, self.PLACE.removesuffix("s"), values))

    def _row(self, key: str) -> Row | None:
        return next((row for each, row in self.kept if each == key), None)

    def note(self) -> Line:
        """Say whether rows still come in, and the filter."""
        running = ("paused, space goes on", "warn") if self.paused else ("live", "good")
        return text(running, (f"  filter: {self.filter or 'none'}", "dim"))

    def action_pause(self) -> None:
        """Stop asking, or go on."""
        self.paused = not self.paused
        self.redraw()

    def action_clear(self) -> None:
        """Forget what is shown."""
        self.kept.clear()
        self.redraw()

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.ui.ask("Filter", self._filtered, self.HINT, self.filter)

    def _filtered(self, string: str | None) -> None:
        if string is not None:
            self.filter = string.strip()
            self.restart()
            self.redraw()
            self.ui.look_soon()


class Events(LiveView):
    """The event log of a router, which also holds what happened before the first look."""

    PLACE = "events"
    HINT = "a word of the event, the message VPN, the name or the text"
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("UTC", 8),
        Column("Level", 7),
        Column("VPN", 11, middle=True),
        Column("Name", 12, share=1, middle=True),
        Column("What", 30, share=3),
    )

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._last: int | None = None

    async def fetch(self, router: Router) -> None:
        """Request the events after the last one that came, unless paused."""
        if self.paused:
            return
        query = {"count": str(TUI_TAIL_ROWS)}
        if self._last is not None:
            query["after"] = str(self._last)
        answer = await router.api.get(api.EVENTS, query)
        rows: list[Row] = answer["data"]
        if rows:
            self._last = int(rows[-1]["eventId"])
            self.add(rows)
        elif self._last is not None and int(answer["meta"].get("lastEventId", 0)) < self._last:
            # A router that was started anew counts from the beginning.
            self._last = None

    def is_shown(self, row: Row) -> bool:
        """Whether the filter occurs in the event's level, kind, message VPN, name or text."""
        searched = " ".join(
            str(row[name]) for name in ("level", "event", "msgVpnName", "name", "text")
        )
        return self.filter.lower() in searched.lower()

    def whole(self, row: Row) -> str:
        """Give an event as the log has it."""
        about = " ".join(part for part in (row["msgVpnName"], row["name"]) if part)
        when = f"{fmt.moment(row['timeNs'] // SECOND_NS)}Z"
        return f"{when} {row['level']} {row['event']} {about}: {row['text']}"

    def entry(self, key: str, row: Row) -> Entry:
        """Give an event's row: time, level, message VPN, name, and what happened."""
        return Entry(
            key,
            (
                (fmt.clock(row["timeNs"] / SECOND_NS), "dim"),
                state(row["level"]),
                (row["msgVpnName"] or NONE, ""),
                (row["name"] or NONE, "title"),
                (f"{row['event']} {row['text']}".strip(), ""),
            ),
        )


FILTERS: Final = ("topic", "event", "msgVpnName", "traceId")
"""What the API filters by; a bare word is a topic."""

STYLES: Final = {"discard": "warn", "reject": "bad", "expire": "warn", "dead_letter": "bad"}


class Traces(LiveView):
    """The live traces of a router: they begin with the first look, since it keeps none."""

    PLACE = "traces"
    HINT = "orders/>  or  topic=orders/> event=discard msgVpnName=blue"
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("UTC", 8),
        Column("Event", 14),
        Column("VPN", 8, middle=True),
        Column("Topic", 16, share=2, middle=True),
        Column("To/by", 12, share=1, middle=True),
        Column("Bytes", 6, right=True),
        Column("Trace", 8, middle=True),
    )

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._mark = "0"
        self._missed = 0
        self._tracing = True

    async def fetch(self, router: Router) -> None:
        """Request the traces behind the mark that meet the filter, unless paused."""
        if self.paused:
            return
        query = {"after": self._mark, "count": str(TUI_TAIL_ROWS)} | conditions(self.filter)
        answer = await router.api.get(api.TRACES, query)
        meta = answer["meta"]
        self._mark = str(meta.get("mark", self._mark))
        self._missed += int(meta.get("missed", 0))
        self._tracing = bool(meta.get("tracing", True))
        self.add(answer["data"])

    def restart(self) -> None:
        """Drop the rows that met the old filter, and the count of those that were missed."""
        self.kept.clear()
        self._missed = 0

    def note(self) -> Line:
        """Say whether anything is traced, and how many traces were too many to show."""
        if not self._tracing:
            return text(("this router traces nothing: no traces in its configuration", "warn"))
        missed = f"  {self._missed:,} were too many to show" if self._missed else ""
        return (*super().note(), (missed, "note"))

    def whole(self, row: Row) -> str:
        """Give all that is not empty of a trace."""
        return "  ".join(
            f"{name} {value}" for name, value in row.items() if value not in ("", None)
        )

    def entry(self, key: str, row: Row) -> Entry:
        """Give a trace's row.

        One column has the reason, or the endpoint, bridge or client where there is no reason.
        """
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
                (str(row.get("vpn") or row.get("msgVpnName") or NONE), ""),
                (str(row.get("topic") or NONE), "title"),
                (why or who or NONE, "warn" if why else ""),
                (fmt.size(_number(row, "size_bytes", "sizeBytes")), ""),
                (str(row.get("trace_id") or row.get("traceId") or NONE), "dim"),
            ),
        )


def conditions(string: str) -> dict[str, str]:
    """The filter as the API takes it: `topic=a/> event=discard`, or a topic alone."""
    found = {}
    for word in string.split():
        name, separator, value = word.partition("=")
        if separator and name in FILTERS:
            found[name] = value
        else:
            found["topic"] = word
    return found


def _number(row: Row, *names: str) -> int:
    return next((int(row[name]) for name in names if row.get(name)), 0)
