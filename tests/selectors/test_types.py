"""Properties with types are compared by them (Jakarta Messaging 3.1, 3.8.1.2); those of MQTT have none."""

from __future__ import annotations

import pytest

from vpnrouter.selectors import Text, parse_selector

TYPES: dict[str, object] = {
    "long": 42,
    "double": 42.0,
    "text": Text("42"),
    "untyped": "42",
    "flag": True,
    "text flag": Text("true"),
    "untyped flag": "true",
    "zero": 0,
    "one": 1,
    "nan": float("nan"),
    "infinite": float("inf"),
    "huge": 2**64 - 1,
    "empty": Text(""),
}

# For each condition of `x` the types of x for which it is true; `unlike` those for which it and its form with <> or
# NOT are both false.
CASES: list[tuple[str, str, set[str], set[str]]] = [
    (
        "x = 42",
        "x <> 42",
        {"long", "double", "untyped"},
        {"text", "flag", "text flag", "untyped flag", "nan", "empty"},
    ),
    (
        "x = 42L",
        "x <> 42L",
        {"long", "double", "untyped"},
        {"text", "flag", "text flag", "untyped flag", "nan", "empty"},
    ),
    (
        "x = '42'",
        "x <> '42'",
        {"text", "untyped"},
        {"long", "double", "flag", "zero", "one", "nan", "infinite", "huge"},
    ),
    (
        "x IN ('42')",
        "x NOT IN ('42')",
        {"text", "untyped"},
        {"long", "double", "flag", "zero", "one", "nan", "infinite", "huge"},
    ),
    (
        "x LIKE '4%'",
        "x NOT LIKE '4%'",
        {"text", "untyped"},
        {"long", "double", "flag", "zero", "one", "nan", "infinite", "huge"},
    ),
    (
        "x = TRUE",
        "x <> TRUE",
        {"flag", "untyped flag"},
        set(TYPES) - {"flag", "untyped flag"},
    ),
    (
        "x BETWEEN 1 AND 50",
        "x NOT BETWEEN 1 AND 50",
        {"long", "double", "untyped", "one"},
        {"text", "flag", "text flag", "untyped flag", "nan", "empty"},
    ),
    ("x IS NOT NULL", "x IS NULL", set(TYPES), set()),
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("condition", "opposite", "holds", "unlike"), CASES)
def test_each_type(
    condition: str, opposite: str, holds: set[str], unlike: set[str], kind: str
) -> None:
    """Like types are compared, and between unlike ones every comparison is false."""
    message = {"x": TYPES[kind]}
    assert parse_selector(condition).matches(message) == (kind in holds)
    expected = kind not in holds and kind not in unlike
    assert parse_selector(opposite).matches(message) == expected


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("long", "double", True),
        ("long", "one", False),
        ("long", "untyped", True),
        ("long", "text", None),
        ("long", "flag", None),
        ("one", "flag", None),
        ("flag", "untyped flag", True),
        ("flag", "text flag", None),
        ("text", "untyped", True),
        ("text", "text flag", False),
        ("untyped", "text", True),
        ("nan", "nan", None),
    ],
)
def test_two_properties(left: str, right: str, result: bool | None) -> None:
    """They are compared by their types, in both orders; None for unlike ones."""
    for one, other in ((left, right), (right, left)):
        message = {"a": TYPES[one], "b": TYPES[other]}
        assert parse_selector("a = b").matches(message) == (result is True)
        assert parse_selector("a <> b").matches(message) == (result is False)


@pytest.mark.parametrize(
    ("text", "kind", "result"),
    [
        ("x + 1 = 43", "long", True),
        ("x + 1 = 43", "untyped", True),
        ("x + 1 = 43", "text", False),
        ("NOT (x + 1 = 43)", "text", False),
        ("x / 5 = 8", "long", True),
        ("x / 5 = 8.4", "double", True),
        ("-x = -42", "long", True),
        ("-x = -1", "flag", False),
        ("x > 1e300", "infinite", True),
        ("x > 9223372036854775807", "huge", True),
        ("x", "flag", True),
        ("x", "untyped flag", True),
        ("x", "text flag", False),
        ("x", "one", False),
        ("NOT x", "one", True),
    ],
)
def test_arithmetic_and_flags(text: str, kind: str, result: bool) -> None:
    """Only numbers are calculated with, and only flags stand alone."""
    assert parse_selector(text).matches({"x": TYPES[kind]}) == result
