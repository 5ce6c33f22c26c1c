"""The three truth values and what a text says."""

import pytest

from vpnrouter.selectors.conditions import FALSE, TRUE, UNKNOWN, read_flag, truth


def test_order_makes_the_logic() -> None:
    """AND is the least and OR the greatest; NOT exchanges the ends and keeps the middle."""
    assert FALSE < UNKNOWN < TRUE
    assert [TRUE - value for value in (FALSE, UNKNOWN, TRUE)] == [TRUE, UNKNOWN, FALSE]
    assert (truth(True), truth(False)) == (TRUE, FALSE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", TRUE),
        ("TRUE", TRUE),
        ("tRuE", TRUE),
        ("false", FALSE),
        ("False", FALSE),
        ("", UNKNOWN),
        ("1", UNKNOWN),
        ("yes", UNKNOWN),
        ("true ", UNKNOWN),
        ("falſe", UNKNOWN),
    ],
)
def test_flag_in_any_case(text: str, value: int) -> None:
    """Only "true" and "false" are flags, in any case of their letters."""
    assert read_flag(text) == value
