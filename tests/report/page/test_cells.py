"""vpnrouter.report.page.tables: cells that sort."""

from vpnrouter.report.page import tables


def test_unknown_sorts_last() -> None:
    """Whatever is not known sorts below all that is, and reads as a dash."""
    for make, least in ((tables.number, 0), (tables.octets, 0), (tables.time, -(10**12))):
        known, unknown = make(least), make(None)
        assert isinstance(known.key, int)
        assert isinstance(unknown.key, int)
        assert unknown.key < known.key
        assert unknown.text == "–"
    assert [tables.yes_no(value).text for value in (True, False, None)] == ["yes", "no", "–"]


def test_bars_and_names() -> None:
    """A bar is a share of the greatest; names are spelt out where they would disturb."""
    assert tables.number(5, most=10).bar == 50
    assert tables.number(5).bar is None
    assert tables.text("a\u202e").text == r"a\u202e"
    assert tables.place("a", "x", "node-0").shape == "node-0"
    assert tables.greatest([{"n": 3}, {"n": None}], "n") == 3
    assert tables.greatest([], "n") == 0


def test_rows_have_their_own_ids_and_choices() -> None:
    """Ids count from 0 unless numbers are given; choices are the different texts."""
    rows = [[tables.text("b")], [tables.text("a")], [tables.text("b")]]
    plain = tables.Sheet(
        name="s", headings=[tables.Heading(label="h")], rows=rows, titles=["", "", ""], total=3
    )
    assert plain.ids() == ["s-0", "s-1", "s-2"]
    assert plain.options(0) == ["a", "b"]
    numbered = tables.Sheet(
        name="s", headings=[], rows=rows, titles=["", "", ""], total=9, numbers=[7, 2, 5]
    )
    assert numbered.ids() == ["s-7", "s-2", "s-5"]
