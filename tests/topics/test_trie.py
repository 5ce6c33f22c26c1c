"""Who subscribes to a topic, found by the trie and kept by the cache."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.limits import (
    ROUTE_CACHE_BYTES,
    ROUTE_CACHE_ENTRIES,
    ROUTE_CACHE_INDEX_LEVELS,
    ROUTE_CACHE_TOPIC_BYTES,
    TOPIC_LEVELS,
)
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import LITERAL, MQTT, ONE, PREFIX, SMF, Filter, parse_filter
from vpnrouter.topics.index import TopicIndex
from vpnrouter.topics.trie import (
    EntrySet,
    Node,
    SubscriptionTrie,
    Tail,
    added_to,
    each,
    holds,
    pattern_from,
    pattern_text,
    single,
    tail_matches,
    without,
)


def smf(text: str) -> Filter:
    """An SMF filter."""
    return parse_filter(text, SMF)


def mqtt(text: str) -> Filter:
    """An MQTT filter."""
    return parse_filter(text, MQTT)


def trie_of(*filters: Filter) -> SubscriptionTrie:
    """A trie in which each filter's entry is its own text."""
    trie = SubscriptionTrie()
    for filter_ in filters:
        assert trie.insert(filter_, filter_.original)
    return trie


def test_empty_trie_matches_nothing() -> None:
    """No subscription, no match."""
    trie = SubscriptionTrie()
    assert trie.match("a") == []
    assert not trie.has_match("a")
    assert len(trie) == 0
    assert list(trie.entries()) == []


def test_all_matching_filters_are_found() -> None:
    """Literals and every sort of wildcard are found together."""
    matching = [smf("a/b/c"), smf("a/*/c"), smf("a/b*/c"), smf("a/>"), mqtt("a/b/c/#"), mqtt("#")]
    others = [smf("a/b"), smf("*"), smf("a/c*/c"), smf("b/>"), mqtt("a/+"), mqtt("a/b/c/+")]
    trie = trie_of(*matching, *others)
    assert sorted(map(str, trie.match("a/b/c"))) == sorted(f.original for f in matching)


def test_an_entry_counts_once_for_each_matching_filter() -> None:
    """Two filters of one subscriber give two matches."""
    trie = SubscriptionTrie()
    trie.insert(smf("a/*"), "subscriber")
    trie.insert(smf("a/>"), "subscriber")
    assert trie.match("a/b") == ["subscriber", "subscriber"]


def test_equal_patterns_are_one_whatever_the_dialect_or_prefix() -> None:
    """`a/*` and `a/+` are one pattern; so are shared and plain: the entry knows the difference."""
    trie = SubscriptionTrie()
    assert trie.insert(smf("a/*"), 1)
    assert not trie.insert(mqtt("a/+"), 1)
    assert not trie.insert(mqtt("$share/g/a/+"), 1)
    assert not trie.insert(smf("#noexport/a/*"), 1)
    assert len(trie) == 1
    assert trie.remove(mqtt("a/+"), 1)
    assert len(trie) == 0


@pytest.mark.parametrize("text", ["a/b", "a/*", "a/b*", "a/>", "*", ">"])
def test_many_entries_of_one_pattern(text: str) -> None:
    """Any number of entries share a pattern; each comes once and goes alone."""
    trie = SubscriptionTrie()
    topic = "ab" if text == "*" else "a/b"
    for number in range(100):
        assert trie.insert(smf(text), number)
        assert not trie.insert(smf(text), number)
    assert trie.match(topic) == list(range(100))
    for number in range(99):
        assert trie.remove(smf(text), number)
        assert not trie.remove(smf(text), number)
        assert len(trie.match(topic)) == 99 - number
    assert trie.match(topic) == [99]
    assert len(trie) == 1


ORDERED = ["a/*/c/d", "a/*/c", "a/*/c/e", "a/*/>"]


