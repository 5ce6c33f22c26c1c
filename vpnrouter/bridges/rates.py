"""How fast counts grow: now, and on average over the last minute."""

from collections import deque
from typing import Final, NamedTuple, final

from vpnrouter import limits

SECOND: Final = 1_000_000_000

WINDOW_NS: Final = 60 * SECOND
"""What an average covers, as the field's `average…Rate` attributes do."""

LEAST_GAP_NS: Final = WINDOW_NS // (limits.RATE_SAMPLES - 1)
"""Samples that follow closer are left out, so that those kept always reach back over the window."""


class Rate(NamedTuple):
    """Growth a second, rounded: over the last interval between samples, and over the window."""

    current: int = 0
    average: int = 0


class BridgeRates(NamedTuple):
    """The rates of one bridge, as its monitoring shows them."""

    rx_msg: Rate = Rate()
    rx_byte: Rate = Rate()
    tx_msg: Rate = Rate()
    tx_byte: Rate = Rate()


@final
class RateMeter:
    """Rates of one or several counts that only grow, from samples taken about once a second.

    Times are nanoseconds of a clock that never goes back. Before the second sample all rates are 0;
    until a minute has passed, the average is over what there is.
    """

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=limits.RATE_SAMPLES)

    def sample(self, now_ns: int, *counts: int) -> None:
        """Note the counts as they stand. A count that is lower than before starts the meter anew."""
        samples = self._samples
        if samples:
            last_ns, last = samples[-1]
            if len(last) != len(counts) or any(
                new < old for new, old in zip(counts, last, strict=True)
            ):
                samples.clear()
            elif now_ns - last_ns < LEAST_GAP_NS:
                return
        samples.append((now_ns, counts))
        # The one sample at or before the begin of the window is what the average starts from.
        while len(samples) > 2 and samples[1][0] <= now_ns - WINDOW_NS:
            samples.popleft()

    def rates(self) -> tuple[Rate, ...]:
        """The rate of each count, in the order of `sample`; none before the first sample."""
        samples = self._samples
        if not samples:
            return ()
        now_ns, now = samples[-1]
        if len(samples) == 1:
            return tuple(Rate() for _ in now)
        before_ns, before = samples[-2]
        first_ns, first = samples[0]
        return tuple(
            Rate(
                _a_second(count - before[index], now_ns - before_ns),
                _a_second(count - first[index], now_ns - first_ns),
            )
            for index, count in enumerate(now)
        )

    def bridge_rates(self) -> BridgeRates:
        """The rates of `sample(now_ns, rx_msgs, rx_bytes, tx_msgs, tx_bytes)`."""
        return BridgeRates(*self.rates())


def _a_second(growth: int, elapsed_ns: int) -> int:
    return (growth * SECOND + elapsed_ns // 2) // elapsed_ns
