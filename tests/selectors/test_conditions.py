"""What conditions say of a message."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SelectorError
from vpnrouter.selectors.build import comparison, condition_of, name_of, term_of
from vpnrouter.selectors.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    AllOf,
    Always,
    AnyOf,
    BooleanEquals,
    BooleanProperty,
    Chain,
    Constant,
    LikePattern,
    Not,
    NumericComparison,
    PropertyTerm,
    SameOutcome,
    SameTexts,
    Signed,
    TextEquals,
    read_flag,
    truth,
)
from vpnrouter.selectors.parser import (
    ConditionOperand,
    NameOperand,
    NumberOperand,
    Operand,
    TextOperand,
)

F, U, T = FALSE, UNKNOWN, TRUE


AND = {(T, T): T, (T, F): F, (T, U): U, (F, F): F, (F, U): F, (U, U): U}


OR = {(T, T): T, (T, F): T, (T, U): T, (F, F): F, (F, U): U, (U, U): U}
"""Tables 3-4 and 3-5 of the specification; both operators commute."""


@pytest.mark.parametrize("pair", list(itertools.product((F, U, T), repeat=2)))
def test_tables_of_and_and_or(pair: tuple[int, int]) -> None:
    """Every pair of values, in both orders, as the specification's tables have it."""
    left, right = pair
    parts = [Always(left), Always(right)]
    key = pair if pair in AND else (right, left)
    assert AllOf(parts).test({}) == AND[key]
    assert AnyOf(parts).test({}) == OR[key]


def test_table_of_not() -> None:
    """NOT unknown is unknown."""
    assert [Not(Always(value)).test({}) for value in (T, F, U)] == [F, T, U]


@pytest.mark.parametrize("values", list(itertools.product((F, U, T), repeat=3)))
def test_many_parts_are_as_pairs(values: tuple[int, int, int]) -> None:
    """A chain of AND or OR gives what pairs from the left give."""
    a, b, c = (Always(value) for value in values)
    assert AllOf([a, b, c]).test({}) == AllOf([AllOf([a, b]), c]).test({})
    assert AnyOf([a, b, c]).test({}) == AnyOf([AnyOf([a, b]), c]).test({})


@pytest.mark.parametrize(
    ("operator", "results"),
    [
        ("=", [F, T, F]),
        ("<>", [T, F, T]),
        ("<", [T, F, F]),
        ("<=", [T, T, F]),
        (">", [F, F, T]),
        (">=", [F, T, T]),
    ],
)
def test_numbers_in_order(operator: str, results: list[int]) -> None:
    """Below, equal, above; text is false and nothing is unknown with every operator."""
    condition = NumericComparison(PropertyTerm("x"), operator, Constant(2))
    assert [condition.test({"x": text}) for text in ("1", "2.0", "3")] == results
    assert condition.test({"x": "two"}) == F
    assert condition.test({}) == U


def test_flags() -> None:
    """A property alone is a condition; a text that is no flag equals neither TRUE nor FALSE."""
    assert [BooleanProperty("x").test({"x": text}) for text in ("true", "False", "on")] == [T, F, F]
    assert BooleanProperty("x").test({}) == U
    is_false = BooleanEquals("x", Always(F), T, F)
    assert [is_false.test({"x": text}) for text in ("true", "False", "on")] == [F, T, F]
    assert is_false.test({}) == U
    assert BooleanEquals("x", Always(U), T, F).test({"x": "on"}) == U


def test_conditions_agree() -> None:
    """Two conditions are equal or not, unknown where one of them is."""
    assert SameOutcome(Always(F), Always(F), T, F).test({}) == T
    assert SameOutcome(Always(F), Always(T), T, F).test({}) == F
    assert SameOutcome(Always(U), Always(U), T, F).test({}) == U


NAME = NameOperand(1, "x", "x")


TEXT = TextOperand(1, "'x'", "x")


NUMBER = NumberOperand(1, "1", Constant(1))


CONDITION = ConditionOperand(1, "TRUE", Always(TRUE))


ALL = [NAME, TEXT, NUMBER, CONDITION]


