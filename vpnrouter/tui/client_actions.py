"""What an operator does to a client."""

from typing import TYPE_CHECKING

from vpnrouter.tui import paths
from vpnrouter.tui.router import Router

if TYPE_CHECKING:
    from vpnrouter.tui.screens.view import View


def disconnect(view: "View", router: Router, msg_vpn: str, client: str) -> None:
    """Disconnect a client, after asking."""

    async def do() -> str:
        await router.api.put(f"{paths.ACTION}{paths.client(msg_vpn, client)}/disconnect", {})
        return f"client {client} is disconnected"

    question = f"Disconnect client {client} of message VPN {msg_vpn}? It may connect again."
    view.act(router, question, do)
