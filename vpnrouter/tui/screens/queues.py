"""Queues with depth, consumers and rates; one queue with its messages; and one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import MSG, NONE, QUEUE, shown
from vpnrouter.text import counted
from vpnrouter.tui import api
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, attribute, own, rates
from vpnrouter.tui.format import Line, Piece, fit, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pager import Pager
from vpnrouter.tui.problems import FULL, amounts, fullest
from vpnrouter.tui.screens.view import PagedView, View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.payload import PayloadView, best_view, payload_lines
from vpnrouter.tui.widgets.table import Table

VIEWS: Final = {"t": PayloadView.TEXT, "o": PayloadView.JSON, "x": PayloadView.HEX}


class QueuedMessage(View):
    """One message as the page of its queue describes it; its payload is requested once."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "shown('t')", "text", "the payload as text"),
        Key("o", "shown('o')", "JSON", "the payload as JSON object"),
        Key("x", "shown('x')", "hex", "the payload as bytes in hexadecimal"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str, queue: str, row: Row) -> None:
        super().__init__(router)
        self._path = f"{api.OURS}{api.queue(msg_vpn, queue)}/msgs/{row['msgId']}/payload"
        self._row = row
        self._payload: bytes | None = None
        self._view = PayloadView.TEXT

    def place(self) -> str:
        """Name the message by its spool id."""
        return f"message {self._row['msgId']}"

    def body(self) -> ComposeResult:
        """Give the facts about the message, and below them its payload."""
        facts = Lines(id="facts")
        facts.styles.height = 4
        yield facts
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """Request the payload once, and choose the view that suits it."""
        if self._payload is None:
            self._payload = await router.api.content(self._path)
            self._view = best_view(self._payload)

    def draw(self) -> None:
        """Show the message's facts and its payload in the chosen view."""
        self.lines("facts").show(_message_facts(self._row))
        if self._payload is None:
            self.lines("body").show([text(("asking …", "dim"))])
        else:
            width = self.size.width
            self.lines("body").show(payload_lines(self._payload, self._view, width))

    def note(self) -> Line:
        """Say how the payload is shown."""
        size = len(self._payload or b"")
        return text((f"payload of {size:,} bytes as ", "dim"), (self._view.value, "accent"))

    def action_shown(self, key: str) -> None:
        """Show the payload in another way."""
        self._view = VIEWS[key]
        self.lines("body").action_scroll_to_first()
        self.redraw()


def _message_facts(row: Row) -> list[Line]:
    times = f"spooled {fmt.moment(row['spooledTime'])}, expires {fmt.moment(row['expiryTime'])} UTC"
    details = (
        f"priority {row['priority']}, delivered again {counted(row['redeliveryCount'], 'time')},"
        f" publisher {row['publisherId'] or NONE}"
    )
    return [
        text((fit(str(row["topic"]), 400).rstrip(), "title")),
        text((times, "dim")),
        text((details, "dim")),
        (),
    ]


FLOWS: Final = 3
"""Consumers that have a line of their own; the note says how many there are."""

MSGS: Final = Columns(
    [
        attribute(MSG["msgId"], 10, style="title"),
        attribute(MSG["topic"], 20, share=1),
        attribute(MSG["contentSize"], 6),
        attribute(MSG["spooledTime"], 19, style="dim"),
        attribute(MSG["priority"], 4),
        attribute(
            MSG["redeliveryCount"], 5, style=lambda row: "warn" if row["redeliveryCount"] else "dim"
        ),
        own("", 6, lambda _, row: ("" if row["undelivered"] else "held", "accent")),
    ],
)


