"""Topic mappings by example; tests/topics/test_mapping_properties.py has the general proof."""

import re
from pathlib import Path

import pytest

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    ROUTE_CACHE_TOPIC_BYTES,
    TOPIC_BYTES,
    TOPIC_LEVELS,
    TOPIC_MAPPING_CACHE_ENTRIES,
    TOPIC_MAPPING_RULES,
)
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter
from vpnrouter.topics.mapping import (
    TopicMapping,
    add_prefix,
    directed,
    parse_rule,
    smf_texts,
    strip_prefix,
)


def mapping(*rules: tuple[str, str], dialect: int = SMF) -> TopicMapping:
    """A mapping of from and to."""
    return TopicMapping([parse_rule(source, to, dialect) for source, to in rules])


def smf(text: str) -> Filter:
    """A filter in `*` `>` dialect."""
    return parse_filter(text, SMF)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "topic-mapping.md"
EXAMPLES = re.findall(
    r"^\| (smf|mqtt) \|" + r" `(.+)` \|" * 4 + "$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)
ERRORS = re.findall(r"^topic mapping .+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

NESTED = mapping(("cmd/keep", "cmd/keep"), ("cmd/>", "site1/cmd/{1}"), (">", "all/{1}"))
"""Each rule is narrower than the next one, so that their order matters."""


@pytest.mark.parametrize(
    ("topic", "image"),
    [
        ("cmd/keep", "cmd/keep"),
        ("cmd/stop", "site1/cmd/stop"),
        ("cmd", "all/cmd"),
        ("orders/1", "all/orders/1"),
        ("$SYS/a", "$SYS/a"),
    ],
)
def test_first_rule_that_matches_wins(topic: str, image: str) -> None:
    """Rules are tried in order, and a topic that none matches keeps its name."""
    assert NESTED.apply(topic) == image
    assert NESTED.apply_bytes(topic.encode()) == image.encode()
    assert NESTED.apply_bytes(topic.encode()) == image.encode()


def test_mapping_without_rules_changes_nothing() -> None:
    """No rules are a mapping as well, and its own inverse."""
    none = TopicMapping([])
    assert none.apply("a/b") == "a/b"
    assert none.sources(smf("a/>")) == ["a/>"]
    assert none.inverse().apply_bytes(b"a/b") == b"a/b"


@pytest.mark.parametrize(
    ("raw", "words"), [(b"", "not empty"), (b"a/\xff", "not UTF-8"), (b"a\0", "NUL")]
)
def test_bytes_that_are_no_topic(raw: bytes, words: str) -> None:
    """A topic that breaks the grammar is refused, though a rule matches everything."""
    with pytest.raises(TopicError, match=words):
        mapping((">", "x/{1}")).apply_bytes(raw)


def test_failure_is_not_remembered_as_a_result() -> None:
    """A topic that cannot be renamed fails each time, in the words of the rule."""
    strip = TopicMapping([strip_prefix("a")])
    for _ in range(2):
        with pytest.raises(
            TopicError, match="topic mapping strip_prefix 'a': the topic 'a/' would"
        ):
            strip.apply_bytes(b"a/")


def test_memory_of_topics_is_bounded() -> None:
    """TOPIC_MAPPING_CACHE_ENTRIES topics are remembered, with one more the memory starts anew."""
    prefixed = TopicMapping([add_prefix("x")])
    for number in range(TOPIC_MAPPING_CACHE_ENTRIES):
        prefixed.apply_bytes(b"%d" % number)
    assert len(prefixed._known) == TOPIC_MAPPING_CACHE_ENTRIES
    assert prefixed.apply_bytes(b"one more") == b"x/one more"
    assert prefixed._known == {b"one more": b"x/one more"}
    assert prefixed.apply_bytes(b"0") == b"x/0"


def test_long_topics_are_not_remembered() -> None:
    """With one byte more than ROUTE_CACHE_TOPIC_BYTES, before or after, a topic is not kept."""
    prefixed, stripped = TopicMapping([add_prefix("x")]), TopicMapping([strip_prefix("x")])
    fits, long = b"a" * (ROUTE_CACHE_TOPIC_BYTES - 2), b"a" * (ROUTE_CACHE_TOPIC_BYTES - 1)
    for topic in (fits, long):
        assert prefixed.apply_bytes(topic) == b"x/" + topic
        assert stripped.apply_bytes(b"x/" + topic) == topic
    assert list(prefixed._known) == [fits]
    assert list(stripped._known) == [b"x/" + fits]


def test_rules_are_bounded() -> None:
    """One rule more than TOPIC_MAPPING_RULES is one error."""
    rules = [
        parse_rule(f"a{number}/>", f"b{number}/{{1}}") for number in range(TOPIC_MAPPING_RULES)
    ]
    assert TopicMapping(rules).apply("a7/x") == "b7/x"
    assert TopicMapping(rules).inverse().apply("b7/x") == "a7/x"
    with pytest.raises(TopicError) as caught:
        TopicMapping([*rules, rules[0]])
    assert str(caught.value) == (
        f"a topic mapping has at most {TOPIC_MAPPING_RULES} rules,"
        f" this one {TOPIC_MAPPING_RULES + 1}"
    )


def test_inverse_of_rules_in_order() -> None:
    """Images may overlap where an earlier rule takes the topics that would meet."""
    rules = mapping(("cmd/>", "site1/cmd/{1}"), (">", "site1/{1}"))
    back = rules.inverse()
    for topic in ("cmd/stop", "cmd", "orders/1", "a//b/"):
        assert back.apply(rules.apply(topic)) == topic
    assert back.inverse().apply("cmd/stop") == "site1/cmd/stop"


def test_inverse_makes_no_guarded_topic() -> None:
    """The way back to a topic that begins with # is refused, like every way to one."""
    rules = TopicMapping([add_prefix("x")])
    assert rules.apply("#a") == "x/#a"
    with pytest.raises(TopicError, match="inverse of topic mapping add_prefix 'x'"):
        rules.inverse().apply("x/#a")


def test_no_inverse_where_two_rules_make_the_same_topic() -> None:
    """The error names both rules and a topic that both make."""
    with pytest.raises(TopicError) as caught:
        mapping(("a/>", "x/{1}"), ("b/*", "x/y{1}")).inverse()
    assert str(caught.value) == (
        "topic mapping from 'b/*' to 'x/y{1}' has no inverse beside"
        " topic mapping from 'a/>' to 'x/{1}': both can make the topic 'x/y'"
    )


def test_no_inverse_where_one_rule_has_none() -> None:
    """The error names the rule."""
    with pytest.raises(TopicError, match=r"from 'b/\*' to 'y' has no inverse: wildcard 1"):
        mapping(("a/>", "x/{1}"), ("b/*", "y")).inverse()


@pytest.mark.parametrize(
    ("rules", "asked", "sources"),
    [
        ([(">", "site1/{1}")], "site1/orders/>", ["orders/>"]),
        ([(">", "site1/{1}")], ">", [">"]),
        ([(">", "site1/{1}")], "other/>", []),
        ([(">", "site1/{1}")], "$SYS/>", ["$SYS/>"]),
        ([("site1/>", "{1}")], "orders/>", ["site1/orders/>", "orders/>"]),
        ([("site1/>", "{1}")], "site1/a", ["site1/site1/a"]),
        ([("site1/>", "{1}")], ">", [">"]),
        ([("cmd/>", "x/cmd/{1}"), (">", "x/{1}")], "x/cmd/>", ["cmd/>"]),
        ([("cmd/>", "x/cmd/{1}"), (">", "x/{1}")], "x/*", ["*"]),
        ([("a/*", "x/{1}"), ("b/*", "x/{1}")], "x/1", ["a/1", "b/1", "x/1"]),
        ([("a/*", "x/{1}"), ("a/*", "y/{1}")], "y/1", ["y/1"]),
        ([("a/*", "x/{1}/z")], "x/1/z", ["a/1", "x/1/z"]),
        ([("a/*", "x/{1}{1}")], "x/11", ["a/*", "x/11"]),
        ([(">", "site1/{1}")], "site1/#share/g/a", ["#shar*/g/a"]),
        ([(">", "site1/{1}")], "#share/g/site1/a", ["a"]),
        ([(">", "site1/{1}")], "#noexport/site1/a", ["a"]),
        ([("a/>", "{1}")], ">", [">"]),
    ],
)
def test_sources(rules: list[tuple[str, str]], asked: str, sources: list[str]) -> None:
    """Filters over old topics are narrow, free of repetition, and without those of no use."""
    assert mapping(*rules).sources(smf(asked)) == sources


@pytest.mark.parametrize(
    ("rules", "asked", "sources"),
    [
        ([("#", "site1/{1}")], "site1/+/a", ["*/a"]),
        ([("#", "site1/{1}")], "site1/orders/#", ["orders", "orders/>"]),
        ([("#", "site1/{1}")], "site1//a", ["*/a"]),
        ([("/s/#", "{1}")], "a/b", ["*/s/a/b", "a/b"]),
        ([("a*/#", "{1}")], "x/y*", ["a*/x/y*", "x/y*"]),
        ([("a/>", "x/b")], "x/b", ["a/*", "x/b"]),
        ([("a/>/#", "x/{1}")], "x/#", ["a/*", "a/*/>", "x", "x/>"]),
    ],
)
def test_sources_in_mqtt_dialect(
    rules: list[tuple[str, str]], asked: str, sources: list[str]
) -> None:
    """What the other dialect cannot say is asked for by the next wider filter."""
    found = mapping(*rules, dialect=MQTT).sources(parse_filter(asked, MQTT))
    assert found == sources


def test_filter_that_nothing_can_ask_for() -> None:
    """A guarded first level that would be a wildcard has no wider filter."""
    with pytest.raises(TopicError, match=r"begins with '\$a\*' cannot be asked for"):
        TopicMapping([]).sources(parse_filter("$a*/b", MQTT))


def test_sources_stay_within_the_bounds() -> None:
    """Where a pulled filter has too many bytes the rule's own stands in; too many levels match nothing."""
    wide = mapping(("ab/>", "{1}"))
    asked = "*" * (TOPIC_BYTES - 1)
    assert wide.sources(smf(asked)) == ["ab/>", asked]
    deep = "/".join("a" * TOPIC_LEVELS)
    assert wide.sources(smf(deep)) == [deep]
    assert smf_texts(parse_filter("a/" * (TOPIC_LEVELS - 1) + "#", MQTT)) == [
        "/".join("a" * (TOPIC_LEVELS - 1)),
        "a/" * (TOPIC_LEVELS - 1) + ">",
    ]
    with pytest.raises(TopicError, match=f"at most {TOPIC_BYTES} bytes"):
        smf_texts(parse_filter("/" + "a" * (TOPIC_BYTES - 1), MQTT))


def test_directions_are_told_apart() -> None:
    """What is both holds as written inwards and the other way round outwards, at its place."""
    inward, outward = directed(
        [
            parse_rule("cmd/>", "site1/cmd/{1}"),
            strip_prefix("site1"),
            parse_rule("a/*", "b/{1}"),
        ],
        ["out", "both", "in"],
    )
    assert [inward.apply(topic) for topic in ("site1/x", "a/1", "cmd/1")] == ["x", "b/1", "cmd/1"]
    assert [outward.apply(topic) for topic in ("x", "a/1", "cmd/1")] == [
        "site1/x",
        "site1/a/1",
        "site1/cmd/1",
    ]


def test_both_directions_need_an_inverse() -> None:
    """A rule without one is refused for both, and so are two that make the same topic."""
    dropping = parse_rule("a/*", "b")
    with pytest.raises(TopicError, match="has no inverse: wildcard 1"):
        directed([dropping], ["both"])
    with pytest.raises(TopicError, match="has no inverse beside"):
        directed([parse_rule("a/*", "x/{1}"), parse_rule("b/*", "x/{1}")], ["both", "both"])
    assert directed([dropping], ["in"])[0].apply("a/1") == "b"


@pytest.mark.parametrize(("syntax", "source", "to", "topic", "image"), EXAMPLES)
def test_examples_of_the_page(syntax: str, source: str, to: str, topic: str, image: str) -> None:
    """Each row of the table in docs/topic-mapping.md is what happens."""
    assert mapping((source, to), dialect=MQTT if syntax == "mqtt" else SMF).apply(topic) == image


def test_page_has_examples() -> None:
    """The table and the errors of docs/topic-mapping.md are found."""
    assert len(EXAMPLES) == 13
    assert len(ERRORS) == 4


@pytest.mark.parametrize("error", ERRORS)
def test_errors_of_the_page(error: str) -> None:
    """Each error in docs/topic-mapping.md is what its rules give."""
    rules = re.findall(r"topic mapping from '(.+?)' to '(.+?)'", error)
    with pytest.raises(TopicError) as caught:
        mapping(*reversed(rules)).inverse()
    assert str(caught.value) == error
