"""All bridges; and one bridge with both ends, its remotes and its counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import BRIDGE, NONE
from vpnrouter.settings.kinds import BRIDGE as KIND
from vpnrouter.tui import actions
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.columns import Columns, attribute, own
from vpnrouter.tui.format import Line, Piece, folded, pairs, state, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.problems import LOSSES, why_down
from vpnrouter.tui.router_state import other_end
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.sparkline import sparkline
from vpnrouter.tui.widgets.table import Table

LABELS: Final = 13
"""Columns for labels: two ends stand beside each other in 80."""

SPARK: Final = 16


class Bridge(View):
    """One bridge of one router; the other end beside it where its router is among those looked at."""

    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = actions.KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str, bridge: str) -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._bridge = bridge

    def place(self) -> str:
        """Name the bridge and its message VPN."""
        return f"bridge {self._msg_vpn}/{self._bridge}"

    def body(self) -> ComposeResult:
        """Give two halves: this end of the bridge, and the other end beside it."""
        with Horizontal():
            here = Lines(id="here", focusable=True)
            here.add_class("half")
            yield here
            there = Lines(id="there", focusable=True)
            there.add_class("half")
            yield there

    async def fetch(self, router: Router) -> None:
        """Request from a router its bridges."""
        await router.fetch_bridges()

    def draw(self) -> None:
        """Show this end and, where the other end's router is looked at too, that end."""
        row = self._row()
        here, there = self.lines("here"), self.lines("there")
        if row is None:
            here.show([text(("this bridge is not there", "warn"))])
            there.display = False
            return
        bridges = {
            router.store.name: router.store.bridges
            for router in self.ui.routers
            if router.store.name
        }
        other = other_end(row, self.router.store.name, bridges)
        there.display = other is not None
        half = self.size.width // 2 if other is not None else self.size.width
        here.show(end_lines(self.router, row, half - 1))
        if other is not None:
            names = {router.store.name: router for router in self.ui.routers}
            there.show(end_lines(names[row["remoteRouterName"]], other, half - 1))

    def note(self) -> Line:
        """Say which option would show the other end, where it is not shown."""
        row = self._row()
        if row is None or self.lines("there").display or not row["remoteRouterName"]:
            return ()
        hint = (
            f"the other end is on router {row['remoteRouterName']}: give its API by --url as well"
        )
        return text((hint, "dim"))

    def action_do(self, name: str) -> None:
        """Do the action `name` to the bridge."""
        actions.begin(name, self, self.router, KIND, self._msg_vpn, self._bridge)

    def _row(self) -> Row | None:
        names = (self._msg_vpn, self._bridge)
        rows = self.router.store.bridges
        return next((r for r in rows if (r["msgVpnName"], r["bridgeName"]) == names), None)


def end_lines(router: Router, row: Row, width: int) -> Sequence[Line]:
    """One end of a bridge in lines of at most `width` columns."""
    lines = [
        text((f"{router.label}/{row['msgVpnName']}", "accent")),
        text((row["bridgeName"], "title"), "  ", state(row["health"])),
    ]
    lines += pairs(
        [
            ("inbound", (row["inboundState"], _half(row["inboundFailureReason"]))),
            ("outbound", (row["outboundState"], _half(row["outboundFailureReason"]))),
            ("in its state", fmt.age(row["stateAgeMs"])),
        ],
        LABELS,
    )
    for why in (row["inboundFailureReason"], row["outboundFailureReason"]):
        lines += [text((part, "bad")) for part in folded(why, width) if part]
    failed = f"{row['failureCount']:,}, the last {fmt.age(row['lastFailureAgeMs'])} ago"
    peer = row["remoteMsgVpnName"] or NONE
    secured = "TLS" if row["encrypted"] else "plain"
    packed = ", compressed" if row["compressed"] else ""
    lines += pairs(
        [
            ("failures", failed if row["failureCount"] else "none"),
            ("remote", f"{row['remoteRouterName'] or '?'}/{peer}"),
            ("address", row["remoteAddress"] or NONE),
            ("connection", f"{secured}{packed}, dialled {row['establisher'] or NONE}"),
            ("bound queue", _bound(row)),
            ("", ""),
        ],
        LABELS,
    )
    lines += _direction(router, row, "Rx", "received")
    lines += _direction(router, row, "Tx", "sent")
    lines += _remotes(row, width)
    return lines


