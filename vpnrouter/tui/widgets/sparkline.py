"""Draws a history of rates in one line of blocks."""

from collections.abc import Sequence
from typing import Final

BLOCKS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The last `width` values, the newest on the right; the height of the highest is a full block.

    Nothing is drawn for no growth, so that the least of traffic is seen.
    """
    shown = list(values[-width:]) if width > 0 else []
    most = max(shown, default=0.0)
    drawn = "".join(
        BLOCKS[min(len(BLOCKS) - 1, int(value / most * len(BLOCKS)))] if value > 0 else " "
        for value in shown
    )
    return drawn.rjust(max(0, width))
