"""Bridges as clients."""

from vpnrouter.report.subscriptions.held import (
    Edge,
    bridge_of,
    by_client,
    edge_of,
)


def test_names() -> None:
    """A client's name leads to the bridge, and back."""
    row = {
        "from_router": "core",
        "from_vpn": "yellow",
        "to_router": "edge/1",
        "to_vpn": "blue",
        "bridge": "fares",
    }
    edge = edge_of(row)
    assert edge == Edge("core", "yellow", "edge/1", "blue", "fares")
    assert edge.client == "#bridge/edge/1/blue/fares"
    assert by_client([row]) == {("core", "yellow", edge.client): edge}
    assert bridge_of(edge.client) == "fares"
    assert bridge_of("someone/else") is None
