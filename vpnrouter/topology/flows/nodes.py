"""The message VPNs, and what entered and left each."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from vpnrouter.topology.flows.ends import Edge
from vpnrouter.topology.schema import NODES
from vpnrouter.topology.tables import Rows

_COUNTS: Final = {
    "ingress": "ingress",
    "deliver": "delivered",
    "bridge_receive": "bridged_in",
    "bridge_send": "bridged_out",
    "enqueue": "spooled",
    "discard": "discarded",
    "reject": "rejected",
}
"""Events that are counted, and the columns of the counts."""

_SIZED: Final = ("ingress", "deliver")
"""Events whose bytes and estimates are counted too."""

_Place = tuple[str, str]


def nodes(
    totals: Iterable[Mapping[str, Any]],
    changes: Iterable[Mapping[str, Any]],
    edges: Iterable[Edge],
) -> Rows:
    """NODES, ordered by router and VPN: every message VPN that the traces tell of.

    `totals` and `changes` are rows of `gather.totals` and `gather.link_changes`. A VPN that is only the other
    end of one of the `edges` has `traced` false and no counts. An estimate is 0 where nothing was
    counted, and null where one of the weights is not known.
    """
    found: dict[_Place, dict[str, Any]] = {}
    for row in totals:
        node = _seen(found, row)
        if node is None:
            continue
        event = row["event"]
        if event in _COUNTS:
            node[_COUNTS[event]] += row["count"]
        if event in _SIZED:
            _add_sizes(node, _COUNTS[event], row)
    for row in changes:
        _seen(found, row)
    for edge in edges:
        for router, vpn in (edge[:2], edge[2:4]):
            if (router, vpn) not in found:
                bare = dict.fromkeys(NODES.names)
                found[router, vpn] = {**bare, "router": router, "vpn": vpn, "traced": False}
    for node in found.values():
        for column in ("ingress_estimated", "delivered_estimated"):
            node[column] = None if node[column] is None else round(node[column])
    return [found[place] for place in sorted(found)]


def last_seen(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """NODES in; the last time that each router wrote anything down."""
    seen: dict[str, int] = {}
    for row in rows:
        if row["last_ns"] is not None:
            seen[row["router"]] = max(seen.get(row["router"], row["last_ns"]), row["last_ns"])
    return seen


def _seen(found: dict[_Place, dict[str, Any]], row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The node of a row, which widens the time it was seen in; None for a row without a VPN."""
    router, vpn = row["router"], row["vpn"]
    if router is None or vpn is None:
        return None
    first_ns, last_ns = row["first_ns"], row["last_ns"]
    node = found.get((router, vpn))
    if node is None:
        node = {**dict.fromkeys(NODES.names, 0), "router": router, "vpn": vpn, "traced": True}
        node.update(first_ns=first_ns, last_ns=last_ns)
        found[router, vpn] = node
    elif first_ns is not None:
        known = node["first_ns"] is not None
        node["first_ns"] = min(node["first_ns"], first_ns) if known else first_ns
        node["last_ns"] = max(node["last_ns"], last_ns) if known else last_ns
    return node


def _add_sizes(node: dict[str, Any], column: str, row: Mapping[str, Any]) -> None:
    node[f"{column}_bytes"] += row["bytes"]
    before, weight = node[f"{column}_estimated"], row["weight"]
    node[f"{column}_estimated"] = None if before is None or weight is None else before + weight
