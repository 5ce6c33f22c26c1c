"""Spans of time, as they are written on the command line."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from vpnrouter.errors import OperationError
from vpnrouter.units import DAY_NS, SECOND_NS

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FORMS: Final = (
    "2026-03-01, 2026-03-01T12:30, 2026-03-01T12:30:15+01:00, or 90m (so long ago; s, m, h, d, w)"
)

RANGE: Final = ".."
"""Stands between the two ends of a range."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """From `since_ns` up to but not including `until_ns`, nanoseconds since 1970 (UTC); None: no bound."""

    since_ns: int | None = None
    until_ns: int | None = None

    def days(self) -> tuple[str | None, str | None]:
        """Return the first and the last UTC date that has times of the span, "YYYY-MM-DD"; None: no bound."""
        first = None if self.since_ns is None else _date(self.since_ns)
        last = None if self.until_ns is None else _date(self.until_ns - 1)
        return first, last


def parse_time(text: str, now_ns: int) -> int:
    """Return a point of time, in nanoseconds since 1970: a date, a date and time (ISO 8601, UTC unless it says
    otherwise), or a duration before `now_ns`. Times that 64 bits cannot say, before 1678 or after 2261, are the ends
    of what they can: no row is beyond.

    Raises:
        OperationError: the text is none of these.
    """
    stripped = text.strip()
    ago = _AGO.fullmatch(stripped)
    if ago is not None:
        seconds = min(float(ago.group(1)) * _UNIT_S[ago.group(2)], _LONGEST_S)
        return _in_bounds(now_ns - round(seconds * SECOND_NS))
    try:
        moment = dt.datetime.fromisoformat(stripped)
    except ValueError:
        raise OperationError(f"not a time: {text!r}; write {_FORMS}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    try:
        since = moment - _EPOCH
    except OverflowError:
        return _LAST_NS if moment.year > _EPOCH.year else -_LAST_NS
    return _in_bounds(
        (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1_000
    )


_LAST_NS: Final = ((1 << 63) // DAY_NS - 1) * DAY_NS
"""The last midnight that 64 bits can say; the first is as long before 1970."""

_LONGEST_S: Final = 2.0 * _LAST_NS / SECOND_NS


def _in_bounds(time_ns: int) -> int:
    return max(-_LAST_NS, min(_LAST_NS, time_ns))


def parse_span(since: str | None, until: str | None, now_ns: int) -> Span:
    """Return the span between two times as `parse_time` reads them; None leaves an end open.

    Raises:
        OperationError: a time is not one, or nothing lies between them.
    """
    begin = None if since is None else parse_time(since, now_ns)
    end = None if until is None else parse_time(until, now_ns)
    if begin is not None and end is not None and begin >= end:
        raise OperationError(f"nothing lies between {since} and {until}")
    return Span(since_ns=begin, until_ns=end)


def parse_range(text: str, now_ns: int) -> Span:
    """Return a span written as "SINCE..UNTIL"; an end that is left away is open, but not both.

    Raises:
        OperationError: it has another form, or nothing lies between.
    """
    first, dots, last = text.partition(RANGE)
    if not dots or not (first or last):
        raise OperationError(f"not a range of time: {text!r}; write SINCE{RANGE}UNTIL")
    return parse_span(first or None, last or None, now_ns)


def _date(time_ns: int) -> str:
    return (_EPOCH + dt.timedelta(seconds=time_ns // SECOND_NS)).date().isoformat()
