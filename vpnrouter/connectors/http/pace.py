"""When a request is tried again: pauses that grow, what the server asks for, and a server that is in trouble.

Pure: times are nanoseconds of a monotonic clock, and draws are arguments.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter import limits
from vpnrouter.units import SECOND_NS

FACTOR: Final = 2
"""By how much each pause is longer than the one before."""

JITTER_PARTS: Final = 1_024
"""A draw is one of so many numbers from 0 on."""

TROUBLED: Final = 8
"""Requests in a row that fail before a link sends one at a time, with pauses: no message is at fault then."""

_DAY_S: Final = 86_400
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)


def pause_ns(tries: int, first_ns: int, most_ns: int, draw: int) -> int:
    """Return the pause after so many tries (1 or more), from three quarters to five quarters of its length by `draw`, a
    number below JITTER_PARTS.
    """
    length = first_ns
    for _ in range(min(tries - 1, 64)):
        length *= FACTOR
        if length >= most_ns:
            break
    length = min(length, most_ns)
    return length * 3 // 4 + length * draw // (2 * JITTER_PARTS)


def draw_of(message_id: int, tries: int, salt: int) -> int:
    """Return a number below JITTER_PARTS that differs from message to message, and from try to try."""
    mixed = (message_id * 0x9E3779B1 + tries * 0x85EBCA6B + salt * 0xC2B2AE35) & 0xFFFF_FFFF
    mixed ^= mixed >> 15
    mixed = mixed * 0x2C1B3C6D & 0xFFFF_FFFF
    return (mixed >> 12) % JITTER_PARTS


def retry_after_ns(value: bytes, wall_ns: int) -> int:
    """Return for how long a server asks to be left alone, at most HTTP_RETRY_AFTER_S; -1 where it does not say it.

    `value` is that of Retry-After: seconds, or a date in one of three forms (RFC 9110, 10.2.3 and 5.6.7).
    """
    text = value.decode("ascii", "replace").strip()
    most_s = limits.HTTP_RETRY_AFTER_S
    if text.isascii() and text.isdigit():
        return (most_s if len(text) > 9 else min(int(text), most_s)) * SECOND_NS
    at_s = date_s(text, wall_ns // SECOND_NS)
    if at_s < 0:
        return -1
    return min(max(0, at_s * SECOND_NS - wall_ns), most_s * SECOND_NS)


def date_s(text: str, now_s: int) -> int:
    """Return a date of HTTP in seconds since 1970, -1 for what is none.

    Sun, 06 Nov 1994 08:49:37 GMT       Sunday, 06-Nov-94 08:49:37 GMT       Sun Nov  6 08:49:37 1994
    """
    words = text.lower().replace(",", " ").split()
    if len(words) == 4 and words[0] in _LONG_DAYS:
        # RFC 850: a year of two digits, which is at most 50 years ahead.
        day, _, rest = words[1].partition("-")
        month, _, year = rest.partition("-")
        if len(year) != 2 or not _is_number(year):
            return -1
        century = (1970 + now_s // 31_556_952) // 100 * 100
        full = century + int(year)
        if full > 1970 + now_s // 31_556_952 + 50:
            full -= 100
        return _seconds(day, month, str(full), words[2]) if words[3] == "gmt" else -1
    if len(words) == 6 and words[0] in _DAYS and words[5] == "gmt":
        return _seconds(words[1], words[2], words[3], words[4])
    if len(words) == 5 and words[0] in _DAYS:
        return _seconds(words[2], words[1], words[4], words[3])
    return -1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _seconds(day: str, month: str, year: str, time: str) -> int:
    clock = time.split(":")
    if month not in _MONTHS or len(clock) != 3:
        return -1
    for number in (day, year, *clock):
        if not _is_number(number):
            return -1
    if not 1 <= int(day) <= 31 or int(clock[0]) > 23 or int(clock[1]) > 59 or int(clock[2]) > 60:
        return -1
    days = _days(int(year), _MONTHS.index(month) + 1, int(day))
    if days < 0:
        return -1
    return days * _DAY_S + int(clock[0]) * 3_600 + int(clock[1]) * 60 + int(clock[2])


def _days(year: int, month: int, day: int) -> int:
    """Return days since 1970 by the Gregorian calendar, whose year is taken to begin in March."""
    if month <= 2:
        year -= 1
        month += 12
    return (
        year * 365
        + year // 4
        - year // 100
        + year // 400
        + (month * 153 - 457) // 5
        + day
        - 719_469
    )


@final
class Pace:
    """How a link goes on after requests that failed; `first_ns` and `most_ns` bound the pauses.

    `failures` are those in a row. `until_ns`: nothing is sent before. `most`: requests that may be under way at once.
    """

    __slots__ = ("_all", "_first_ns", "_most_ns", "failures", "most", "until_ns")

    def __init__(self, first_ns: int, most_ns: int, most: int) -> None:
        self._first_ns = first_ns
        self._most_ns = max(first_ns, most_ns)
        self._all = most
        self.most = most
        self.failures = 0
        self.until_ns = 0

    @property
    def troubled(self) -> bool:
        """Whether the server is asked one message at a time, since nothing succeeds."""
        return self.failures >= TROUBLED

    def pause(self, tries: int, draw: int) -> int:
        """Return the pause after so many tries of a message."""
        return pause_ns(tries, self._first_ns, self._most_ns, draw)

    def failed(self, tries: int, now_ns: int, draw: int) -> int:
        """Note that a request failed that may be tried again; return the pause for its message."""
        self.failures += 1
        self.most = max(1, self.most // 2)
        if self.troubled:
            self.most = 1
            rest_ns = pause_ns(self.failures - TROUBLED + 1, self._first_ns, self._most_ns, draw)
            self.until_ns = max(self.until_ns, now_ns + rest_ns)
        return self.pause(tries, draw)

    def rest(self, until_ns: int) -> None:
        """Send nothing before `until_ns`: the server asks for it."""
        self.until_ns = max(self.until_ns, until_ns)

    def answered(self) -> bool:
        """Note that a request was answered by more than a failure; return whether that ends trouble."""
        troubled = self.troubled
        self.failures = 0
        if self.most < self._all:
            self.most = self._all if troubled else self.most + 1
        return troubled
