"""What crosses bridges for nobody."""

from typing import Any

import pytest

from vpnrouter.report.subscriptions import over_broad as module
from vpnrouter.report.subscriptions.over_broad import crossings, wasted


def lost(mesh: Any) -> dict[tuple[str, str, str], bool]:
    """Wasted crossings as (from, to, topic), and whether they are inherited."""
    uses = mesh.digests()["uses"]
    found = wasted(crossings(uses), uses)
    return {
        (
            f"{row['from_router']}/{row['from_vpn']}",
            f"{row['to_router']}/{row['to_vpn']}",
            row["topic"],
        ): row["inherited"]
        for row in (found.collect() if found is not None else [])
    }


def test_what_is_of_use(mesh: Any) -> None:
    """A topic is of use where it is received, sent on to where it is, or sent on into the unknown."""
    for topic in ("delivered", "queued", "onward", "nobody", "passed"):
        mesh.publish("a/v", topic)
        mesh.cross("a/v", "b/v", topic)
    mesh.deliver("b/v", "one", "delivered")
    mesh.use("b/v", "enqueue", "queued", endpoint="q")
    for topic in ("onward", "passed"):
        mesh.cross("b/v", "c/v", topic)
        mesh.cross("c/v", "d/v", topic)
    mesh.deliver("d/v", "one", "onward")
    # Delivered elsewhere under the same name, in a message VPN that it does not lead to.
    mesh.deliver("e/v", "one", "nobody")
    # Messages that go round, one topic with a receiver on the round.
    for topic in ("round", "used"):
        mesh.publish("x/v", topic)
        for start, goal in (("x/v", "y/v"), ("y/v", "z/v"), ("z/v", "y/v"), ("z/v", "x/v")):
            mesh.cross(start, goal, topic)
    mesh.deliver("x/v", "one", "used")
    # Routers that do not trace, topics that are renamed on the way.
    mesh.cross("a/v", "b/v", "dark")
    mesh.cross("b/v", "dark/v", "dark", seen="sender")
    mesh.cross("a/v", "b/v", "renamed")
    mesh.cross("b/v", "c/v", "renamed", seen="sender")
    mesh.cross("b/v", "c/v", "otherwise", seen="receiver")
    mesh.deliver("c/v", "one", "otherwise")
    # Nothing is known of where this came from, only that nobody has it.
    mesh.cross("dark/v", "b/v", "light", seen="receiver")
    assert lost(mesh) == {
        ("a/v", "b/v", "nobody"): False,
        ("a/v", "b/v", "passed"): False,
        ("b/v", "c/v", "passed"): True,
        ("c/v", "d/v", "passed"): True,
        ("x/v", "y/v", "round"): False,
        ("y/v", "z/v", "round"): True,
        ("z/v", "y/v", "round"): True,
        ("z/v", "x/v", "round"): True,
        ("dark/v", "b/v", "light"): False,
    }


def test_beyond_the_bound_nothing_is_claimed(mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A way longer than is followed counts as of use."""
    monkeypatch.setattr(module, "HOPS", 1)
    for at in range(5):
        mesh.cross(f"r{at}/v", f"r{at + 1}/v", "far")
    mesh.deliver("r5/v", "one", "far")
    mesh.cross("r0/v", "r1/v", "nobody")
    assert set(lost(mesh)) == {("r0/v", "r1/v", "nobody")}


def test_counts_of_both_ends(mesh: Any) -> None:
    """Rows of the two routers meet; each end keeps its own figures."""
    mesh.cross("a/v", "b/v", "t", 10, seen="sender")
    mesh.cross("a/v", "b/v", "t", 8, seen="receiver")
    (row,) = crossings(mesh.digests()["uses"]).collect()
    assert tuple(row) == ("a", "v", "b", "v", "b", "t", 10, 100, 8, 80)
