"""Follows clocks that were set or that drift: how far one is ahead in each stretch of its own time.

What a message says of two clocks is a bound. One that comes to the clock's router, from one whose clock is known,
took some time d > 0, and its age by the two clocks is d plus what the clock is ahead, so not less than that. One that
goes there bounds it from below. As long as a clock runs evenly, a straight line lies between all bounds from above and
all from below (Moon, Skelly and Towsley, "Estimation and removal of clock skew from network delay measurements",
INFOCOM 1999); where none does, the clock was set, or runs at another pace. So time is divided into the longest
stretches that have such a line.

All times are by the clock itself. Where it was set back, its times come twice, and nobody can tell of a row which
it was: those that contradict each other are in no stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.limits import REPORT_CLOCK_STRETCHES
from vpnrouter.report.flows.clocks import CLOCK_DOUBT_NS
from vpnrouter.units import SECOND_NS

_FASTEST: Final = 1_000_000.0
"""Nanoseconds a second by which a clock may run fast or slow: a thousandth, twice what time servers correct (MAXFREQ of
RFC 5905). What changes faster was set."""

_LEAST_CELLS: Final = 2
"""Cells with bounds from above, and as many with bounds from below, that a stretch has at least."""

_HALVINGS: Final = 50
"""How often an interval of paces is made smaller, by a third at least: to a thousandth of a nanosecond a second."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ClockStretch:
    """How far a clock is ahead from `first_ns` to before `last_ns` by itself: by `offset_ns` at `first_ns` and by
    `drift_ppm` nanoseconds more with each millisecond; `error_ns` is a bound of the error.
    """

    first_ns: int
    last_ns: int
    offset_ns: int
    drift_ppm: float
    error_ns: int

    def ahead_ns(self, at_ns: int) -> float:
        """Return how far the clock is ahead when it shows `at_ns`."""
        return self.offset_ns + (at_ns - self.first_ns) * self.drift_ppm / 1e6


def followed(rows: Iterable[Mapping[str, Any]], cell_ns: int) -> list[ClockStretch]:
    """Return the stretches of one clock, in order, from its bounds; none where they would be too many.

    Rows: `cell`, the number of a cell of `cell_ns` since 1970; `above_ns`, the least bound from above in it, and
    `above_at_ns`, when that was; `below_ns` and `below_at_ns` likewise. Null where there is none. All times are by the
    clock itself.
    """
    cells = sorted((dict(row) for row in rows), key=lambda row: int(row["cell"]))
    if not any(row["above_ns"] is not None for row in cells):
        return []
    bounds = _Bounds(cells, cell_ns)
    parts = bounds.parts()
    if len(parts) > REPORT_CLOCK_STRETCHES:
        return []
    ends = _Ends(bounds, parts)
    stretches = (ends.stretch(number) for number in range(len(parts)))
    known = [one for one in stretches if one is not None and one.error_ns <= CLOCK_DOUBT_NS]
    whole = _without(_shown_once(known, cell_ns), bounds.holes)
    return whole if len(whole) <= REPORT_CLOCK_STRETCHES else []


def _shown_once(stretches: list[ClockStretch], cell_ns: int) -> list[ClockStretch]:
    """Return stretches without the times that the clock may have shown twice, before it was set back and after."""
    found = list(stretches)
    for number, (before, after) in enumerate(pairwise(stretches)):
        back_ns = round(_step(after, before))
        if back_ns > 0 and not _agree(before, after):
            # When it was set, it showed no less than where the earlier stretch ends, and no more than where the
            # later one begins; afterwards less by what it was set back.
            end_ns = min(found[number].last_ns, after.first_ns - cell_ns - back_ns)
            found[number] = replace(found[number], last_ns=end_ns)
            first_ns = max(after.first_ns, before.last_ns + cell_ns + back_ns)
            offset_ns = round(after.ahead_ns(first_ns))
            found[number + 1] = replace(after, first_ns=first_ns, offset_ns=offset_ns)
    return [one for one in found if one.first_ns < one.last_ns]


def _without(
    stretches: Iterable[ClockStretch], holes: Iterable[tuple[int, int]]
) -> list[ClockStretch]:
    """Return stretches without holes, which are from one time to before another."""
    left = list(stretches)
    for begin_ns, end_ns in holes:
        parts = []
        for one in left:
            after_ns = max(one.first_ns, end_ns)
            parts += [
                replace(one, last_ns=min(one.last_ns, begin_ns)),
                replace(one, first_ns=after_ns, offset_ns=round(one.ahead_ns(after_ns))),
            ]
            if end_ns <= one.first_ns or one.last_ns <= begin_ns:
                parts[-2:] = [one]
        left = [one for one in parts if one.first_ns < one.last_ns]
    return left


