"""Frames to bytes.

Encoding is canonical: fields in the order of their numbers, what is at its default left out. What
no peer would take is a ValueError here, since then the caller is wrong and not the peer.
"""

from vpnrouter import limits
from vpnrouter.wire.link import field_codes, frames
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.fields import data_field, number_field, text_field
from vpnrouter.wire.varint import varint


def _frame(kind: int, body: bytes) -> bytes:
    return bytes((kind,)) + varint(len(body)) + body


def hello(frame: frames.Hello) -> bytes:
    """HELLO (LINK-10)."""
    out = [
        frames.MAGIC,
        bytes((frame.major, frame.minor)),
        text_field(field_codes.ROUTER, frame.router),
        text_field(field_codes.BRIDGE, frame.bridge),
        text_field(field_codes.LOCAL_VPN, frame.local_vpn),
        text_field(field_codes.REMOTE_VPN, frame.remote_vpn),
    ]
    if frame.remote_router:
        out.append(text_field(field_codes.REMOTE_ROUTER, frame.remote_router))
    if frame.client_username:
        out.append(text_field(field_codes.CLIENT_USERNAME, frame.client_username))
    if frame.password:
        out.append(text_field(field_codes.PASSWORD, frame.password))
    if frame.tls:
        out.append(number_field(field_codes.TLS, 1, 1))
    out.append(_agreed(frame.features, frame.heartbeat_ms, frame.max_frame))
    if frame.incarnation:
        out.append(number_field(field_codes.INCARNATION, frame.incarnation, 8))
    if frame.scheme:
        # Whoever knows only passwords must refuse, not take the login for one without a name.
        out.append(number_field(field_codes.SCHEME | field_codes.MANDATORY, frame.scheme, 1))
    out.append(_last(frame.resume, frame.link_port, frame.links_port))
    if frame.nonce:
        out.append(data_field(field_codes.NONCE, frame.nonce))
    return _frame(frames.HELLO, b"".join(out))


def challenge(frame: frames.Challenge) -> bytes:
    """CHALLENGE (LINK-51)."""
    return _frame(
        frames.CHALLENGE,
        data_field(field_codes.NONCE, frame.nonce)
        + data_field(field_codes.SALT, frame.salt)
        + number_field(field_codes.ITERATIONS, frame.iterations, 4),
    )


def proof(frame: frames.Proof) -> bytes:
    """PROOF (LINK-51)."""
    return _frame(frames.PROOF, data_field(field_codes.PROOF, frame.proof))


def welcome(frame: frames.Welcome) -> bytes:
    """WELCOME (LINK-14)."""
    out = [
        bytes((frame.major, frame.minor)),
        text_field(field_codes.ROUTER, frame.router),
        text_field(field_codes.REMOTE_VPN, frame.vpn),
        _agreed(frame.features, frame.heartbeat_ms, frame.max_frame),
        text_field(field_codes.CLIENT_NAME, frame.client_name),
    ]
    if frame.incarnation:
        out.append(number_field(field_codes.INCARNATION, frame.incarnation, 8))
    out.append(_last(frame.resume, frame.link_port, frame.links_port))
    if frame.signature:
        out.append(data_field(field_codes.SIGNATURE, frame.signature))
    return _frame(frames.WELCOME, b"".join(out))


def _last(resume: bool, link_port: int, links_port: int) -> bytes:
    out = number_field(field_codes.RESUME, 1, 1) if resume else b""
    if link_port:
        out += number_field(field_codes.LINK_PORT, link_port, 2)
    if links_port:
        out += number_field(field_codes.LINKS_PORT, links_port, 2)
    return out


def _agreed(features: int, heartbeat_ms: int, max_frame: int) -> bytes:
    out: list[bytes] = []
    if features:
        out.append(number_field(field_codes.FEATURES, features, 4))
    if heartbeat_ms:
        out.append(number_field(field_codes.HEARTBEAT_MS, heartbeat_ms, 4))
    if max_frame != limits.LINK_FRAME_BYTES:
        out.append(number_field(field_codes.MAX_FRAME, max_frame, 4))
    return b"".join(out)


def refuse(frame: frames.Refuse) -> bytes:
    """REFUSE (LINK-16)."""
    return _frame(frames.REFUSE, _reason(frame.code, frame.reason, frame.retry_after_ms))


def close(frame: frames.Close) -> bytes:
    """CLOSE (LINK-16)."""
    return _frame(frames.CLOSE, _reason(frame.code, frame.reason, frame.retry_after_ms))


def detach(frame: frames.Detach) -> bytes:
    """DETACH (LINK-39)."""
    return _frame(frames.DETACH, _reason(frame.code, frame.reason, 0))


def _reason(code: int, reason: str, retry_after_ms: int) -> bytes:
    raw = reason.encode("utf-8")
    if len(raw) > limits.LINK_TEXT_BYTES:
        raise ValueError(f"a reason of {len(raw)} bytes")
    body = code.to_bytes(2, "big") + len(raw).to_bytes(2, "big") + raw
    if retry_after_ms:
        body += number_field(field_codes.RETRY_AFTER_MS, retry_after_ms, 4)
    return body


def heartbeat(frame: frames.Heartbeat) -> bytes:
    """HEARTBEAT (LINK-21)."""
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
    """SUBSCRIBE (LINK-23)."""
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
    """UNSUBSCRIBE (LINK-24)."""
    _check_count(len(frame.filters))
    out = [frame.request_id.to_bytes(4, "big")]
    out.extend([_filter(text) for text in frame.filters])
    return _frame(frames.UNSUBSCRIBE, b"".join(out))


def subscribed(frame: frames.Subscribed) -> bytes:
    """SUBSCRIBED (LINK-25)."""
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
