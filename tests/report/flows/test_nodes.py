"""vpnrouter.report.flows.tables: what entered and left each message VPN."""

from typing import Any

from vpnrouter.report.flows.tables import last_seen, nodes
from vpnrouter.report.schema import NODES


def total(router: str, vpn: str | None, event: str, **more: Any) -> dict[str, Any]:
    """A row of totals: two events of 10 bytes that stand for four, at 5."""
    figures = {"count": 2, "bytes": 10, "weight": 4.0, "first_ns": 5, "last_ns": 5}
    return {"router": router, "vpn": vpn, "event": event, **figures, **more}


def test_events_are_counted_by_vpn() -> None:
    """Each VPN of each router has its own counts, bytes, estimates and times."""
    totals = [
        total("edge", "blue", "ingress", first_ns=1),
        total("edge", "blue", "deliver"),
        total("edge", "blue", "bridge_send", bridge="fares"),
        total("edge", "blue", "bridge_send", bridge="more", count=3),
        total("edge", "blue", "discard", last_ns=9),
        total("edge", "green", "ingress", weight=None),
        total("edge", "green", "link_up"),
        total("core", "blue", "bridge_receive"),
        total("core", "blue", "enqueue"),
        total("core", "blue", "reject"),
        total("core", "blue", "expire", last_ns=23),
        total("core", None, "discard"),
    ]
    changes = [
        {"router": "core", "vpn": "blue", "first_ns": 3, "last_ns": 4},
        {"router": "edge", "vpn": "idle", "first_ns": 3, "last_ns": 7},
    ]
    found = nodes(totals, changes, [])
    assert [list(row) for row in found] == [NODES.names] * 4
    # fmt: off
    assert [tuple(row.values()) for row in found] == [
        ("core", "blue", True, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 3, 23),
        ("edge", "blue", True, 2, 10, 4, 2, 10, 4, 0, 5, 0, 2, 0, 1, 9),
        ("edge", "green", True, 2, 10, None, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5),
        ("edge", "idle", True, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 7),
    ]
    # fmt: on
    assert last_seen(found) == {"core": 23, "edge": 9}


def test_far_ends_become_nodes() -> None:
    """A VPN known only as the other end of a bridge is a node without counts, and only once."""
    edges = [("edge", "blue", "core", "yellow", "a"), ("edge", "blue", "core", "red", "b")]
    found = nodes([total("core", "yellow", "bridge_receive")], [], edges)
    assert [
        (r["router"], r["vpn"], r["traced"], r["bridged_in"], r["first_ns"]) for r in found
    ] == [
        ("core", "red", False, None, None),
        ("core", "yellow", True, 2, 5),
        ("edge", "blue", False, None, None),
    ]
    assert last_seen(found) == {"core": 5}


def test_an_estimate_needs_every_weight() -> None:
    """The sum of weights where all are known, null where one is not, 0 where no row counts."""
    known = [total("edge", "blue", "ingress", weight=2.5, bridge=name) for name in ("", "x")]
    (node,) = nodes(known, [], [])
    assert (node["ingress_estimated"], node["delivered_estimated"]) == (5, 0)
    for rows in ([*known, total("edge", "blue", "ingress", weight=None)],):
        for order in (rows, rows[::-1]):
            assert nodes(order, [], [])[0]["ingress_estimated"] is None
