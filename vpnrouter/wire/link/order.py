"""Checks which frame may come when (LINK-17, LINK-39), by a table, and what both sides agree on (LINK-12, LINK-14).

A link carries up to two halves. The receiver's own half *attracts*: its bridge placed subscriptions and messages come
in. The peer's half is *served*: the peer's bridge logged in here and messages go out. The state of a link is a set of
the flags below.
"""

from __future__ import annotations

from typing import Final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes
from vpnrouter.wire.link.frames import (
    ACK,
    AMQP,
    BIND,
    BOUND,
    CHALLENGE,
    CLOSE,
    COMPRESSED,
    DETACH,
    DIRECT,
    DIRECT_X,
    FLOWS,
    FORGET,
    GUARANTEED,
    HEARTBEAT,
    HELLO,
    MINOR,
    OPTIONAL_FROM,
    PROOF,
    REFUSE,
    REJECT,
    RETAINED,
    REUSE,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    UNBIND,
    UNBOUND,
    UNSUBSCRIBE,
    WELCOME,
    ZSTD,
)

FEATURES: Final = REUSE | FLOWS | ZSTD | RETAINED | AMQP
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


STRANGE: Final = 1
"""Accepted from somebody who has not said HELLO."""

ASKING: Final = 2
"""HELLO is out, no answer yet."""

ATTRACTING: Final = 4
"""Our half is logged in there. Stays set when it leaves: what is on the way still comes."""

SERVING: Final = 8
"""The peer's half is logged in here."""

REUSABLE: Final = 16
"""Both agreed on reuse, and the peer has no half here now."""

PACKED: Final = 32
"""Both agreed on compression."""

UP: Final = 64
"""One of the halves is logged in, or was."""

FLOWING: Final = 128
"""Both agreed on guaranteed flows."""

PROVING: Final = 256
"""Our HELLO offers a proof, and the challenge has not come yet."""

CHALLENGING: Final = 512
"""The peer was sent a challenge, and its proof has not come yet."""

ALLOWED: Final[dict[int, frozenset[int]]] = {
    STRANGE: frozenset({HELLO}),
    ASKING: frozenset({WELCOME, REFUSE}),
    PROVING: frozenset({CHALLENGE}),
    CHALLENGING: frozenset({PROOF}),
    ATTRACTING: frozenset({SUBSCRIBED, DIRECT, DIRECT_X}),
    SERVING: frozenset({SUBSCRIBE, UNSUBSCRIBE, DETACH}),
    REUSABLE: frozenset({HELLO}),
    PACKED: frozenset({COMPRESSED}),
    UP: frozenset({HEARTBEAT, CLOSE}),
    ATTRACTING | FLOWING: frozenset({BOUND, UNBIND, UNBOUND, GUARANTEED, FORGET}),
    SERVING | FLOWING: frozenset({BIND, UNBIND, UNBOUND, ACK, REJECT, SETTLED}),
}
"""flags → frame types that the receiver takes because all of them are set."""

_AGREED: Final[dict[int, int]] = {
    COMPRESSED: PACKED,
    **dict.fromkeys(
        (BIND, BOUND, UNBIND, UNBOUND, GUARANTEED, ACK, REJECT, SETTLED, FORGET), FLOWING
    ),
}
"""Frame type → flag without which nobody agreed on it (LINK-5)."""

KNOWN: Final[frozenset[int]] = frozenset({kind for taken in ALLOWED.values() for kind in taken})
"""Every frame type of this minor version."""


def accepted(doing: int) -> frozenset[int]:
    """The frame types taken by a receiver whose link is `doing` this."""
    taken: set[int] = set()
    for flags, kinds in ALLOWED.items():
        if doing & flags == flags:
            taken |= kinds
    return frozenset(taken)


def check_order(doing: int, frame_type: int) -> None:
    """Raise ProtocolError unless a receiver whose link is `doing` this takes a frame of this type.

    0xC2 for a first byte that is no HELLO, before its length is believed (LINK-11). 0x82 for a frame out of turn
    (LINK-17), 0xC0 for a type that is not known or was not agreed on (LINK-4, LINK-5). Optional types pass once the
    link is up.
    """
    if frame_type in accepted(doing):
        return
    if doing & UP and frame_type >= OPTIONAL_FROM:
        return
    if doing & STRANGE:
        raise ProtocolError(codes.NOT_A_LINK, "LINK-11: the first frame is no HELLO")
    agreed = _AGREED.get(frame_type, 0)
    if agreed & ~doing or (frame_type not in KNOWN and doing & UP):
        raise ProtocolError(
            codes.UNSUPPORTED_FRAME, f"LINK-5: frame 0x{frame_type:02x} is not agreed on"
        )
    raise ProtocolError(codes.PROTOCOL_ERROR, f"LINK-17: frame 0x{frame_type:02x} is out of turn")
