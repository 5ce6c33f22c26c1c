"""Reads and writes the frames of a connection (2.2, 2.3): protocol headers, sizes, channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.conditions import FRAMING_ERROR

if TYPE_CHECKING:
    from vpnrouter.wire.amqp.types import Budget, Described

HEADER_BYTES: Final = 8
"""Of a protocol header, and of the least head of a frame."""

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

AMQP: Final = 0
SASL: Final = 1
"""Types of frames (2.3.1, 5.3.1)."""

MIN_MAX_FRAME: Final = 512
"""Bytes of a frame that each peer has to take (2.7.1)."""

EMPTY: Final = b"\x00\x00\x00\x08\x02\x00\x00\x00"
"""A frame that says nothing but that the peer is there (2.4.5)."""

_DOFF_AT: Final = 4
_KIND_AT: Final = 5
_CHANNEL_AT: Final = 6
_DOFF_LEAST: Final = 2


class Frame(NamedTuple):
    """One frame. `performative` is None in an empty one; `payload` is what follows it."""

    kind: int
    channel: int
    performative: Any
    payload: bytes


def frame_at(buf: bytes, pos: int, end: int, max_frame: int) -> int:
    """Return the bytes of the frame at `pos`; 0 when buf[pos:end] lacks a part of it.

    Raises ProtocolError as soon as the size is more than `max_frame`, or less than its own head.
    """
    if end - pos < HEADER_BYTES:
        return 0
    size = int.from_bytes(buf[pos : pos + 4], "big")
    if size > max_frame:
        raise ProtocolError(FRAMING_ERROR, f"2.3.1: a frame of {size} bytes, at most {max_frame}")
    doff = buf[pos + _DOFF_AT]
    if doff < _DOFF_LEAST or size < 4 * doff:
        raise ProtocolError(FRAMING_ERROR, f"2.3.1: a frame of {size} bytes, {4 * doff} of head")
    return 0 if size > end - pos else size


def decode(buf: bytes, pos: int, size: int, budget: Budget | None = None) -> Frame:
    """Return the frame of `size` bytes at `pos`, which `frame_at` has found, with values of the `budget`.

    Raises ProtocolError for another type of frame and what `performatives.read` refuses.
    """
    end = pos + size
    kind = buf[pos + _KIND_AT]
    if kind > SASL:
        raise ProtocolError(FRAMING_ERROR, f"2.3.1: frames of type {kind}")
    channel = buf[pos + _CHANNEL_AT] << 8 | buf[pos + _CHANNEL_AT + 1] if kind == AMQP else 0
    body = pos + 4 * buf[pos + _DOFF_AT]
    if body == end:
        return Frame(kind, channel, None, b"")
    performative, behind = performatives.read(buf, body, end, 0, budget)
    return Frame(kind, channel, performative, buf[behind:end])


def encode(
    performative: tuple[Any, ...] | Described,
    channel: int = 0,
    kind: int = AMQP,
    payload: bytes = b"",
) -> bytes:
    """Return a frame with this performative and payload."""
    body = performatives.write(performative)
    size = HEADER_BYTES + len(body) + len(payload)
    head = size.to_bytes(4, "big") + bytes((_DOFF_LEAST, kind)) + channel.to_bytes(2, "big")
    return head + body + payload
