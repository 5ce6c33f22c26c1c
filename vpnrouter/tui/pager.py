"""Keeps the position in a list that is longer than a page."""

from typing import Final, final

from vpnrouter import limits
from vpnrouter.limits import TUI_PAGES

PAGE: Final = limits.MANAGEMENT_PAGE_ROWS
"""Rows of a page."""


@final
class Pager:
    """Remembers where the pages begin that were seen: the API's cursors lead forward only."""

    def __init__(self) -> None:
        self.total = 0
        self.page = 0
        self._cursors = [""]
        self._next = ""

    @property
    def cursor(self) -> str:
        """Where the page that is shown begins."""
        return self._cursors[self.page]

    def update(self, total: int, following: str) -> None:
        """Note that the page was read; `following` is the cursor of the next one, "" for none."""
        self.total = total
        self._next = following

    def turn(self, by: int) -> bool:
        """Turn to the next page (1) or the one before (-1); False where there is none."""
        if by < 0:
            if not self.page:
                return False
            self.page -= 1
            return True
        if not self._next or self.page + 1 >= TUI_PAGES:
            return False
        self.page += 1
        # What comes and goes moves the pages: the newest cursor counts.
        del self._cursors[self.page :]
        self._cursors.append(self._next)
        self._next = ""
        return True

    def restart(self) -> None:
        """Go back to the first page."""
        self.total = self.page = 0
        self._cursors = [""]
        self._next = ""

    def range_text(self, count: int) -> str:
        """`rows 101 to 200 of 10,000`, for a page of `count` rows."""
        if not count:
            return "no rows"
        first = self.page * PAGE + 1
        last = first + count - 1
        return f"rows {first:,} to {last:,} of {max(self.total, last):,}"