def _step(before: ClockStretch, after: ClockStretch) -> float:
    """Return by how much the clock was ahead of what the earlier stretch says, when the later one began."""
    at_ns = max(before.first_ns, after.first_ns)
    return after.ahead_ns(at_ns) - before.ahead_ns(at_ns)


def _agree(before: ClockStretch, after: ClockStretch) -> bool:
    return abs(_step(before, after)) <= before.error_ns + after.error_ns


class _Bounds:
    """Bounds by cell. Times are seconds since the first cell, values nanoseconds above the first bound.

    Cells whose bounds contradict each other, whatever the pace, are left out: `holes` are their times. Between
    them, when the clock was set back by so much, it may have shown the same times twice.
    """

    def __init__(self, cells: list[dict[str, Any]], cell_ns: int) -> None:
        self.cell_ns = cell_ns
        self.begin_ns = int(cells[0]["cell"]) * cell_ns
        self.base_ns = next(row["above_ns"] for row in cells if row["above_ns"] is not None)
        above_at, above = self._column(cells, "above")
        below_at, below = self._column(cells, "below")
        numbers = np.array([row["cell"] for row in cells], np.int64)
        sound = ~(below - above > _FASTEST * np.abs(below_at - above_at))
        self.holes = self._holes(numbers[~sound], (below - above)[~sound])
        self.numbers = numbers[sound]
        self.above_at, self.above = above_at[sound], above[sound]
        self.below_at, self.below = below_at[sound], below[sound]

    def _column(self, cells: list[dict[str, Any]], name: str) -> tuple[_Floats, _Floats]:
        nothing = float("nan")
        times = [row[f"{name}_at_ns"] for row in cells]
        values = [row[f"{name}_ns"] for row in cells]
        return (
            np.array([nothing if at is None else (at - self.begin_ns) / 1e9 for at in times]),
            np.array([nothing if one is None else float(one - self.base_ns) for one in values]),
        )

    def _holes(self, numbers: NDArray[np.int64], back_ns: _Floats) -> list[tuple[int, int]]:
        holes: list[tuple[int, int]] = []
        for number, back in zip(numbers.tolist(), back_ns.tolist(), strict=True):
            begin_ns, end_ns = (number - 1) * self.cell_ns, (number + 2) * self.cell_ns
            if holes and end_ns - holes[-1][0] <= back + 3 * self.cell_ns:
                begin_ns = holes.pop()[0]
            holes.append((begin_ns, end_ns))
        return holes

    def parts(self) -> list[tuple[int, int]]:
        """Return the cells of each stretch, from one number to before another; of too many, one more than may be."""
        found: list[tuple[int, int]] = []
        first = 0
        while first < len(self.numbers) and len(found) <= REPORT_CLOCK_STRETCHES:
            last = self._reach(first)
            found.append((first, last))
            first = last
        return found

    def _reach(self, first: int) -> int:
        """Return up to before which cell one line serves."""
        count = len(self.numbers)
        good, step = first + 1, 1
        while good < count and self.line(first, min(count, good + step)):
            good = min(count, good + step)
            step *= 2
        bad = min(count + 1, good + step)
        while bad - good > 1:
            middle = (good + bad) // 2
            if middle <= count and self.line(first, middle):
                good = middle
            else:
                bad = middle
        return good

    def back(self, first: int, last: int, least: int) -> int:
        """Return from which cell on, `least` or later, the line of these cells serves."""
        bad, good = least - 1, first
        while good - bad > 1:
            middle = (good + bad) // 2
            if self.line(middle, last):
                good = middle
            else:
                bad = middle
        return good

    def known(self, first: int, last: int) -> tuple[int, int]:
        """Return from which cell to before which one the bounds of these cells are from above and from below.

        After the last bound from below a clock may have been set ahead, and nobody would see it.
        """
        numbers = self.numbers[first:last]
        sides = [numbers[~np.isnan(side[first:last])] for side in (self.above, self.below)]
        return max(int(side[0]) for side in sides), min(int(side[-1]) for side in sides) + 1

    def line(self, first: int, last: int) -> _Line | None:
        """Return what is known of the line between the bounds of these cells; None: there is none."""
        line = _Line(self, slice(first, last))
        return line if line.pace is not None else None