EQUAL: dict[frozenset[Operand], type] = {
    frozenset({NAME}): SameTexts,
    frozenset({TEXT}): Always,
    frozenset({NUMBER}): NumericComparison,
    frozenset({CONDITION}): SameOutcome,
    frozenset({NAME, TEXT}): TextEquals,
    frozenset({NAME, NUMBER}): NumericComparison,
    frozenset({NAME, CONDITION}): BooleanEquals,
}
"""What = makes of two kinds, in either order; other pairs have no type in common."""


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ALL, repeat=2)))
def test_equality_of_kinds(left: Operand, right: Operand) -> None:
    """Each pair becomes its condition or is refused, whatever stands on the left."""
    kind = EQUAL.get(frozenset({left, right}))
    for operator in ("=", "<>"):
        if kind is None:
            with pytest.raises(SelectorError, match=r"^position 1: expected a "):
                comparison(left, operator, right)
        else:
            assert type(comparison(left, operator, right)) is kind


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ALL, repeat=2)))
def test_order_is_of_numbers(left: Operand, right: Operand) -> None:
    """Texts and conditions have no order (3.8.1.1)."""
    for operator in ("<", "<=", ">", ">="):
        if {left, right} <= {NAME, NUMBER}:
            assert type(comparison(left, operator, right)) is NumericComparison
        else:
            with pytest.raises(SelectorError, match=f"; {operator} compares numbers$"):
                comparison(left, operator, right)


def test_what_stands_alone() -> None:
    """A property can be a condition, a number and a name; a text none of them."""
    assert type(condition_of(NAME)) is BooleanProperty
    assert term_of(NAME).value({"x": "4"}) == 4
    assert name_of(NAME, "like") == "x"
    with pytest.raises(SelectorError, match="expected a condition, not a string"):
        condition_of(TEXT)
    with pytest.raises(SelectorError, match="expected a number or a property, not a string"):
        term_of(TEXT)
    with pytest.raises(SelectorError, match="expected a property before LIKE, not a string"):
        name_of(TEXT, "like")


def test_difference_that_was_meant_as_a_name() -> None:
    """region-name = 'x' says how such a property is written."""
    difference = NumberOperand(1, "region-name", Constant(1))
    with pytest.raises(SelectorError, match=r'is written "region-name"$'):
        comparison(difference, "=", TEXT)
    with pytest.raises(SelectorError, match=r'is written "region-name"$'):
        name_of(difference, "IN")


@pytest.mark.parametrize(
    ("pattern", "escape", "inside", "outside"),
    [
        ("12%3", "", ["123", "12993", "12%3"], ["1234", "23"]),
        ("l_se", "", ["lose", "l\nse", "l😀se"], ["loose", "lse"]),
        ("\\_%", "\\", ["_foo", "_"], ["bar", "\\_"]),
        ("50!%", "!", ["50%"], ["50!", "500"]),
        ("a!!b", "!", ["a!b"], ["a!!b"]),
        ("", "", [""], ["a"]),
        ("%", "", ["", "a", "a\nb"], []),
        ("_%_", "", ["ab", "abc"], ["a", ""]),
        ("%b_d%", "", ["bcd", "abdbcd", "bbbdx"], ["bd", "bcc"]),
        ("%a_%b", "", ["axb", "ba_bb"], ["ab", "bab"]),
        ("b%_a%", "", ["bxa", "baa"], ["ba", "bab"]),
        ("%__%b", "", ["xxb", "bbb"], ["xb", "b"]),
        ("aba%aba", "", ["abaaba"], ["aba", "ababa"]),
        ("100.*", "", ["100.*"], ["100", "1000"]),
    ],
)
def test_examples(pattern: str, escape: str, inside: list[str], outside: list[str]) -> None:
    """`%` is any text, `_` one character, an escape takes that away; the whole text counts."""
    like = LikePattern(pattern, escape)
    assert [like.matches(text) for text in inside] == [True] * len(inside)
    assert [like.matches(text) for text in outside] == [False] * len(outside)


def oracle(pattern: str, escape: str, text: str) -> bool:
    """The definition, place by place: which beginnings of the text fit so far."""
    fits = {0}
    escaped = False
    for character in pattern:
        if escape and character == escape and not escaped:
            escaped = True
        elif character == "%" and not escaped:
            fits = set(range(min(fits), len(text) + 1)) if fits else set()
        else:
            free = character == "_" and not escaped
            ends = [at for at in fits if at < len(text)]
            fits = {at + 1 for at in ends if free or text[at] == character}
            escaped = False
    return len(text) in fits


