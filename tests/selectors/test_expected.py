"""The words of a syntax error."""

from vpnrouter.selectors.parser import shown, unexpected


def test_groups_speak_for_their_terminals() -> None:
    """A dozen terminals become two or three words that people use."""
    value = ["NAME", "QUOTED_NAME", "STRING", "NUMBER", "TRUE", "FALSE", "LPAR", "NOT", "ADD"]
    assert unexpected("", value) == "expected a value, not the end"
    assert unexpected("x", ["NULL", "NOT"]) == "expected NOT or NULL, not 'x'"
    behind = ["COMPARISON", "ADD", "MULTIPLY", "AND", "OR", "IS", "IN", "LIKE", "$END"]
    assert unexpected("x", behind) == "expected an operator or the end, not 'x'"
    assert unexpected("1", ["STRING"]) == "expected a string in single quotes, not '1'"


def test_common_mistakes_get_a_hint() -> None:
    """The way it is written stands behind the error."""
    assert unexpected("null", ["NUMBER"]).endswith("; IS NULL asks for a missing property")
    assert unexpected("!", ["COMPARISON"]).endswith("; not equal is written <>")


def test_shown_is_short_and_on_one_line() -> None:
    """Line ends are escaped, long texts are cut."""
    assert shown("a\n\u2028b") == r"'a\n\u2028b'"
    assert shown("x" * 99) == f"'{'x' * 24}…'"
