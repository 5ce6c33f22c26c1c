from vpnrouter.limits import TUI_PAGES
from vpnrouter.tui.pager import Pager


def test_forward_and_back() -> None:
    """The pages that were seen are found again."""
    pager = Pager()
    assert pager.cursor == ""
    pager.saw(250, "a")
    assert pager.turn(1)
    assert pager.cursor == "a"
    pager.saw(250, "b")
    assert pager.turn(1)
    pager.saw(250, "")
    assert not pager.turn(1), "there is no fourth page"
    assert pager.turn(-1)
    assert pager.cursor == "a"
    assert pager.turn(-1)
    assert pager.cursor == ""
    assert not pager.turn(-1)


def test_no_turn_before_a_page_was_read() -> None:
    """Where the next page begins is known from the page before it alone."""
    pager = Pager()
    assert not pager.turn(1)
    pager.saw(200, "a")
    assert pager.turn(1)
    assert not pager.turn(1)


def test_the_newest_cursor_counts() -> None:
    """Rows that came meanwhile move the pages behind."""
    pager = Pager()
    pager.saw(300, "old")
    pager.turn(1)
    pager.turn(-1)
    pager.saw(301, "new")
    assert pager.turn(1)
    assert pager.cursor == "new"


def test_pages_are_bounded() -> None:
    """A list has an end, however many pages the router gives."""
    pager = Pager()
    turns = 0
    while pager.saw(10**9, "more") is None and pager.turn(1):
        turns += 1
    assert turns == TUI_PAGES - 1


def test_rows_told() -> None:
    """Which rows of how many."""
    pager = Pager()
    assert pager.rows_told(0) == "no rows"
    pager.saw(10_000, "a")
    assert pager.rows_told(100) == "rows 1 to 100 of 10,000"
    pager.turn(1)
    pager.saw(10_000, "b")
    assert pager.rows_told(100) == "rows 101 to 200 of 10,000"
    pager.restart()
    assert (pager.page, pager.cursor, pager.total) == (0, "", 0)
