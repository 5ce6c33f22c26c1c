"""Topics changed where they cross a bridge."""

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vpnrouter.errors import TopicError
from vpnrouter.limits import (
    MAPPED_TOPIC_BYTES,
    ROUTE_CACHE_TOPIC_BYTES,
    TOPIC_BYTES,
    TOPIC_LEVELS,
    TOPIC_MAPPING_RULES,
)
from vpnrouter.topics.algebra import covers, matches
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter, parse_topic
from vpnrouter.topics.mapping import (
    MappingRule,
    TopicMapping,
    add_prefix,
    directed,
    escape,
    parse_rule,
    parse_template,
    smf_texts,
    strip_prefix,
)
from vpnrouter.topics.oracle import oracle_matches


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
    """MAPPED_TOPIC_BYTES of topics are remembered, with one more the memory starts anew."""
    prefixed = TopicMapping([add_prefix("x")])
    length = 1_000
    most = MAPPED_TOPIC_BYTES // (2 * length + 2 + 70)
    for number in range(most):
        prefixed.apply_bytes((b"%d/" % number).ljust(length, b"y"))
        assert len(prefixed._known.answers) == number + 1
    long = b"one more/".ljust(length, b"y")
    assert prefixed.apply_bytes(long) == b"x/" + long
    assert prefixed._known.answers == {long: b"x/" + long}
    assert prefixed.apply_bytes(b"0") == b"x/0"


def test_long_topics_are_not_remembered() -> None:
    """With one byte more than ROUTE_CACHE_TOPIC_BYTES, before or after, a topic is not kept."""
    prefixed, stripped = TopicMapping([add_prefix("x")]), TopicMapping([strip_prefix("x")])
    fits, long = b"a" * (ROUTE_CACHE_TOPIC_BYTES - 2), b"a" * (ROUTE_CACHE_TOPIC_BYTES - 1)
    for topic in (fits, long):
        assert prefixed.apply_bytes(topic) == b"x/" + topic
        assert stripped.apply_bytes(b"x/" + topic) == topic
    assert list(prefixed._known.answers) == [fits]
    assert list(stripped._known.answers) == [b"x/" + fits]


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


@pytest.mark.parametrize(
    ("source", "to", "topic", "image"),
    [
        (">", "site1/{1}", "a/b", "site1/a/b"),
        (">", "site1/{1}", "a", "site1/a"),
        ("site1/>", "{1}", "site1/a/b", "a/b"),
        ("site1/>", "{1}", "site1//b", "/b"),
        ("site1/>", "{1}", "site1", None),
        ("a/*/b/*", "{2}/x/{1}", "a/1/b/2", "2/x/1"),
        ("a/*/b/*", "{2}/x/{1}", "a/1/b/2/3", None),
        ("a/*", "site-{1}-{1}", "a/7", "site-7-7"),
        ("a/*/>", "{2}", "a/b/c/d", "c/d"),
        ("a/*", "b", "a/7", "b"),
        ("a/red*", "{1}/x", "a/reddish", "dish/x"),
        ("a/red*", "{1}/x", "a/red", "/x"),
        ("a/>", "{1}/end", "a/b/c", "b/c/end"),
        ("a/>", "x-{1}", "a/b/c", "x-b/c"),
        ("a/b", "c", "a/b", "c"),
        ("a/*", "{{{1}}}", "a/b", "{b}"),
        ("$SYS/>", "sys/{1}", "$SYS/a", "sys/a"),
        ("$SYS/>", "$local/{1}", "$SYS/a", "$local/a"),
        (">", "x/{1}", "$SYS/a", None),
        ("*/a", "x/{1}", "#P2P/a", None),
        (">", "x/{1}", "#other/a", "x/#other/a"),
    ],
)
def test_renaming(source: str, to: str, topic: str, image: str | None) -> None:
    """Captures go where the template names them; what does not match is left alone."""
    assert parse_rule(source, to).apply(topic, topic.split("/")) == image


