"""Filters against filters."""

from pathlib import Path

import pytest

from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.algebra import covers, intersects, matches, witness
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, parse_topic
from vpnrouter.topics.oracle import oracle_matches


def test_matches_one_topic() -> None:
    """A filter is asked about a topic without a trie."""
    assert matches(parse_filter("a/*", SMF), "a/b")
    assert not matches(parse_filter("a/*", SMF), "a/b/c")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("a/*", SMF), ("a/b", SMF)),
        (("a/*", SMF), ("a/b*", SMF)),
        (("a/b*", SMF), ("a/bc*", SMF)),
        (("a/b*", SMF), ("a/b", SMF)),
        (("a/>", SMF), ("a/*/c", SMF)),
        (("a/#", MQTT), ("a", MQTT)),
        (("a/#", MQTT), ("a/>", SMF)),
        (("a/>", SMF), ("a/+/#", MQTT)),
        ((">", SMF), ("#", MQTT)),
        (("#", MQTT), (">", SMF)),
        (("$SYS/>", SMF), ("$SYS/*", SMF)),
        (("a", SMF), ("$S*", SMF)),
        (("#share/g/a/*", SMF), ("a/b", SMF)),
        (("/+/#", MQTT), ("/#", MQTT)),
    ],
)
def test_covers(a: tuple[str, int], b: tuple[str, int]) -> None:
    """The first filter takes in the second."""
    assert covers(parse_filter(*a), parse_filter(*b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("a/b", SMF), ("a/*", SMF)),
        (("a/b", SMF), ("a/b*", SMF)),
        (("a/bc*", SMF), ("a/b*", SMF)),
        (("a/>", SMF), ("a/#", MQTT)),
        (("a/>", SMF), ("a", SMF)),
        (("a/*", SMF), ("a/>", SMF)),
        ((">", SMF), ("$SYS/a", SMF)),
        (("#", MQTT), ("$SYS/#", MQTT)),
        (("*/a", SMF), ("#P2P/a", SMF)),
        (("a/b/>", SMF), ("a/>", SMF)),
    ],
)
def test_does_not_cover(a: tuple[str, int], b: tuple[str, int]) -> None:
    """Some topic of the second escapes the first."""
    assert not covers(parse_filter(*a), parse_filter(*b))


@pytest.mark.parametrize(
    ("a", "b", "topic"),
    [
        (("a/*", SMF), ("*/b", SMF), "a/b"),
        (("a/b*", SMF), ("a/bc*", SMF), "a/bc"),
        (("a/>", SMF), ("a/#", MQTT), "a/x"),
        (("a/#", MQTT), ("a", MQTT), "a"),
        (("#", MQTT), (">", SMF), "x"),
        (("*/*", SMF), (">", SMF), "x/x"),
        (("a/+/", MQTT), ("a/#", MQTT), "a/x/"),
        (("/#", MQTT), (">", SMF), "/x"),
        (("a/+", SMF), ("a/*", SMF), "a/+"),
    ],
)
def test_witness(a: tuple[str, int], b: tuple[str, int], topic: str) -> None:
    """Two filters with common topics name one of them, in either order."""
    first, second = parse_filter(*a), parse_filter(*b)
    assert witness(first, second) == topic
    assert witness(second, first) == topic
    assert intersects(first, second)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("a", SMF), ("b", SMF)),
        (("a/*", SMF), ("a", SMF)),
        (("a/>", SMF), ("a", SMF)),
        (("a/b*", SMF), ("a/c*", SMF)),
        (("*/a", SMF), ("$SYS/*", SMF)),
        ((">", SMF), ("#P2P/>", SMF)),
        (("$S*/a", SMF), ("$SYS/a", SMF)),
        (("a/*", SMF), ("a/*/*", SMF)),
        (("/#", MQTT), ("+", MQTT)),
    ],
)
def test_disjoint(a: tuple[str, int], b: tuple[str, int]) -> None:
    """Filters without a common topic have no witness."""
    assert witness(parse_filter(*a), parse_filter(*b)) is None
    assert not intersects(parse_filter(*b), parse_filter(*a))


def test_a_witness_has_no_more_levels_than_a_topic() -> None:
    """Filters at the bound meet within it."""
    deep = "*/" * (TOPIC_LEVELS - 1)
    topic = witness(parse_filter(deep + ">", SMF), parse_filter("a/>", SMF))
    assert topic is not None
    assert parse_topic(topic.encode()).count("/") == TOPIC_LEVELS - 1


def test_a_witness_has_no_more_bytes_than_a_topic() -> None:
    """A tight fit is found by empty levels; with one byte more there is no common topic."""
    first = parse_filter("a" * 30_000 + "/*/*/*", SMF)
    fitting = "b" * (TOPIC_BYTES - 30_000 - 3)
    topic = witness(first, parse_filter(f"*/{fitting}/*/*", SMF))
    assert topic is not None
    assert topic.endswith("//")
    assert len(parse_topic(topic.encode())) == TOPIC_BYTES
    assert witness(first, parse_filter(f"*/{fitting}b/*/*", SMF)) is None


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "dialect", "topic", "expected"),
    [
        ("a/b", SMF, "a/b", True),
        ("a/b", SMF, "a/b/c", False),
        ("a/*", SMF, "a/b", True),
        ("a/b*", SMF, "a/bc", True),
        ("a/>", SMF, "a", False),
        ("a/>", SMF, "a/b/c", True),
        ("a/#", MQTT, "a", True),
        ("+/b", MQTT, "a/b", True),
        ("+/b", MQTT, "$a/b", False),
        ("*/b", MQTT, "a/b", False),
        (">", SMF, "#P2P/a", False),
    ],
)
def test_oracle(text: str, dialect: int, topic: str, *, expected: bool) -> None:
    """A few pairs that a reader can check by eye."""
    assert oracle_matches(text, dialect, topic) == expected


def test_production_code_does_not_use_the_oracle() -> None:
    """No module of the package names it, so that it can never stand on the message path."""
    users = [
        path.name
        for path in (ROOT / "vpnrouter").rglob("*.py")
        if path.name != "oracle.py" and "oracle" in path.read_text(encoding="utf-8").lower()
    ]
    assert users == []
