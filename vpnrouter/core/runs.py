"""How many frames in a row begin alike: the inner loop of a busy publisher's chunk.

A compiled build compares eight bytes at a time; interpreted, one `startswith` a frame is the cheapest.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from mypy_extensions import i64

WORD: Final = 8

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is the compiled one: only there do eight-byte loads cost less than a call."""


def run_length(buf: bytes, pos: i64, head: i64, size: i64, most: i64) -> i64:
    """Frames of `size` bytes from `pos` on whose first `head` bytes equal the first one's, 1..`most`.

    The caller has checked that `most` whole frames of that size are in `buf`.
    """
    count: i64 = 1
    at: i64 = pos + size
    if not COMPILED or head < WORD:
        prefix = buf[pos : pos + head]
        while count < most and buf.startswith(prefix, at):
            at += size
            count += 1
        return count
    last: i64 = head - WORD
    while count < most:
        offset: i64 = 0
        while offset < last:
            if read_i64_le(buf, at + offset) != read_i64_le(buf, pos + offset):
                return count
            offset += WORD
        # The last word overlaps the one before where the head is no multiple of eight.
        if read_i64_le(buf, at + last) != read_i64_le(buf, pos + last):
            return count
        at += size
        count += 1
    return count
