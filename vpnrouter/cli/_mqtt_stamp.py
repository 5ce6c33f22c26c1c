"""The time of publishing inside a payload, so that whoever receives it knows how long it took."""

import re
from typing import Final

_STAMP: Final = re.compile(rb"@(\d{19}) ")

STAMP_BYTES: Final = 21


def stamped(payload: bytes, now_ns: int) -> bytes:
    """`@NANOSECONDS-SINCE-1970 ` before the payload, in its first bytes where it has as many random ones."""
    return b"@%019d %b" % (now_ns, payload)


def stamp_of(payload: bytes) -> int:
    """When a payload was published, in nanoseconds since 1970; 0 where it does not say."""
    found = _STAMP.match(payload)
    return int(found[1]) if found else 0
