"""Copies bytes into a writer without an object for each piece."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

WORD: Final = 8

SLICE_BYTES: Final = 512
"""More bytes than these are copied by a slice, fewer word by word: that costs less than an object."""

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is the compiled one: only there do eight-byte loads cost less than a call."""


def copy_bytes(out: BytesWriter, buf: bytes, at: i64, end: i64) -> None:
    """Append `buf[at:end]`."""
    if not COMPILED or end - at > SLICE_BYTES:
        out.write(buf[at:end])
        return
    while end - at >= WORD:
        write_i64_le(out, read_i64_le(buf, at))
        at += WORD
    while at < end:
        out.append(buf[at])
        at += 1
