"""The application: which screens there are."""

from typing import ClassVar, Final

from vpnrouter.settings.kinds import KINDS, loaded, plain_kinds
from vpnrouter.tui.screens.clients import Clients
from vpnrouter.tui.screens.explain import Explain
from vpnrouter.tui.screens.live import Events, Traces
from vpnrouter.tui.screens.objects import Objects
from vpnrouter.tui.screens.overview import Overview
from vpnrouter.tui.screens.subscriptions import Subscriptions
from vpnrouter.tui.screens.terminal import Terminal
from vpnrouter.tui.screens.topology import Topology
from vpnrouter.tui.screens.view import View

SCREENS: Final[dict[str, type[View]]] = {
    **{kind.word: loaded(kind.screen) for kind in KINDS if kind.screen},
    "clients": Clients,
    "topology": Topology,
    "events": Events,
    "traces": Traces,
    "subscriptions": Subscriptions,
    "explain": Explain,
    **({"objects": Objects} if plain_kinds() else {}),
}
"""The main screens by the names that keys open them by."""


class TerminalInterface(Terminal):
    """Shows routers, beginning with the overview."""

    FIRST: ClassVar = Overview
    MAIN: ClassVar = SCREENS
