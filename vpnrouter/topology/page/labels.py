"""Which names are seen at which zoom, so that none lies on another."""

from collections.abc import Sequence
from typing import Final

SIZE: Final = 10.5
"""Screen pixels of a name's letters when all of a large drawing is seen."""

_STEP: Final = 1.5
_CELL: Final = (24.0, 14.0)
LETTER: Final = 0.68
"""Width of a letter against its size, as wide fonts have it."""


def seen_until(
    names: Sequence[tuple[float, float, str]], weights: Sequence[float], unit: float
) -> list[float]:
    """For each name the largest unit (sheet pixels to a screen pixel) at which it is seen.

    `names` are x, y and text of names that begin there, in sheet pixels; those of more weight come
    first. `unit` is that of the whole drawing; at 1 every name is seen.
    """
    order = sorted(range(len(names)), key=lambda at: (-weights[at], at))
    until = [1.0] * len(names)
    seen: list[int] = []
    waiting = order
    while unit > 1.0 and waiting:
        taken: set[tuple[int, int]] = set()
        for at in seen:
            taken |= _cells(names[at], unit)
        left = []
        for at in waiting:
            mine = _cells(names[at], unit)
            if taken.isdisjoint(mine):
                taken |= mine
                seen.append(at)
                until[at] = unit * 1.05
            else:
                left.append(at)
        waiting = left
        unit /= _STEP
    return until


def _cells(name: tuple[float, float, str], unit: float) -> set[tuple[int, int]]:
    """The cells of a grid over the screen that a name covers."""
    x, y, text = name[0] / unit, name[1] / unit, name[2]
    right = x + len(text) * SIZE * LETTER
    columns = range(int(x // _CELL[0]), int(right // _CELL[0]) + 1)
    rows = range(int((y - SIZE) // _CELL[1]), int(y // _CELL[1]) + 1)
    return {(column, row) for column in columns for row in rows}