@pytest.mark.parametrize(
    ("source", "to", "topic", "image"),
    [
        ("sensors/#", "x/{1}", "sensors/a", "x/a"),
        ("sensors/#", "x/{1}", "sensors", "x"),
        ("sensors/#", "x/{1}", "sensors/", "x/"),
        ("sensors/#", "{1}/x", "sensors", "x"),
        ("sensors/#", "a/{1}/x", "sensors", "a/x"),
        ("sensors/#", "a/{1}/x", "sensors/", "a//x"),
        ("sensors/#", "a-{1}/x", "sensors", "a-/x"),
        ("+/#", "{1}/{2}/{2}", "a", "a"),
        ("#", "x/{1}", "a", "x/a"),
        ("/#", "x/{1}", "/a", "x/a"),
        ("a/*/+", "{1}", "a/*/b", "b"),
        ("+/b/+", "/{2}//{1}", "a/b/c", "/c//a"),
    ],
)
def test_renaming_in_mqtt_dialect(source: str, to: str, topic: str, image: str) -> None:
    """`#` captures no level or many; a level that is nothing but a capture of none goes."""
    assert parse_rule(source, to, MQTT).apply(topic, topic.split("/")) == image


@pytest.mark.parametrize(
    ("source", "to", "dialect", "topic", "words"),
    [
        ("a/>", "{1}", SMF, "a/", "an empty one"),
        ("a/#", "{1}", MQTT, "a", "an empty one"),
        ("a/>", "{1}", SMF, "a/$SYS/x", "one that begins with $"),
        ("a/>", "{1}", SMF, "a/#x", "one that begins with #"),
        ("*/*", "{2}/{1}", SMF, "#a/#P2P", "one that begins with #"),
        ("*/*", "{2}/{1}", SMF, "#a/$b", "one that begins with $"),
        (">", "x/{1}", SMF, "a/" * (TOPIC_LEVELS - 1) + "a", f"more than {TOPIC_LEVELS} levels"),
        (">", "x/{1}", SMF, "é" * (TOPIC_BYTES // 2), f"more than {TOPIC_BYTES} bytes"),
        ("*", "{1}" * 20_000, SMF, "a" * 60_000, f"more than {TOPIC_BYTES} bytes"),
    ],
)
def test_what_would_become_no_topic(
    source: str, to: str, dialect: int, topic: str, words: str
) -> None:
    """The error names the rule and the topic; nothing is let through to guarded topics."""
    rule = parse_rule(source, to, dialect)
    with pytest.raises(TopicError) as caught:
        rule.apply(topic, topic.split("/"))
    assert str(caught.value).startswith(f"{rule.label}: the topic ")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_new_topic_at_the_bounds() -> None:
    """As many levels and bytes as a topic may have are made."""
    rule = parse_rule(">", "x/{1}")
    for topic in ("/".join("a" * (TOPIC_LEVELS - 1)), "é" * (TOPIC_BYTES // 2 - 1) + "a"):
        assert rule.apply(topic, topic.split("/")) == "x/" + topic


@pytest.mark.parametrize(
    ("source", "to", "dialect", "filter_", "back"),
    [
        (">", "site1/{1}", SMF, "site1/>", "{1}"),
        ("site1/>", "{1}", SMF, ">", "site1/{1}"),
        ("a/*/b/*", "{2}/x/{1}", SMF, "*/x/*", "a/{2}/b/{1}"),
        ("a/red*/>", "r-{1}/{2}", SMF, "r-*/>", "a/red{1}/{2}"),
        ("a/red*", "{1}/x", SMF, "*/x", "a/red{1}"),
        ("a/*", "site-{1}", SMF, "site-*", "a/{1}"),
        ("a/b", "{{c}}", SMF, "{c}", "a/b"),
        ("a/#", "x/{1}", MQTT, "x/#", "a/{1}"),
        ("{/#", "{1}", MQTT, "#", "{{/{1}"),
        ("a/*/#", "x/{1}", MQTT, "x/#", "a/*/{1}"),
    ],
)
def test_inverse(source: str, to: str, dialect: int, filter_: str, back: str) -> None:
    """Filter and template change places, and once more they are what they were."""
    rule = parse_rule(source, to, dialect)
    inverse = rule.inverse()
    assert inverse.filter.text == rule.image.text == filter_
    assert "/".join(level.written() for level in inverse._template) == back
    again = inverse.inverse()
    assert again.filter == rule.filter
    assert "/".join(level.written() for level in again._template) == to


@pytest.mark.parametrize(
    ("source", "to", "words"),
    [
        ("a/*/*", "{1}", "wildcard 2 must be used once, and to drops what it matched"),
        ("a/*", "{1}/{1}", "wildcard 1 must be used once, and to uses {1} 2 times"),
        ("a/*", "{1}-x", "where '{1}-x' in level 1 of to ends cannot be told"),
        ("a/*/*", "x/{1}{2}", "where '{1}{2}' in level 2 of to ends cannot be told"),
        ("a/>", "{1}/x", "where '{1}' in level 1 of to ends cannot be told"),
        ("a/>", "x-{1}", "where 'x-{1}' in level 1 of to ends cannot be told"),
        ("$a/*", "{1}", "no wildcard would match the way back to '$a'"),
        ("$a/>", "x/{1}", "no other topic may become one that begins with $"),
        ("#a/>", "x/{1}", "no other topic may become one that begins with #"),
    ],
)
def test_no_inverse(source: str, to: str, words: str) -> None:
    """A rule from whose image the old topic cannot be told, or may not be made, says why."""
    rule = parse_rule(source, to)
    with pytest.raises(TopicError) as caught:
        rule.inverse()
    assert str(caught.value).startswith(f"{rule.label} has no inverse: {words}")


@pytest.mark.parametrize(
    ("source", "to", "dialect", "asked", "pulled"),
    [
        (">", "site1/{1}", SMF, "site1/orders/>", "orders/>"),
        (">", "site1/{1}", SMF, "site1/orders", "orders"),
        (">", "site1/{1}", SMF, "site1/*", "*"),
        (">", "site1/{1}", SMF, "*/a", "a"),
        (">", "site1/{1}", SMF, ">", ">"),
        (">", "site1/{1}", SMF, "site1", None),
        (">", "site1/{1}", SMF, "site2/>", None),
        (">", "site1/{1}", SMF, "site1/$SYS/>", None),
        ("site1/>", "{1}", SMF, "orders/>", "site1/orders/>"),
        ("site1/>", "{1}", SMF, "*/new", "site1/*/new"),
        ("site1/>", "{1}", SMF, "$SYS/>", None),
        ("a/*/b/*", "{2}/x/{1}", SMF, "7/*/q*", "a/q*/b/7"),
        ("a/*/b/*", "{2}/x/{1}", SMF, "*/y/*", None),
        ("a/*/b/*", "{2}/x/{1}", SMF, "7/>", "a/*/b/7"),
        ("a/*/b/*", "{2}/x/{1}", SMF, "*/x", None),
        ("a/*/b/*", "{2}/x/{1}", SMF, "*/x/*/>", None),
        ("a/red*", "r{1}", SMF, "reen", "a/redeen"),
        ("a/red*", "ree{1}", SMF, "r*", "a/red*"),
        ("a/red*", "ree{1}", SMF, "x*", None),
        ("a/red*", "ree{1}", SMF, "r", None),
        ("a/*", "x-{1}-y", SMF, "x-7-y", "a/*"),
        ("a/*", "x-{1}-y", SMF, "z", None),
        ("a/>", "x/{1}/y", SMF, "x/b/y", "a/>"),
        ("a/>", "x/{1}/y", SMF, "y/>", None),
        ("$a/*", "$b/{1}", SMF, "*/c", None),
        ("$a/*", "$b/{1}", SMF, ">", None),
        ("$a/*", "$b/{1}", SMF, "$b/>", "$a/*"),
        ("a/#", "x/{1}", MQTT, "x", "a"),
        ("a/#", "x/{1}", MQTT, "x/#", "a/#"),
        ("a/#", "x/{1}", MQTT, "x/+/#", "a/*/#"),
        ("a/+", "x/{1}", MQTT, "x/+/#", "a/*"),
        ("a/+", "x/{1}", MQTT, "x/1/+/#", None),
        ("#", "x/{1}", MQTT, "x", None),
        ("+/#", "{1}/{2}", MQTT, "b/c", "b/c"),
    ],
)
def test_pulling_a_filter_back(
    source: str, to: str, dialect: int, asked: str, pulled: str | None
) -> None:
    """A filter over new topics becomes the narrow one over old topics, or none."""
    found = parse_rule(source, to, dialect).pull_back(parse_filter(asked, dialect))
    assert (found.text if found else None) == pulled


def test_pulling_back_from_the_other_dialect() -> None:
    """`#` asks for no level that the rule's own `>` does not match."""
    pulled = parse_rule("a/>", "x/{1}").pull_back(parse_filter("x/#", MQTT))
    assert pulled is not None
    assert pulled.text == "a/>"


def test_rule_shows_what_it_is() -> None:
    """The representation is the label that errors use."""
    assert repr(parse_rule("a/*", "{1}")) == "<topic mapping from 'a/*' to '{1}'>"


def renamed(rule: MappingRule, topic: str) -> str | None:
    """What a rule makes of a topic."""
    return rule.apply(topic, topic.split("/"))


@pytest.mark.parametrize(
    ("source", "to", "dialect", "words"),
    [
        ("a//b", "x", SMF, "from: an SMF filter has no empty level"),
        ("", "x", SMF, "from: a topic filter is not empty"),
        ("a/#/b", "x", MQTT, "from: # stands alone in the last level"),
        ("#share/g/a/>", "{1}", SMF, "from has no exception mark, share name or #noexport"),
        ("$share/g/a/#", "{1}", MQTT, "from has no exception mark, share name or #noexport"),
        ("#noexport/a/>", "{1}", SMF, "from has no exception mark, share name or #noexport"),
        ("!a/>", "{1}", SMF, "from has no exception mark, share name or #noexport"),
        ("$S*/a", "{1}", SMF, "from: '$S*' matches no topic"),
        ("#P2P*", "{1}", SMF, "from: '#P2P*' matches no topic"),
        ("$x*/a", "b", MQTT, "from: a first level '$x*' cannot be asked for"),
        ("a/>", "$x/{1}", SMF, "to begins with $ where from does not"),
        ("*", "$x{1}", SMF, "to begins with $ where from does not"),
        ("a/*", "b/{2}", SMF, "to names {2} at character 3, but from has 1 wildcard"),
        (
            "a/+/b",
            "b/{1}",
            SMF,
            "to names {1} at character 3, but from has no wildcards (in smf syntax + and # are none)",
        ),
        (
            "a/>",
            "b/{1}",
            MQTT,
            "to names {1} at character 3, but from has no wildcards (in mqtt syntax * and > are none)",
        ),
    ],
)
def test_what_is_no_rule(source: str, to: str, dialect: int, words: str) -> None:
    """An error names the rule by its two texts, then says what is wrong and where."""
    with pytest.raises(TopicError) as caught:
        parse_rule(source, to, dialect)
    assert str(caught.value) == f"topic mapping from {source!r} to {to!r}: {words}"


def test_error_is_one_short_line_whatever_the_texts() -> None:
    """Long texts are cut, and a line break is shown as one."""
    with pytest.raises(TopicError) as caught:
        parse_rule("a\n" * 10_000 + "*", "{2}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_from_leaves_room_for_its_other_form() -> None:
    """With one byte for each level to spare a filter is taken, with one byte less it is not."""
    most = TOPIC_BYTES - TOPIC_LEVELS
    assert parse_rule("a" * most, "x").filter.literal
    with pytest.raises(TopicError, match=f"at most {most} bytes, this one {most + 1}"):
        parse_rule("a" * (most + 1), "x")


@pytest.mark.parametrize("dialect", [SMF, MQTT])
@pytest.mark.parametrize("prefix", ["site{1}/b", "site{1}/b/"])
def test_prefix_is_added_and_stripped(prefix: str, dialect: int) -> None:
    """Both forms move whole levels, braces are literal, and a slash at the end changes nothing."""
    put, take = add_prefix(prefix, dialect), strip_prefix(prefix, dialect)
    for topic in ("a", "a/b", "/", "a//b/"):
        assert renamed(put, topic) == "site{1}/b/" + topic
        assert renamed(take, "site{1}/b/" + topic) == topic
    assert renamed(put, "$SYS/a") is None
    assert renamed(take, "site{1}/b") is None
    assert renamed(take, "site{1}/bb/a") is None


def test_mqtt_prefix_has_empty_levels() -> None:
    """Empty levels of a prefix are levels in MQTT dialect."""
    assert renamed(add_prefix("/s", MQTT), "a") == "/s/a"
    assert renamed(strip_prefix("/s//", MQTT), "/s//a/b") == "a/b"


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("", "a prefix has a level that is not empty"),
        ("/", "a prefix has a level that is not empty"),
        ("a/*", "a prefix has no wildcard character, this one * at character 3"),
        ("a/>", "a prefix has no wildcard character, this one > at character 3"),
        ("+", "a prefix has no wildcard character, this one + at character 1"),
        ("#", "a prefix has no wildcard character, this one # at character 1"),
    ],
)
def test_what_is_no_prefix(prefix: str, words: str) -> None:
    """The error names the short form that was written."""
    with pytest.raises(TopicError) as caught:
        add_prefix(prefix)
    assert str(caught.value) == f"topic mapping add_prefix {prefix!r}: {words}"
    with pytest.raises(TopicError) as caught:
        strip_prefix(prefix)
    assert str(caught.value) == f"topic mapping strip_prefix {prefix!r}: {words}"


def test_prefix_follows_the_rules_of_templates() -> None:
    """No prefix leads to guarded topics, and none has an empty level in SMF dialect."""
    with pytest.raises(TopicError, match="to begins with"):
        add_prefix("$SYS")
    with pytest.raises(TopicError, match="empty level, level 2"):
        add_prefix("a//b")


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("a/b", [(["a"], []), (["b"], [])]),
        ("{1}", [(["", ""], [0])]),
        ("x{2}y{1}/{2}", [(["x", "y", ""], [1, 0]), (["", ""], [1])]),
        ("{1}{2}", [(["", "", ""], [0, 1])]),
        ("{{1}}/{1}", [(["{1}"], []), (["", ""], [0])]),
        ("{{{1}}}", [(["{", "}"], [0])]),
        ("é/$x", [(["é"], []), (["$x"], [])]),
    ],
)
def test_levels_of_a_template(text: str, levels: list[tuple[list[str], list[int]]]) -> None:
    """Text, captures and doubled braces are told apart, level by level; they are written alike."""
    found = parse_template(text, SMF, 2)
    assert [(level.texts, level.captures) for level in found] == levels
    assert "/".join(level.written() for level in found) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "to is empty"),
        ("a//b", "to has an empty level, level 2"),
        ("a/", "to has an empty level, level 2"),
        ("/a", "to has an empty level, level 1"),
        ("a/{3}", "to names {3} at character 3, but from has 2 wildcards"),
        ("{0}", "to names {0} at character 1, but from has 2 wildcards"),
        ("{" + "9" * 5_000 + "}", "to names {999...} at character 1"),
        ("ab{1", "to has a { without its } at character 3; a literal one is written {{"),
        ("a}b", "to has a } without its { at character 2; a literal one is written }}"),
        ("{1}}", "to has a } without its { at character 4"),
        ("a/{}", "to has braces without a number at character 3"),
        ("{name}", "to has braces without a number at character 1"),
        ("{01}", "to has braces without a number at character 1"),
        ("{-1}", "to has braces without a number at character 1"),
        ("{²}", "to has braces without a number at character 1"),
        ("{a/1}", "to has braces without a number at character 1"),
        ("a/*", "to has the wildcard character * at character 3"),
        ("a/>", "to has the wildcard character > at character 3"),
        ("a/+/b", "to has the wildcard character + at character 3"),
        ("#", "to has the wildcard character # at character 1"),
        ("a\0", "to has a NUL at character 2"),
        ("ab\ud800", "to is not UTF-8 at character 3"),
        ("a/" * TOPIC_LEVELS + "a", f"to has at most {TOPIC_LEVELS} levels"),
        ("é" * TOPIC_BYTES, f"to has at most {TOPIC_BYTES} bytes, this one {2 * TOPIC_BYTES}"),
    ],
)
def test_what_is_no_template(text: str, words: str) -> None:
    """An error says on one line what is wrong and at which character."""
    with pytest.raises(TopicError) as caught:
        parse_template(text, SMF, 2)
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 120
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "from has no wildcards."), (1, "from has 1 wildcard.")]
)
def test_missing_wildcards_are_counted_in_words(count: int, words: str) -> None:
    """The error says how many wildcards there are, and the note of the caller."""
    with pytest.raises(TopicError) as caught:
        parse_template("{2}", SMF, count, ".")
    assert str(caught.value).endswith(words)


def test_mqtt_templates_have_empty_levels() -> None:
    """In MQTT dialect an empty level is one, as it is in filters."""
    assert [level.texts for level in parse_template("/a//", MQTT, 0)] == [[""], ["a"], [""], [""]]


def test_template_at_the_bounds() -> None:
    """As many levels and bytes as a topic may have are taken."""
    assert len(parse_template("/".join("a" * TOPIC_LEVELS), SMF, 0)) == TOPIC_LEVELS
    assert parse_template("a" * TOPIC_BYTES, SMF, 0)[0].texts == ["a" * TOPIC_BYTES]


def test_escaped_text_is_literal() -> None:
    """Braces of any text survive the way through a template."""
    assert parse_template(escape("{1}}{"), SMF, 1)[0].texts == ["{1}}{"]


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