@pytest.mark.parametrize("order", list(itertools.permutations(ORDERED)))
def test_branches_split_in_any_order(order: tuple[str, ...]) -> None:
    """Whichever pattern comes first, the others find their place beside it, and leave it again."""
    trie = trie_of(*map(smf, order))
    assert sorted(map(str, trie.match("a/x/c"))) == ["a/*/>", "a/*/c"]
    assert sorted(map(str, trie.match("a/x/c/d"))) == ["a/*/>", "a/*/c/d"]
    for text in order:
        assert trie.remove(smf(text), text)
        assert text not in trie.match("a/x/c/d")
    assert len(trie) == 0


@pytest.mark.parametrize(
    "absent", ["a/*/c", "a/*", "b/*", "a/b/c", "a/*/c/d/e", "a/*/*/d", "a/b*", ">"]
)
def test_removing_what_is_not_there_changes_nothing(absent: str) -> None:
    """Neither an unknown pattern nor an unknown entry can be removed."""
    trie = trie_of(smf("a/*/c/d"), smf("a/*/c/>"), smf("a/b/d"))
    assert not trie.remove(smf(absent), absent)
    assert not trie.remove(smf("a/*/c/d"), "another")
    assert not trie.remove(smf("a/b/d"), "another")
    assert len(trie) == 3


def test_empty_branches_are_pruned() -> None:
    """After the last subscription has gone nothing is left, however deep it was."""
    texts = ["a/" * 20 + tail for tail in ("*", ">", "b*", "*/a", "b*/c/>", "*/*/d*")]
    trie = trie_of(*map(smf, texts))
    for text in texts:
        trie.remove(smf(text), text)
    assert trie._root.is_empty()
    assert len(trie) == 0


def test_prefixes_of_all_lengths_are_tried() -> None:
    """A level finds each of its prefixes, long ones and the whole level included."""
    level = "a" * 200
    trie = trie_of(*(smf(f"t/{level[:n]}*") for n in (1, 2, 61, 62, 63, 64, 199, 200)))
    trie.insert(smf(f"t/{level}a*"), "longer")
    trie.insert(smf("t/ab*"), "other")
    assert len(trie.match(f"t/{level}")) == 8
    assert trie.match("t/a") == ["t/a*"]


def test_guarded_topics_need_a_literal_first_level() -> None:
    """No wildcard in the first level finds `$` and `#P2P` topics; wildcards below do."""
    trie = trie_of(
        mqtt("#"), mqtt("+/a"), smf(">"), smf("*/a"), smf("$*/a"), smf("#P*/a"), mqtt("$SYS/+")
    )
    trie.insert(smf("#P2P/>"), "p2p")
    assert trie.match("$SYS/a") == ["$SYS/+"]
    assert trie.match("#P2P/a") == ["p2p"]
    assert trie.has_match("$SYS/a")
    assert not trie.has_match("$SYS/a/b")
    assert not trie.has_match("$OTHER/a")


def test_has_match_agrees_with_match() -> None:
    """A question for any match is answered as by all matches."""
    trie = trie_of(smf("a/b"), smf("a/*/c"), smf("a/*/d/>"), mqtt("x/#"))
    for topic in ("a/b", "a/b/c", "a/b/d", "a/b/d/e", "x", "x/y", "y", "a"):
        assert trie.has_match(topic) == bool(trie.match(topic))


def test_the_longest_topics_and_filters() -> None:
    """A filter and a topic of as many levels as there may be work, and without deep calls."""
    trie = SubscriptionTrie()
    deep = "a/" * (TOPIC_LEVELS - 1)
    for last in ("*", ">", "a*", "b"):
        trie.insert(smf(deep + last), last)
    trie.insert(mqtt("+/" * (TOPIC_LEVELS - 1) + "#"), "all")
    assert sorted(map(str, trie.match(deep + "a"))) == ["*", ">", "a*", "all"]
    assert trie.match("b" + "/b" * (TOPIC_LEVELS - 2)) == ["all"]


