from vpnrouter.tui.widgets.sparkline import sparkline


def test_the_highest_is_full_and_none_is_empty() -> None:
    """Heights go by the highest rate that is shown."""
    assert sparkline([0, 1, 4, 8], 4) == " ▂▅█"


def test_newest_on_the_right() -> None:
    """Older ones go, and a short history leaves room on the left."""
    assert sparkline([9, 9, 1, 1], 2) == "██"
    assert sparkline([3], 4) == "   █"
    assert sparkline([], 3) == "   "
    assert sparkline([1, 2], 0) == ""


def test_the_least_is_seen() -> None:
    """One message beside a million draws something."""
    assert sparkline([1, 1_000_000], 2)[0] == "▁"