def _half(why: str) -> str:
    return "bad" if why else ""


def _bound(row: Row) -> Piece:
    queues = [each["queueBinding"] for each in row.get("remotes", ()) if each["queueBinding"]]
    if row["boundToQueue"] and row["remoteQueueStandby"]:
        return (f"{', '.join(queues)}, stands by", "note")
    if row["boundToQueue"]:
        return (", ".join(queues) or "yes", "good")
    return (f"{', '.join(queues)} NOT BOUND", "bad") if queues else (NONE, "")


def _direction(router: Router, row: Row, way: str, title: str) -> list[Line]:
    low = way.lower()
    meters, key = router.store.meters, (row["msgVpnName"], row["bridgeName"], way)
    waiting = row[f"{low}InFlightMsgCount"]
    spark = sparkline(meters.history(("bridge", *key)), SPARK)
    lines = [
        text(
            (f"{title:<{LABELS + 2}}", "head"),
            f"{fmt.rate(row[f'{low}MsgRate'])}/s ",
            (spark, "good"),
        )
    ]
    age = fmt.age(row[f"last{way}AgeMs"])
    last = f", {age} ago" if age != NONE else ""
    rows: list[tuple[str, str | Piece]] = [
        ("messages", f"{row[f'data{way}MsgCount']:,}{last}"),
        ("in flight", (f"{waiting:,}", "warn" if waiting else "")),
    ]
    if way == "Tx" and row["backlogOldestMsgAgeMs"] >= 0:
        oldest = f"{row['backlogMsgCount']:,}, the oldest {fmt.age(row['backlogOldestMsgAgeMs'])}"
        rows.append(("waiting", (oldest, "warn")))
    if way == "Rx" and row["parkedMsgCount"]:
        rows.append(("set aside", (f"{row['parkedMsgCount']:,}", "warn")))
    if row[f"{low}Imbalance"]:
        rows.append(("MISSING", (f"{row[f'{low}Imbalance']:,}", "bad")))
    reasons = [
        text((f"  {reason} ", "dim"), (f"{count:,}", "warn" if reason in LOSSES else "dim"))
        for reason, count in sorted(row[f"discarded{way}"].items())
    ]
    return [*lines, *pairs(rows, LABELS), *reasons]


def _remotes(row: Row, width: int) -> list[Line]:
    lines: list[Line] = []
    for remote in row.get("remotes", ()):
        style = "good" if remote["up"] else "bad" if remote["enabled"] else "note"
        word = "up" if remote["up"] else "not connected" if remote["enabled"] else "disabled"
        where = f"{remote['remoteMsgVpnName']} at {remote['remoteMsgVpnLocation']}"
        lines.append(text((f"{remote['connectOrder']} {where} ", ""), (word, style)))
        for why in (remote["lastConnectionFailureReason"], remote["lastQueueBindFailureReason"]):
            lines += [text((f"  {part}", "warn")) for part in folded(why, width - 2) if part]
    return [(), text(("remotes, in the order of trying", "head")), *lines] if lines else []


RANKS: Final = {"down": 0, "stalled": 1, "unbound": 1, "incomplete": 2, "paused": 2, "up": 3}
"""The order of healths; disabled bridges come last."""

WANTING: Final = frozenset({"down", "stalled", "unbound", "incomplete"})
"""Healths that have a reason."""