def test_a_walk_over_many_paths_is_complete() -> None:
    """When each level has literal, wildcard and prefix branches, all combinations are found."""
    combinations = ["/".join(levels) for levels in itertools.product("a*", ["b", "*", "b*"], "c*")]
    trie = trie_of(*(smf(text) for text in combinations))
    assert sorted(map(str, trie.match("a/b/c"))) == sorted(combinations)


def test_entries_lists_everything() -> None:
    """Show commands see each filter with each entry, wildcards in a dialect that says the same."""
    trie = trie_of(
        smf("a/b"), smf("a/b*/>"), mqtt("a/+/#"), mqtt("a/+"), mqtt("+//x"), smf("*/c/d/*")
    )
    trie.insert(smf("a/b"), "second")
    assert sorted((text, str(entry)) for text, entry in trie.entries()) == [
        ("*/c/d/*", "*/c/d/*"),
        ("+//x", "+//x"),
        ("a/*", "a/+"),
        ("a/+/#", "a/+/#"),
        ("a/b", "a/b"),
        ("a/b", "second"),
        ("a/b*/>", "a/b*/>"),
    ]


def test_entries_grow_and_shrink_through_their_three_forms() -> None:
    """One entry, a few, many: order kept, doubles refused, and the same all the way back."""
    entries: object | None = None
    for number in range(20):
        grown = added_to(entries, number)
        assert grown is not None
        entries = grown
        assert added_to(entries, number) is None
        assert each(entries) == list(range(number + 1))
    assert isinstance(entries, EntrySet)
    for number in range(20):
        assert entries is not None
        assert holds(entries, number)
        entries = without(entries, number)
        if entries is not None:
            assert not holds(entries, number)
            assert each(entries) == list(range(number + 1, 20))
    assert entries is None


def test_a_node_knows_the_lengths_of_its_prefixes() -> None:
    """The bit of a length stands while any prefix of that length does."""
    node = Node()
    for prefix in ("a", "ab", "cd", "a" * 100):
        node.put(PREFIX, prefix, prefix)
    node.put(PREFIX, "ab", "again")
    assert node.lengths == 0b110 | 1 << 100
    node.drop(PREFIX, "ab")
    assert node.lengths == 0b110 | 1 << 100
    node.drop(PREFIX, "cd")
    assert node.lengths == 0b10 | 1 << 100
    node.drop(PREFIX, "a")
    node.drop(PREFIX, "a" * 100)
    assert node.is_empty()
    assert node.lengths == 0


@pytest.mark.parametrize("kind", [LITERAL, ONE, PREFIX])
def test_a_branch_comes_and_goes(kind: int) -> None:
    """What is put under a level is got there, and leaves an empty node when dropped."""
    node = Node()
    level = "" if kind == ONE else "a"
    assert node.get(kind, level) is None
    node.put(kind, level, "entry")
    assert node.get(kind, level) == "entry"
    assert not node.is_empty()
    node.drop(kind, level)
    assert node.get(kind, level) is None
    assert node.is_empty()


@pytest.mark.parametrize(
    ("text", "dialect"),
    [("a/b", SMF), ("a/*", SMF), ("a/b*", SMF), ("a/>", SMF), ("a/#", MQTT), ("a/", MQTT)],
)
def test_a_node_adopts_the_tail_it_replaces(text: str, dialect: int) -> None:
    """The pattern of a tail is found again behind one level of the node, as entries."""
    filter_ = parse_filter(text, dialect)
    node = Node()
    node.adopt(single(pattern_from(filter_, 1), "entry"))
    kind, level = filter_.kinds[1], filter_.levels[1]
    found = node.get(kind, level) if kind <= PREFIX else node.ending(kind)
    assert found == "entry"


