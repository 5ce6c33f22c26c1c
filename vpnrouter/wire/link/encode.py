"""Encodes frames of the link protocol into bytes.

Encoding is canonical: fields in the order of their numbers, defaults left out. What no peer would take is a
ValueError: the caller is wrong and not the peer.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from vpnrouter import limits
from vpnrouter.wire.link import codes, frames
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.fields import data_field, number_field, text_field
from vpnrouter.wire.link.frames import STORE_ID_BYTES
from vpnrouter.wire.link.ranges import encode_ranges
from vpnrouter.wire.varint import varint


def _frame(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + varint(len(body)) + body


def hello(frame: frames.Hello) -> bytes:
    """Encode HELLO (LINK-10)."""
    out = [
        frames.MAGIC,
        bytes((frame.major, frame.minor)),
        text_field(codes.ROUTER, frame.router),
        text_field(codes.BRIDGE, frame.bridge),
        text_field(codes.LOCAL_VPN, frame.local_vpn),
        text_field(codes.REMOTE_VPN, frame.remote_vpn),
    ]
    if frame.remote_router:
        out.append(text_field(codes.REMOTE_ROUTER, frame.remote_router))
    if frame.client_username:
        out.append(text_field(codes.CLIENT_USERNAME, frame.client_username))
    if frame.password:
        out.append(text_field(codes.PASSWORD, frame.password))
    if frame.tls:
        out.append(number_field(codes.TLS, 1, 1))
    out.append(_agreed(frame.features, frame.heartbeat_ms, frame.max_frame))
    if frame.incarnation:
        out.append(number_field(codes.INCARNATION, frame.incarnation, 8))
    if frame.scheme:
        # Whoever knows only passwords must refuse, not take the login for one without a name.
        out.append(number_field(codes.SCHEME | codes.MANDATORY, frame.scheme, 1))
    out.append(_last(frame.resume, frame.link_port, frame.links_port))
    if frame.nonce:
        out.append(data_field(codes.NONCE, frame.nonce))
    return _frame(frames.HELLO, b"".join(out))


def challenge(frame: frames.Challenge) -> bytes:
    """Encode CHALLENGE (LINK-51)."""
    return _frame(
        frames.CHALLENGE,
        data_field(codes.NONCE, frame.nonce)
        + data_field(codes.SALT, frame.salt)
        + number_field(codes.ITERATIONS, frame.iterations, 4),
    )


def proof(frame: frames.Proof) -> bytes:
    """Encode PROOF (LINK-51)."""
    return _frame(frames.PROOF, data_field(codes.PROOF, frame.proof))


def welcome(frame: frames.Welcome) -> bytes:
    """Encode WELCOME (LINK-14)."""
    out = [
        bytes((frame.major, frame.minor)),
        text_field(codes.ROUTER, frame.router),
        text_field(codes.REMOTE_VPN, frame.vpn),
        _agreed(frame.features, frame.heartbeat_ms, frame.max_frame),
        text_field(codes.CLIENT_NAME, frame.client_name),
    ]
    if frame.incarnation:
        out.append(number_field(codes.INCARNATION, frame.incarnation, 8))
    out.append(_last(frame.resume, frame.link_port, frame.links_port))
    if frame.signature:
        out.append(data_field(codes.SIGNATURE, frame.signature))
    return _frame(frames.WELCOME, b"".join(out))


def _last(resume: bool, link_port: int, links_port: int) -> bytes:
    out = number_field(codes.RESUME, 1, 1) if resume else b""
    if link_port:
        out += number_field(codes.LINK_PORT, link_port, 2)
    if links_port:
        out += number_field(codes.LINKS_PORT, links_port, 2)
    return out


def _agreed(features: int, heartbeat_ms: int, max_frame: int) -> bytes:
    out: list[bytes] = []
    if features:
        out.append(number_field(codes.FEATURES, features, 4))
    if heartbeat_ms:
        out.append(number_field(codes.HEARTBEAT_MS, heartbeat_ms, 4))
    if max_frame != limits.LINK_FRAME_BYTES:
        out.append(number_field(codes.MAX_FRAME, max_frame, 4))
    return b"".join(out)


def refuse(frame: frames.Refuse) -> bytes:
    """Encode REFUSE (LINK-16)."""
    return _frame(frames.REFUSE, _reason(frame.code, frame.reason, frame.retry_after_ms))


def close(frame: frames.Close) -> bytes:
    """Encode CLOSE (LINK-16)."""
    return _frame(frames.CLOSE, _reason(frame.code, frame.reason, frame.retry_after_ms))


def detach(frame: frames.Detach) -> bytes:
    """Encode DETACH (LINK-39)."""
    return _frame(frames.DETACH, _reason(frame.code, frame.reason, 0))


def _reason(code: int, reason: str, retry_after_ms: int) -> bytes:
    raw = reason.encode("utf-8")
    if len(raw) > limits.LINK_TEXT_BYTES:
        raise ValueError(f"a reason of {len(raw)} bytes")
    body = code.to_bytes(2, "big") + len(raw).to_bytes(2, "big") + raw
    if retry_after_ms:
        body += number_field(codes.RETRY_AFTER_MS, retry_after_ms, 4)
    return body


def heartbeat(frame: frames.Heartbeat) -> bytes:
    """Encode HEARTBEAT (LINK-21)."""
    return _frame(
        frames.HEARTBEAT, bytes((1 if frame.answer else 0,)) + frame.token.to_bytes(8, "big")
    )


def subscription_flags(priority: int, *, deliver_always: bool, retained: bool = False) -> int:
    """The flags of one filter; `priority` 1..4 for p1..p4, 0 for `da` (LINK-23), `retained` (LINK-26)."""
    if not 0 <= priority <= frames.PRIORITY_MAX:
        raise ValueError(f"deliver-to-one priority {priority}")
    flags = priority << frames.PRIORITY_SHIFT
    if deliver_always:
        flags |= frames.DELIVER_ALWAYS
    return flags | frames.SEND_RETAINED if retained else flags


def _filter(text: str) -> bytes:
    raw = text.encode("utf-8")
    if not 0 < len(raw) <= limits.TOPIC_BYTES:
        raise ValueError(f"a filter of {len(raw)} bytes")
    return len(raw).to_bytes(2, "big") + raw


def _check_count(count: int) -> None:
    if not 0 < count <= limits.LINK_SUBSCRIBE_FILTERS:
        raise ValueError(f"{count} filters in one frame")


def subscribe(frame: frames.Subscribe) -> bytes:
    """Encode SUBSCRIBE (LINK-23)."""
    _check_count(len(frame.filters))
    out = [frame.request_id.to_bytes(4, "big")]
    for flags, text in frame.filters:
        selector = frame.selectors.get(text, "")
        out.append(bytes((flags | frames.HAS_SELECTOR if selector else flags,)))
        out.append(_filter(text))
        if selector:
            out.append(_filter(selector))
    return _frame(frames.SUBSCRIBE, b"".join(out))


def unsubscribe(frame: frames.Unsubscribe) -> bytes:
    """Encode UNSUBSCRIBE (LINK-24)."""
    _check_count(len(frame.filters))
    out = [frame.request_id.to_bytes(4, "big")]
    out.extend([_filter(text) for text in frame.filters])
    return _frame(frames.UNSUBSCRIBE, b"".join(out))


def subscribed(frame: frames.Subscribed) -> bytes:
    """Encode SUBSCRIBED (LINK-25)."""
    _check_count(len(frame.codes))
    raw = frame.reason.encode("utf-8")
    if len(raw) > limits.LINK_TEXT_BYTES:
        raise ValueError(f"a reason of {len(raw)} bytes")
    return _frame(
        frames.SUBSCRIBED,
        frame.request_id.to_bytes(4, "big")
        + len(frame.codes).to_bytes(2, "big")
        + bytes(frame.codes)
        + raw,
    )


def direct_body(topic: bytes, properties: bytes, payload: bytes) -> bytes:
    """Topic, properties and payload as both DIRECT and DIRECT_X carry them (LINK-27).

    Byte for byte the body of an MQTT 5 PUBLISH with QoS 0.
    """
    size = len(topic)
    if not 0 < size <= limits.TOPIC_BYTES:
        raise ValueError(f"a topic of {size} bytes")
    return bytes((size >> 8, size & 0xFF)) + topic + varint(len(properties)) + properties + payload


def direct(body: bytes) -> bytes:
    """DIRECT around a body of `direct_body` (LINK-27)."""
    return b"\x30" + varint(len(body)) + body


def direct_x(extension: bytes, body: bytes) -> bytes:
    """DIRECT_X around the bytes of `encode_extension` and a body of `direct_body` (LINK-30)."""
    size = varint(len(extension))
    return b"\x31" + varint(len(size) + len(extension) + len(body)) + size + extension + body


def message(frame: frames.Direct) -> bytes:
    """DIRECT, or DIRECT_X where there is an extension."""
    body = direct_body(frame.topic, frame.properties, frame.payload)
    if frame.extension is None:
        return direct(body)
    return direct_x(encode_extension(frame.extension), body)


_MESSAGE: Final = Struct(">IQBB")
"""Flow id, position, flags, priority of GUARANTEED."""

_STATUS: Final = Struct(">IBQ")
"""Flow id, active, messages of FLOW_STATUS."""


def _text(text: str, most: int) -> bytes:
    raw = text.encode("utf-8")
    if len(raw) > most:
        raise ValueError(f"a text of {len(raw)} bytes")
    return len(raw).to_bytes(2, "big") + raw


def _store_id(store_id: bytes) -> bytes:
    if len(store_id) != STORE_ID_BYTES:
        raise ValueError(f"a store id of {len(store_id)} bytes")
    return store_id


def bind(frame: frames.Bind) -> bytes:
    """Encode BIND (LINK-40)."""
    if not frame.queue:
        raise ValueError("a queue without a name")
    out = [
        frame.request_id.to_bytes(4, "big"),
        _text(frame.queue, limits.LINK_TEXT_BYTES),
        frame.window.to_bytes(2, "big"),
    ]
    if frame.accepted:
        accepted = _accepted(frame.accepted)
        out.append(bytes((codes.ACCEPTED,)) + varint(len(accepted)) + accepted)
    if frame.selector:
        raw = frame.selector.encode("utf-8")
        if len(raw) > limits.SELECTOR_BYTES:
            raise ValueError(f"a selector of {len(raw)} bytes")
        out.append(bytes((codes.SELECTOR,)) + varint(len(raw)) + raw)
    if frame.lanes:
        out.append(number_field(codes.LANES, frame.lanes, 1))
    if frame.on_reject:
        out.append(number_field(codes.ON_REJECT, frame.on_reject, 1))
    return _frame(frames.BIND, b"".join(out))


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


def bound(frame: frames.Bound) -> bytes:
    """Encode BOUND (LINK-40)."""
    kept = b""
    if frame.kept:
        # A peer that does not know the field would forget messages that are still to come.
        ranges = encode_ranges(frame.kept)
        kept = bytes((codes.KEPT | codes.MANDATORY,)) + varint(len(ranges)) + ranges
    return _frame(
        frames.BOUND,
        frame.request_id.to_bytes(4, "big")
        + frame.code.to_bytes(2, "big")
        + frame.flow_id.to_bytes(4, "big")
        + frame.window.to_bytes(2, "big")
        + _store_id(frame.store_id)
        + _text(frame.reason, limits.LINK_TEXT_BYTES)
        + kept,
    )


def unbind(frame: frames.Unbind) -> bytes:
    """Encode UNBIND (LINK-40)."""
    return _frame(
        frames.UNBIND,
        frame.flow_id.to_bytes(4, "big")
        + frame.code.to_bytes(2, "big")
        + _text(frame.reason, limits.LINK_TEXT_BYTES),
    )


def unbound(frame: frames.Unbound) -> bytes:
    """Encode UNBOUND (LINK-40)."""
    return _frame(frames.UNBOUND, frame.flow_id.to_bytes(4, "big"))


def snapshot_end(frame: frames.SnapshotEnd) -> bytes:
    """Encode SNAPSHOT_END (LINK-54)."""
    return _frame(frames.SNAPSHOT_END, frame.request_id.to_bytes(4, "big"))


def flow_status(frame: frames.FlowStatus) -> bytes:
    """Encode FLOW_STATUS (LINK-50)."""
    body = _STATUS.pack(frame.flow_id, frame.active, frame.messages)
    if frame.window_closed:
        body += number_field(codes.WINDOW_CLOSED, frame.window_closed, 8)
    return _frame(frames.FLOW_STATUS, body)


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


def guaranteed_message(frame: frames.Guaranteed) -> bytes:
    """Encode GUARANTEED (LINK-41). Raises ValueError for flags or a priority that no peer would take."""
    if frame.flags & ~frames.MESSAGE_FLAGS or not 0 <= frame.priority <= frames.PRIORITY_MOST:
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


def ack(frame: frames.Ack) -> bytes:
    """Encode ACK (LINK-42)."""
    return _frame(
        frames.ACK,
        frame.flow_id.to_bytes(4, "big")
        + frame.window.to_bytes(2, "big")
        + encode_ranges(frame.ranges),
    )


def forget(frame: frames.Forget) -> bytes:
    """Encode FORGET (LINK-42)."""
    if not frame.ranges:
        raise ValueError("nothing to forget")
    return _frame(frames.FORGET, frame.flow_id.to_bytes(4, "big") + encode_ranges(frame.ranges))


def reject(frame: frames.Reject) -> bytes:
    """Encode REJECT (LINK-43)."""
    return _frame(
        frames.REJECT,
        frame.flow_id.to_bytes(4, "big")
        + frame.position.to_bytes(8, "big")
        + bytes((frame.fate,))
        + frame.code.to_bytes(2, "big")
        + _text(frame.reason, limits.LINK_TEXT_BYTES),
    )


def settled(frame: frames.Settled) -> bytes:
    """Encode SETTLED (LINK-43)."""
    return _frame(
        frames.SETTLED,
        frame.flow_id.to_bytes(4, "big")
        + frame.position.to_bytes(8, "big")
        + bytes((frame.outcome,)),
    )


_FRAME_HEAD: Final = 1 + 4 + 4
"""Type, longest length, request id."""

_FILTER_HEAD: Final = 1 + 2
"""Flags and length of one filter."""


def subscribe_frames(
    first_request_id: int,
    filters: list[tuple[int, str]],
    max_frame: int,
    selectors: dict[str, str] | None = None,
) -> list[frames.Subscribe]:
    """SUBSCRIBE frames for all `filters`, in order, none above `max_frame` bytes.

    Request ids count up from `first_request_id`. Raises ValueError for a filter that no frame can
    hold.
    """
    out: list[frames.Subscribe] = []
    known: dict[str, str] = {} if selectors is None else selectors
    batch: list[tuple[int, str]] = []
    size = _FRAME_HEAD
    for item in filters:
        need = _need(item[1], known.get(item[1], ""), max_frame)
        if batch and (size + need > max_frame or len(batch) == limits.LINK_SUBSCRIBE_FILTERS):
            out.append(_subscribe(first_request_id + len(out), batch, known))
            batch = []
            size = _FRAME_HEAD
        batch.append(item)
        size += need
    if batch:
        out.append(_subscribe(first_request_id + len(out), batch, known))
    return out


def _subscribe(
    request_id: int, batch: list[tuple[int, str]], selectors: dict[str, str]
) -> frames.Subscribe:
    mine = {text: selectors[text] for _, text in batch if text in selectors}
    return frames.Subscribe(request_id, batch, mine)


def unsubscribe_frames(
    first_request_id: int, filters: list[str], max_frame: int
) -> list[frames.Unsubscribe]:
    """UNSUBSCRIBE frames for all `filters`; see subscribe_frames."""
    pairs = [(0, text) for text in filters]
    return [
        frames.Unsubscribe(frame.request_id, [text for _, text in frame.filters])
        for frame in subscribe_frames(first_request_id, pairs, max_frame)
    ]


def _need(text: str, selector: str, max_frame: int) -> int:
    need = _FILTER_HEAD + len(text.encode("utf-8"))
    if selector:
        need += 2 + len(selector.encode("utf-8"))
    if _FRAME_HEAD + need > max_frame:
        raise ValueError(f"a filter of {need - _FILTER_HEAD} bytes in frames of {max_frame}")
    return need
