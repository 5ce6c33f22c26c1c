"""vpnrouter.report.rules.context: which bridge a row means."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.context import Bridges, Edge, ends, named

MakeRow = Callable[..., dict[str, Any]]

FORTH: Edge = ("a", "x", "b", "y", "way")
BACK: Edge = ("b", "y", "a", "x", "back")
OTHER: Edge = ("c", "z", "b", "y", "way")


@pytest.fixture
def bridges(bridge_row: MakeRow) -> Bridges:
    """Two VPNs that attract from each other, and a third that the one attracts from under the same name."""
    return Bridges(
        [bridge_row(), bridge_row("b/y", "a/x", "back"), bridge_row("c/z", "b/y", "way")]
    )


@pytest.mark.parametrize(
    ("place", "client", "bridge", "edge"),
    [
        ("a/x", "#bridge/b/y/way", "", FORTH),
        ("a/x", "#bridge/b/y/with/slash/n", "", ("a", "x", "b", "y/with/slash", "n")),
        # The connection of a/x's own bridge carries what b/y attracts as well.
        ("a/x", "#bridge/back", "", FORTH),
        ("a/x", "", "way", FORTH),
        ("a/x", "someone", "", None),
        ("a/x", "#bridge/unknown", "", None),
        ("d/x", "#bridge/b/y/way", "", ("d", "x", "b", "y", "way")),
    ],
)
def test_who_sends_names_the_bridge_by_its_client(
    bridges: Bridges, place: str, client: str, bridge: str, edge: Edge | None
) -> None:
    """By its login, by the connection's own bridge, by name; else not at all."""
    router, vpn = place.split("/")
    assert bridges.sending(router, vpn, client, bridge) == edge


@pytest.mark.parametrize(
    ("client", "bridge", "path", "edge"),
    [
        ("", "way", "c/z", OTHER),
        ("#bridge/way", "", "q/q>a/x", FORTH),
        ("", "", "a/x", FORTH),
        ("", "way", None, None),
        ("", "gone", "a/x", None),
    ],
)
def test_who_receives_knows_it_by_name_and_way(
    bridges: Bridges, client: str, bridge: str, path: str | None, edge: Edge | None
) -> None:
    """Of several bridges of one name the last VPN visited tells which; what leaves several says none."""
    assert bridges.receiving("b", "y", client, bridge, path) == edge


def test_a_finding_is_at_the_end_that_attracts() -> None:
    """The other end is the peer."""
    assert ends(FORTH) == {
        "router": "b",
        "vpn": "y",
        "peer_router": "a",
        "peer_vpn": "x",
        "bridge": "way",
    }
    assert named(FORTH) == "bridge way from a/x to b/y"
