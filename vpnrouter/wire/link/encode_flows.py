"""Frames of guaranteed flows to bytes; see encode.py."""

from struct import Struct
from typing import Final

from vpnrouter import limits
from vpnrouter.wire.link import field_codes, flow_frames
from vpnrouter.wire.link.encode import direct_body
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.fields import number_field
from vpnrouter.wire.link.flow_frames import STORE_ID_BYTES
from vpnrouter.wire.link.ranges import encode_ranges
from vpnrouter.wire.varint import varint

_MESSAGE: Final = Struct(">IQBB")
"""Flow id, position, flags, priority of GUARANTEED."""

_STATUS: Final = Struct(">IBQ")
"""Flow id, active, messages of FLOW_STATUS."""


def _frame(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + varint(len(body)) + body


def _text(text: str, most: int) -> bytes:
    raw = text.encode("utf-8")
    if len(raw) > most:
        raise ValueError(f"a text of {len(raw)} bytes")
    return len(raw).to_bytes(2, "big") + raw


def _store_id(store_id: bytes) -> bytes:
    if len(store_id) != STORE_ID_BYTES:
        raise ValueError(f"a store id of {len(store_id)} bytes")
    return store_id


def bind(frame: flow_frames.Bind) -> bytes:
    """BIND (LINK-40)."""
    if not frame.queue:
        raise ValueError("a queue without a name")
    out = [
        frame.request_id.to_bytes(4, "big"),
        _text(frame.queue, limits.LINK_TEXT_BYTES),
        frame.window.to_bytes(2, "big"),
    ]
    if frame.accepted:
        accepted = _accepted(frame.accepted)
        out.append(bytes((field_codes.ACCEPTED,)) + varint(len(accepted)) + accepted)
    if frame.selector:
        raw = frame.selector.encode("utf-8")
        if len(raw) > limits.SELECTOR_BYTES:
            raise ValueError(f"a selector of {len(raw)} bytes")
        out.append(bytes((field_codes.SELECTOR,)) + varint(len(raw)) + raw)
    if frame.lanes:
        out.append(number_field(field_codes.LANES, frame.lanes, 1))
    if frame.on_reject:
        out.append(number_field(field_codes.ON_REJECT, frame.on_reject, 1))
    return _frame(flow_frames.BIND, b"".join(out))


def _accepted(accepted: dict[bytes, list[tuple[int, int]]]) -> bytes:
    if len(accepted) > limits.LINK_FLOW_STORES:
        raise ValueError(f"positions of {len(accepted)} stores")
    out: list[bytes] = []
    total = 0
    for store_id, ranges in accepted.items():
        if not ranges:
            raise ValueError("a store without positions")
        total += sum([count for _, count in ranges])
        out.append(_store_id(store_id) + varint(len(ranges)) + encode_ranges(ranges))
    if total > limits.LINK_FLOW_POSITIONS:
        raise ValueError(f"{total} positions in one frame")
    return b"".join(out)


def bound(frame: flow_frames.Bound) -> bytes:
    """BOUND (LINK-40)."""
    kept = b""
    if frame.kept:
        # A peer that does not know the field would forget messages that are still to come.
        ranges = encode_ranges(frame.kept)
        kept = bytes((field_codes.KEPT | field_codes.MANDATORY,)) + varint(len(ranges)) + ranges
    return _frame(
        flow_frames.BOUND,
        frame.request_id.to_bytes(4, "big")
        + frame.code.to_bytes(2, "big")
        + frame.flow_id.to_bytes(4, "big")
        + frame.window.to_bytes(2, "big")
        + _store_id(frame.store_id)
        + _text(frame.reason, limits.LINK_TEXT_BYTES)
        + kept,
    )


def unbind(frame: flow_frames.Unbind) -> bytes:
    """UNBIND (LINK-40)."""
    return _frame(
        flow_frames.UNBIND,
        frame.flow_id.to_bytes(4, "big")
        + frame.code.to_bytes(2, "big")
        + _text(frame.reason, limits.LINK_TEXT_BYTES),
    )


def unbound(frame: flow_frames.Unbound) -> bytes:
    """UNBOUND (LINK-40)."""
    return _frame(flow_frames.UNBOUND, frame.flow_id.to_bytes(4, "big"))


def flow_status(frame: flow_frames.FlowStatus) -> bytes:
    """FLOW_STATUS (LINK-50)."""
    body = _STATUS.pack(frame.flow_id, frame.active, frame.messages)
    return _frame(flow_frames.FLOW_STATUS, body)


def guaranteed(
    flow_id: int, position: int, flags: int, priority: int, extension: bytes, body: bytes
) -> bytes:
    """GUARANTEED around the bytes of `encode_extension` and a body of `direct_body` (LINK-41).

    Runs for each message: what is out of range is the caller's fault and told by the peer.
    """
    head = _MESSAGE.pack(flow_id, position, flags, priority)
    if not extension:
        return b"\x50" + varint(15 + len(body)) + head + b"\0" + body
    size = varint(len(extension))
    length = varint(14 + len(size) + len(extension) + len(body))
    return b"\x50" + length + head + size + extension + body


def guaranteed_message(frame: flow_frames.Guaranteed) -> bytes:
    """GUARANTEED (LINK-41). Raises ValueError for flags or a priority that no peer would take."""
    if (
        frame.flags & ~flow_frames.MESSAGE_FLAGS
        or not 0 <= frame.priority <= flow_frames.PRIORITY_MOST
    ):
        raise ValueError(f"flags 0x{frame.flags:02x}, priority {frame.priority}")
    message = frame.message
    return guaranteed(
        frame.flow_id,
        frame.position,
        frame.flags,
        frame.priority,
        b"" if message.extension is None else encode_extension(message.extension),
        direct_body(message.topic, message.properties, message.payload),
    )


def ack(frame: flow_frames.Ack) -> bytes:
    """ACK (LINK-42)."""
    return _frame(
        flow_frames.ACK,
        frame.flow_id.to_bytes(4, "big")
        + frame.window.to_bytes(2, "big")
        + encode_ranges(frame.ranges),
    )


def forget(frame: flow_frames.Forget) -> bytes:
    """FORGET (LINK-42)."""
    if not frame.ranges:
        raise ValueError("nothing to forget")
    return _frame(
        flow_frames.FORGET, frame.flow_id.to_bytes(4, "big") + encode_ranges(frame.ranges)
    )


def reject(frame: flow_frames.Reject) -> bytes:
    """REJECT (LINK-43)."""
    return _frame(
        flow_frames.REJECT,
        frame.flow_id.to_bytes(4, "big")
        + frame.position.to_bytes(8, "big")
        + bytes((frame.fate,))
        + frame.code.to_bytes(2, "big")
        + _text(frame.reason, limits.LINK_TEXT_BYTES),
    )


def settled(frame: flow_frames.Settled) -> bytes:
    """SETTLED (LINK-43)."""
    return _frame(
        flow_frames.SETTLED,
        frame.flow_id.to_bytes(4, "big")
        + frame.position.to_bytes(8, "big")
        + bytes((frame.outcome,)),
    )
