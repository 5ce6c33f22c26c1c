"""Bodies of the frames of guaranteed flows to frames, for decode.py; the body is `buf[pos:end]`.

GUARANTEED is taken apart in decode.py, beside the message that it carries.
"""

from typing import Final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import field_codes, flow_frames
from vpnrouter.wire.link.close_codes import MALFORMED, PROTOCOL_ERROR
from vpnrouter.wire.link.fields import Fields, text_at, utf8
from vpnrouter.wire.link.flow_frames import STORE_ID_BYTES
from vpnrouter.wire.link.ranges import check_total, decode_ranges, range_at
from vpnrouter.wire.varint import read_varint

_BOUND_HEAD: Final = 4 + 2 + 4 + 2 + STORE_ID_BYTES
_REJECT_HEAD: Final = 4 + 8 + 1 + 2


def _number(buf: bytes, pos: int, size: int) -> int:
    return int.from_bytes(buf[pos : pos + size], "big")


def _enough(pos: int, end: int, size: int, what: str) -> None:
    if end - pos < size:
        raise ProtocolError(MALFORMED, f"LINK-40: {what} is cut off")


def _sized_text(buf: bytes, pos: int, end: int, what: str) -> tuple[str, int]:
    """The text with a two-byte length at `pos`, and the index after it."""
    _enough(pos, end, 2, what)
    after = pos + 2 + (buf[pos] << 8 | buf[pos + 1])
    if after > end:
        raise ProtocolError(MALFORMED, f"LINK-40: {what} runs beyond the frame")
    return text_at(buf, pos + 2, after, what), after


def bind(buf: bytes, pos: int, end: int) -> flow_frames.Bind:
    """BIND (LINK-40)."""
    _enough(pos, end, 4, "BIND")
    queue, at = _sized_text(buf, pos + 4, end, "the queue's name")
    if not queue:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-40: a queue without a name")
    _enough(at, end, 2, "BIND")
    fields = Fields(buf, at + 2, end, field_codes.BINDING)
    lanes = fields.number(field_codes.LANES, 1, flow_frames.LANES_NONE)
    on_reject = fields.number(field_codes.ON_REJECT, 1, flow_frames.ON_REJECT_BLOCK)
    if lanes > flow_frames.LANES_PARTITION_KEY or on_reject > flow_frames.ON_REJECT_SKIP:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-40: lanes {lanes}, on reject {on_reject}")
    selector = fields.data(field_codes.SELECTOR)
    if len(selector) > limits.SELECTOR_BYTES:
        raise ProtocolError(MALFORMED, f"LINK-40: a selector of {len(selector)} bytes")
    return flow_frames.Bind(
        _number(buf, pos, 4),
        queue,
        _number(buf, at, 2),
        accepted=_accepted(fields.data(field_codes.ACCEPTED)),
        selector=utf8(selector, "the selector"),
        lanes=lanes,
        on_reject=on_reject,
    )


def _accepted(raw: bytes) -> dict[bytes, list[tuple[int, int]]]:
    accepted: dict[bytes, list[tuple[int, int]]] = {}
    total = 0
    pos = 0
    end = len(raw)
    while pos < end:
        _enough(pos, end, STORE_ID_BYTES, "a store id")
        store_id = raw[pos : pos + STORE_ID_BYTES]
        size, pos = read_varint(raw, pos + STORE_ID_BYTES, end)
        if size == 0 or store_id in accepted:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-40: a store twice, or without positions")
        if len(accepted) == limits.LINK_FLOW_STORES:
            raise ProtocolError(
                PROTOCOL_ERROR, f"LINK-40: more than {limits.LINK_FLOW_STORES} stores"
            )
        ranges: list[tuple[int, int]] = []
        for _ in range(size):
            first, count, pos = range_at(raw, pos, end)
            total += count
            check_total(total)
            ranges.append((first, count))
        accepted[store_id] = ranges
    return accepted


