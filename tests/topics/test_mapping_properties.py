"""Topic mappings on drawn rules, topics and filters: against regular expressions, and there and back."""

import itertools
import re

from hypothesis import assume, given
from hypothesis import strategies as st

from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers, matches
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter, parse_topic
from vpnrouter.topics.mapping import MappingRule, TopicMapping, parse_rule
from vpnrouter.topics.oracle import oracle_matches

# Few and similar levels, so that rules, topics and filters meet often.
TEXTS = ["a", "ab", "b", "x"]
FOUND = [*TEXTS, *TEXTS, "", "abc", "az", "xa", "xab", "$x", "#P", "#P2P", "#share", "*", ">", "a*"]
TOPICS = (
    st.lists(st.sampled_from(FOUND), min_size=1, max_size=4)
    .map("/".join)
    .filter(bool)
    .map(lambda text: parse_topic(text.encode(), mqtt=False))
)
SMF_LEVELS = [*TEXTS, "$x", "*", "*", "a*", "x*"]
MQTT_LEVELS = [*TEXTS, "$x", "", "a*", ">", "+", "+"]


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Filters of both dialects over such levels."""
    dialect = draw(st.sampled_from([SMF, SMF, MQTT]))
    levels = draw(
        st.lists(st.sampled_from(SMF_LEVELS if dialect == SMF else MQTT_LEVELS), max_size=3)
    )
    end = draw(st.sampled_from([[], [">" if dialect == SMF else "#"]]))
    text = "/".join([*levels, *end])
    assume(text)
    return parse_filter(text, dialect)


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, str, int]:
    """From, to and dialect. Half of the templates use each capture once, the others as they like."""
    filter_ = draw(filters())
    wild = [kind for kind in filter_.kinds if kind]
    count, rest = len(wild), bool(wild) and wild[-1] >= 3
    levels = []
    if draw(st.booleans()):
        order = draw(st.permutations(range(1, count + 1 - rest)))
        for capture in order:
            levels += draw(st.lists(st.sampled_from(TEXTS), max_size=1))
            levels.append(draw(st.sampled_from(["", "", "x", "a"])) + f"{{{capture}}}")
        levels += draw(st.lists(st.sampled_from(TEXTS), max_size=1))
        levels += [f"{{{count}}}"] * rest
    else:
        parts = [*TEXTS, *([f"{{{number + 1}}}" for number in range(count)] * 2)]
        drawn = st.lists(st.sampled_from(parts), min_size=1, max_size=2).map("".join)
        levels = draw(st.lists(drawn, min_size=1, max_size=4))
    assume(levels)
    text = filter_.text
    try:
        parse_rule(text, "/".join(levels), filter_.dialect)
    except TopicError:
        assume(False)
    return text, "/".join(levels), filter_.dialect


def made(drawn: list[tuple[str, str, int]]) -> TopicMapping:
    """The mapping of drawn rules."""
    return TopicMapping([parse_rule(*rule) for rule in drawn])


SEVERAL = st.lists(rules(), min_size=1, max_size=3)


def expected(rule: tuple[str, str, int], topic: str) -> str | None:
    """What a rule makes of a topic, by a regular expression and no bounds; None: no match."""
    source, to, dialect = rule
    if not oracle_matches(source, dialect, topic):
        return None
    pattern = ""
    levels = source.split("/")
    for index, level in enumerate(levels):
        slash = "/" if index else ""
        if dialect == MQTT and level == "#":
            pattern += f"(?:{slash}(.*))?"
        elif index == len(levels) - 1 and dialect == SMF and level == ">":
            pattern += slash + "(.*)"
        elif dialect == MQTT and level == "+":
            pattern += slash + "([^/]*)"
        elif dialect == SMF and level.endswith("*"):
            pattern += slash + re.escape(level[:-1]) + "([^/]*)"
        else:
            pattern += slash + re.escape(level)
    found = re.fullmatch(pattern, topic, re.DOTALL)
    assert found is not None
    groups = found.groups()
    kept = [
        level
        for level in to.split("/")
        if not (re.fullmatch(r"\{\d\}", level) and groups[int(level[1]) - 1] is None)
    ]
    return re.sub(r"\{(\d)\}", lambda match: groups[int(match[1]) - 1] or "", "/".join(kept))


@given(SEVERAL, TOPICS)
def test_renaming_is_what_regular_expressions_do(
    drawn: list[tuple[str, str, int]], topic: str
) -> None:
    """The first rule that matches gives its text; only empty and guarded topics are refused."""
    images = [image for rule in drawn if (image := expected(rule, topic)) is not None]
    image = images[0] if images else topic
    forged = any(
        image.startswith(mark) and not topic.startswith(mark) for mark in ("$", "#", "#P2P")
    )
    mapping = made(drawn)
    try:
        found = mapping.apply(topic)
    except TopicError:
        assert forged or not image
        return
    assert found == image
    assert not forged
    assert mapping.apply_bytes(topic.encode()) == image.encode()


@given(SEVERAL, st.lists(TOPICS, min_size=1, max_size=20))
def test_there_and_back(drawn: list[tuple[str, str, int]], topics: list[str]) -> None:
    """Where there is an inverse it leads back each topic that a rule matched, but to no # topic."""
    mapping = made(drawn)
    try:
        inverse = mapping.inverse()
    except TopicError:
        return
    for topic in topics:
        if not any(oracle_matches(source, dialect, topic) for source, _, dialect in drawn):
            continue
        try:
            image = mapping.apply(topic)
        except TopicError:
            continue
        try:
            assert inverse.apply(image) == topic
        except TopicError:
            assert topic.startswith("#")
            assert not image.startswith("#")


@given(SEVERAL, filters(), st.lists(TOPICS, min_size=1, max_size=20))
def test_sources_take_in_every_topic_asked_for(
    drawn: list[tuple[str, str, int]], filter_: Filter, topics: list[str]
) -> None:
    """A topic whose image matches the filter is matched by one of the sources."""
    mapping = made(drawn)
    try:
        sources = mapping.sources(filter_)
    except TopicError:
        assert filter_.dialect == MQTT
        return
    for text in sources:
        assert parse_filter(text, SMF).text == text
    for topic in topics:
        try:
            image = mapping.apply(topic)
        except TopicError:
            continue
        if oracle_matches(filter_.text, filter_.dialect, image):
            assert any(oracle_matches(text, SMF, topic) for text in sources)


UNIVERSE = [
    topic
    for count in (1, 2, 3)
    for topic in map("/".join, itertools.product([*TEXTS, "", "abz", "xz", "z"], repeat=count))
    if topic
]
"""Topics with a level for each prefix that is not a literal, and a level that has none."""


def invertible(rule: MappingRule) -> bool:
    """Has the rule an inverse?"""
    try:
        rule.inverse()
    except TopicError:
        return False
    return True


@given(rules(), filters())
def test_pulled_filter_is_exact_where_there_is_an_inverse(
    drawn: tuple[str, str, int], filter_: Filter
) -> None:
    """Whatever it matches becomes a topic that the filter matches, or none at all."""
    rule = parse_rule(*drawn)
    assume(invertible(rule))
    pulled = rule.pull_back(filter_)
    if pulled is None:
        return
    assert covers(rule.filter, pulled)
    for topic in UNIVERSE:
        if matches(pulled, topic):
            try:
                image = rule.apply(topic, topic.split("/"))
            except TopicError:
                continue
            assert image is not None
            assert oracle_matches(filter_.text, filter_.dialect, image)
