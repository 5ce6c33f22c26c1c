"""Bytes to frames.

Every fault of the peer is a ProtocolError with a close code and the clause that was broken; nothing
else escapes, whatever the bytes are. Which frame may come when is order.py's; whether a topic or
filter obeys the topic grammar is the message VPN's.
"""

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import decode_flows, flow_frames, frames
from vpnrouter.wire.link.close_codes import (
    FRAME_TOO_LARGE,
    MALFORMED,
    PROTOCOL_ERROR,
    UNSUPPORTED_FRAME,
)
from vpnrouter.wire.link.decode_handshake import challenge, hello, proof, refusal, welcome
from vpnrouter.wire.link.decode_subscriptions import subscribe, subscribed, unsubscribe
from vpnrouter.wire.link.extension import decode_extension
from vpnrouter.wire.link.fields import utf8
from vpnrouter.wire.link.properties import check_properties
from vpnrouter.wire.varint import frame_at, read_varint

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
    | flow_frames.Bind
    | flow_frames.Bound
    | flow_frames.Unbind
    | flow_frames.Unbound
    | flow_frames.Guaranteed
    | flow_frames.Ack
    | flow_frames.Reject
    | flow_frames.Settled
    | flow_frames.Forget
    | flow_frames.FlowStatus
)


def link_frame_at(buf: bytes, pos: int, end: int, max_frame: int) -> int:
    """Total bytes of the frame at `pos`, 0 while incomplete (LINK-1 to LINK-3).

    `max_frame` is LINK_HANDSHAKE_BYTES until the peer is in, then what this side announced.
    Raises ProtocolError(0x95) and (0x81).
    """
    return frame_at(buf, pos, end, max_frame, FRAME_TOO_LARGE, MALFORMED)


def decode(frame: bytes, start: int, length: int) -> Frame:
    """The frame in `frame[start:start + length]`, `length` as link_frame_at gave it.

    Raises ProtocolError; see close_codes.py.
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
    if kind == flow_frames.GUARANTEED:
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
    if kind == flow_frames.FLOW_STATUS:
        return decode_flows.flow_status(frame, pos, end)
    if kind >= frames.OPTIONAL_FROM:
        return frames.Skipped(kind)
    return _flow(kind, frame, pos, end)


def _flow(kind: int, frame: bytes, pos: int, end: int) -> Frame:
    """What controls a guaranteed flow, the most frequent first."""
    if kind == flow_frames.ACK:
        return decode_flows.ack(frame, pos, end)
    if kind == flow_frames.FORGET:
        return decode_flows.forget(frame, pos, end)
    if kind == flow_frames.SETTLED:
        return decode_flows.settled(frame, pos, end)
    if kind == flow_frames.REJECT:
        return decode_flows.reject(frame, pos, end)
    if kind == flow_frames.BIND:
        return decode_flows.bind(frame, pos, end)
    if kind == flow_frames.BOUND:
        return decode_flows.bound(frame, pos, end)
    if kind == flow_frames.UNBIND:
        return decode_flows.unbind(frame, pos, end)
    if kind == flow_frames.UNBOUND:
        return decode_flows.unbound(frame, pos, end)
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


def _guaranteed(buf: bytes, pos: int, end: int) -> flow_frames.Guaranteed:
    """GUARANTEED (LINK-41)."""
    if end - pos < 14:
        raise ProtocolError(MALFORMED, "LINK-41: a guaranteed message is cut off")
    flags = buf[pos + 12]
    priority = buf[pos + 13]
    if flags & ~flow_frames.MESSAGE_FLAGS or priority > flow_frames.PRIORITY_MOST:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-41: flags 0x{flags:02x}, priority {priority}")
    message, size, at = _extended(buf, pos + 14, end)
    if size:
        message.extension = decode_extension(buf, at, at + size)
    return flow_frames.Guaranteed(
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
