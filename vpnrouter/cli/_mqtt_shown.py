"""A received message as `sub` prints it."""

import base64
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from vpnrouter.cli._mqtt_stamp import stamp_of
from vpnrouter.management.rows import camel
from vpnrouter.text import ascii_json, printable_lines
from vpnrouter.wire.mqtt.packets import Publish

_HEX_COLUMNS: Final = 16


class Format(StrEnum):
    """How a message is printed."""

    TOPIC = "topic"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    RAW = "raw"


def printed(packet: Publish, form: Format, now_ns: int) -> bytes:
    """What `sub` writes of one message that came at `now_ns` (since 1970).

    `topic`: topic and payload on one line; `text`: the payload and a line feed; `json`: one object on
    one line; `hex`: topic and a dump; `raw`: the payload, byte for byte. In the first two, bytes that are
    no text and control characters are written as escapes: what others sent must not steer a terminal.
    """
    match form:
        case Format.RAW:
            return packet.payload
        case Format.JSON:
            return ascii_json(as_json(packet, now_ns)).encode() + b"\n"
        case Format.HEX:
            return f"{_line(packet.topic)}\n{dump(packet.payload)}".encode()
        case Format.TEXT:
            return shown_payload(packet.payload) + b"\n"
        case Format.TOPIC:
            return f"{_line(packet.topic)} {_line(packet.payload)}\n".encode()


def as_json(packet: Publish, now_ns: int) -> dict[str, Any]:
    """Everything about a message; `payload` where it is UTF-8, else `payloadBase64`."""
    moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
    row: dict[str, Any] = {
        "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ns // 1_000_000 % 1_000:03}Z",
        "topic": packet.topic.decode(),
    }
    try:
        row["payload"] = packet.payload.decode()
    except UnicodeDecodeError:
        row["payloadBase64"] = base64.b64encode(packet.payload).decode()
    row |= {"qos": packet.qos, "retain": packet.retain, "dup": packet.dup}
    row |= {camel(name): _plain(value) for name, value in packet.properties.present().items()}
    sent_ns = stamp_of(packet.payload)
    if sent_ns:
        row["latencyMs"] = round((now_ns - sent_ns) / 1e6, 3)
    return row


def dump(payload: bytes) -> str:
    """Lines of offset, bytes in hexadecimal and as characters."""
    lines = []
    for at in range(0, len(payload), _HEX_COLUMNS):
        part = payload[at : at + _HEX_COLUMNS]
        characters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"  {at:08x}  {part.hex(' '):<{3 * _HEX_COLUMNS - 1}}  {characters}\n")
    return "".join(lines)


def shown_payload(payload: bytes) -> bytes:
    """A payload as text that is safe for a terminal: line feeds and tabs stay, other control characters are escaped."""
    return printable_lines(payload.decode(errors="backslashreplace")).encode()


def _line(data: bytes) -> str:
    return printable_lines(data.decode(errors="backslashreplace")).replace("\n", "\\n")


def _plain(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
