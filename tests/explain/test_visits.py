"""Visits out of events, also where two copies went one way."""

from vpnrouter.explain.request import Event
from vpnrouter.explain.why_bridge import visits_of

WAY = ("a/v",)


def test_a_direct_and_a_guaranteed_copy_over_one_way() -> None:
    """Each send has its own visit, and what each copy came to stays with it."""
    over = {"bridge": "x", "peer_router": "b", "peer_vpn": "v"}
    back = {"bridge": "x", "peer_router": "a", "peer_vpn": "v", "path": WAY, "hops": 1}
    events = [
        Event("a", "ingress", "v", "t", "persistent"),
        Event("a", "enqueue", "v", "t", "persistent", endpoint="q"),
        Event("a", "bridge_send", "v", "t", "direct", **over),
        Event("a", "bridge_send", "v", "t", "persistent", **over),
        Event("b", "bridge_receive", "v", "t", "direct", **back),
        Event("b", "deliver", "v", "t", "direct", client="c", path=WAY),
        Event("b", "bridge_receive", "v", "t", "persistent", **back),
        Event("b", "enqueue", "v", "t", "persistent", endpoint="end", path=WAY),
    ]
    (root,) = visits_of(events)
    assert [one.event for one in root.events] == ["enqueue"]
    first, second = (came for _, came in root.sends)
    assert first is not None
    assert second is not None
    assert [one.client for one in first.events] == ["c"]
    assert [one.endpoint for one in second.events] == ["end"]
    assert second.keeps("end")
    assert not first.keeps("")


def test_what_nobody_sent_is_not_lost() -> None:
    """A visit without the row of its send hangs below the message VPN that its path names."""
    events = [
        Event("a", "ingress", "v", "t", "direct"),
        Event("b", "bridge_receive", "v", "t", "direct", path=WAY),
    ]
    (root,) = visits_of(events)
    assert [one.place for one in root.unsent] == ["b/v"]