class _Line:
    """Lines between some bounds, by their pace, nanoseconds a second; `pace` is that of the one to take, None if there
    is none. A clock runs evenly if that is possible, else there is as much room as can be.
    """

    def __init__(self, bounds: _Bounds, which: slice) -> None:
        above, below = bounds.above[which], bounds.below[which]
        has_above, has_below = ~np.isnan(above), ~np.isnan(below)
        self._above, self._above_at = above[has_above], bounds.above_at[which][has_above]
        self._below, self._below_at = below[has_below], bounds.below_at[which][has_below]
        self.cells = min(len(self._above), len(self._below))
        self.pace: float | None = 0.0
        if self.cells and self._room(0.0) < 0:
            best = _peak(self._room, -_FASTEST, _FASTEST)
            self.pace = best if self._room(best) >= 0 else None

    def _least(self, pace: float) -> float:
        return float(np.min(self._above - pace * self._above_at))

    def _most(self, pace: float) -> float:
        return float(np.max(self._below - pace * self._below_at))

    def _room(self, pace: float) -> float:
        return self._least(pace) - self._most(pace)

    def at(self, seconds: float) -> float:
        """Return the line to take at a time."""
        pace = self.pace or 0.0
        return (self._least(pace) + self._most(pace)) / 2 + pace * seconds

    def error(self, first: float, last: float) -> float:
        """Return a bound of how far any other line is away between two times.

        Straight lines are farthest apart at an end. The one that is highest there has a pace at which the bounds
        from above allow most, which is concave too; the lowest likewise.
        """
        paces = self._edge(-_FASTEST), self._edge(_FASTEST)
        return max(self._away(first, *paces), self._away(last, *paces))

    def _away(self, at: float, slowest: float, fastest: float) -> float:
        def highest(pace: float) -> float:
            return self._least(pace) + pace * at

        def lowest(pace: float) -> float:
            return -self._most(pace) - pace * at

        return max(
            highest(_peak(highest, slowest, fastest)) - self.at(at),
            lowest(_peak(lowest, slowest, fastest)) + self.at(at),
        )

    def _edge(self, pace: float) -> float:
        """Return the pace nearest to this one that a line may have."""
        good = self.pace or 0.0
        if self._room(pace) >= 0:
            return pace
        for _ in range(_HALVINGS):
            middle = (good + pace) / 2
            if self._room(middle) >= 0:
                good = middle
            else:
                pace = middle
        return good


def _peak(figure: Callable[[float], float], low: float, high: float) -> float:
    """Return where a concave figure is greatest."""
    for _ in range(_HALVINGS):
        third = (high - low) / 3
        if figure(low + third) < figure(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


class _Ends:
    """Where stretches begin and end. Between two that agree, at the first cell of the later one. Where the clock was
    set, the cells in which that may have been are in none of them.
    """

    def __init__(self, bounds: _Bounds, parts: list[tuple[int, int]]) -> None:
        self._bounds = bounds
        self._cells = [list(part) for part in parts]
        self._first = [int(bounds.numbers[first]) for first, _ in parts]
        self._end = [int(bounds.numbers[last - 1]) + 1 for _, last in parts]
        for number, (before, after) in enumerate(pairwise(parts)):
            if self._agree(before, after):
                self._end[number] = self._first[number + 1]
                continue
            # The last cell that the later line contradicts, and the first one that the earlier line does.
            last = bounds.back(*after, least=before[0]) - 1
            self._cells[number][1] = max(before[0], last + 1)
            self._end[number] = int(bounds.numbers[max(before[0], last)])
            self._first[number + 1] = int(bounds.numbers[after[0]]) + 1

    def _agree(self, before: tuple[int, int], after: tuple[int, int]) -> bool:
        earlier, later = self._bounds.line(*before), self._bounds.line(*after)
        if earlier is None or later is None or not (earlier.cells and later.cells):
            return False
        edge = float(self._second(int(self._bounds.numbers[after[0]])))
        apart = abs(earlier.at(edge) - later.at(edge))
        return apart <= earlier.error(edge, edge) + later.error(edge, edge)

    def _second(self, cell: int) -> float:
        return (cell * self._bounds.cell_ns - self._bounds.begin_ns) / SECOND_NS

    def stretch(self, number: int) -> ClockStretch | None:
        """Return a stretch; None where nothing is known of it."""
        line = self._bounds.line(*self._cells[number])
        if line is None or line.cells < _LEAST_CELLS:
            return None
        known_first, known_end = self._bounds.known(*self._cells[number])
        first = max(self._first[number], known_first)
        end = min(self._end[number], known_end)
        if end <= first:
            return None
        begin_s, end_s = self._second(first), self._second(end)
        return ClockStretch(
            first_ns=first * self._bounds.cell_ns,
            last_ns=end * self._bounds.cell_ns,
            offset_ns=round(self._bounds.base_ns + line.at(begin_s)),
            drift_ppm=(line.pace or 0.0) / 1e3,
            error_ns=max(1, round(line.error(begin_s, end_s))),
        )
