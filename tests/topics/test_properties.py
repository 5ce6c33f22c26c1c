"""Trie, cache and algebra against the oracle, on drawn filters, topics and orders of events."""

import itertools
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers, intersects, matches, witness
from vpnrouter.topics.cache import RouteCache
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter, parse_topic, to_mqtt, to_smf
from vpnrouter.topics.oracle import oracle_matches
from vpnrouter.topics.trie import SubscriptionTrie

# Few and similar levels, so that filters and topics meet often.
LITERALS = ["a", "ab", "abc", "b", "$x", "#P", "#P2P", "é"]
SMF_LEVELS = [*LITERALS, "*", "*", "a*", "ab*", "#P*", "$*", "+", "#", ">", "**", "*a"]
MQTT_LEVELS = [*LITERALS[:5], "é", "", "+", "+", "*", ">", "a*"]
TOPIC_LEVELS = [*LITERALS, "", "*", ">", "a*", "#P2Pz", "zz"]
DEPTHS = ["", "", "", "", "a/" * 7, "a/" * 8, "a/a/" + "ab/" * 7]
"""What stands before some filters and topics, so that they reach beyond the indexed levels."""


def filters(
    smf_levels: list[str] = SMF_LEVELS,
    mqtt_levels: list[str] = MQTT_LEVELS,
    most: int = 3,
    depths: list[str] = DEPTHS,
) -> st.SearchStrategy[Filter]:
    """Filters of both dialects: a depth, at most `most` levels, and perhaps an open end."""

    def joined(depth: str, levels: list[str], end: str) -> str:
        return depth + "/".join([*levels, end] if end else levels)

    def some(levels: list[str]) -> st.SearchStrategy[list[str]]:
        return st.lists(st.sampled_from(levels), min_size=1, max_size=most)

    depth = st.sampled_from(depths)
    smf = st.builds(joined, depth, some(smf_levels), st.sampled_from(["", ">"]))
    mqtt = st.builds(joined, depth, some(mqtt_levels), st.sampled_from(["", "#"])).filter(bool)
    alone = st.sampled_from([(">", SMF), ("#", MQTT)])
    texts = st.one_of(st.tuples(smf, st.just(SMF)), st.tuples(mqtt, st.just(MQTT)), alone)
    return texts.map(lambda text: parse_filter(*text))


TOPICS = st.builds(
    lambda depth, levels: depth + "/".join(levels),
    st.sampled_from(DEPTHS),
    st.lists(st.sampled_from(TOPIC_LEVELS), min_size=1, max_size=4),
).filter(bool)


def oracle(filter_: Filter, topic: str) -> bool:
    """What the oracle says of a parsed filter."""
    return oracle_matches(filter_.text, filter_.dialect, topic)


class Subscriptions(RuleBasedStateMachine):
    """Subscriptions come and go while topics are published through the cache, as in a VPN."""

    @initialize(capacity=st.sampled_from([1, 3, 8, 1000]))
    def start(self, capacity: int) -> None:
        """An empty VPN whose cache may be small."""
        self.trie = SubscriptionTrie()
        self.cache = RouteCache(capacity)
        self.model: dict[tuple[tuple[str, ...], tuple[int, ...], int], Filter] = {}
        self.dropped = 0

    def expected(self, topic: str) -> Counter[object]:
        """The entries that the oracle gives a topic."""
        return Counter(key[2] for key, filter_ in self.model.items() if oracle(filter_, topic))

    def changed(self, filter_: Filter) -> None:
        """Tell the cache of a change, and hold what it drops against the oracle."""
        before = set(self.cache.entries)
        count = self.cache.invalidate(filter_)
        gone = before - set(self.cache.entries)
        assert gone == {key for key in before if oracle(filter_, key.decode())}
        assert count == len(gone)
        self.dropped += count

    @rule(filter_=filters(), entries=st.integers(1, 12))
    def subscribe(self, filter_: Filter, entries: int) -> None:
        """Insert one entry or several; a second time is no news."""
        for entry in range(entries):
            key = (tuple(filter_.levels), tuple(filter_.kinds), entry)
            assert self.trie.insert(filter_, entry) == (key not in self.model)
            self.model[key] = filter_
        self.changed(filter_)

    @rule(filter_=filters(), entry=st.integers(0, 11))
    def unsubscribe_any(self, filter_: Filter, entry: int) -> None:
        """Remove what may not be there."""
        key = (tuple(filter_.levels), tuple(filter_.kinds), entry)
        assert self.trie.remove(filter_, entry) == (self.model.pop(key, None) is not None)
        self.changed(filter_)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        """Remove what is there."""
        key = data.draw(st.sampled_from(sorted(self.model)))
        filter_ = self.model.pop(key)
        assert self.trie.remove(filter_, key[2])
        assert not self.trie.remove(filter_, key[2])
        self.changed(filter_)

    @rule(topics=st.lists(TOPICS, min_size=1, max_size=25))
    def publish(self, topics: list[str]) -> None:
        """Look up, match and cache as the message path does."""
        for topic in topics:
            raw = topic.encode()
            expected = self.expected(topic)
            cached = self.cache.entries.get(raw)
            if cached is not None:
                assert cached == expected
                continue
            text = parse_topic(raw, mqtt=False)
            assert Counter(self.trie.match(text)) == expected
            assert self.trie.has_match(text) == bool(expected)
            self.cache.put(raw, text, expected)

    @invariant()
    def everything_is_counted(self) -> None:
        """Counts agree with the model, the bound holds, index and keys stay together."""
        assert len(self.trie) == len(self.model)
        assert len(self.cache) <= self.cache.capacity
        assert self.cache.invalidated == self.dropped
        assert sum(generation.size for generation in self.cache._generations) == len(self.cache)
        shown = Counter(entry for _, entry in self.trie.entries())
        assert shown == Counter(key[2] for key in self.model)

    def teardown(self) -> None:
        """When everything has gone, nothing is left behind."""
        for key, filter_ in self.model.items():
            assert self.trie.remove(filter_, key[2])
        assert self.trie._root.is_empty()
        assert self.trie._literals == {}


