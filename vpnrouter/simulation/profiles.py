"""How messages spread over the time of a simulation: shares of them by time, as curves.

A profile is a curve of the share of messages (0 to 1) by seconds since the start. Where traffic must pause,
the curve is flat.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_CELLS: Final = 720
_DAY_S: Final = 86_400.0
_SWING: Final = 0.7
_BURSTS: Final = 0.6

SHAPES: Final = ("flat", "day", "evening", "night", "bursts", "waves")
"""The normal profiles, by number."""


@dataclass(frozen=True)
class Profile:
    """`share` (rising from 0 to 1) of the messages that come before each of `times_s` (rising)."""

    times_s: NDArray[np.float64]
    share: NDArray[np.float64]

    def before(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the messages that come before each of these times."""
        return np.interp(at_s, self.times_s, self.share)

    def times(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """When those shares have come, in seconds."""
        return np.interp(shares, self.share, self.times_s)

    def within(self, windows: Sequence[tuple[float, float]]) -> "Profile":
        """The same traffic in these windows only (seconds, in order, apart); nothing comes outside."""
        edges = np.array([edge for window in windows for edge in window])
        times = np.unique(np.concatenate([self.times_s, edges]))
        middle = (times[1:] + times[:-1]) / 2
        inside = np.zeros(len(middle), dtype=bool)
        for begin, end in windows:
            inside |= (middle > begin) & (middle < end)
        return _curve(times, np.where(inside, np.diff(self.before(times)), 0.0))

    def share_within(self, windows: Sequence[tuple[float, float]]) -> float:
        """Share of the messages that come in these windows."""
        return float(sum(np.diff(self.before(np.array(window)))[0] for window in windows))


def normal(begin_s: float, end_s: float, rng: np.random.Generator) -> list[Profile]:
    """The profiles of SHAPES for traffic from `begin_s` to `end_s`.

    A day is as long as a day is, or as the simulation where that is shorter.
    """
    times = np.linspace(begin_s, end_s, _CELLS + 1)
    middle = (times[1:] + times[:-1]) / 2
    period = min(_DAY_S, end_s - begin_s)
    cells = [np.ones(_CELLS)]
    cells += [1 + _SWING * np.sin(2 * np.pi * (middle / period + at / 3)) for at in range(3)]
    cells.append(rng.gamma(_BURSTS, 1 / _BURSTS, _CELLS) + 0.05)
    cells.append(1 + _SWING * np.sin(2 * np.pi * 12 * middle / period))
    return [_curve(times, each) for each in cells]


def _curve(times: NDArray[np.float64], weights: NDArray[np.float64]) -> Profile:
    share = np.concatenate([[0.0], np.cumsum(weights)])
    share /= share[-1]
    # Without the flat ends, share 0 and share 1 are at the first and the last message.
    first = int(np.searchsorted(share, 0.0, "right")) - 1
    last = int(np.searchsorted(share, 1.0, "left")) + 1
    return Profile(times[first:last], share[first:last])
