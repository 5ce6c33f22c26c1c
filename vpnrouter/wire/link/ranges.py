"""Encodes many positions of a guaranteed flow in few bytes, as ranges (LINK-42).

A range is a pair (first position, how many follow each other, itself included). On the wire it is the first position
(u64) and the count (variable byte integer), so 255 in a row take ten bytes.
"""

from collections.abc import Iterable
from typing import Final

from librt.strings import read_i64_be

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.codes import MALFORMED, PROTOCOL_ERROR
from vpnrouter.wire.varint import read_varint, varint

LAST_POSITION: Final = (1 << 64) - 1


def ranges_of(positions: Iterable[int]) -> list[tuple[int, int]]:
    """The ranges that cover exactly `positions`, which come in any order; ascending."""
    out: list[tuple[int, int]] = []
    first = 0
    count = 0
    for position in sorted(positions):
        if count and position == first + count:
            count += 1
        elif not count or position >= first + count:
            if count:
                out.append((first, count))
            first = position
            count = 1
    if count:
        out.append((first, count))
    return out


def positions_of(ranges: list[tuple[int, int]]) -> list[int]:
    """Every position in `ranges`, in their order."""
    return [position for first, count in ranges for position in range(first, first + count)]


def encode_ranges(ranges: list[tuple[int, int]]) -> bytes:
    """The bytes of `ranges`. Raises ValueError for an empty one, for one that ends beyond 64 bits, and for
    more than LINK_FLOW_POSITIONS positions together.
    """
    out: list[bytes] = []
    total = 0
    for first, count in ranges:
        total += count
        if count < 1 or first + count - 1 > LAST_POSITION or total > limits.LINK_FLOW_POSITIONS:
            raise ValueError(f"{count} positions from {first} on, {total} together")
        out.append(first.to_bytes(8, "big") + varint(count))
    return b"".join(out)


def range_at(buf: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """First position, count, and the index after the range at `pos`.

    Raises ProtocolError: 0x81 when it is cut off, 0x82 when it is empty, too long, or ends beyond 64 bits.
    """
    if end - pos < 9:
        raise ProtocolError(MALFORMED, "LINK-42: a range is cut off")
    first: int = read_i64_be(buf, pos)
    if first < 0:
        first += 1 << 64
    count: int = buf[pos + 8]
    pos += 9
    if count > 127:
        count, pos = read_varint(buf, pos - 1, end)
    if not 0 < count <= limits.LINK_FLOW_POSITIONS or first + count - 1 > LAST_POSITION:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-42: {count} positions from {first} on")
    return first, count, pos


def decode_ranges(buf: bytes, pos: int, end: int) -> list[tuple[int, int]]:
    """The ranges that fill `buf[pos:end]`.

    Raises ProtocolError as `range_at`, and 0x82 for more than LINK_FLOW_POSITIONS positions together.
    """
    out: list[tuple[int, int]] = []
    total = 0
    while pos < end:
        first, count, pos = range_at(buf, pos, end)
        total += count
        check_total(total)
        out.append((first, count))
    return out


def check_total(total: int) -> None:
    """Raise ProtocolError(0x82) above LINK_FLOW_POSITIONS positions in one frame."""
    if total > limits.LINK_FLOW_POSITIONS:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-40: {total} positions in one frame")
