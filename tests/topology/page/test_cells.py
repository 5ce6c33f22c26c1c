"""vpnrouter.topology.page.cells: cells that sort."""

from vpnrouter.topology.page import cells


def test_unknown_sorts_last() -> None:
    """Whatever is not known sorts below all that is, and reads as a dash."""
    for make, least in ((cells.number, 0), (cells.octets, 0), (cells.time, -(10**12))):
        known, unknown = make(least), make(None)
        assert isinstance(known.key, int)
        assert isinstance(unknown.key, int)
        assert unknown.key < known.key
        assert unknown.text == "–"
    assert [cells.yes_no(value).text for value in (True, False, None)] == ["yes", "no", "–"]


def test_bars_and_names() -> None:
    """A bar is a share of the greatest; names are spelt out where they would disturb."""
    assert cells.number(5, most=10).bar == 50
    assert cells.number(5).bar is None
    assert cells.text("a\u202e").text == r"a\u202e"
    assert cells.place("a", "x", "node-0").shape == "node-0"
    assert cells.greatest([{"n": 3}, {"n": None}], "n") == 3
    assert cells.greatest([], "n") == 0


def test_rows_have_their_own_ids_and_choices() -> None:
    """Ids count from 0 unless numbers are given; choices are the different texts."""
    rows = [[cells.text("b")], [cells.text("a")], [cells.text("b")]]
    plain = cells.Sheet(
        name="s", headings=[cells.Heading(label="h")], rows=rows, titles=["", "", ""], total=3
    )
    assert plain.ids() == ["s-0", "s-1", "s-2"]
    assert plain.options(0) == ["a", "b"]
    numbered = cells.Sheet(
        name="s", headings=[], rows=rows, titles=["", "", ""], total=9, numbers=[7, 2, 5]
    )
    assert numbered.ids() == ["s-7", "s-2", "s-5"]
