"""Variable byte integers and the length-prefixed frames built on them.

MQTT (5.0, section 1.5.5) and the link protocol (LINK-1, LINK-2) frame alike: one type byte, the
remaining length as 1 to 4 bytes of 7 bits, least significant first, then the body. Both ask for the
shortest form; a longer one is malformed, since two spellings of one length are a way round filters.
"""

from typing import Final

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
