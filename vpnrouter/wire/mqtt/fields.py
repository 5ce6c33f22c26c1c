"""Reads the data types of packets (MQTT 5, 1.5), and the length field of the fixed header (1.5.5 and 2.1.4).

The encoding is that of vpnrouter/wire/varint.py; here its errors get MQTT's clauses and codes.
"""

from __future__ import annotations

from typing import Final

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.reason import (
    MALFORMED_PACKET,
    PACKET_TOO_LARGE,
    TOPIC_NAME_INVALID,
    malformed,
    violation,
)
from vpnrouter.wire.varint import VARINT_MAX, varint
from vpnrouter.wire.varint import frame_at as any_frame_at
from vpnrouter.wire.varint import read_varint as read_any_varint

__all__ = ["VARINT_MAX", "frame_at", "read_varint", "varint"]


def read_varint(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Return the variable byte integer at `pos` and the position after it; `end` is the packet's end.

    Raises ProtocolError 0x81 when it runs past `end`, into a fifth byte, or wastes a byte: frames are forwarded as they
    came, so a wasteful one would become our own breach of MQTT-1.5.5-1.
    """
    try:
        return read_any_varint(buf, pos, end)
    except ProtocolError as error:
        raise malformed(f"MQTT 1.5.5: {error}") from None


def frame_at(buf: bytes, pos: int, end: int, max_packet: int) -> int:
    """Bytes of the frame at `pos`, fixed header included; 0 when buf[pos:end] lacks a part of it.

    `max_packet` bounds the whole frame, in bytes. Raises ProtocolError 0x95 as soon as the length
    field promises more (nothing of it need be buffered), 0x81 on a length field of five bytes or
    one longer than needed.
    """
    try:
        return any_frame_at(buf, pos, end, max_packet, PACKET_TOO_LARGE, MALFORMED_PACKET)
    except ProtocolError as error:
        clause = "MQTT-3.2.2-15" if error.reason_code == PACKET_TOO_LARGE else "MQTT 1.5.5"
        raise ProtocolError(error.reason_code, f"{clause}: {error}") from None


U16_MAX: Final = 0xFFFF
U32_MAX: Final = 0xFFFF_FFFF


def read_u8(buf: bytes, pos: int, end: int) -> int:
    """The byte at `pos`. Raises ProtocolError 0x81 when the packet ends before it."""
    if pos >= end:
        raise malformed("MQTT 1.5.1: packet ends where a byte is due")
    return buf[pos]


def read_u16(buf: bytes, pos: int, end: int) -> int:
    """The two byte integer at `pos`. Raises ProtocolError 0x81 when the packet ends inside it."""
    if pos + 2 > end:
        raise malformed("MQTT 1.5.2: packet ends inside a two byte integer")
    return (buf[pos] << 8) | buf[pos + 1]


def read_u32(buf: bytes, pos: int, end: int) -> int:
    """The four byte integer at `pos`. Raises ProtocolError 0x81 when the packet ends inside it."""
    if pos + 4 > end:
        raise malformed("MQTT 1.5.3: packet ends inside a four byte integer")
    return (buf[pos] << 24) | (buf[pos + 1] << 16) | (buf[pos + 2] << 8) | buf[pos + 3]


def read_packet_id(buf: bytes, pos: int, end: int) -> int:
    """The packet identifier at `pos`, 1..65,535. Raises ProtocolError 0x82 when it is zero."""
    packet_id = read_u16(buf, pos, end)
    if packet_id == 0:
        raise violation("MQTT-2.2.1-3: packet identifier is zero")
    return packet_id


def read_binary(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    """Length-prefixed bytes at `pos` and the position after them.

    Raises ProtocolError 0x81 when they are cut short.
    """
    if pos + 2 > end:
        raise malformed("MQTT 1.5.6: packet ends inside a length field")
    start = pos + 2
    stop = start + ((buf[pos] << 8) | buf[pos + 1])
    if stop > end:
        raise malformed("MQTT 1.5.6: field is longer than its packet")
    return buf[start:stop], stop


def read_string(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    """The UTF-8 string at `pos` and the position after it.

    Raises ProtocolError 0x81 when it is cut short or `utf8` refuses it.
    """
    piece, stop = read_binary(buf, pos, end)
    return utf8(piece), stop


def utf8(piece: bytes) -> str:
    """The text of a UTF-8 string field.

    Raises ProtocolError 0x81 on ill-formed UTF-8, surrogates among it, and on U+0000.
    """
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("MQTT-1.5.4-1: string is not well-formed UTF-8") from None
    # Searched in the text: `in` on bytes raises and clears an exception inside, at twice the price.
    if "\x00" in text:
        raise malformed("MQTT-1.5.4-2: string holds U+0000")
    return text


def check_topic_name(topic: bytes) -> None:
    """Raise ProtocolError for an illegal topic name: ill-formed text (0x81), wildcards in it (0x90).

    An empty name passes: it is legal in an MQTT 5 PUBLISH with a topic alias. The topic grammar checks levels and
    length.
    """
    text = utf8(topic)
    if "+" in text or "#" in text:
        raise ProtocolError(TOPIC_NAME_INVALID, "MQTT-3.3.2-2: topic name holds a wildcard")


def u16(value: int) -> bytes:
    """Two byte integer. Raises ValueError outside 0..65,535."""
    if value < 0 or value > U16_MAX:
        raise ValueError(f"{value} does not fit two bytes")
    return value.to_bytes(2, "big")


def u32(value: int) -> bytes:
    """Four byte integer. Raises ValueError outside 0..4,294,967,295."""
    if value < 0 or value > U32_MAX:
        raise ValueError(f"{value} does not fit four bytes")
    return value.to_bytes(4, "big")


def binary(piece: bytes) -> bytes:
    """Length-prefixed bytes. Raises ValueError beyond 65,535 bytes."""
    size = len(piece)
    if size > U16_MAX:
        raise ValueError(f"field of {size} bytes, {U16_MAX} can be sent")
    return size.to_bytes(2, "big") + piece


def string(text: str) -> bytes:
    """UTF-8 string. Raises ValueError beyond 65,535 bytes, on U+0000 and on surrogates."""
    if "\x00" in text:
        raise ValueError("U+0000 can not be sent")
    return binary(text.encode("utf-8"))
