"""The route cache: exact after each change of subscriptions, bounded whatever comes."""

import pytest

from vpnrouter.limits import (
    ROUTE_CACHE_ENTRIES,
    ROUTE_CACHE_INDEX_LEVELS,
    ROUTE_CACHE_TOPIC_BYTES,
)
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter


def cache_of(*topics: str, capacity: int = 1000) -> RouteCache:
    """A cache in which each topic's value is its own text."""
    cache = RouteCache(capacity)
    for topic in topics:
        cache.put(topic.encode(), topic, topic)
    return cache


def invalidated(cache: RouteCache, text: str, dialect: int = SMF) -> list[str]:
    """The topics that a filter drops."""
    before = list(cache.entries)
    count = cache.invalidate(parse_filter(text, dialect))
    gone = sorted(key.decode() for key in before if key not in cache.entries)
    assert len(gone) == count
    return gone


def test_get_and_put() -> None:
    """A cached value comes back, a later one replaces it, an unknown topic has none."""
    cache = cache_of("a")
    assert cache.get(b"a") == "a"
    cache.put(b"a", "a", "new")
    assert cache.get(b"a") == "new"
    assert cache.get(b"b") is None
    assert len(cache) == 1


def test_the_dict_stays_the_same_object() -> None:
    """The message path may keep `entries` at hand: nothing replaces it."""
    cache = RouteCache(4)
    entries = cache.entries
    for number in range(100):
        cache.put(b"%d" % number, str(number), number)
    cache.invalidate(parse_filter(">", SMF))
    cache.clear()
    assert cache.entries is entries
    assert entries == {}


def test_literal_filter_drops_its_own_key() -> None:
    """A literal subscription costs one route."""
    cache = cache_of("a", "a/b", "a/b/c")
    assert invalidated(cache, "a/b") == ["a/b"]
    assert invalidated(cache, "a/b") == []
    assert invalidated(cache, "a/x") == []


@pytest.mark.parametrize(
    ("text", "dialect", "gone"),
    [
        ("a/*", SMF, ["a/", "a/b", "a/bc"]),
        ("a/b*", SMF, ["a/b", "a/bc"]),
        ("a/>", SMF, ["a/", "a/b", "a/b/c", "a/bc"]),
        ("a/#", MQTT, ["a", "a/", "a/b", "a/b/c", "a/bc"]),
        ("+/b/#", MQTT, ["a/b", "a/b/c"]),
        ("*", SMF, ["a", "b"]),
        (">", SMF, ["a", "a/", "a/b", "a/b/c", "a/bc", "b"]),
        ("$SYS/*", SMF, ["$SYS/b"]),
        ("#P2P/>", SMF, ["#P2P/b"]),
        ("$*/b", SMF, []),
        ("*/*/*/*", SMF, []),
    ],
)
def test_wildcard_filter_drops_what_it_matches(text: str, dialect: int, gone: list[str]) -> None:
    """A wildcard subscription costs the routes it matches and no other."""
    cache = cache_of("a", "b", "a/", "a/b", "a/bc", "a/b/c", "$SYS/b", "#P2P/b")
    assert invalidated(cache, text, dialect) == gone
    assert cache.invalidated == len(gone)
    assert invalidated(cache, text, dialect) == []


def test_only_the_first_level_is_guarded() -> None:
    """Below the first level `$` and `#P2P` are levels like any other."""
    topics = ["a/$x", "a/$y/z", "a/#P2P", "a/b"]
    assert invalidated(cache_of(*topics), "a/*") == ["a/#P2P", "a/$x", "a/b"]
    assert invalidated(cache_of(*topics), "*/$*") == ["a/$x"]
    assert invalidated(cache_of(*topics), "*/>") == sorted(topics)


