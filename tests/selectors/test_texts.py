"""Conditions on texts: yes, no, and unknown without the property."""

import pytest

from vpnrouter.selectors.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Absent,
    Condition,
    Like,
    LikePattern,
    OneOf,
    SameText,
    TextIs,
)

CONDITIONS = [
    (TextIs("x", "a", TRUE, FALSE), "a", "A"),
    (OneOf("x", ["a", "b"], TRUE, FALSE), "b", "ab"),
    (Like("x", LikePattern("a%"), TRUE, FALSE), "abc", "ba"),
    (SameText("x", "y", TRUE, FALSE), "why", "Why"),
]


@pytest.mark.parametrize(("condition", "inside", "outside"), CONDITIONS)
def test_yes_no_unknown(condition: Condition, inside: str, outside: str) -> None:
    """The text decides, with case; a message without the property is unknown."""
    assert condition.test({"x": inside, "y": "why"}) == TRUE
    assert condition.test({"x": outside, "y": "why"}) == FALSE
    assert condition.test({"y": "why"}) == UNKNOWN


def test_absence_is_never_unknown() -> None:
    """An empty text is there."""
    is_null = Absent("x", TRUE, FALSE)
    assert is_null.test({}) == TRUE
    assert is_null.test({"x": ""}) == FALSE
