"""Where a packet ends: the length field of the fixed header (MQTT 5, 1.5.5 and 2.1.4).

The encoding is that of vpnrouter/wire/varint.py; here its errors get MQTT's clauses and codes.
"""

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.fault import malformed
from vpnrouter.wire.mqtt.reason import MALFORMED_PACKET, PACKET_TOO_LARGE
from vpnrouter.wire.varint import VARINT_MAX, varint
from vpnrouter.wire.varint import frame_at as any_frame_at
from vpnrouter.wire.varint import read_varint as read_any_varint

__all__ = ["VARINT_MAX", "frame_at", "read_varint", "varint"]


def read_varint(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """The variable byte integer at `pos` and the position after it; `end` is the packet's end.

    Raises ProtocolError 0x81 when it runs past `end`, into a fifth byte, or wastes a byte: frames
    are forwarded as they came, so a wasteful one would become our own breach of MQTT-1.5.5-1.
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
