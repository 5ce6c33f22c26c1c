"""The topic index against matching each topic by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter
from vpnrouter.topics.index import TopicIndex

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
