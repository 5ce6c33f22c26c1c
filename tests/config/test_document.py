from vpnrouter.config.parse import Document, parse
from vpnrouter.config.problem import Position

TEXT = b"""\
a:
  b: [10, {c: 20}]
  d: x
e: &e {f: 1}
g: *e
"""


def document() -> Document:
    """The document of TEXT."""
    parsed = parse(TEXT, "f", [])
    assert parsed is not None
    return parsed


def test_places() -> None:
    """Every key and every value knows where it stands."""
    doc = document()
    assert doc.key_at(("a", "b")) == Position("f", 2, 3)
    assert doc.value_at(("a", "b")) == Position("f", 2, 6)
    assert doc.value_at(("a", "b", 1)) == Position("f", 2, 11)
    assert doc.value_at(("a", "b", 1, "c")) == Position("f", 2, 15)
    assert doc.value_at(()) == Position("f", 1, 1)


def test_place_of_what_is_not_there() -> None:
    """A path that leads nowhere is told at its deepest part that exists."""
    doc = document()
    assert doc.value_at(("a", "x", "y")) == Position("f", 2, 3)
    assert doc.key_at(("a", "d", "y")) == Position("f", 3, 3)
    assert doc.key_at(("x",)) == Position("f", 1, 1)
    assert doc.value_at(("a", "b", 7)) == Position("f", 2, 6)


def test_place_inside_an_alias() -> None:
    """What an alias brings in stands where it was written, at the anchor."""
    assert document().value_at(("g", "f")) == Position("f", 4, 11)


def test_lookups() -> None:
    """A path can be asked for its value, written or not."""
    doc = document()
    assert doc.has(("a", "b", 1, "c"))
    assert not doc.has(("a", "b", 2))
    assert doc.value_of(("a", "b", 1)) == {"c": 20}
    assert doc.value_of(("a", "x")) is None


def test_without() -> None:
    """Dropped parts are gone, lists close their gaps, and what is left keeps its place."""
    doc = document()
    less = doc.without([("a", "b", 0), ("a", "d"), ("g", "f")])
    assert less.data == {"a": {"b": [{"c": 20}]}, "e": {"f": 1}, "g": {}}
    assert less.value_at(("a", "b", 0, "c")) == doc.value_at(("a", "b", 1, "c"))
    assert doc.data == {"a": {"b": [10, {"c": 20}], "d": "x"}, "e": {"f": 1}, "g": {"f": 1}}


def test_shown_path_keeps_the_indexes_of_the_file() -> None:
    """After a drop, an item is still called by the index that people count in the file."""
    less = document().without([("a", "b", 0)])
    assert less.show(("a", "b", 0, "c")) == "a.b[1].c"
    assert less.without([("a", "d")]).show(("a", "b", 0)) == "a.b[1]"
    assert less.show(("a", "x", 3)) == "a.x[3]"


def test_what_was_dropped_is_remembered() -> None:
    """A mapping or list that lost something directly says so, also after another drop."""
    less = document().without([("a", "b", 0)]).without([("e", "f")])
    assert not less.is_whole(("a", "b"))
    assert not less.is_whole(("e",))
    assert less.is_whole(("a",))
    assert less.is_whole(("a", "b", 0))
    assert not less.is_whole(("nowhere",))