def test_index_holds_no_more_than_the_keys() -> None:
    """When the routes have gone, so have the branches that led to them."""
    topics = ["a", "a/b", "a/b/c", "a/b/d", "b/x/y", "b/x/z/1", "b/x/z/2"]
    cache = cache_of(*topics)
    for topic in topics[:3]:
        assert invalidated(cache, topic) == [topic]
    assert invalidated(cache, "b/>") == topics[4:]
    assert invalidated(cache, "a/*/d") == ["a/b/d"]
    assert cache._generations[0].root.children == {}


def test_a_key_leaves_the_generation_it_is_in() -> None:
    """Similar topics of another age stay where they are."""
    cache = cache_of("a/x", "a/y", "b", capacity=4)
    assert len(cache._generations) == 3
    assert invalidated(cache, "a/x") == ["a/x"]
    assert [generation.size for generation in cache._generations] == [0, 1, 1]
    assert invalidated(cache, "a/*") == ["a/y"]


def test_topics_deeper_than_the_index() -> None:
    """Beyond the indexed levels topics are told apart all the same."""
    deep = "a/" * ROUTE_CACHE_INDEX_LEVELS
    topics = [deep + "b", deep + "c", deep + "b/c", deep + "b/d", deep[:-1], deep]
    cache = cache_of(*topics)
    assert invalidated(cache, deep + "*/d") == [deep + "b/d"]
    assert invalidated(cache, deep + "b*") == [deep + "b"]
    assert invalidated(cache, "*/" * ROUTE_CACHE_INDEX_LEVELS + "b/*") == [deep + "b/c"]
    assert invalidated(cache, deep[:-2] + "*") == [deep[:-1]]
    assert invalidated(cache, deep + "#", MQTT) == [deep, deep + "c"]
    assert len(cache) == 0


def test_beyond_capacity_the_oldest_quarter_goes() -> None:
    """The bound holds, and what goes is oldest, a quarter in one go."""
    cache = cache_of(*(f"t/{n}" for n in range(100)), capacity=100)
    assert len(cache) == 100
    assert cache.evicted == 0
    cache.put(b"t/100", "t/100", 100)
    assert cache.evicted == 25
    assert len(cache) == 76
    assert list(cache.entries) == [b"t/%d" % n for n in range(25, 101)]


def test_default_capacity() -> None:
    """One route beyond ROUTE_CACHE_ENTRIES drops a quarter of them."""
    cache = RouteCache()
    for number in range(ROUTE_CACHE_ENTRIES + 1):
        cache.put(b"%d" % number, str(number), number)
    assert cache.evicted == ROUTE_CACHE_ENTRIES // 4
    assert len(cache) == ROUTE_CACHE_ENTRIES - cache.evicted + 1


@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 5, 7, 64])
def test_capacity_is_never_exceeded(capacity: int) -> None:
    """However small, and whatever is invalidated in between, the bound holds."""
    cache = RouteCache(capacity)
    for number in range(300):
        cache.put(b"t/%d" % (number % 90), f"t/{number % 90}", number)
        assert len(cache) <= capacity
        assert cache.get(b"t/%d" % (number % 90)) is not None
        if number % 7 == 0:
            cache.invalidate(parse_filter(f"t/{number % 10}*", SMF))
    assert sum(generation.size for generation in cache._generations) == len(cache)


def test_evicted_keys_leave_the_index() -> None:
    """A filter that matches evicted topics finds only those still cached."""
    cache = cache_of(*(f"t/{n}" for n in range(10)), capacity=8)
    assert invalidated(cache, "t/*") == [f"t/{n}" for n in range(2, 10)]


def test_a_long_topic_is_not_cached() -> None:
    """One byte beyond the bound and the route is worked out anew each time."""
    longest = "a" * ROUTE_CACHE_TOPIC_BYTES
    cache = cache_of(longest, longest + "a")
    assert list(cache.entries) == [longest.encode()]


def test_clear_forgets_everything() -> None:
    """After `clear` nothing is found or invalidated, and new topics are cached as before."""
    cache = cache_of("a/b", "a/c")
    cache.clear()
    assert invalidated(cache, "a/*") == []
    cache.put(b"a/b", "a/b", 1)
    assert invalidated(cache, "a/*") == ["a/b"]