PARTS = st.lists(st.sampled_from(["%", "_", "a", "b", "ab", "!%", "!_", "!!"]), max_size=9)


@given(PARTS.map("".join), st.text("ab_%!", max_size=14))
def test_as_the_oracle(pattern: str, text: str) -> None:
    """Any pattern and text of few characters, so that near misses are many."""
    assert LikePattern(pattern, "!").matches(text) is oracle(pattern, "!", text)


@given(st.lists(st.sampled_from(["%", "_", "_", "a", "b"]), max_size=12), st.data())
def test_text_made_for_the_pattern_matches(pattern: list[str], data: st.DataObject) -> None:
    """What a pattern describes it matches, wherever its pieces have to be searched."""
    some = {"%": st.text("ab", max_size=4), "_": st.sampled_from("ab")}
    text = "".join(data.draw(some[part]) if part in some else part for part in pattern)
    assert LikePattern("".join(pattern)).matches(text)


ALPHABETS = ["ab", "aé", "a\u4e00", "\U00010041\U00020041A", "ab\ud800"]


@pytest.mark.parametrize("alphabet", ALPHABETS)
@given(data=st.data())
def test_long_text_as_the_oracle(alphabet: str, data: st.DataObject) -> None:
    """Texts in which pieces are searched for in all places at once, with frequent characters, rare ones, and others."""
    letters = st.sampled_from(alphabet)
    parts = st.lists(st.sampled_from(["%", "%", "_", "_", *alphabet]), max_size=14)
    pattern = "".join(data.draw(parts))
    runs = st.tuples(letters, st.integers(1, 70)).map(lambda run: run[0] * run[1])
    text = "".join(data.draw(st.lists(runs | letters, min_size=3, max_size=30)))
    assert LikePattern(pattern).matches(text) is oracle(pattern, "", text)


@given(st.text("ab", min_size=70, max_size=120), st.data())
def test_piece_anywhere_in_a_long_text(text: str, data: st.DataObject) -> None:
    """A piece that was cut out of a long text is found there, also right behind another one and right at the end."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=4, max_size=4)))
    hidden = data.draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    veiled = "".join("_" if hide else each for hide, each in zip(hidden, text, strict=True))
    pattern = f"%{veiled[cuts[0] : cuts[1]]}%{veiled[cuts[1] : cuts[2]]}%{veiled[cuts[3] :]}"
    assert LikePattern(pattern).matches(text)


@pytest.mark.parametrize("escape", ["%", "_"])
def test_wildcard_as_escape(escape: str) -> None:
    """An escape character is nothing but an escape, whichever it is."""
    assert LikePattern(f"a{escape}{escape}b", escape).matches(f"a{escape}b")
    assert not LikePattern(f"a{escape}{escape}b", escape).matches("axxb")


@pytest.mark.parametrize("pattern", ["a!b", "a!", "!!!"])
def test_escape_before_something_else(pattern: str) -> None:
    """An escape that escapes nothing is refused, at the pattern's position."""
    with pytest.raises(SelectorError, match=r"^position 7: expected %, _ or '!' behind") as caught:
        LikePattern(pattern, "!", 7)
    assert caught.value.position == 7


@pytest.mark.parametrize(
    "pattern",
    [
        "%a" * 3000 + "%b",
        "%" + "a" * 4000 + "_b%",
        "%_a" * 2000 + "%b",
        "%" + "a_" * 3000 + "b%",
        "%" + "a" * 3000 + "b" + "a" * 3000 + "%",
    ],
    ids=["many", "late", "gaps", "mixed", "middle"],
)
def test_no_text_makes_it_slow(pattern: str) -> None:
    """Patterns that make a backtracking matcher try for ever end at once, without a match."""
    assert not LikePattern(pattern).matches("a" * 65_000)


ONE = Constant(1)


X = PropertyTerm("x")


def test_property_is_a_number_none_or_unknown() -> None:
    """A text stands for what reads as no number, for the comparison to tell it from unknown."""
    assert X.value({"x": "12"}) == 12
    assert X.value({"x": "twelve"}) == ""
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
