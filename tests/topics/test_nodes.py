"""The parts of the trie on their own."""

import pytest

from vpnrouter.topics.grammar import LITERAL, MQTT, ONE, PREFIX, SMF, parse_filter
from vpnrouter.topics.trie import (
    Many,
    Node,
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


def test_entries_grow_and_shrink_through_their_three_forms() -> None:
    """One entry, a few, many: order kept, doubles refused, and the same all the way back."""
    entries: object | None = None
    for number in range(20):
        grown = added_to(entries, number)
        assert grown is not None
        entries = grown
        assert added_to(entries, number) is None
        assert each(entries) == list(range(number + 1))
    assert isinstance(entries, Many)
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
