from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.advice.context import (
    Scene,
    at,
    bridge_named,
    bridge_of,
    dialect_of,
    listed,
)
from vpnrouter.report.schema import Finding
from vpnrouter.topics.grammar import MQTT, SMF

Make = Callable[..., dict[str, Any]]
MakeScene = Callable[..., Scene]
MakeFinding = Callable[..., Finding]


def test_ways(scene: MakeScene, edge: Make) -> None:
    """Shortest, in the direction of messages, over the busiest of bridges side by side."""
    edges = [
        edge("a/x", "b/x"),
        edge("b/x", "c/x", bridge="idle", messages=1),
        edge("b/x", "c/x", bridge="busy", messages=9),
        edge("a/x", "d/x"),
    ]
    here = scene(edges=edges)
    way = here.way(("a", "x"), ("c", "x"))
    assert way is not None
    assert [one["bridge"] for one in way] == ["fares", "busy"]
    assert here.way(("c", "x"), ("a", "x")) is None
    assert here.way(("a", "x"), ("a", "x")) == []
    assert here.busiest(("b", "x"), ("a", "x")) is None


def test_filters_that_bridges_share(scene: MakeScene, edge: Make) -> None:
    """What one bridge of a loop asks for and all others do as well."""
    edges = [edge("a/x", "b/x"), edge("b/x", "a/x")]
    held = [
        {"router": "a", "vpn": "x", "client": "#bridge/b/x/fares", "filter": one}
        for one in ("orders/>", "news/*", "!orders/test")
    ]
    held.append({"router": "b", "vpn": "x", "client": "#bridge/a/x/fares", "filter": "orders/eu/>"})
    here = scene(edges=edges, subscriptions=held)
    assert here.shared(edges) == ["orders/>"]
    assert here.shared(edges[::-1]) == ["orders/eu/>"]
    assert scene(edges=edges).shared(edges) == []


def test_who_waits_for_a_topic(scene: MakeScene, finding: MakeFinding) -> None:
    """Clients of other message VPNs whose filter matches, in either dialect; bridges do not count."""
    waiting = [
        finding("never_matched", "b/x", client="one", topic="fares/+"),
        finding("never_matched", "b/x", client="two", topic="fares/>"),
        finding("never_matched", "b/x", client="#bridge/c/x/y", topic="fares/>", bridge="y"),
        finding("never_matched", "a/x", client="three", topic="fares/>"),
        finding("never_matched", "b/x", client="four", topic="#share//"),
    ]
    here = scene(*waiting)
    assert [one.client for one in here.wanted.elsewhere(("a", "x"), "fares/eu")] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "dialect"),
    [("a/+", MQTT), ("a/#", MQTT), ("$share/g/a", MQTT), ("a/*", SMF), ("#share/g/a", SMF)],
)
def test_dialects(text: str, dialect: int) -> None:
    """Known by their wildcards."""
    assert dialect_of(text) == dialect


def test_words(finding: MakeFinding, edge: Make) -> None:
    """Lists, places and bridges in a sentence."""
    assert listed(["a", "b", "a"]) == "a, b"
    assert listed("abcde") == "a, b, c and 2 more"
    assert at(("edge", None)) == "edge/?"
    assert bridge_named(edge("a/x", "b/y")) == "bridge fares (a/x to b/y)"
    assert bridge_of(finding("x", "a/x > b/y", bridge="q")) == "bridge q (a/x to b/y)"
    assert bridge_of(finding("x", "b/y", bridge="q")) == "bridge q (b/y)"
