"""Whether a router answers, since when it does not, and when to try again. Pure: times are arguments."""

from typing import Final, final

FIRST_DELAY_S: Final = 1.0
"""Seconds from the first failure to the next try."""

LONGEST_DELAY_S: Final = 8.0
"""Seconds between tries when it has been away for long: a person waits for it."""


@final
class Connection:
    """One router's API as seen from here. Times are seconds of one clock that does not jump.

    `why` is "" while it answers. The delay doubles from try to try.
    """

    def __init__(self) -> None:
        self.why = "not asked yet"
        self.lost_at: float | None = None
        self.answered_at: float | None = None
        self.next_try = 0.0
        self._delay = FIRST_DELAY_S

    @property
    def is_lost(self) -> bool:
        """Whether the last request had no answer."""
        return self.lost_at is not None

    def is_due(self, now: float) -> bool:
        """Whether to ask."""
        return not self.is_lost or now >= self.next_try

    def answered(self, now: float) -> bool:
        """There was an answer; True when it had been lost."""
        was = self.is_lost
        self.why = ""
        self.lost_at = None
        self.answered_at = now
        self._delay = FIRST_DELAY_S
        return was

    def failed(self, now: float, why: str) -> None:
        """There was none, in one line."""
        self.why = why
        if self.lost_at is None:
            self.lost_at = now
        self.next_try = now + self._delay
        self._delay = min(LONGEST_DELAY_S, self._delay * 2)
