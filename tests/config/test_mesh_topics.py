"""Sets of topics, held against the slow matcher."""

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.config.mesh.topics import Topics, TopicSet, meet
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter
from vpnrouter.topics.oracle import oracle_matches

LEVELS = ["a", "b", "ab", "$s", "#P2P"]
TOPICS = [
    "/".join(levels)
    for levels in (
        *((one,) for one in ("a", "b", "ab", "abc", "c", "$s", "$sx", "#P2P", "")),
        *((one, two) for one in ("a", "ab", "$s", "c", "") for two in ("a", "b", "abc", "")),
        *((one, two, "a") for one in ("a", "b", "$s", "") for two in ("a", "ab", "c", "")),
        ("a", "b", "a", "b"),
    )
    if "/".join(levels)
]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """A filter of up to three levels in either dialect."""
    if draw(st.booleans()):
        levels = draw(st.lists(st.sampled_from([*LEVELS, "*", "a*"]), min_size=0, max_size=3))
        if not levels or draw(st.booleans()):
            levels.append(">")
        return parse_filter("/".join(levels), SMF)
    levels = draw(st.lists(st.sampled_from(["a", "b", "$s", "", "+"]), min_size=0, max_size=3))
    if not any(levels) or draw(st.booleans()):
        levels.append("#")
    return parse_filter("/".join(levels), MQTT)


def hit(filter_: Filter, topic: str) -> bool:
    """What the slow matcher says."""
    return oracle_matches(filter_.original, filter_.dialect, topic)


@given(filters(), filters())
def test_meet_matches_what_both_match(a: Filter, b: Filter) -> None:
    """What two filters have in common is one filter, or nothing."""
    from vpnrouter.topics.algebra import matches

    both = meet(a, b)
    for topic in TOPICS:
        assert (both is not None and matches(both, topic)) == (hit(a, topic) and hit(b, topic))


@given(filters(), st.lists(filters(), max_size=3), filters(), st.lists(filters(), max_size=2))
def test_common(a: Filter, less: list[Filter], b: Filter, more: list[Filter]) -> None:
    """What two sets have in common holds exactly the topics that both hold, exceptions included."""
    topics = Topics()
    one, other = topics.of(a, less), topics.of(b, more)
    common = topics.common(one, other) if one is not None and other is not None else None
    for topic in TOPICS:
        if "#" in topic:
            continue
        expected = (
            hit(a, topic) and hit(b, topic) and not any(hit(each, topic) for each in [*less, *more])
        )
        assert (common is not None and topics.holds(common, topic)) == expected


@given(filters(), st.lists(filters(), max_size=3))
def test_example(a: Filter, less: list[Filter]) -> None:
    """An example is one of the set that can be published; there is none only where none can be."""
    topics = Topics()
    found = topics.of(a, less)
    held = [
        topic
        for topic in TOPICS
        if "#" not in topic and hit(a, topic) and not any(hit(each, topic) for each in less)
    ]
    if found is None:
        assert held == []
        return
    example = topics.example(found)
    assert example is not None
    assert hit(a, example)
    assert not any(hit(each, example) for each in less)
    assert "+" not in example
    assert "#" not in example


@given(filters(), filters(), st.lists(filters(), max_size=2))
def test_holds_all_is_sound(a: Filter, b: Filter, less: list[Filter]) -> None:
    """A set that is said to hold another one holds all its topics."""
    topics = Topics()
    one, other = topics.of(a, less[:1]), topics.of(b, less)
    if one is not None and other is not None and topics.holds_all(one, other):
        for topic in TOPICS:
            assert topics.holds(one, topic) or not topics.holds(other, topic)


def test_nothing_that_mqtt_cannot_publish() -> None:
    """A filter with a literal + or # matches no topic that a client can publish."""
    topics = Topics()
    assert topics.of(parse_filter("a/+/b", SMF)) is None
    assert topics.of(parse_filter("a/b", SMF)) is not None


def test_less_and_steps() -> None:
    """Taking everything away leaves nothing, and comparisons are counted."""
    topics = Topics()
    number = topics.number(parse_filter("a/>", SMF))
    before = topics.steps
    assert topics.less(TopicSet(number), [topics.number(parse_filter("a/b", SMF))]) is not None
    assert topics.less(TopicSet(number), [topics.number(parse_filter(">", SMF))]) is None
    assert topics.steps > before
