"""Reads and writes variable byte integers, and finds frames that begin with a type byte and such a length.

MQTT (5.0, section 1.5.5) and the link protocol (LINK-1, LINK-2) frame alike: one type byte, the remaining length as 1
to 4 bytes of 7 bits, least significant first, then the body. Both ask for the shortest form; a longer one is
malformed, since two spellings of one length are a way round filters.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from vpnrouter.errors import ProtocolError

VARINT_MAX: Final = 268_435_455
"""Largest number four bytes of seven bits can say."""

MALFORMED: Final = 0x81
"""Reason code of a number that cannot be read; the same in MQTT 5 and in the link protocol."""

_ONE_BYTE: Final = [bytes((n,)) for n in range(128)]


def varint(n: int) -> bytes:
    """Encode `n` (0..268,435,455) in its shortest form, 1 to 4 bytes.

    Raises ValueError outside that range: the caller built something that no frame can carry.
    """
    if 0 <= n < 128:
        return _ONE_BYTE[n]
    if n < 0 or n > VARINT_MAX:
        raise ValueError(f"{n} does not fit a variable byte integer")
    if n < 16_384:
        return bytes((n & 0x7F | 0x80, n >> 7))
    if n < 2_097_152:
        return bytes((n & 0x7F | 0x80, n >> 7 & 0x7F | 0x80, n >> 14))
    return bytes((n & 0x7F | 0x80, n >> 7 & 0x7F | 0x80, n >> 14 & 0x7F | 0x80, n >> 21))


def read_varint(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Read the number at `pos`; returns (number, index after it).

    The number must end before `end`, inside a body that is complete, so a short one is malformed.
    Raises ProtocolError(0x81).
    """
    value = 0
    shift = 0
    while pos < end:
        byte = buf[pos]
        pos += 1
        if byte < 0x80:
            if byte == 0 and shift:
                raise ProtocolError(MALFORMED, "length is not in its shortest form")
            return value | byte << shift, pos
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift == 28:
            raise ProtocolError(MALFORMED, "length has more than four bytes")
    raise ProtocolError(MALFORMED, "length ends early")


def frame_at(
    buf: bytes, pos: int, end: int, max_frame: int, too_large_code: int, malformed_code: int
) -> int:
    """Total bytes of the frame whose type byte is at `pos`, or 0 while its end is not yet in `buf`.

    `buf[pos:end]` is what has arrived. Type byte and length bytes count towards the result and
    towards `max_frame`. Raises ProtocolError with `too_large_code` as soon as the length is known
    to exceed `max_frame`, without waiting for the body, and with `malformed_code` for a length that
    does not end after four bytes or is not in its shortest form.
    """
    at = pos + 1
    value = 0
    shift = 0
    while at < end:
        byte = buf[at]
        at += 1
        if byte < 0x80:
            if byte == 0 and shift:
                raise ProtocolError(malformed_code, "frame length is not in its shortest form")
            total = at - pos + (value | byte << shift)
            if total > max_frame:
                raise ProtocolError(
                    too_large_code, f"frame of {total} bytes is above the limit of {max_frame}"
                )
            return total if pos + total <= end else 0
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift == 28:
            raise ProtocolError(malformed_code, "frame length has more than four bytes")
    return 0


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