def bound(buf: bytes, pos: int, end: int) -> flow_frames.Bound:
    """BOUND (LINK-40)."""
    _enough(pos, end, _BOUND_HEAD, "BOUND")
    reason, after = _sized_text(buf, pos + _BOUND_HEAD, end, "the reason")
    kept = Fields(buf, after, end, field_codes.ANSWERING).data(field_codes.KEPT)
    return flow_frames.Bound(
        _number(buf, pos, 4),
        _number(buf, pos + 4, 2),
        _number(buf, pos + 6, 4),
        _number(buf, pos + 10, 2),
        buf[pos + 12 : pos + _BOUND_HEAD],
        reason,
        decode_ranges(kept, 0, len(kept)),
    )


def unbind(buf: bytes, pos: int, end: int) -> flow_frames.Unbind:
    """UNBIND (LINK-40)."""
    _enough(pos, end, 6, "UNBIND")
    reason, after = _sized_text(buf, pos + 6, end, "the reason")
    Fields(buf, after, end, field_codes.NONE)
    return flow_frames.Unbind(_number(buf, pos, 4), _number(buf, pos + 4, 2), reason)


def unbound(buf: bytes, pos: int, end: int) -> flow_frames.Unbound:
    """UNBOUND (LINK-40)."""
    if end - pos != 4:
        raise ProtocolError(MALFORMED, "LINK-40: UNBOUND has 4 bytes")
    return flow_frames.Unbound(_number(buf, pos, 4))


def flow_status(buf: bytes, pos: int, end: int) -> flow_frames.FlowStatus:
    """FLOW_STATUS (LINK-50)."""
    _enough(pos, end, 13, "FLOW_STATUS")
    active = int(buf[pos + 4])
    if active > 1:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-50: active {active}")
    Fields(buf, pos + 13, end, field_codes.NONE)
    return flow_frames.FlowStatus(_number(buf, pos, 4), active == 1, _number(buf, pos + 5, 8))


def ack(buf: bytes, pos: int, end: int) -> flow_frames.Ack:
    """ACK (LINK-42)."""
    _enough(pos, end, 6, "ACK")
    return flow_frames.Ack(
        _number(buf, pos, 4), _number(buf, pos + 4, 2), decode_ranges(buf, pos + 6, end)
    )


def forget(buf: bytes, pos: int, end: int) -> flow_frames.Forget:
    """FORGET (LINK-42)."""
    _enough(pos, end, 4, "FORGET")
    ranges = decode_ranges(buf, pos + 4, end)
    if not ranges:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-42: nothing to forget")
    return flow_frames.Forget(_number(buf, pos, 4), ranges)


def reject(buf: bytes, pos: int, end: int) -> flow_frames.Reject:
    """REJECT (LINK-43)."""
    _enough(pos, end, _REJECT_HEAD, "REJECT")
    fate = int(buf[pos + 12])
    if fate > flow_frames.GIVEN_UP:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-43: fate {fate}")
    reason, after = _sized_text(buf, pos + _REJECT_HEAD, end, "the reason")
    Fields(buf, after, end, field_codes.NONE)
    return flow_frames.Reject(
        _number(buf, pos, 4),
        _number(buf, pos + 4, 8),
        _number(buf, pos + 13, 2),
        reason,
        fate,
    )


def settled(buf: bytes, pos: int, end: int) -> flow_frames.Settled:
    """SETTLED (LINK-43)."""
    if end - pos != 13:
        raise ProtocolError(MALFORMED, "LINK-43: SETTLED has 13 bytes")
    outcome = int(buf[pos + 12])
    if not flow_frames.NO_ELIGIBLE_DESTINATION <= outcome <= flow_frames.DISCARDED:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-43: outcome {outcome}")
    return flow_frames.Settled(_number(buf, pos, 4), _number(buf, pos + 4, 8), outcome)
