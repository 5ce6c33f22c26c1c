"""The topology map: message VPNs under their routers, bridges as arrows in the colour of their state."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.answers.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.format import Line, state, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.problems import why_down
from vpnrouter.tui.screens.bridges import WANTING, Bridge, far_end
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets import topology_map as drawn
from vpnrouter.tui.widgets.lines import Lines


class Topology(View):
    """All routers on one map, which moves with the keys."""

    PLACE = "topology"
    ALL_ROUTERS = True
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("up,k", "bridge(-1)", "", "the bridge above"),
        Key("down,j", "bridge(1)", "", "the bridge below"),
        Key("left", "scroll(-1)", "", "message VPNs further left"),
        Key("right", "scroll(1)", "", "message VPNs further right"),
        Key("enter", "enter", "open", "open the bridge"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._chosen: tuple[str, str, str] | None = None
        self._first = 0

    def body(self) -> ComposeResult:
        """Give the heads with the message VPNs, and below them the lines of the bridges."""
        heads = Lines(id="heads")
        heads.styles.height = 3
        yield heads
        yield Lines(id="body")

    async def fetch(self, router: Router) -> None:
        """Request from a router its message VPNs and bridges."""
        await router.fetch_msg_vpns()
        await router.fetch_bridges()

    def draw(self) -> None:
        """Show the map, with the chosen bridge in sight."""
        found = self._topology()
        width = self.size.width
        self._first = max(0, min(self._first, len(found.places) - 1))
        self.lines("heads").show([*drawn.heads(found, width, self._first), ()])
        body = self.lines("body")
        lines: list[Line] = []
        chosen = self._place(found)
        for place, arrow in enumerate(found.arrows):
            line = drawn.arrow_line(found, arrow, width, self._first)
            if place == chosen:
                line = tuple(
                    (string, f"cursor+{style}" if style else "cursor") for string, style in line
                )
            lines.append(line)
        if not lines:
            lines = [text(("no bridges", "dim"))]
        if not body.top <= chosen < body.top + body.rows:
            body.top = max(0, chosen - body.rows // 2)
        body.show(lines)

    def note(self) -> Line:
        """Describe the chosen bridge: its state, its far end, and its rates or why it is down."""
        found = self._topology()
        if not found.arrows:
            return ()
        arrow = found.arrows[self._place(found)]
        row = arrow.row
        why = why_down(row) if row["health"] in WANTING else _rates(row)
        return text(state(row["health"]), f" {row['bridgeName']} — {far_end(row)}: {why}")

    def action_bridge(self, by: int) -> None:
        """Choose the bridge above or below."""
        found = self._topology()
        if found.arrows:
            place = max(0, min(self._place(found) + by, len(found.arrows) - 1))
            self._chosen = _key(found.arrows[place])
            self.redraw()

    def action_scroll(self, by: int) -> None:
        """Show message VPNs further left or right, where not all fit."""
        found = self._topology()
        each = drawn.column_width(found, self.size.width)
        fit = (self.size.width - drawn.LABEL) // each
        self._first = max(0, min(self._first + by, len(found.places) - fit))
        self.redraw()

    def action_enter(self) -> None:
        """Open the bridge."""
        found = self._topology()
        if found.arrows:
            arrow = found.arrows[self._place(found)]
            router = next(one for one in self.ui.routers if one.label == arrow.router)
            self.ui.router = router
            self.show_open(Bridge(router, arrow.row["msgVpnName"], arrow.row["bridgeName"]))

    def _topology(self) -> drawn.Topology:
        routers = self.ui.routers
        return drawn.topology_of(
            [(one.label, row) for one in routers for row in one.store.msg_vpns],
            [(one.label, row) for one in routers for row in one.store.bridges],
        )

    def _place(self, found: drawn.Topology) -> int:
        keys = [_key(arrow) for arrow in found.arrows]
        return keys.index(self._chosen) if self._chosen in keys else 0


def _key(arrow: drawn.Arrow) -> tuple[str, str, str]:
    return (arrow.router, arrow.row["msgVpnName"], arrow.row["bridgeName"])


def _rates(row: Row) -> str:
    return f"{fmt.rate(row['rxMsgRate'])}/s in, {fmt.rate(row['txMsgRate'])}/s out"
