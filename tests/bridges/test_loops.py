import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.link_client import (
    may_enter,
    path_for,
    vpn_id,
    why_not,
    within_hops,
)


def test_a_chain_through_one_router_is_no_loop() -> None:
    """Three VPNs of the same router are three places: the message passes through all of them."""
    path: list[str] = []
    for vpn in ("a", "b", "c"):
        here = vpn_id("r", vpn)
        assert may_enter(path, here)
        path = path_for(path, here)
    assert path == ["r/a", "r/b", "r/c"]


def test_a_message_never_comes_back() -> None:
    """The sender's own VPN and every one before it are closed to the message."""
    path = path_for(["r/a", "r/b"], "s/c")
    assert [may_enter(path, vpn) for vpn in ("r/a", "r/b", "s/c", "s/b")] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("path", "hops", "max_ttl", "verdict"),
    [
        (["r/a"], 1, 1, ""),
        (["r/a", "r/b"], 2, 1, "ttl-exceeded"),
        (["r/a"], 8, 8, ""),
        (["r/a"], 9, 8, "ttl-exceeded"),
        (["own/v"], 1, 8, "loop-detected"),
        (["own/v"], 9, 8, "loop-detected"),
        (["own/w"], 1, 8, ""),
    ],
)
def test_the_receiver_s_verdict(path: list[str], hops: int, max_ttl: int, verdict: str) -> None:
    """A path with the own VPN is a loop, more hops than max_ttl are too many."""
    assert why_not(path, hops, "own/v", max_ttl) == verdict


def test_the_hop_limit_counts_links() -> None:
    """A message may cross exactly max_ttl links."""
    assert within_hops(limits.HOPS, limits.HOPS)
    assert not within_hops(limits.HOPS + 1, limits.HOPS)


@pytest.mark.parametrize(
    ("router", "vpn"), [("", "v"), ("r", ""), ("a/b", "v"), ("r" * 128, "v" * 127)]
)
def test_names_that_no_path_can_carry(router: str, vpn: str) -> None:
    """Empty or ambiguous names and names above LINK_PATH_ENTRY_BYTES are refused at once."""
    with pytest.raises(ValueError):
        vpn_id(router, vpn)


def test_the_longest_name() -> None:
    """A name of LINK_PATH_ENTRY_BYTES is carried; a VPN's name may have slashes."""
    assert len(vpn_id("r" * 127, "v" * 127)) == limits.LINK_PATH_ENTRY_BYTES
    assert vpn_id("r", "a/b") != vpn_id("s", "a/b")


@settings(max_examples=100, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20),
    start=st.integers(0, 5),
)
def test_in_any_mesh_a_message_ends(edges: list[tuple[int, int]], start: int) -> None:
    """Flooding follows simple paths only, so it ends, and it reaches all that links reach."""
    links = {(f"r/{a}", f"r/{b}") for a, b in edges if a != b}
    arrived: set[str] = set()
    waiting: list[tuple[str, list[str]]] = [(f"r/{start}", [])]
    steps = 0
    while waiting:
        here, came_by = waiting.pop()
        arrived.add(here)
        path = path_for(came_by, here)
        assert len(set(path)) == len(path)
        for sender, receiver in links:
            if sender == here and why_not(path, len(path), receiver, 255) == "":
                waiting.append((receiver, path))
        steps += 1
        assert steps < 2_000
    reachable = {f"r/{start}"}
    for _ in range(6):
        reachable |= {b for a, b in links if a in reachable}
    assert arrived == reachable