def test_a_node_adopts_entries_as_its_own() -> None:
    """A pattern that ended where the node begins ends at the node."""
    node = Node()
    node.adopt(single((), "entry"))
    assert node.here == "entry"


def test_an_empty_last_level_is_a_pattern_of_one_level() -> None:
    """`a/` ends one level after `a`: its tail is not mistaken for the end."""
    branch = single(pattern_from(parse_filter("a/", MQTT), 1), "entry")
    assert isinstance(branch, Tail)
    assert tail_matches(branch.pattern, ["a", ""], 1)
    assert not tail_matches(branch.pattern, ["a"], 1)


@pytest.mark.parametrize(
    ("text", "dialect", "shown"),
    [
        ("a/+", MQTT, "a/*"),
        ("a/b*/>", SMF, "a/b*/>"),
        ("a/+/#", MQTT, "a/+/#"),
        ("+/a*", MQTT, "+/a*"),
        ("+//a", MQTT, "+//a"),
        ("+/>", MQTT, "+/>"),
        (">/*", SMF, ">/*"),
    ],
)
def test_pattern_text_reads_as_the_filter(text: str, dialect: int, shown: str) -> None:
    """A pattern is shown in a dialect in which it means what it means."""
    pattern = pattern_from(parse_filter(text, dialect), 0)
    assert not isinstance(pattern, str)
    assert pattern_text(pattern) == shown


LEVEL = st.sampled_from(["a", "ab", "b", "", "$x"])


TOPICS = st.lists(
    st.lists(LEVEL, min_size=1, max_size=10).map("/".join).filter(bool), max_size=30, unique=True
)


SMF_FILTERS = ["a/b", "*", "a/*", "a*/>", ">", "a/>", "a*", "b/*/a", "a/b/a/b/a/b/a/b/a/b"]


MQTT_FILTERS = ["#", "+/#", "a/#", "a/+", "+/+/b", "a/b/a/b/a/b/a/b/#"]


FILTERS = st.sampled_from(
    [parse_filter(text, SMF) for text in SMF_FILTERS]
    + [parse_filter(text, MQTT) for text in MQTT_FILTERS]
)


@given(TOPICS, st.sets(st.integers(0, 29)), FILTERS)
def test_find_returns_what_matches(topics: list[str], gone: set[int], filter_: Filter) -> None:
    """Of the topics that are in the index, exactly those are found that the filter matches."""
    index = TopicIndex()
    for topic in topics:
        index.add(topic.encode(), topic)
    for place in gone:
        if place < len(topics):
            assert index.discard(topics[place].encode(), topics[place])
    left = [topic for place, topic in enumerate(topics) if place not in gone]
    found = [key.decode() for key in index.find(filter_)]
    assert sorted(found) == sorted(topic for topic in left if matches(filter_, topic))
    assert index.size == len(left)


def test_discard_of_an_absent_topic_says_so() -> None:
    """Neither an unknown topic nor a parent of a known one is there to be removed."""
    index = TopicIndex()
    index.add(b"a/b/c", "a/b/c")
    assert not index.discard(b"a/b", "a/b")
    assert not index.discard(b"x", "x")
    assert index.discard(b"a/b/c", "a/b/c")
    assert not index.discard(b"a/b/c", "a/b/c")


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


def test_the_memory_of_routes_is_bounded() -> None:
    """Large routes take the place of many small ones: beyond ROUTE_CACHE_BYTES a quarter of that goes."""
    cache = RouteCache()
    size = 10_000
    for number in range(ROUTE_CACHE_BYTES // size):
        cache.put(b"%d" % number, str(number), number, size)
    assert cache.evicted == 0
    for number in range(10):
        cache.put(b"more/%d" % number, f"more/{number}", number, size)
    assert cache.evicted == pytest.approx(ROUTE_CACHE_BYTES // size // 4, abs=2)
    assert cache.get(b"more/9") == 9
    assert cache.get(b"0") is None


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
