"""Keeps the ids of deliveries in their order, so that a range of them costs what is in it (AMQP 1.0, 2.8.10)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any, Final, final

SERIAL: Final = 0xFFFF_FFFF
"""Ids count modulo 2**32 (2.8.7, RFC 1982)."""

HALF: Final = 0x8000_0000

FEW: Final = 64
"""Ids that are not looked through for those that are gone."""


@final
class SerialOrder:
    """Ids in their order. Which of them still stand for something only the caller's map knows.

    An id is kept as a number that goes on beyond 2**32. Ids that are gone leave when a range over them is asked for,
    or when they are most.
    """

    __slots__ = ("_last", "_numbers")

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._last = -1

    def __len__(self) -> int:
        return len(self._numbers)

    def catch_up(self, count: int, alive: dict[int, Any]) -> None:
        """Take in the ids of `alive` up to the one before `count`, which goes on beyond 2**32.

        They are in `alive` in their order. So that nothing is done for a single id, this is called when a range is
        asked for, and costs as much as ids were added since the last time.
        """
        begin = self._last + 1
        self._last = count - 1
        if count - begin > len(alive) + FEW:
            self._numbers = [self._unwrapped(serial) for serial in alive]
            return
        numbers = self._numbers
        for number in range(begin, count):
            if number & SERIAL in alive:
                numbers.append(number)
        self._tidy(alive)

    def add(self, serial: int, alive: dict[int, Any]) -> None:
        """Add an id, which mostly follows the one before. `alive` has those that still stand for something."""
        number = self._unwrapped(serial)
        self._tidy(alive)
        numbers = self._numbers
        if not numbers or number > numbers[-1]:
            numbers.append(number)
        else:
            insort(numbers, number)
        self._last = number

    def _tidy(self, alive: dict[int, Any]) -> None:
        """Forget ids that are gone, where they are most."""
        if len(self._numbers) > 2 * len(alive) + FEW:
            self._numbers = [one for one in self._numbers if (one & SERIAL) in alive]

    def within(self, first: int, count: int, alive: dict[int, Any]) -> list[int]:
        """Return the ids among `alive` from `first` on, up to `count` behind it, in their order."""
        numbers = self._numbers
        begin = self._unwrapped(first)
        start = bisect_left(numbers, begin)
        end = bisect_right(numbers, begin + count)
        kept: list[int] = []
        found: list[int] = []
        for number in numbers[start:end]:
            serial = number & SERIAL
            if serial in alive:
                kept.append(number)
                found.append(serial)
        if len(kept) < end - start:
            numbers[start:end] = kept
        return found

    def clear(self) -> None:
        """Forget all ids."""
        self._numbers.clear()

    def _unwrapped(self, serial: int) -> int:
        """Return the number next to the last one that stands for an id."""
        last = self._last
        step = (serial - last) & SERIAL
        return last + (step - SERIAL - 1 if step >= HALF else step)
