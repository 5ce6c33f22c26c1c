"""Message VPNs and bridges of one or several routers as a graph: who gets messages from whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

Row = Mapping[str, Any]


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

    `backlog` is how many messages wait in the remote queue, -1 where that queue's router was not asked;
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
    """What one router told: its name (its URL where it has none to tell), message VPNs, bridges, queues."""

    name: str
    url: str
    msg_vpns: Sequence[Row] = ()
    bridges: Sequence[Row] = ()
    queues: Sequence[Row] = ()
    failure: str = ""
    """Why it told nothing."""


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


def _edge(router: RouterView, row: Row, depths: Mapping[tuple[str, str, str], int]) -> Edge:
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


def _remote(row: Row) -> Row:
    """The remote that the bridge is logged in to, or the first that it would try."""
    remotes: Sequence[Row] = row["remotes"]
    for remote in remotes:
        if remote["up"]:
            return remote
    enabled = [remote for remote in remotes if remote["enabled"]] or remotes
    return min(enabled, key=lambda remote: int(remote["connectOrder"]), default={})
