"""Which frame may come when (LINK-17), as a table.

Uni-directional links of minor 0: messages flow from the acceptor, in whose VPN they are published,
to the dialer, whose VPN has the bridge.
"""

from typing import Final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import close_codes
from vpnrouter.wire.link.frames import (
    CLOSE,
    DIRECT,
    DIRECT_X,
    HEARTBEAT,
    HELLO,
    OPTIONAL_FROM,
    REFUSE,
    SUBSCRIBE,
    SUBSCRIBED,
    UNSUBSCRIBE,
    WELCOME,
)

ACCEPTOR: Final = 0
DIALER: Final = 1

HANDSHAKE: Final = 0
UP: Final = 1

ALLOWED: Final[dict[tuple[int, int], frozenset[int]]] = {
    (ACCEPTOR, HANDSHAKE): frozenset({HELLO}),
    (DIALER, HANDSHAKE): frozenset({WELCOME, REFUSE}),
    (ACCEPTOR, UP): frozenset({SUBSCRIBE, UNSUBSCRIBE, HEARTBEAT, CLOSE}),
    (DIALER, UP): frozenset({SUBSCRIBED, DIRECT, DIRECT_X, HEARTBEAT, CLOSE}),
}
"""(role of the receiver, phase) → frame types it takes."""

KNOWN: Final[frozenset[int]] = frozenset(
    {
        HELLO,
        WELCOME,
        REFUSE,
        CLOSE,
        HEARTBEAT,
        SUBSCRIBE,
        UNSUBSCRIBE,
        SUBSCRIBED,
        DIRECT,
        DIRECT_X,
    }
)
"""Every frame type of minor 0."""


def check_order(role: int, phase: int, frame_type: int) -> None:
    """Raise ProtocolError unless a receiver in `role` and `phase` takes a frame of this type.

    0xC2 for a first byte that is no HELLO: a stranger, told before his length is believed
    (LINK-11).
    0x82 for a frame out of turn (LINK-17), 0xC0 for a type that minor 0 does not have (LINK-4,
    LINK-5). Optional types pass once the link is up.
    """
    if frame_type in ALLOWED[(role, phase)]:
        return
    if phase == UP and frame_type >= OPTIONAL_FROM:
        return
    if role == ACCEPTOR and phase == HANDSHAKE:
        raise ProtocolError(close_codes.NOT_A_LINK, "LINK-11: the first frame is no HELLO")
    if frame_type in KNOWN or phase == HANDSHAKE:
        raise ProtocolError(
            close_codes.PROTOCOL_ERROR, f"LINK-17: frame 0x{frame_type:02x} is out of turn"
        )
    raise ProtocolError(
        close_codes.UNSUPPORTED_FRAME, f"LINK-5: frame 0x{frame_type:02x} is not agreed on"
    )
