"""Carries out what an operator does to a bridge, a connector or a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter.settings.kinds import CONNECTOR, Kind
from vpnrouter.tui import api
from vpnrouter.tui.api import Router
from vpnrouter.tui.keys import Key

if TYPE_CHECKING:
    from vpnrouter.tui.screens.view import View


class ObjectAction(NamedTuple):
    """What is done to a bridge or a connector. `name` is what the key line calls it, where it is `shown` there;
    `question` is filled with the object and its message VPN.
    """

    key: str
    name: str
    help: str
    question: str
    done: str
    shown: bool = True

    def begin(self, view: View, router: Router, kind: Kind, msg_vpn: str, name: str) -> None:
        """Ask for confirmation, then do the action to the object of this kind."""
        if name.startswith("#bridge/") and self.name != "reconnect":
            view.show_notice("this is a bridge of another router: it is configured there", "warn")
            return
        question = self.question.format(f"{kind.one} {name} in message VPN {msg_vpn}")

        async def do() -> str:
            await router.api.put(_path(self, kind, msg_vpn, name), {})
            return f"{kind.one} {name} {self.done}"

        view.act(router, question, do)


def _path(action: ObjectAction, kind: Kind, msg_vpn: str, name: str) -> str:
    if kind is CONNECTOR:
        return f"{api.OURS}{api.connector(msg_vpn, name)}/{action.name}"
    if action.name == "reconnect":
        return f"{api.ACTION}{api.bridge(msg_vpn, name)}/disconnect"
    return f"{api.OURS}{api.bridge(msg_vpn, name)}/{action.name}"


ACTIONS: Final = (
    ObjectAction("e", "enable", "enable it", "Enable {}?", "is enabled"),
    ObjectAction(
        "x",
        "disable",
        "disable it; messages stop",
        "Disable {}? No message crosses until it is enabled again.",
        "is disabled",
    ),
    ObjectAction(
        "p",
        "pause",
        "pause it: no message crosses, and it stays connected",
        "Pause {}? No message crosses until it is resumed; guaranteed ones wait.",
        "is paused",
        shown=False,
    ),
    ObjectAction(
        "u", "resume", "resume it: what has waited crosses", "Resume {}?", "goes on", shown=False
    ),
    ObjectAction(
        "R",
        "reconnect",
        "drop its connection; it connects again",
        "Reconnect {}? Its connection is dropped and made anew.",
        "connects again",
    ),
)

KEYS: Final = tuple(
    Key(one.key, f"do('{one.name}')", one.name if one.shown else "", one.help, changes=True)
    for one in ACTIONS
)
"""Their keys, on the screens of bridges and connectors."""


def begin(name: str, view: View, router: Router, kind: Kind, msg_vpn: str, one: str) -> None:
    """Begin the action `name` to the object `one`."""
    next(each for each in ACTIONS if each.name == name).begin(view, router, kind, msg_vpn, one)


def disconnect(view: View, router: Router, msg_vpn: str, client: str) -> None:
    """Disconnect a client, after asking."""

    async def do() -> str:
        await router.api.put(f"{api.ACTION}{api.client(msg_vpn, client)}/disconnect", {})
        return f"client {client} is disconnected"

    question = f"Disconnect client {client} of message VPN {msg_vpn}? It may connect again."
    view.act(router, question, do)
