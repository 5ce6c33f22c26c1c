"""Terms: what has a value, and when that value is unknown."""

from vpnrouter.selectors.conditions import Chain, Constant, PropertyTerm, Signed

ONE = Constant(1)
X = PropertyTerm("x")


def test_property_is_a_number_a_text_or_unknown() -> None:
    """The text is kept where it reads as no number, for the comparison to tell it from unknown."""
    assert X.value({"x": "12"}) == 12
    assert X.value({"x": "twelve"}) == "twelve"
    assert X.value({}) is None


def test_arithmetic_on_text_is_unknown() -> None:
    """A sign and a chain have no value where a part has none or is no number."""
    for properties in ({}, {"x": "twelve"}):
        assert Signed(X, negative=True).value(properties) is None
        assert Signed(X, negative=False).value(properties) is None
        assert Chain(X, [("+", ONE)]).value(properties) is None
        assert Chain(ONE, [("+", X), ("+", ONE)]).value(properties) is None


def test_chain_goes_from_left_to_right() -> None:
    """8 - 1 - 2 is 5; a step that has no result ends the chain."""
    assert Chain(Constant(8), [("-", ONE), ("-", Constant(2))]).value({}) == 5
    assert Chain(ONE, [("/", Constant(0)), ("+", ONE)]).value({}) is None


def test_sign() -> None:
    """A minus changes the sign; of the least long it makes a double."""
    assert Signed(X, negative=True).value({"x": "5"}) == -5
    assert Signed(X, negative=False).value({"x": "-5"}) == -5
    assert Signed(X, negative=True).value({"x": str(-(2**63))}) == 2.0**63
