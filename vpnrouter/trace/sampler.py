"""Which messages are traced, decided without a draw per message.

The gap to the next sampled message is drawn once per sampled message, so that a hot loop only
subtracts. Gaps are uniform in 1 … 2/rate - 1, whose mean is 1/rate: no periodic traffic can stay
in step with the sampling, and no long silence can happen by chance.
"""

from typing import Final, final

NEVER: Final = 1 << 60
"""`left` when nothing is sampled: seven thousand years of five million messages a second."""

_WORD: Final = (1 << 32) - 1
_WIDEST: Final = 1 << 29
_WARM_UP: Final = 16


@final
class Sampler:
    """Counts down to the next sampled message.

    The caller takes from `left` as messages pass. The message that brings it to 0 is sampled, and
    `next()` then draws the next gap. With a rate of 0 `left` is `NEVER`, with 1.0 always 1.

    Args:
        rate: part of the messages to sample, 0.0 to 1.0. A rate above 0 but below one in 2**28 is
            taken as one in 2**28.
        seed: 64 random bits drawn by the caller; equal seeds sample equally.

    Raises:
        ValueError: the rate is outside 0.0 … 1.0.
    """

    __slots__ = ("_carry", "_span", "_x", "_y", "left", "rate")

    def __init__(self, rate: float, seed: int) -> None:
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"a sampling rate is between 0 and 1, not {rate}")
        self.rate = rate
        self.left = NEVER
        self._x = seed & _WORD
        self._y = (seed >> 32) & _WORD
        if self._x == 0 and self._y == 0:
            self._y = 1
        self._span = 0
        self._carry = 0
        if rate > 0.0:
            widest = min(2.0 / rate - 1.0, float(_WIDEST))
            self._span = int(widest)
            self._carry = int((widest - self._span) * (_WORD + 1))
            # Neighbouring seeds differ in a few bits only; some steps spread them.
            for _ in range(_WARM_UP):
                self._draw()
            self.next()

    def next(self) -> None:
        """Set `left` to a fresh gap, at least 1."""
        span = self._span
        if span == 0:
            self.left = NEVER
            return
        # 2/rate - 1 is seldom whole: the part after the point is the chance of one more, which
        # keeps the mean exact.
        if self._carry and self._draw() < self._carry:
            span += 1
        self.left = 1 if span == 1 else 1 + ((self._draw() * span) >> 32)

    def _draw(self) -> int:
        """Return the next 32 random bits.

        The xorshift generator with two 32-bit words and shifts 10, 13, 10 (Marsaglia, "Xorshift
        RNGs", 2003); its period is 2**64 - 1. Words of 32 bits keep every intermediate value
        in a machine word.
        """
        x = self._x
        y = self._y
        t = (x ^ (x << 10)) & _WORD
        self._x = y
        y = (y ^ (y >> 10)) ^ (t ^ (t >> 13))
        self._y = y
        return y
