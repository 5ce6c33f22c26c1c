"""`vpnrouter show topology`: message VPNs and bridges of one or several routers, as a graph or a tree of text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO, final

import typer
from rich.text import Text
from rich.tree import Tree

from vpnrouter.bridges.look import LOGGED_IN
from vpnrouter.cli._format import RenderBuffer, Row, folded, line, printer_for
from vpnrouter.cli._output import print_json
from vpnrouter.cli._tables import HEALTH_COLOURS
from vpnrouter.cli._watch import watch as watched
from vpnrouter.errors import OperationError
from vpnrouter.management.answers.conditions import matches
from vpnrouter.management.client import ManagementClient

GraphRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """One message VPN of one router; `router` is an address where the router's name is not known."""

    router: str
    msg_vpn: str

    def __str__(self) -> str:
        return f"{self.router}/{self.msg_vpn}"


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of one bridge: messages go from `source` to `target`, which has the bridge.

    `backlog` is how many messages wait in the remote queue, -1 where that queue's router is not among those requested;
    `parked` how many wait in the bridge's parking lot.
    """

    bridge: str
    source: Place
    target: Place
    health: str
    state: str
    reason: str
    queue: str
    backlog: int
    parked: int
    rate: int
    """Messages a second."""
    msg_count: int
    both_ways: bool
    """Whether the remote's bridge shares the connection."""

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "bridgeName": self.bridge,
            "from": {"routerName": self.source.router, "msgVpnName": self.source.msg_vpn},
            "to": {"routerName": self.target.router, "msgVpnName": self.target.msg_vpn},
            "health": self.health,
            "inboundState": self.state,
            "inboundFailureReason": self.reason,
            "queueName": self.queue,
            "backlogMsgCount": self.backlog,
            "parkedMsgCount": self.parked,
            "rxMsgRate": self.rate,
            "dataRxMsgCount": self.msg_count,
            "bothWays": self.both_ways,
        }


@final
@dataclass(slots=True)
class RouterView:
    """What one router reports: its name (or its URL, if it did not answer), message VPNs, bridges and queues."""

    name: str
    url: str
    msg_vpns: Sequence[GraphRow] = ()
    bridges: Sequence[GraphRow] = ()
    queues: Sequence[GraphRow] = ()
    failure: str = ""
    """Why it did not answer, "" if it did."""


def edges_of(routers: Sequence[RouterView]) -> list[Edge]:
    """All directions in which messages cross bridges of these routers, in order of target and name."""
    depths = {
        (router.name, row["msgVpnName"], row["queueName"]): int(row["msgCount"])
        for router in routers
        for row in router.queues
    }
    found = [
        _edge(router, row, depths)
        for router in routers
        for row in router.bridges
        if row["inboundState"] != "not-applicable"
    ]
    return sorted(found, key=lambda edge: (str(edge.target), edge.bridge))


def _edge(router: RouterView, row: GraphRow, depths: Mapping[tuple[str, str, str], int]) -> Edge:
    remote = _remote(row)
    source = Place(
        row["remoteRouterName"] or f"at {remote.get('remoteMsgVpnLocation', '?')}",
        row["remoteMsgVpnName"] or remote.get("remoteMsgVpnName", "?"),
    )
    queue = remote.get("queueBinding", "")
    lot = (router.name, row["msgVpnName"], row["localQueueName"])
    return Edge(
        bridge=row["bridgeName"],
        source=source,
        target=Place(router.name, row["msgVpnName"]),
        health=row["health"],
        state=row["inboundState"],
        reason=row["inboundFailureReason"],
        queue=queue,
        backlog=depths.get((source.router, source.msg_vpn, queue), -1) if queue else 0,
        parked=depths.get(lot, 0) if row["localQueueName"] else 0,
        rate=row["rxMsgRate"],
        msg_count=row["dataRxMsgCount"],
        both_ways=row["outboundState"] == "ready",
    )


def _remote(row: GraphRow) -> GraphRow:
    """The remote that the bridge is logged in to, or the first that it would try."""
    remotes: Sequence[GraphRow] = row["remotes"]
    for remote in remotes:
        if remote["up"]:
            return remote
    enabled = [remote for remote in remotes if remote["enabled"]] or remotes
    return min(enabled, key=lambda remote: int(remote["connectOrder"]), default={})


_IN: Final = "◄──"
_OUT: Final = "──►"
_BROKEN_IN: Final = "◄╌╌"
_BROKEN_OUT: Final = "╌╌►"


_GUIDES: Final = 8
"""Columns that the lines of the tree take before a bridge."""


def draw(out: TextIO | RenderBuffer, routers: Sequence[RouterView]) -> None:
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
                    branch.add(_line(edge, _IN, _BROKEN_IN, edge.source, printer.room))
                if edge.source == here:
                    branch.add(_line(edge, _OUT, _BROKEN_OUT, edge.target, printer.room))
        printer.print(tree)


def _msg_vpn(row: Row) -> Text:
    clients, subscriptions = row["msgVpnConnections"], row["subscriptionCount"]
    text = f"{row['msgVpnName']}  {_counted(clients, 'client')}, {_counted(subscriptions, 'subscription')}"
    up = row["state"] == "up"
    return line(text if up else f"{text}, {row['state']}", "" if up else "dim")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _line(edge: Edge, whole: str, broken: str, other: Place, room: int | None) -> Text:
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
    text = f"{whole if up else broken} {other}  {', '.join(parts)}"
    shown = folded(text, None if room is None else room - _GUIDES, " " * (len(whole) + 1))
    return Text(shown, "" if edge.health == "up" else HEALTH_COLOURS.get(edge.health, ""))


_FAILED: Final = 1


def show_topology(
    clients: list[ManagementClient],
    name: str,
    msg_vpn: str,
    watch: float | None,
    *,
    as_json: bool,
) -> None:
    """Draw the topology that these routers report, bridges of `name` and message VPN `msg_vpn` only.

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
        print_json({"routers": shown, "edges": edges}, 2)
    else:
        draw(sys.stdout, routers)
    if any(router.failure for router in routers):
        raise typer.Exit(_FAILED)


def _views(clients: list[ManagementClient], name: str, msg_vpn: str) -> list[RouterView]:
    """The views of all routers. One that does not answer has a failure, if there are others."""
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
