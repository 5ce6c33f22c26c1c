"""When do two counts over two ranges of time differ by more than chance?

Counts of independent events scatter by the square root of their number (Poisson). Each count stands for so many
messages by its weight (sampling); a difference counts when it is a factor and many scatters wide. Traffic comes
in bursts, and a report compares thousands of figures: both bounds are wide.
"""

from typing import Final, NamedTuple

FACTOR: Final = 1.5
"""Rates within this factor of each other are the same."""

SCATTERS: Final = 5.0
"""Differences within so many standard deviations are chance: one in three million, for independent events."""


class Count(NamedTuple):
    """`events` seen, the `messages` that they stand for, and the seconds in which."""

    events: int
    messages: float
    seconds: float

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def weight(self) -> float:
        """Messages that an event stands for."""
        return self.messages / self.events if self.events else 1.0


def differ(before: Count, after: Count, factor: float = FACTOR) -> bool:
    """Whether the rates differ by more than the factor and by more than chance explains."""
    low, high = sorted((before.rate, after.rate))
    if high <= low * factor:
        return False
    # Where nothing was seen, the weight is that of the other range.
    weights = [
        one.weight if one.events else other.weight
        for one, other in ((before, after), (after, before))
    ]
    noise = sum(
        (weight / one.seconds) ** 2 * max(1, one.events)
        for weight, one in zip(weights, (before, after), strict=True)
    )
    return bool((high - low) ** 2 > SCATTERS**2 * noise)


def count_of(row: dict[str, object] | None, name: str, seconds: float) -> Count:
    """A column of a result table as events, and its `*_estimated` column, if known, as messages."""
    events = _number(row, name)
    estimated = None if row is None else row.get(f"{name}_estimated")
    messages = float(events) if estimated is None else float(_number(row, f"{name}_estimated"))
    return Count(events, messages, seconds)


def comparable(before: dict[str, object], after: dict[str, object], name: str) -> bool:
    """Whether both rows have an estimate or neither: a count and an estimate cannot be compared."""
    column = f"{name}_estimated"
    return (before.get(column) is None) == (after.get(column) is None)


def _number(row: dict[str, object] | None, name: str) -> int:
    value = None if row is None else row.get(name)
    return value if isinstance(value, int) else 0
