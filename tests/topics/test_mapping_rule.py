"""One rule: renaming, the way back, and which old topics a filter over new ones asks for."""

import pytest

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.topics.mapping import parse_rule


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
