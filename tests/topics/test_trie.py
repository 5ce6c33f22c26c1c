"""The subscription trie."""

import itertools

import pytest

from vpnrouter.limits import TOPIC_LEVELS
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter
from vpnrouter.topics.trie import SubscriptionTrie


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
