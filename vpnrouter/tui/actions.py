"""Carries out what an operator does to a bridge or a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from vpnrouter.tui import api
from vpnrouter.tui.api import Router

if TYPE_CHECKING:
    from vpnrouter.tui.screens.view import View


class BridgeAction(NamedTuple):
    """`name` is what the key line calls it, `question` is filled with the bridge and its message VPN."""

    key: str
    name: str
    help: str
    question: str
    done: str

    @staticmethod
    def of(name: str) -> BridgeAction:
        """The action of this name."""
        return next(one for one in ACTIONS if one.name == name)

    def begin(self, view: View, router: Router, msg_vpn: str, bridge: str) -> None:
        """Ask for confirmation, then do the action to the bridge."""
        if bridge.startswith("#bridge/") and self.name != "reconnect":
            view.show_notice("this is a bridge of another router: it is configured there", "warn")
            return
        question = self.question.format(f"bridge {bridge} in message VPN {msg_vpn}")

        async def do() -> str:
            await _do(self, router, msg_vpn, bridge)
            return f"bridge {bridge} {self.done}"

        view.act(router, question, do)


async def _do(action: BridgeAction, router: Router, msg_vpn: str, bridge: str) -> None:
    if action.name == "reconnect":
        path = f"{api.ACTION}{api.bridge(msg_vpn, bridge)}/disconnect"
        await router.api.put(path, {})
        return
    path = f"{api.CONFIG}{api.bridge(msg_vpn, bridge)}"
    await router.api.patch(path, {"enabled": action.name == "enable"})


ACTIONS: Final = (
    BridgeAction("e", "enable", "enable the bridge", "Enable {}?", "is enabled"),
    BridgeAction(
        "x",
        "disable",
        "disable the bridge; messages stop",
        "Disable {}? No message crosses until it is enabled again.",
        "is disabled",
    ),
    BridgeAction(
        "R",
        "reconnect",
        "drop its connection; it connects again",
        "Reconnect {}? Its connection is dropped and made anew.",
        "connects again",
    ),
)


def reconnect(view: View, router: Router, msg_vpn: str, connector: str) -> None:
    """Reconnect a connector, after asking."""

    async def do() -> str:
        await router.api.put(f"{api.OURS}{api.connector(msg_vpn, connector)}/reconnect", {})
        return f"connector {connector} connects again"

    which = f"connector {connector} in message VPN {msg_vpn}"
    view.act(router, f"Reconnect {which}? Its connection is dropped and made anew.", do)


def disconnect(view: View, router: Router, msg_vpn: str, client: str) -> None:
    """Disconnect a client, after asking."""

    async def do() -> str:
        await router.api.put(f"{api.ACTION}{api.client(msg_vpn, client)}/disconnect", {})
        return f"client {client} is disconnected"

    question = f"Disconnect client {client} of message VPN {msg_vpn}? It may connect again."
    view.act(router, question, do)
