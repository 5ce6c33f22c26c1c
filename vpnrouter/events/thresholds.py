"""Thresholds: an event when a value rises to the one mark, and its clear event when it falls to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from vpnrouter.events.table import EventType


class ThresholdValues(NamedTuple):
    """Percent of a bound, or, where `absolute`, values themselves. 0 for `set_at` never raises anything."""

    set_at: int
    clear_at: int
    absolute: bool = False

    def of(self, bound: int) -> tuple[int, int]:
        """The values that raise and clear, for a bound of the watched value."""
        if self.absolute:
            return self.set_at, self.clear_at
        return -(-bound * self.set_at // 100), bound * self.clear_at // 100


class ThresholdEvents(NamedTuple):
    """The two events of one threshold, and what the value is called in their texts."""

    high: EventType
    clear: EventType
    what: str


class Crossing(NamedTuple):
    """An event to raise."""

    kind: EventType
    text: str


@final
class Thresholds:
    """Which of the watched values are high; checked once a second, never per message."""

    __slots__ = ("_high", "_still")

    def __init__(self) -> None:
        self._high: set[tuple[str, str, str]] = set()
        self._still: set[tuple[str, str, str]] = set()

    def look(
        self,
        pair: ThresholdEvents,
        msg_vpn: str,
        name: str,
        value: int,
        bound: int,
        marks: ThresholdValues,
    ) -> Crossing | None:
        """The event that `value` of `name` in `msg_vpn` brings about, if any. `bound` 0 is no bound."""
        key = (pair.high.name, msg_vpn, name)
        high = key in self._high
        set_at, clear_at = marks.of(bound)
        if not set_at or not (bound or marks.absolute):
            # No longer watched: whoever saw it go high is told that this is over.
            return self._cleared(pair, key, value) if high else None
        if high:
            if value > clear_at:
                self._still.add(key)
                return None
            return self._cleared(pair, key, value)
        if value < set_at:
            return None
        self._high.add(key)
        self._still.add(key)
        share = f" ({100 * value // bound} % of {bound:,})" if bound else ""
        return Crossing(pair.high, f"{pair.what} high: {value:,}{share}")

    def is_high(self, pair: ThresholdEvents, msg_vpn: str, name: str) -> bool:
        """Whether the last look found the value high."""
        return (pair.high.name, msg_vpn, name) in self._high

    def done(self) -> None:
        """End a round of looks; values that were not looked at in it are gone and forgotten."""
        self._high = self._still
        self._still = set()

    def _cleared(self, pair: ThresholdEvents, key: tuple[str, str, str], value: int) -> Crossing:
        self._high.discard(key)
        return Crossing(pair.clear, f"{pair.what} no longer high: {value:,}")
