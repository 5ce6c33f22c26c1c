"""Subscriptions without a message: which of them say something."""

from typing import Any

from vpnrouter.report.subscriptions.unused import unseen_topics


def test_only_well_founded_ones(mesh: Any) -> None:
    """Held long enough, while there was traffic, and matching none of it."""
    mesh.publish("r/v", "a/b", 1000)
    mesh.deliver("r/v", "busy", "a/b", 1000)
    mesh.sub("r/v", "busy", "a/b")
    mesh.sub("r/v", "idle", "x/+", since=0)
    mesh.sub("r/v", "bare", "x", since=0)
    # There for a moment, or made just before the end.
    mesh.sub("r/v", "short", "x/y", since=100, until=105)
    mesh.sub("r/v", "late", "x/y", since=950)
    # Given up for another one: nothing is left to be done.
    mesh.sub("r/v", "changed", "x/old", since=0, until=500)
    mesh.sub("r/v", "changed", "a/b", since=0)
    # Others of the group get the messages, or the session is away.
    mesh.sub("r/v", "shares", "$share/g/a/+")
    # Hardly any traffic.
    mesh.publish("r/quiet", "a/b", 90)
    mesh.sub("r/quiet", "idle", "x")
    # No traffic at all.
    mesh.sub("r/dead", "idle", "x")
    # Exceptions are to match nothing that comes.
    mesh.sub("r/v", "#bridge/q/v/b", "!x/*", None)
    mesh.sub("r/v", "#bridge/q/v/b", "x/>", None)
    # A silent one that another one covers is no second finding.
    mesh.sub("r/v", "twice", "y/#")
    mesh.sub("r/v", "twice", "y/z")
    found = mesh.find("never_matched")
    assert {(one.vpn, one.client, one.bridge, one.topic) for one in found} == {
        ("v", "idle", None, "x/+"),
        ("v", "bare", None, "x"),
        ("v", "#bridge/q/v/b", "b", "x/>"),
        ("v", "twice", None, "y/#"),
    }
    one = next(one for one in found if one.client == "idle")
    assert (one.severity, one.router, one.messages, one.value) == ("warning", "r", 1000, 1000.0)
    assert "1,000 s" in one.detail


def test_traffic_and_sampling(mesh: Any) -> None:
    """Messages from before a subscription say nothing about it; nor does silence where not all was traced
    and topics seen once say that there were others.
    """
    mesh.publish("r/v", "a/b", 200)
    mesh.sub("r/v", "half", "x", since=550)
    mesh.sub("r/v", "most", "y", since=250)
    for weight, name in ((100_000.0, "sampled"), (None, "unknown")):
        for vpn in ("known", "varied"):
            mesh.publish(f"{name}/{vpn}", "a/b", 1000, weight=weight)
            mesh.sub(f"{name}/{vpn}", "idle", "x")
        for number in range(3):
            mesh.publish(f"{name}/varied", f"rare/{number}", 1, weight=weight)
    found = mesh.find("never_matched")
    assert {(one.router, one.vpn, one.client, one.messages) for one in found} == {
        ("r", "v", "most", 140),
        ("sampled", "known", "idle", 1000),
        ("unknown", "known", "idle", 1000),
    }


def test_unseen_topics() -> None:
    """Chao's bound: none without singles, more with more of them, fewer with pairs."""
    assert unseen_topics(0, 5) == 0
    assert unseen_topics(1, 0) == 0
    assert unseen_topics(3, 0) == 3
    assert unseen_topics(3, 2) == 1
