"""Walk over encoded frames, MQTT's or a link's: both begin with a type byte and a variable length.

Only for what is rare: how many messages went down with a connection.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MESSAGE: Final = 0x30
"""High half of the type byte of MQTT's PUBLISH and of the link's DIRECT and DIRECT_X."""

DIRECT_MASK: Final = 0xF6
"""What of the type byte tells a PUBLISH of QoS 0 from others: those of QoS 1 and 2 are not lost here."""


def frame_end(data: bytes, at: i64) -> i64:
    """Where the frame at `at` ends; the end of `data` when it goes beyond."""
    end: i64 = len(data)
    length: i64 = 0
    shift: i64 = 0
    pos: i64 = at + 1
    while pos < end and shift < 28:
        byte: i64 = data[pos]
        pos += 1
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    following = pos + length
    return min(end, following)


def messages_from(data: bytes, at: i64) -> int:
    """How many frames of Direct messages begin at or after `at`, where a frame begins (or `data` ends)."""
    count = 0
    end: i64 = len(data)
    while at < end:
        if data[at] & DIRECT_MASK == MESSAGE:
            count += 1
        at = frame_end(data, at)
    return count


def topic_in(data: bytes, *, link: bool) -> bytes:
    """The topic of the Direct frame that `data` is; b"" where it has an alias instead. `link`: of a link."""
    end: i64 = len(data)
    pos = _behind_number(data, 1, end)
    if link and end and data[0] & 1:
        # DIRECT_X has its extension first (LINK-30).
        at = pos
        pos = _behind_number(data, pos, end)
        pos += _number(data, at, end)
    if pos + 2 > end:
        return b""
    high: i64 = data[pos]
    low: i64 = data[pos + 1]
    return data[pos + 2 : pos + 2 + (high << 8 | low)]


def _behind_number(data: bytes, pos: i64, end: i64) -> i64:
    while pos < end:
        pos += 1
        if data[pos - 1] < 128:
            break
    return pos


def _number(data: bytes, pos: i64, end: i64) -> i64:
    number: i64 = 0
    shift: i64 = 0
    while pos < end and shift < 28:
        byte: i64 = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return number
