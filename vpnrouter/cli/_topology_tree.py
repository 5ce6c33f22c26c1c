"""The topology as a tree of text: routers, their message VPNs, and the bridges in and out of each."""

from collections.abc import Sequence
from typing import Final, TextIO

from rich.text import Text
from rich.tree import Tree

from vpnrouter.bridges.status import LOGGED_IN
from vpnrouter.cli._bridge_tables import HEALTH_COLOURS
from vpnrouter.cli._printed import Collected, Row, line, printer_for
from vpnrouter.cli._topology_graph import Edge, Place, RouterView, edges_of

_IN: Final = "◄──"
_OUT: Final = "──►"
_BROKEN_IN: Final = "◄╌╌"
_BROKEN_OUT: Final = "╌╌►"


def draw(out: TextIO | Collected, routers: Sequence[RouterView]) -> None:
    """A tree for each router. Under a message VPN stand the bridges that bring it messages (◄──) and those
    of the other routers shown that take messages from it (──►).
    """
    printer = printer_for(out)
    edges = edges_of(routers)
    for router in routers:
        at = "" if router.name == router.url else f" at {router.url}"
        tree = Tree(line(f"router {router.name}{at}", "bold"), guide_style="dim")
        if router.failure:
            tree.add(line(router.failure, "bold red"))
        for row in router.msg_vpns:
            here = Place(router.name, row["msgVpnName"])
            branch = tree.add(_msg_vpn(row))
            for edge in edges:
                if edge.target == here:
                    branch.add(_line(edge, _IN, _BROKEN_IN, edge.source))
                if edge.source == here:
                    branch.add(_line(edge, _OUT, _BROKEN_OUT, edge.target))
        printer.print(tree)


def _msg_vpn(row: Row) -> Text:
    clients, subscriptions = row["msgVpnConnections"], row["subscriptionCount"]
    said = f"{row['msgVpnName']}  {_counted(clients, 'client')}, {_counted(subscriptions, 'subscription')}"
    up = row["state"] == "up"
    return line(said if up else f"{said}, {row['state']}", "" if up else "dim")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _line(edge: Edge, whole: str, broken: str, other: Place) -> Text:
    up = edge.health in LOGGED_IN
    parts = [f"bridge {edge.bridge}", edge.state]
    if edge.both_ways:
        parts.append("both ways")
    if edge.rate:
        parts.append(f"{edge.rate:,} messages/s")
    if edge.queue:
        depth = "" if edge.backlog < 0 else f": {edge.backlog:,} waiting"
        parts.append(f"queue {edge.queue}{depth}")
    if edge.parked:
        parts.append(f"{edge.parked:,} parked")
    if edge.reason:
        parts.append(edge.reason)
    said = f"{whole if up else broken} {other}  {', '.join(parts)}"
    return line(said, "" if edge.health == "up" else HEALTH_COLOURS.get(edge.health, ""))
