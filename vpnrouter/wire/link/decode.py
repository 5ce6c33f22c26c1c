"""Decodes bytes into frames of the link protocol; the body of a frame is `buf[pos:end]`.

Every fault of the peer is a ProtocolError with a close code and the clause that was broken; nothing else escapes,
whatever the bytes are. order.py decides which frame may come when; the message VPN checks topics and filters.
"""

from __future__ import annotations

from typing import Final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes, frames
from vpnrouter.wire.link.codes import (
    FRAME_TOO_LARGE,
    MALFORMED,
    NOT_A_LINK,
    PROTOCOL_ERROR,
    UNKNOWN_MANDATORY_FIELD,
    UNSUPPORTED_FRAME,
    VERSION_MISMATCH,
)
from vpnrouter.wire.link.extension import check_properties, decode_extension
from vpnrouter.wire.link.fields import Fields, text_at, utf8
from vpnrouter.wire.link.frames import STORE_ID_BYTES
from vpnrouter.wire.link.ranges import check_total, decode_ranges, range_at
from vpnrouter.wire.varint import frame_at, read_varint

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


def bind(buf: bytes, pos: int, end: int) -> frames.Bind:
    """Decode BIND (LINK-40)."""
    _enough(pos, end, 4, "BIND")
    queue, at = _sized_text(buf, pos + 4, end, "the queue's name")
    if not queue:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-40: a queue without a name")
    _enough(at, end, 2, "BIND")
    fields = Fields(buf, at + 2, end, codes.BINDING)
    lanes = fields.number(codes.LANES, 1, frames.LANES_NONE)
    on_reject = fields.number(codes.ON_REJECT, 1, frames.ON_REJECT_BLOCK)
    if lanes > frames.LANES_PARTITION_KEY or on_reject > frames.ON_REJECT_SKIP:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-40: lanes {lanes}, on reject {on_reject}")
    selector = fields.data(codes.SELECTOR)
    if len(selector) > limits.SELECTOR_BYTES:
        raise ProtocolError(MALFORMED, f"LINK-40: a selector of {len(selector)} bytes")
    return frames.Bind(
        _number(buf, pos, 4),
        queue,
        _number(buf, at, 2),
        accepted=_accepted(fields.data(codes.ACCEPTED)),
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


def bound(buf: bytes, pos: int, end: int) -> frames.Bound:
    """Decode BOUND (LINK-40)."""
    _enough(pos, end, _BOUND_HEAD, "BOUND")
    reason, after = _sized_text(buf, pos + _BOUND_HEAD, end, "the reason")
    kept = Fields(buf, after, end, codes.ANSWERING).data(codes.KEPT)
    return frames.Bound(
        _number(buf, pos, 4),
        _number(buf, pos + 4, 2),
        _number(buf, pos + 6, 4),
        _number(buf, pos + 10, 2),
        buf[pos + 12 : pos + _BOUND_HEAD],
        reason,
        decode_ranges(kept, 0, len(kept)),
    )


def unbind(buf: bytes, pos: int, end: int) -> frames.Unbind:
    """Decode UNBIND (LINK-40)."""
    _enough(pos, end, 6, "UNBIND")
    reason, after = _sized_text(buf, pos + 6, end, "the reason")
    Fields(buf, after, end, codes.NONE)
    return frames.Unbind(_number(buf, pos, 4), _number(buf, pos + 4, 2), reason)


def unbound(buf: bytes, pos: int, end: int) -> frames.Unbound:
    """Decode UNBOUND (LINK-40)."""
    if end - pos != 4:
        raise ProtocolError(MALFORMED, "LINK-40: UNBOUND has 4 bytes")
    return frames.Unbound(_number(buf, pos, 4))


def snapshot_end(buf: bytes, pos: int, end: int) -> frames.SnapshotEnd:
    """Decode SNAPSHOT_END (LINK-54)."""
    _enough(pos, end, 4, "SNAPSHOT_END")
    Fields(buf, pos + 4, end, codes.NONE)
    return frames.SnapshotEnd(_number(buf, pos, 4))


def flow_status(buf: bytes, pos: int, end: int) -> frames.FlowStatus:
    """Decode FLOW_STATUS (LINK-50)."""
    _enough(pos, end, 13, "FLOW_STATUS")
    active = int(buf[pos + 4])
    if active > 1:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-50: active {active}")
    closed = Fields(buf, pos + 13, end, codes.STATUS).number(codes.WINDOW_CLOSED, 8, 0)
    return frames.FlowStatus(_number(buf, pos, 4), active == 1, _number(buf, pos + 5, 8), closed)


def ack(buf: bytes, pos: int, end: int) -> frames.Ack:
    """Decode ACK (LINK-42)."""
    _enough(pos, end, 6, "ACK")
    return frames.Ack(
        _number(buf, pos, 4), _number(buf, pos + 4, 2), decode_ranges(buf, pos + 6, end)
    )


def forget(buf: bytes, pos: int, end: int) -> frames.Forget:
    """Decode FORGET (LINK-42)."""
    _enough(pos, end, 4, "FORGET")
    ranges = decode_ranges(buf, pos + 4, end)
    if not ranges:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-42: nothing to forget")
    return frames.Forget(_number(buf, pos, 4), ranges)


def reject(buf: bytes, pos: int, end: int) -> frames.Reject:
    """Decode REJECT (LINK-43)."""
    _enough(pos, end, _REJECT_HEAD, "REJECT")
    fate = int(buf[pos + 12])
    if fate > frames.GIVEN_UP:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-43: fate {fate}")
    reason, after = _sized_text(buf, pos + _REJECT_HEAD, end, "the reason")
    Fields(buf, after, end, codes.NONE)
    return frames.Reject(
        _number(buf, pos, 4),
        _number(buf, pos + 4, 8),
        _number(buf, pos + 13, 2),
        reason,
        fate,
    )


def settled(buf: bytes, pos: int, end: int) -> frames.Settled:
    """Decode SETTLED (LINK-43)."""
    if end - pos != 13:
        raise ProtocolError(MALFORMED, "LINK-43: SETTLED has 13 bytes")
    outcome = int(buf[pos + 12])
    if not frames.NO_ELIGIBLE_DESTINATION <= outcome <= frames.DISCARDED:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-43: outcome {outcome}")
    return frames.Settled(_number(buf, pos, 4), _number(buf, pos + 4, 8), outcome)


def hello(buf: bytes, pos: int, end: int) -> frames.Hello:
    """Decode HELLO (LINK-10 to LINK-12)."""
    if buf[pos : min(pos + 4, end)] != frames.MAGIC:
        raise ProtocolError(NOT_A_LINK, "LINK-11: the first frame does not begin with VPNR")
    if end - pos < 6:
        raise ProtocolError(MALFORMED, "LINK-10: HELLO ends before its version")
    major = int(buf[pos + 4])
    if major != frames.MAJOR:
        raise ProtocolError(
            VERSION_MISMATCH, f"LINK-12: major version {major}, here {frames.MAJOR}"
        )
    fields = Fields(buf, pos + 6, end, codes.HANDSHAKE)
    tls = fields.number(codes.TLS, 1, 0)
    if tls > 1:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-9: the TLS flag is neither 0 nor 1")
    scheme = fields.number(codes.SCHEME, 1, frames.BASIC)
    if scheme > frames.SCRAM:
        raise ProtocolError(
            UNKNOWN_MANDATORY_FIELD, f"LINK-10: authentication scheme {scheme} is not known here"
        )
    password = fields.text(codes.PASSWORD)
    nonce = fields.sized(codes.NONCE, frames.NONCE_BYTES, frames.NONCE_BYTES, b"")
    if scheme == frames.SCRAM and (password or not nonce):
        raise ProtocolError(
            PROTOCOL_ERROR, "LINK-51: a HELLO for SCRAM has a nonce, and no password"
        )
    bridge = fields.required_text(codes.BRIDGE)
    if len(bridge) > limits.BRIDGE_NAME_LENGTH:
        raise ProtocolError(
            PROTOCOL_ERROR,
            f"LINK-10: a bridge's name of more than {limits.BRIDGE_NAME_LENGTH} characters",
        )
    return frames.Hello(
        fields.required_text(codes.ROUTER),
        bridge,
        fields.required_text(codes.LOCAL_VPN),
        fields.required_text(codes.REMOTE_VPN),
        remote_router=fields.text(codes.REMOTE_ROUTER),
        client_username=fields.text(codes.CLIENT_USERNAME),
        password=password,
        tls=tls == 1,
        features=fields.number(codes.FEATURES, 4, 0),
        heartbeat_ms=fields.number(codes.HEARTBEAT_MS, 4, 0),
        max_frame=_max_frame(fields),
        incarnation=fields.number(codes.INCARNATION, 8, 0),
        scheme=scheme,
        resume=fields.number(codes.RESUME, 1, 0) != 0,
        link_port=fields.number(codes.LINK_PORT, 2, 0),
        links_port=fields.number(codes.LINKS_PORT, 2, 0),
        nonce=nonce,
        major=major,
        minor=int(buf[pos + 5]),
    )


def challenge(buf: bytes, pos: int, end: int) -> frames.Challenge:
    """Decode CHALLENGE (LINK-51)."""
    fields = Fields(buf, pos, end, codes.HANDSHAKE)
    nonce = fields.sized(codes.NONCE, frames.NONCE_BYTES, frames.NONCE_BYTES)
    salt = fields.sized(codes.SALT, frames.SALT_LEAST, frames.SALT_MOST)
    iterations = fields.number(codes.ITERATIONS, 4, 0)
    if not limits.SCRAM_ITERATIONS_LEAST <= iterations <= limits.SCRAM_ITERATIONS_MOST:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-51: {iterations} iterations are asked for")
    return frames.Challenge(nonce, salt, iterations)


def proof(buf: bytes, pos: int, end: int) -> frames.Proof:
    """Decode PROOF (LINK-51)."""
    fields = Fields(buf, pos, end, codes.HANDSHAKE)
    return frames.Proof(fields.sized(codes.PROOF, frames.PROOF_BYTES, frames.PROOF_BYTES))


def welcome(buf: bytes, pos: int, end: int) -> frames.Welcome:
    """Decode WELCOME (LINK-14)."""
    if end - pos < 2:
        raise ProtocolError(MALFORMED, "LINK-14: WELCOME ends before its version")
    major = int(buf[pos])
    if major != frames.MAJOR:
        raise ProtocolError(
            VERSION_MISMATCH, f"LINK-12: major version {major}, here {frames.MAJOR}"
        )
    fields = Fields(buf, pos + 2, end, codes.HANDSHAKE)
    return frames.Welcome(
        fields.required_text(codes.ROUTER),
        fields.required_text(codes.REMOTE_VPN),
        fields.required_text(codes.CLIENT_NAME),
        features=fields.number(codes.FEATURES, 4, 0),
        heartbeat_ms=fields.number(codes.HEARTBEAT_MS, 4, 0),
        max_frame=_max_frame(fields),
        incarnation=fields.number(codes.INCARNATION, 8, 0),
        resume=fields.number(codes.RESUME, 1, 0) != 0,
        link_port=fields.number(codes.LINK_PORT, 2, 0),
        links_port=fields.number(codes.LINKS_PORT, 2, 0),
        signature=fields.sized(codes.SIGNATURE, frames.PROOF_BYTES, frames.PROOF_BYTES, b""),
        major=major,
        minor=int(buf[pos + 1]),
    )


def _max_frame(fields: Fields) -> int:
    value = fields.number(codes.MAX_FRAME, 4, limits.LINK_FRAME_BYTES)
    if value < limits.LINK_HANDSHAKE_BYTES:
        raise ProtocolError(
            PROTOCOL_ERROR, f"LINK-15: frames of {value} bytes are too small for a link"
        )
    return value


def refusal(buf: bytes, pos: int, end: int) -> tuple[int, str, int]:
    """Code, reason and milliseconds to stay away of REFUSE and CLOSE (LINK-16)."""
    if end - pos < 4:
        raise ProtocolError(MALFORMED, "LINK-16: a refusal ends before its reason")
    after = pos + 4 + (buf[pos + 2] << 8 | buf[pos + 3])
    if after > end:
        raise ProtocolError(MALFORMED, "LINK-16: the reason runs beyond the frame")
    fields = Fields(buf, after, end, codes.REFUSAL)
    return (
        buf[pos] << 8 | buf[pos + 1],
        text_at(buf, pos + 4, after, "the reason"),
        fields.number(codes.RETRY_AFTER_MS, 4, 0),
    )


_PRIORITY: Final = 0b111 << frames.PRIORITY_SHIFT
_SUBSCRIPTION_FLAGS: Final = (
    frames.DELIVER_ALWAYS | _PRIORITY | frames.SEND_RETAINED | frames.HAS_SELECTOR
)


def _request_id(buf: bytes, pos: int, end: int) -> int:
    if end - pos < 4:
        raise ProtocolError(MALFORMED, "LINK-23: a frame ends before its request id")
    return int.from_bytes(buf[pos : pos + 4], "big")


def _filter(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    if end - pos < 2:
        raise ProtocolError(MALFORMED, "LINK-23: a filter is cut off")
    after = pos + 2 + (buf[pos] << 8 | buf[pos + 1])
    if after > end:
        raise ProtocolError(MALFORMED, "LINK-23: a filter runs beyond the frame")
    if after == pos + 2:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-23: a filter is empty")
    return utf8(buf[pos + 2 : after], "a filter"), after


def _check_count(count: int) -> None:
    if not 0 < count <= limits.LINK_SUBSCRIBE_FILTERS:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-23: {count} filters in one frame")


def subscribe(buf: bytes, pos: int, end: int) -> frames.Subscribe:
    """Decode SUBSCRIBE (LINK-23)."""
    request_id = _request_id(buf, pos, end)
    pos += 4
    filters: list[tuple[int, str]] = []
    selectors: dict[str, str] = {}
    while pos < end:
        flags = int(buf[pos])
        if (
            flags & ~_SUBSCRIPTION_FLAGS
            or (flags & _PRIORITY) >> frames.PRIORITY_SHIFT > frames.PRIORITY_MAX
        ):
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-23: subscription flags 0x{flags:02x}")
        text, pos = _filter(buf, pos + 1, end)
        if flags & frames.HAS_SELECTOR:
            selectors[text], pos = _filter(buf, pos, end)
            flags -= frames.HAS_SELECTOR
        else:
            # Of a filter that comes twice the last one counts, as over two frames (LINK-26).
            selectors.pop(text, None)
        filters.append((flags, text))
        if len(filters) > limits.LINK_SUBSCRIBE_FILTERS:
            break
    _check_count(len(filters))
    return frames.Subscribe(request_id, filters, selectors)


def unsubscribe(buf: bytes, pos: int, end: int) -> frames.Unsubscribe:
    """Decode UNSUBSCRIBE (LINK-24)."""
    request_id = _request_id(buf, pos, end)
    pos += 4
    filters: list[str] = []
    while pos < end:
        text, pos = _filter(buf, pos, end)
        filters.append(text)
        if len(filters) > limits.LINK_SUBSCRIBE_FILTERS:
            break
    _check_count(len(filters))
    return frames.Unsubscribe(request_id, filters)


def subscribed(buf: bytes, pos: int, end: int) -> frames.Subscribed:
    """Decode SUBSCRIBED (LINK-25)."""
    request_id = _request_id(buf, pos, end)
    if end - pos < 6:
        raise ProtocolError(MALFORMED, "LINK-25: SUBSCRIBED ends before its codes")
    count = buf[pos + 4] << 8 | buf[pos + 5]
    after = pos + 6 + count
    if after > end:
        raise ProtocolError(MALFORMED, "LINK-25: the codes run beyond the frame")
    _check_count(count)
    codes = [int(code) for code in buf[pos + 6 : after]]
    return frames.Subscribed(request_id, codes, text_at(buf, after, end, "the reason"))


Frame = (
    frames.Hello
    | frames.Challenge
    | frames.Proof
    | frames.Welcome
    | frames.Refuse
    | frames.Close
    | frames.Heartbeat
    | frames.Detach
    | frames.Compressed
    | frames.Subscribe
    | frames.Unsubscribe
    | frames.Subscribed
    | frames.Direct
    | frames.Skipped
    | frames.Bind
    | frames.Bound
    | frames.Unbind
    | frames.Unbound
    | frames.Guaranteed
    | frames.Ack
    | frames.Reject
    | frames.Settled
    | frames.Forget
    | frames.FlowStatus
    | frames.SnapshotEnd
)


def link_frame_at(buf: bytes, pos: int, end: int, max_frame: int) -> int:
    """Total bytes of the frame at `pos`, 0 while incomplete (LINK-1 to LINK-3).

    `max_frame` is LINK_HANDSHAKE_BYTES until the peer is in, then what this side announced.
    Raises ProtocolError(0x95) and (0x81).
    """
    return frame_at(buf, pos, end, max_frame, FRAME_TOO_LARGE, MALFORMED)


def decode(frame: bytes, start: int, length: int) -> Frame:
    """The frame in `frame[start:start + length]`, `length` as link_frame_at gave it.

    Raises ProtocolError; see codes.py.
    """
    end = start + length
    kind = frame[start]
    pos = start + 1
    while frame[pos] & 0x80:
        pos += 1
    pos += 1
    if kind == frames.DIRECT:
        return _direct(frame, pos, end)
    if kind == frames.DIRECT_X:
        message, size, pos = _extended(frame, pos, end)
        message.extension = decode_extension(frame, pos, pos + size)
        return message
    if kind == frames.GUARANTEED:
        return _guaranteed(frame, pos, end)
    if kind == frames.HEARTBEAT:
        return _heartbeat(frame, pos, end)
    if kind == frames.SUBSCRIBED:
        return subscribed(frame, pos, end)
    if kind == frames.SUBSCRIBE:
        return subscribe(frame, pos, end)
    if kind == frames.UNSUBSCRIBE:
        return unsubscribe(frame, pos, end)
    if kind == frames.HELLO:
        return hello(frame, pos, end)
    if kind == frames.WELCOME:
        return welcome(frame, pos, end)
    if kind == frames.CHALLENGE:
        return challenge(frame, pos, end)
    if kind == frames.PROOF:
        return proof(frame, pos, end)
    if kind == frames.REFUSE:
        code, reason, retry = refusal(frame, pos, end)
        return frames.Refuse(code, reason, retry)
    if kind == frames.CLOSE:
        code, reason, retry = refusal(frame, pos, end)
        return frames.Close(code, reason, retry)
    if kind == frames.DETACH:
        code, reason, _ = refusal(frame, pos, end)
        return frames.Detach(code, reason)
    if kind == frames.COMPRESSED:
        return frames.Compressed(frame[pos:end])
    if kind == frames.FLOW_STATUS:
        return flow_status(frame, pos, end)
    if kind == frames.SNAPSHOT_END:
        return snapshot_end(frame, pos, end)
    if kind >= frames.OPTIONAL_FROM:
        return frames.Skipped(kind)
    return _flow(kind, frame, pos, end)


def _flow(kind: int, frame: bytes, pos: int, end: int) -> Frame:
    """What controls a guaranteed flow, the most frequent first."""
    if kind == frames.ACK:
        return ack(frame, pos, end)
    if kind == frames.FORGET:
        return forget(frame, pos, end)
    if kind == frames.SETTLED:
        return settled(frame, pos, end)
    if kind == frames.REJECT:
        return reject(frame, pos, end)
    if kind == frames.BIND:
        return bind(frame, pos, end)
    if kind == frames.BOUND:
        return bound(frame, pos, end)
    if kind == frames.UNBIND:
        return unbind(frame, pos, end)
    if kind == frames.UNBOUND:
        return unbound(frame, pos, end)
    raise ProtocolError(UNSUPPORTED_FRAME, f"LINK-4: frame 0x{kind:02x} is not known here")


def split_direct(buf: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """Where topic, properties and payload are in the body of a message, for a loop that copies
    nothing.

    `buf[pos:end]` is the body of DIRECT, or of DIRECT_X after its extension. Returns (index after
    the topic, which begins at pos + 2; start of the properties; start of the payload). Lengths are
    checked; the UTF-8 of the topic and a property block that is not empty (check_properties) are
    the caller's. Raises ProtocolError: 0x81, and 0x82 for an empty topic (LINK-27).
    """
    if end - pos < 3:
        raise ProtocolError(MALFORMED, "LINK-27: a message without topic and properties")
    topic_end = pos + 2 + (buf[pos] << 8 | buf[pos + 1])
    if topic_end >= end:
        raise ProtocolError(MALFORMED, "LINK-27: the topic runs beyond the message")
    if topic_end == pos + 2:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-27: the topic is empty")
    size = int(buf[topic_end])
    if size == 0:
        return topic_end, topic_end + 1, topic_end + 1
    size, start = read_varint(buf, topic_end, end)
    if size > end - start:
        raise ProtocolError(MALFORMED, "LINK-27: the properties run beyond the message")
    return topic_end, start, start + size


def _direct(buf: bytes, pos: int, end: int) -> frames.Direct:
    topic_end, properties, payload = split_direct(buf, pos, end)
    topic = buf[pos + 2 : topic_end]
    utf8(topic, "the topic")
    check_properties(buf, properties, payload)
    return frames.Direct(topic, buf[properties:payload], buf[payload:end])


def _extended(buf: bytes, pos: int, end: int) -> tuple[frames.Direct, int, int]:
    """The message behind an extension, and the length and start of that (LINK-30)."""
    size, pos = read_varint(buf, pos, end)
    if size > end - pos:
        raise ProtocolError(MALFORMED, "LINK-30: the extension runs beyond the frame")
    return _direct(buf, pos + size, end), size, pos


def _guaranteed(buf: bytes, pos: int, end: int) -> frames.Guaranteed:
    """Decode GUARANTEED (LINK-41)."""
    if end - pos < 14:
        raise ProtocolError(MALFORMED, "LINK-41: a guaranteed message is cut off")
    flags = buf[pos + 12]
    priority = buf[pos + 13]
    if flags & ~frames.MESSAGE_FLAGS or priority > frames.PRIORITY_MOST:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-41: flags 0x{flags:02x}, priority {priority}")
    message, size, at = _extended(buf, pos + 14, end)
    if size:
        message.extension = decode_extension(buf, at, at + size)
    return frames.Guaranteed(
        int.from_bytes(buf[pos : pos + 4], "big"),
        int.from_bytes(buf[pos + 4 : pos + 12], "big"),
        flags,
        priority,
        message,
    )


def _heartbeat(buf: bytes, pos: int, end: int) -> frames.Heartbeat:
    if end - pos != 9:
        raise ProtocolError(MALFORMED, "LINK-21: a heartbeat has 9 bytes")
    if buf[pos] > 1:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-21: a heartbeat asks (0) or answers (1)")
    return frames.Heartbeat(int.from_bytes(buf[pos + 1 : end], "big"), answer=buf[pos] == 1)
