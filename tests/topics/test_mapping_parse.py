"""Rules from their text: what is refused, and what the two short forms stand for."""

import pytest

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.topics.mapping import MappingRule, add_prefix, parse_rule, strip_prefix


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