TestSubscriptions = Subscriptions.TestCase


# Every pair of filters made of PLAIN and WILD that differ are told apart by a topic made of FOUND:
# for each prefix there is a level that has it and is no literal, and there is one without any.
PLAIN = ["a", "ab", "b", "$x", "#P", "#P2P"]
WILD = ["*", "*", "a*", "ab*", "#P*", "#P2P*", "$*"]
FOUND = [*PLAIN, "", "abz", "az", "$z", "#Pz", "#P2Pz", "zz"]
UNIVERSE = [
    topic
    for count in (1, 2, 3)
    for topic in map("/".join, itertools.product(FOUND, repeat=count))
    if topic
]
SMALL = filters([*PLAIN, *WILD], [*PLAIN[:4], "", "+", "+"], 2, [""])


@settings(max_examples=60)
@given(SMALL, SMALL)
def test_algebra_is_exact_on_a_small_universe(a: Filter, b: Filter) -> None:
    """Covering and intersecting are what trying all topics says."""
    of_a = {topic for topic in UNIVERSE if oracle(a, topic)}
    of_b = {topic for topic in UNIVERSE if oracle(b, topic)}
    assert covers(a, b) == (of_b <= of_a)
    assert covers(b, a) == (of_a <= of_b)
    assert intersects(a, b) == bool(of_a & of_b)


@given(filters(), filters(), TOPICS)
def test_covering_filter_matches_what_the_covered_one_matches(
    a: Filter, b: Filter, topic: str
) -> None:
    """Whatever b matches, a filter that covers b matches."""
    assert matches(a, topic) == oracle(a, topic)
    if covers(a, b) and oracle(b, topic):
        assert oracle(a, topic)


@given(filters(), filters(), TOPICS)
def test_witness_matches_both(a: Filter, b: Filter, topic: str) -> None:
    """A witness is a valid topic of both; where both match any topic, there is one."""
    found = witness(a, b)
    assert intersects(a, b) == (found is not None)
    if found is not None:
        assert parse_topic(found.encode(), mqtt=False) == found
        assert oracle(a, found)
        assert oracle(b, found)
    elif oracle(a, topic):
        assert not oracle(b, topic)


@given(filters())
def test_every_filter_covers_itself(filter_: Filter) -> None:
    """Covering is reflexive, and a filter meets itself in a topic it matches."""
    assert covers(filter_, filter_)
    found = witness(filter_, filter_)
    assert found is None or matches(filter_, found)


@given(filters(), TOPICS)
def test_translations_match_the_same_topics(filter_: Filter, topic: str) -> None:
    """A filter and its forms in the other dialect select the same topics."""
    smf = to_smf(filter_)
    if smf:
        assert any(oracle_matches(text, SMF, topic) for text in smf) == oracle(filter_, topic)
        assert [parse_filter(text, SMF).text for text in smf] == smf
    mqtt = to_mqtt(filter_)
    if mqtt is not None:
        assert oracle_matches(mqtt, MQTT, topic) == oracle(filter_, topic)
        assert parse_filter(mqtt, MQTT).text == mqtt


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_a_topic_or_a_topic_error(raw: bytes, mqtt: bool) -> None:
    """What is accepted is the same text, within the bounds; nothing but TopicError is raised."""
    try:
        text = parse_topic(raw, 4, 20, mqtt)
    except TopicError:
        return
    assert text.encode() == raw
    assert 0 < len(raw) <= 20
    assert len(text.split("/")) <= 4
