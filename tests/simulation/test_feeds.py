import numpy as np

from vpnrouter.simulation import feeds, mesh


def built(seed: int = 1) -> tuple[mesh.Mesh, list[feeds.Feed]]:
    """A middling mesh and its feeds."""
    rng = np.random.default_rng(seed)
    made = mesh.build(mesh.load("sndlib/germany50"), 80, 1, rng)
    return made, feeds.build(made, 1.5, 4, rng)


def test_bridges_attract_what_is_wanted_behind_them() -> None:
    """Each bridge that takes a feed on leads to a receiver, and each receiver away from the origin is led to."""
    made, all_feeds = built()
    for feed in all_feeds:
        reached = {feed.origin}
        edge = [feed.origin]
        leaves = set()
        while edge:
            site = edge.pop()
            onward = [made.bridges[number].target for number in feed.onward.get(site, ())]
            if not onward:
                leaves.add(site)
            assert not reached & set(onward)
            reached |= set(onward)
            edge += onward
        assert leaves <= set(feed.receivers) <= reached
        assert feed.receivers


def test_each_tree_link_is_used_both_ways() -> None:
    """So clocks can be compared along each of them."""
    made, _ = built()
    bridged = {(bridge.source, bridge.target) for bridge in made.bridges}
    assert bridged == {(one, other) for one, near in enumerate(made.near) for other in near}


def test_feeds_share_no_topic() -> None:
    """A subscription to one feed matches nothing of another."""
    _, all_feeds = built()
    prefixes = [feed.prefix for feed in all_feeds]
    assert len(set(prefixes)) == len(prefixes)


def test_guaranteed_feeds_cross_by_queues() -> None:
    """A bridge takes persistent messages by the queue that it is bound to, Direct ones by its filters."""
    made, all_feeds = built()
    for feed in all_feeds:
        for numbers in feed.onward.values():
            for number in numbers:
                bridge = made.bridges[number]
                by_queue = feed.mode == feeds.PERSISTENT
                assert (feed.filter in bridge.queue_filters) == by_queue
                assert (feed.filter in bridge.filters) != by_queue
                assert bridge.queue or not by_queue
