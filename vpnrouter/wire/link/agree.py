"""What acceptor and dialer agree on from HELLO and WELCOME (LINK-12, LINK-14, LINK-15)."""

from typing import Final

from vpnrouter import limits
from vpnrouter.wire.link.frames import FLOWS, MINOR, RETAINED, REUSE, ZSTD

FEATURES: Final = REUSE | FLOWS | ZSTD | RETAINED
"""Features known here. Each later one has a bit (LINK-48)."""


def agreed_minor(theirs: int) -> int:
    """The minor version to speak: the lower one."""
    return min(theirs, MINOR)


def agreed_features(offered: int) -> int:
    """The bits of the offer that this side has too; unknown ones are left out."""
    return offered & FEATURES


def agreed_heartbeat_ms(wish_ms: int) -> int:
    """Interval in milliseconds with which the acceptor answers a wish; 0 means no heartbeats."""
    if wish_ms == 0:
        return 0
    return min(max(wish_ms, limits.LINK_HEARTBEAT_MIN_MS), limits.LINK_HEARTBEAT_MAX_MS)


def agreed_max_frame(theirs: int) -> int:
    """Largest frame, in bytes, that this side may send to a peer that announced `theirs`."""
    return min(theirs, limits.LINK_FRAME_BYTES)
