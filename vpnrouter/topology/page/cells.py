"""What the report page's tables are made of: cells that know their text, their order and their look."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from vpnrouter.topology.page.charts import bar as bar_length
from vpnrouter.topology.page.figures import NONE, count, duration, moment, size, visible
from vpnrouter.topology.page.places import name_of

Tone = Literal["", "error", "warning", "info", "good"]

_UNKNOWN: Final = -(1 << 62)
"""Sorts below every value."""


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A column's head; `numeric` columns are aligned right and sort the greatest first."""

    label: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """`text` is shown, `key` sorted by, `bar` (0..100) drawn beneath; `alarm` draws the eye.

    `shape` is the id of what the text leads to in the drawing, `tone` the look of a badge, and `long` says
    that the text may take several lines.
    """

    text: str
    key: int | float | str
    bar: float | None = None
    alarm: bool = False
    shape: str | None = None
    tone: Tone = ""
    long: bool = False


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table. Row i has the id `NAME-numbers[i]`; `total` counts the rows of the file that has all.

    `choices` are the columns whose values one can choose from to see only such rows.
    """

    name: str
    headings: list[Heading]
    rows: list[list[Cell]]
    titles: list[str]
    total: int
    numbers: list[int] = field(default_factory=list)
    choices: tuple[int, ...] = ()

    def ids(self) -> list[str]:
        """The rows' ids."""
        numbers = self.numbers or range(len(self.rows))
        return [f"{self.name}-{at}" for at in numbers]

    def options(self, column: int) -> list[str]:
        """The different texts of a column, in order."""
        return sorted({row[column].text for row in self.rows})


def number(value: int | None, *, most: int | None = None, alarm: bool = False) -> Cell:
    """A count; with `most`, the greatest of the column, a bar beneath."""
    return Cell(
        text=count(value),
        key=_UNKNOWN if value is None else value,
        bar=None if most is None else bar_length(value or 0, most),
        alarm=alarm,
    )


def real(value: float | None) -> Cell:
    """A number with a fraction, three digits."""
    return Cell(
        text=NONE if value is None else f"{value:.3g}", key=_UNKNOWN if value is None else value
    )


def octets(value: int | None) -> Cell:
    """A number of bytes."""
    return Cell(text=size(value), key=_UNKNOWN if value is None else value)


def time(value: int | None, *, alarm: bool = False) -> Cell:
    """A duration, nanoseconds."""
    return Cell(text=duration(value), key=_UNKNOWN if value is None else value, alarm=alarm)


def when(value: int | None) -> Cell:
    """A moment, nanoseconds since 1970."""
    return Cell(text=moment(value), key=moment(value))


def text(value: str | None, *, long: bool = False, shape: str | None = None) -> Cell:
    """A name or a sentence, any control characters spelt out."""
    shown = visible(value) if value else NONE
    return Cell(text=shown, key=shown, long=long, shape=shape)


def place(router: str | None, vpn: str | None, shape: str | None = None) -> Cell:
    """A message VPN's name."""
    shown = name_of(router, vpn)
    return Cell(text=shown, key=shown, shape=shape)


def yes_no(value: bool | None) -> Cell:
    """A truth that may not be known."""
    shown = NONE if value is None else "yes" if value else "no"
    return Cell(text=shown, key=shown)


def greatest(rows: Sequence[dict[str, Any]], name: str) -> int:
    """The greatest value of a column, 0 for none: what bars are measured by."""
    return max((row[name] or 0 for row in rows), default=0)
