"""A message as the spool keeps it.

    word        shape (4 bits), priority (4), flags (16), topic length (16), source length (16), 8 unused
    word        ingress time
    word        message id
    [word]      expiry                      if shape has EXPIRES
    [4 bytes]   block length                if shape has BLOCK
    [2 bytes, …] length and the rarer part   if shape has RARE
    topic, source name, block, payload (what is left)

Words are 8 bytes, little-endian. The rarer part is what only traced messages and those of other routers
have: trace id (16 bytes), origin time (8), hops (1), visited VPNs (count, then length and text of each),
origin router, origin VPN (length and text of each; lengths have 2 bytes).
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - it is a class, whatever its name
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from vpnrouter.errors import SpoolError

PERSISTENT: Final = 1
"""The publisher asked for guaranteed delivery; else the message was promoted."""

DMQ_ELIGIBLE: Final = 2
"""It may go to a dead message queue."""

RETAIN: Final = 4
"""It was published with RETAIN, or is a retained message."""

DELIVER_TO_ONE: Final = 8
"""One consumer is to have it."""

DEFAULT_PRIORITY: Final = 4
HIGHEST_PRIORITY: Final = 9

_EXPIRES: Final = 1
_BLOCK: Final = 2
_RARE: Final = 4
_HEAD: Final = 24
_SMALL: Final = (1 << 62) - 1

_RARE_HEAD: Final = Struct("<QQqBH")
_LENGTH: Final = Struct("<H")

_LARGE: Final = 65_536
"""Bytes of a payload that is worth a copy less."""


@final
class Record:
    """What was stored of a message.

    Times are nanoseconds of the wall clock in UTC; `expires_ns` is 0 for never. `trace_high` and
    `trace_low` are both 0 if the message is not traced. `path` names the VPNs visited before this one.
    """

    __slots__ = (
        "block",
        "expires_ns",
        "flags",
        "hops",
        "ingress_ns",
        "message_id",
        "origin_router",
        "origin_ts_ns",
        "origin_vpn",
        "path",
        "payload",
        "priority",
        "source_name",
        "topic",
        "trace_high",
        "trace_low",
    )

    def __init__(self, topic: bytes, payload: bytes) -> None:
        self.topic = topic
        self.payload = payload
        self.block = b""
        self.flags = 0
        self.priority = DEFAULT_PRIORITY
        self.expires_ns = 0
        self.ingress_ns = 0
        self.message_id = 0
        self.source_name = ""
        self.hops = 0
        self.path: list[str] = []
        self.origin_router = ""
        self.origin_vpn = ""
        self.origin_ts_ns = 0
        self.trace_high = 0
        self.trace_low = 0


def encode_record(
    topic: bytes,
    payload: bytes,
    block: bytes,
    flags: int,
    priority: int,
    expires_ns: int,
    ingress_ns: int,
    message_id: int,
    source_name: str,
    rare: bytes = b"",
) -> bytes:
    """Return the bytes to store of a message; `rare` is what `encode_rare` made.

    Args:
        topic: at most 65,535 bytes.
        payload: the payload.
        block: MQTT 5 properties, encoded, without length prefix.
        flags: PERSISTENT and so on, 16 bits.
        priority: 0 to 9.
        expires_ns: wall clock at which it expires, or 0.
        ingress_ns: wall clock at which it came into this router.
        message_id: 0 … 2**64-1.
        source_name: client name of the publisher; longer ones are cut after 65,535 bytes.
        rare: the rarer part, or empty.

    Raises:
        OverflowError: a number or a length does not fit its field.
    """
    source = source_name.encode()
    if len(source) > 65_535:
        source = source[:65_535].decode("utf-8", "ignore").encode()
    topic_size: i64 = len(topic)
    source_size: i64 = len(source)
    flag: i64 = flags
    level: i64 = priority
    if topic_size > 65_535 or not 0 <= flag <= 65_535 or not 0 <= level <= 9 or len(rare) > 65_535:
        raise OverflowError("a message that the spool has no form for")
    shape: i64 = 0
    if expires_ns:
        shape = _EXPIRES
    if block:
        shape |= _BLOCK
    if rare:
        shape |= _RARE
    out = BytesWriter()
    write_i64_le(out, shape | level << 4 | flag << 8 | topic_size << 24 | source_size << 40)
    write_i64_le(out, ingress_ns)
    write_i64_le(out, _signed(message_id))
    if shape:
        if expires_ns:
            write_i64_le(out, expires_ns)
        if block:
            size: i32 = i32(len(block))
            write_i32_le(out, size)
        if rare:
            out.write(_LENGTH.pack(len(rare)))
            out.write(rare)
    out.write(topic)
    out.write(source)
    if block:
        out.write(block)
    if len(payload) > _LARGE:
        # Copied once and not twice.
        return out.getvalue() + payload
    out.write(payload)
    return out.getvalue()


def encode_rare(
    hops: int,
    path: list[str],
    origin_router: str,
    origin_vpn: str,
    origin_ts_ns: int,
    trace_high: int,
    trace_low: int,
) -> bytes:
    """Return what only traced messages and those of other routers have; empty if all of it is as in others.

    Raises OverflowError if it has more than 65,535 bytes or a number does not fit.
    """
    if not (hops or path or origin_router or origin_vpn or origin_ts_ns or trace_high or trace_low):
        return b""
    try:
        parts = [_RARE_HEAD.pack(trace_high, trace_low, origin_ts_ns, hops, len(path))]
        for text in (*path, origin_router, origin_vpn):
            raw = text.encode()
            parts.append(_LENGTH.pack(len(raw)))
            parts.append(raw)
    except StructError as error:
        raise OverflowError("a message that the spool has no form for") from error
    encoded = b"".join(parts)
    if len(encoded) > 65_535:
        raise OverflowError("a message whose path is too long for the spool")
    return encoded


def decode_record(data: bytes) -> Record:
    """Return the message that `data` encodes. Raises SpoolError if it encodes none."""
    total: i64 = len(data)
    if total < _HEAD:
        raise SpoolError("a spooled message is cut short", "corrupt")
    word: i64 = read_i64_le(data, 0)
    shape: i64 = word & 15
    topic_size: i64 = word >> 24 & 65_535
    source_size: i64 = word >> 40 & 65_535
    at: i64 = _HEAD
    expires: i64 = 0
    block_size: i64 = 0
    rare = b""
    if shape:
        # Words of a record cut short would be read beyond its end.
        if total < _HEAD + 16:
            data += bytes(16)
        if shape & _EXPIRES:
            expires = read_i64_le(data, at)
            at += 8
        if shape & _BLOCK:
            block_size = i64(read_i32_le(data, at))
            at += 4
        if shape & _RARE:
            rare_size: i64 = data[at] | data[at + 1] << 8
            rare = data[at + 2 : at + 2 + rare_size]
            at += 2 + rare_size
    source_at: i64 = at + topic_size
    block_at: i64 = source_at + source_size
    payload_at: i64 = block_at + block_size
    if payload_at > total or shape > 7 or word >> 56 or block_size < 0:
        raise SpoolError("a spooled message is damaged", "corrupt")
    record = Record(data[at:source_at], data[payload_at:total])
    record.flags = int(word >> 8 & 65_535)
    record.priority = int(word >> 4 & 15)
    record.ingress_ns = int(read_i64_le(data, 8))
    record.message_id = _unsigned(read_i64_le(data, 16))
    record.expires_ns = int(expires)
    try:
        if source_size:
            record.source_name = data[source_at:block_at].decode()
        if block_size:
            record.block = data[block_at:payload_at]
        if rare:
            _take_rare(record, rare)
    except (StructError, ValueError) as error:
        raise SpoolError("a spooled message is damaged", "corrupt") from error
    return record


def _take_rare(record: Record, rare: bytes) -> None:
    high, low, origin, hops, count = _RARE_HEAD.unpack_from(rare)
    record.trace_high = high
    record.trace_low = low
    record.origin_ts_ns = origin
    record.hops = hops
    texts: list[str] = []
    at = _RARE_HEAD.size
    for _ in range(count + 2):
        size = _LENGTH.unpack_from(rare, at)[0]
        at += 2
        if at + size > len(rare):
            raise ValueError("a text is cut short")
        texts.append(rare[at : at + size].decode())
        at += size
    record.origin_vpn = texts.pop()
    record.origin_router = texts.pop()
    record.path = texts


def _signed(number: int) -> i64:
    """Return a number of 64 bits without sign as the signed one of the same bits."""
    if number <= _SMALL:
        if number < 0:
            raise OverflowError(f"{number} is below 0")
        return number
    if number >= 1 << 64:
        raise OverflowError(f"{number} has more than 64 bits")
    return number if number < 1 << 63 else number - (1 << 64)


def _unsigned(number: i64) -> int:
    """Return a signed number of 64 bits as the one without sign of the same bits."""
    if number >= 0:
        return int(number)
    return int(number) + (1 << 64)