class Bridges(View):
    """The bridges of all routers, or of one message VPN; those that are down on top."""

    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "open the bridge: both ends, remotes, counts"),
        Key("d", "down_only", "down only", "only those that are not up, or all"),
        *actions.KEYS,
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._down_only = False

    def place(self) -> str:
        """Name the screen `bridges`."""
        return "bridges"

    def body(self) -> ComposeResult:
        """Give the table of bridges."""
        yield Table(COLUMNS.titles, empty="no bridges", id="body")

    async def fetch(self, router: Router) -> None:
        """Request from a router its bridges."""
        await router.fetch_bridges()

    def draw(self) -> None:
        """Show the chosen bridges, those that are down first."""
        rows = [
            (place, row)
            for place, router in enumerate(self.ui.routers)
            if self._router in {None, router}
            for row in router.store.bridges
            if self._msg_vpn in {"", row["msgVpnName"]}
            if not self._down_only or row["health"] != "up"
        ]
        rows.sort(key=lambda each: RANKS.get(each[1]["health"], len(RANKS)))
        self.query_one("#body", Table).fill(
            [COLUMNS.entry(_key(place, row), self.ui.routers[place], row) for place, row in rows]
        )

    def note(self) -> Line:
        """Say why the bridge under the cursor is down, or which bridges are shown."""
        row = self._chosen()
        if row is not None and row["health"] in WANTING:
            since = f" {fmt.age(row['stateAgeMs'])}" if row["health"] in {"down", "stalled"} else ""
            word, style = state(row["health"])
            return text((f"{row['bridgeName']} {word}{since}: ", style), why_down(row))
        which = f"of message VPN {self._msg_vpn}" if self._msg_vpn else "of all message VPNs"
        only = "those that are not up" if self._down_only else "all"
        return text((f"bridges {which}: {only}; wait: messages known to wait", "dim"))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Open the bridge."""
        place, vpn, name = event.key.split("\0")
        self.ui.router = self.ui.routers[int(place)]
        self.show_open(Bridge(self.ui.router, vpn, name))

    def _chosen(self) -> Row | None:
        key = self.query_one("#body", Table).key
        if not key:
            return None
        place, *names = key.split("\0")
        rows = self.ui.routers[int(place)].store.bridges
        return next((r for r in rows if [r["msgVpnName"], r["bridgeName"]] == names), None)

    def action_down_only(self) -> None:
        """Leave out those that are up, or show all."""
        self._down_only = not self._down_only
        self.redraw()

    def action_do(self, name: str) -> None:
        """Do the action `name` to the bridge under the cursor."""
        key = self.query_one("#body", Table).key
        if key:
            place, vpn, bridge = key.split("\0")
            router = self.ui.routers[int(place)]
            actions.begin(name, self, router, KIND, vpn, bridge)


def _key(place: int, row: Row) -> str:
    return f"{place}\0{row['msgVpnName']}\0{row['bridgeName']}"


def _last_failure(_: Router, row: Row) -> Piece:
    """Why the bridge is not up, or how long ago it last failed."""
    if row["health"] in WANTING and (why := why_down(row)):
        return (why, state(row["health"])[1])
    age = row["lastFailureAgeMs"]
    ago = NONE if age < 0 else f"{fmt.age(age)} ago"
    return (ago, state(row["health"])[1] if row["health"] in WANTING else "dim")


def direction(row: Row) -> str:
    """An arrow: messages come (`◄`), go (`►`), or both."""
    comes = row["inboundState"] != "not-applicable"
    goes = row["outboundState"] != "not-applicable"
    return "◄►" if comes and goes else "◄" if comes else "►"


def far_end(row: Row) -> str:
    """Router and message VPN at the other end, or those of the first remote."""
    if row["remoteMsgVpnName"]:
        router = row["remoteRouterName"] or row["remoteAddress"]
        return f"{router}/{row['remoteMsgVpnName']}"
    remotes = [
        f"{each['remoteMsgVpnName']}@{each['remoteMsgVpnLocation']}"
        for each in row.get("remotes", ())
    ]
    return remotes[0] if remotes else "?"


COLUMNS: Final = Columns(
    [
        attribute(BRIDGE["bridgeName"], 14, share=1, style="title"),
        attribute(BRIDGE["msgVpnName"], 8),
        attribute(BRIDGE["health"], 8),
        own(
            "From/to",
            15,
            lambda _, row: (f"{direction(row)} {far_end(row)}", ""),
            share=1,
            middle=True,
        ),
        attribute(BRIDGE["rxMsgRate"], 5),
        attribute(BRIDGE["txMsgRate"], 5),
        attribute(BRIDGE["backlogMsgCount"], 5),
        own("Last failure", 11, _last_failure, share=2),
    ],
)
