"""The oracle itself: right by inspection, and used by tests alone."""

from pathlib import Path

import pytest

from vpnrouter.topics.grammar import MQTT, SMF
from vpnrouter.topics.oracle import oracle_matches

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
