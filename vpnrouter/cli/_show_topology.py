"""`vpnrouter show topology`: message VPNs and bridges of one or several routers, drawn."""

import sys
from typing import Final

import typer

from vpnrouter.cli._show_watch import watch as watched
from vpnrouter.cli._told import say_json
from vpnrouter.cli._topology_graph import RouterView, edges_of
from vpnrouter.cli._topology_tree import draw
from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient
from vpnrouter.management.rows import matches

_FAILED: Final = 1


def show_topology(
    clients: list[ManagementClient],
    name: str,
    msg_vpn: str,
    watch: float | None,
    *,
    as_json: bool,
) -> None:
    """Draw the topology that these routers tell of, bridges of `name` and message VPN `msg_vpn` only.

    Raises typer.Exit where one of several does not answer, OperationError where the only one does not.
    """
    if watch is not None:
        watched(watch, lambda out, _: draw(out, _views(clients, name, msg_vpn)))
        return
    routers = _views(clients, name, msg_vpn)
    if as_json:
        shown = [
            {"routerName": router.name, "url": router.url, "msgVpns": router.msg_vpns}
            for router in routers
        ]
        edges = [edge.as_json() for edge in edges_of(routers)]
        say_json({"routers": shown, "edges": edges}, 2)
    else:
        draw(sys.stdout, routers)
    if any(router.failure for router in routers):
        raise typer.Exit(_FAILED)


def _views(clients: list[ManagementClient], name: str, msg_vpn: str) -> list[RouterView]:
    """What the routers tell. One that does not answer is shown so, where there are others."""
    views = []
    for client in clients:
        view = RouterView(client.url, client.url)
        views.append(view)
        try:
            view.name = client.router()["routerName"]
            view.msg_vpns = [row for row in client.msg_vpns() if msg_vpn in {"", row["msgVpnName"]}]
            view.bridges = [
                row
                for row in client.bridges()
                if msg_vpn in {"", row["msgVpnName"]} and matches(name or "*", row["bridgeName"])
            ]
            view.queues = client.queues()
        except OperationError as error:
            if len(clients) == 1:
                raise
            view.failure = str(error)
    return views
