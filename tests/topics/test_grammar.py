"""The grammar beyond the conformance cases: bounds that a VPN sets, what a Filter holds."""

import pytest

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import (
    ALL,
    LITERAL,
    MQTT,
    ONE,
    PREFIX,
    REST,
    SMF,
    hidden,
    match_levels,
    parse_filter,
    parse_topic,
    to_mqtt,
    to_smf,
)


def refused_topic(
    raw: bytes, most_levels: int = TOPIC_LEVELS, most_bytes: int = TOPIC_BYTES
) -> str:
    """The clause by which a topic is refused."""
    with pytest.raises(TopicError) as raised:
        parse_topic(raw, most_levels, most_bytes)
    return raised.value.clause


def test_bounds_of_a_topic_are_exact() -> None:
    """The last level and byte within the bounds pass, one more is refused."""
    assert parse_topic(b"/" * (TOPIC_LEVELS - 1)) == "/" * (TOPIC_LEVELS - 1)
    assert refused_topic(b"/" * TOPIC_LEVELS) == "TOPIC-5"
    assert len(parse_topic(b"a" * TOPIC_BYTES)) == TOPIC_BYTES
    assert refused_topic(b"a" * (TOPIC_BYTES + 1)) == "TOPIC-4"


def test_a_vpn_sets_lower_bounds() -> None:
    """Bounds given as arguments replace those of the grammar."""
    assert parse_topic(b"a/b", 2, 3) == "a/b"
    assert refused_topic(b"a/b/c", 2, 5) == "TOPIC-5"
    assert refused_topic(b"a/bc", 2, 3) == "TOPIC-4"
    assert parse_filter("a/*", SMF, max_levels=2, max_bytes=3).text == "a/*"
    with pytest.raises(TopicError) as raised:
        parse_filter("a/b/*", SMF, max_levels=2)
    assert raised.value.clause == "TOPIC-5"
    with pytest.raises(TopicError) as raised:
        parse_filter("#share/g/a", SMF, max_bytes=9)
    assert raised.value.clause == "TOPIC-4"


def test_bytes_of_a_filter_are_counted_not_characters() -> None:
    """A filter in another script is measured as it travels."""
    assert parse_filter("é/+", MQTT, max_bytes=4).levels == ["é", ""]
    with pytest.raises(TopicError):
        parse_filter("é/+", MQTT, max_bytes=3)


def test_levels_and_kinds() -> None:
    """A prefix level holds its prefix, other wildcard levels nothing, literals themselves."""
    smf = parse_filter("a/b*/*/>", SMF)
    assert smf.levels == ["a", "b", "", ""]
    assert smf.kinds == [LITERAL, PREFIX, ONE, REST]
    mqtt = parse_filter("a/b*/+/#", MQTT)
    assert mqtt.levels == ["a", "b*", "", ""]
    assert mqtt.kinds == [LITERAL, LITERAL, ONE, ALL]


@pytest.mark.parametrize(
    ("text", "dialect", "literal"),
    [("a/b", SMF, True), ("a*b/>c", SMF, True), ("a/b*", SMF, False), ("a/*", MQTT, True)],
)
def test_literal_means_no_wildcard(text: str, dialect: int, *, literal: bool) -> None:
    """`literal` follows from the kinds, not from characters."""
    assert parse_filter(text, dialect).literal == literal


def test_filter_is_no_other_thing() -> None:
    """A filter does not equal its own text, and its repr shows text and dialect."""
    filter_ = parse_filter("a/+", MQTT)
    assert filter_ != "a/+"
    assert repr(filter_) == "Filter('a/+', MQTT)"
    assert repr(parse_filter("a/*", SMF)) == "Filter('a/*', SMF)"


def test_exception_mark_tells_filters_apart() -> None:
    """An exception never equals the subscription it excepts from."""
    assert parse_filter("!a", SMF, exceptions=True) != parse_filter("a", SMF)


@pytest.mark.parametrize("level", ["$", "$SYS", "#P2P", "#P2Px"])
def test_hidden(level: str) -> None:
    """First levels that begin with $ or #P2P hide their topics."""
    assert hidden(level)


@pytest.mark.parametrize("level", ["", "a$", "#P2", "#LOG", "x#P2P"])
def test_not_hidden(level: str) -> None:
    """Any other first level does not."""
    assert not hidden(level)


def test_match_levels_takes_split_topics() -> None:
    """The matcher works on levels alone."""
    filter_ = parse_filter("a/b*", SMF)
    assert match_levels(filter_.levels, filter_.kinds, ["a", "bc"])
    assert not match_levels(filter_.levels, filter_.kinds, ["a", "bc", "d"])


def test_translations_of_a_literal() -> None:
    """A plain filter reads the same in both dialects."""
    assert to_smf(parse_filter("a/b", MQTT)) == ["a/b"]
    assert to_mqtt(parse_filter("a/b", SMF)) == "a/b"