class Queue(View):
    """One queue of one router."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "payload", "look at the payload of the message"),
        Key("d", "delete", "delete", "delete the message", changes=True),
        Key("m", "move", "move", "move the message to another queue", changes=True),
        Key("M", "move_all", "move all", "move all messages to another queue", changes=True),
        Key("P", "purge", "purge", "delete all messages that no consumer holds", changes=True),
        Key("n,right", "turn(1)", "", "next page of messages"),
        Key("p,left", "turn(-1)", "", "page before"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])

    def __init__(self, router: Router, msg_vpn: str, queue: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._queue = queue
        self._row: Row = {}
        self._flows: Sequence[Row] = ()
        self._flow_count = 0
        self._msgs: Sequence[Row] = ()
        self._pager = Pager()

    def place(self) -> str:
        """Name the queue and its message VPN."""
        return f"queue {self._msg_vpn}/{self._queue}"

    def body(self) -> ComposeResult:
        """Give the facts about the queue, and below them the table of its messages."""
        facts = Lines(id="facts")
        facts.styles.height = 8
        yield facts
        yield Table(MSGS.titles, empty="no messages", id="body")

    @property
    def _path(self) -> str:
        return api.queue(self._msg_vpn, self._queue)

    async def fetch(self, router: Router) -> None:
        """Request the queue, its first consumers and one page of its messages."""
        base = f"{api.MONITOR}{self._path}"
        self._row = await router.api.one(base)
        router.store.note_queue(router.clock(), self._row)
        flows = await router.api.page(f"{base}/txFlows", count=FLOWS)
        self._flows, self._flow_count = flows.rows, flows.total
        number = self._pager.page
        page = await router.api.page(f"{base}/msgs", cursor=self._pager.cursor)
        if number != self._pager.page or (not page.rows and self._pager.turn(-1)):
            return
        self._pager.update(page.total, page.cursor)
        self._msgs = page.rows

    def draw(self) -> None:
        """Show the queue's facts and the page of its messages."""
        if self._row:
            self.lines("facts").show(_facts(self.router, self._row, self._flows, self._flow_count))
        self.query_one("#body", Table).fill(
            [MSGS.entry(str(row["msgId"]), self.router, row) for row in self._msgs]
        )

    def note(self) -> Line:
        """Say which messages are shown."""
        return text(
            (f"messages, the oldest first: {self._pager.range_text(len(self._msgs))}", "dim")
        )

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Look at the payload."""
        row = next((each for each in self._msgs if str(each["msgId"]) == event.key), None)
        if row is not None:
            self.show_open(QueuedMessage(self.router, self._msg_vpn, self._queue, row))

    def on_table_past(self, event: Table.Past) -> None:
        """Go on in the next page, or in the one before, when the cursor leaves this one."""
        if self._pager.turn(event.by):
            self.query_one("#body", Table).place(0 if event.by > 0 else -1)
            self.ui.look_soon()

    def action_turn(self, by: int) -> None:
        """Turn to the next page of messages (`by` 1) or the one before (-1)."""
        if self._pager.turn(by):
            self.query_one("#body", Table).place(0)
            self.ui.look_soon()

    def action_delete(self) -> None:
        """Ask for confirmation, then delete the message under the cursor."""
        if msg := self._chosen():
            question = f"Delete message {msg} of queue {self._queue}? It is gone for good."
            self.act(self.router, question, lambda: self._delete([msg]))

    def action_purge(self) -> None:
        """Ask for confirmation, then delete all messages that no consumer holds."""
        count = self._row.get("msgCount", 0)
        question = (
            f"Delete all {counted(count, 'message')} of queue {self._queue} in message VPN {self._msg_vpn}"
            " that no consumer holds? They are gone for good."
        )
        self.act(self.router, question, lambda: self._delete(None))

    def action_move(self) -> None:
        """Ask for another queue, then move the message under the cursor there."""
        if msg := self._chosen():
            self._ask_where(f"Move message {msg} to which queue?", [msg])

    def action_move_all(self) -> None:
        """Ask for another queue, then move all messages there."""
        self._ask_where(f"Move all messages of queue {self._queue} to which queue?", None)

    def _chosen(self) -> int:
        """Id of the message under the cursor, 0 for none."""
        return int(self.query_one("#body", Table).key or 0)

    def _ask_where(self, label: str, msgs: list[int] | None) -> None:
        def answered(to: str | None) -> None:
            if to:
                what = "all messages" if msgs is None else f"message {msgs[0]}"
                question = f"Move {what} of queue {self._queue} to queue {to}?"
                self.act(self.router, question, lambda: self._move(to, msgs))

        if self.router.store.may_change():
            self.ui.ask(label, answered, "a queue of the same message VPN")
        else:
            self.act(self.router, label, lambda: self._move("", msgs))

    async def _delete(self, msgs: list[int] | None) -> str:
        body: Row = {} if msgs is None else {"msgIds": msgs}
        path = f"{api.ACTION}{self._path}/deleteMsgs"
        done = await self.router.api.put(path, body)
        return f"{counted(done['data'].get('msgCount', 0), 'message')} deleted"

    async def _move(self, to: str, msgs: list[int] | None) -> str:
        body: Row = {"toQueueName": to} | ({} if msgs is None else {"msgIds": msgs})
        done = await self.router.api.put(f"{api.OURS}{self._path}/moveMsgs", body)
        return f"{counted(done['data'].get('msgCount', 0), 'message')} moved to queue {to}"


def _facts(router: Router, row: Row, flows: Sequence[Row], count: int) -> list[Line]:
    meters, key = router.store.meters, ("queue", row["msgVpnName"], row["queueName"])
    into, out = (fmt.rate(meters.rate((*key, way))) for way in ("in", "out"))
    messages, size = amounts(row)
    gates = [
        (f"{way} {'on' if row[f'{way}Enabled'] else 'OFF'}", "" if row[f"{way}Enabled"] else "bad")
        for way in ("ingress", "egress")
    ]
    lost = {**row["discarded"], **row["refused"]}
    lines = [
        text(
            (messages.told, "bad" if messages.used >= FULL else "title"),
            ", ",
            (size.told, "bad" if size.used >= FULL else ""),
            f", oldest {fmt.age(row['oldestMsgAgeMs'])}",
        ),
        text(
            f"{into}/s in, {out}/s out, {row['txUnackedMsgCount']:,} unacknowledged,"
            f" {row['redeliveredMsgCount']:,} redelivered"
        ),
        text(
            f"{row['endpointType']}, {row['accessType']}, ",
            *gates[:1],
            ", ",
            *gates[1:],
            f", dead messages to {row['deadMsgQueue'] or NONE}",
        ),
        text("lost or not taken: ", (shown(lost), "warn" if lost else "dim")),
    ]
    if row["imbalance"]:
        lines.append(text((f"{counted(row['imbalance'], 'message')} not accounted for", "bad")))
    if count:
        lines.append(text((counted(count, "consumer"), "head")))
    else:
        lines.append(text(("no consumer", "warn" if row["msgCount"] else "dim")))
    lines += [
        text(
            f"  {flow['clientName']} ",
            (flow["activityState"], "dim"),
            f" {flow['unackedMsgCount']:,} of {flow['windowSize']:,} unacknowledged",
        )
        for flow in flows
    ]
    return lines[:8]


def _alone(row: Row) -> str:
    """The style for a queue with messages and without a consumer."""
    alone = row["msgCount"] and not row["bindCount"] and row["endpointType"] != "session"
    return "warn" if alone else ""


def _full(_: Router, row: Row) -> Piece:
    used = fullest(row).used
    return (f"{used:.0%}" if used else NONE, "bad" if used >= FULL else "")


class Queues(PagedView):
    """The queues of a router, or of one message VPN."""

    PLACE = "queues"
    NAME = "queueName"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(())
    COLUMNS: ClassVar[Columns] = Columns(
        [
            attribute(QUEUE["queueName"], 20, share=1, style="title"),
            attribute(QUEUE["msgVpnName"], 8),
            attribute(QUEUE["msgCount"], 6, style=_alone),
            attribute(QUEUE["msgSpoolBytes"], 6),
            own("Full", 4, _full, right=True),
            attribute(QUEUE["bindCount"], 5, style=_alone),
            *rates(lambda row: ("queue", row["msgVpnName"], row["queueName"]), ("in", "out")),
            attribute(QUEUE["lost"], 5),
            attribute(QUEUE["oldestMsgAgeMs"], 7),
        ],
    )
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("all", ""),
        ("with messages", "msgCount>0"),
        ("messages and no reader", "msgCount>0,bindCount==0"),
        ("egress off", "egressEnabled==false"),
        ("of sessions", "endpointType==session"),
    )

    def path(self) -> str:
        """Give the path of the queues, of one message VPN or of all."""
        if self._msg_vpn:
            return f"{api.MONITOR}{api.msg_vpn(self._msg_vpn)}/queues"
        return api.ALL_QUEUES

    def measure(self, router: Router, row: Row) -> None:
        """Measure the queue's rates by its counters."""
        router.store.note_queue(router.clock(), row)

    def key(self, row: Row) -> str:
        """The queue's message VPN and name."""
        return f"{row['msgVpnName']}\0{row['queueName']}"

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the queue."""
        self.show_open(Queue(self.router, *event.key.split("\0")))
