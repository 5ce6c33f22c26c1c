"""Templates of topic mappings: what is read, and what is refused with which words."""

import pytest

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.topics.mapping import escape, parse_template


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
