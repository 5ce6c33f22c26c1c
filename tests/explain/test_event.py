"""A trace row as an object."""

from vpnrouter.explain.request import Event, path_of


def test_places_and_paths() -> None:
    """Both sides as router/vpn, and the way before."""
    event = Event("a", "bridge_send", "v", peer_router="b", peer_vpn="w")
    assert (event.place, event.peer, Event("a", "ingress").peer) == ("a/v", "b/w", "")
    assert path_of("a/v>b/w") == ("a/v", "b/w")
    assert path_of("") == ()
