"""The payload of a message as text, as JSON, and as bytes in hexadecimal."""

import json
from enum import StrEnum
from typing import Final

from vpnrouter.limits import TUI_LINES, TUI_PAYLOAD_SHOWN
from vpnrouter.tui.format import Line, folded, text

PRINTABLE: Final = range(0x20, 0x7F)


class PayloadView(StrEnum):
    """How a payload is shown."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"


def best_view(payload: bytes) -> PayloadView:
    """How a payload is probably meant: an object or a list as JSON, UTF-8 as text, else hexadecimal."""
    try:
        string = payload[:TUI_PAYLOAD_SHOWN].decode()
    except UnicodeDecodeError as error:
        # A character may be cut in two where the part that is shown ends.
        if error.start < TUI_PAYLOAD_SHOWN - 4:
            return PayloadView.HEX
        return PayloadView.TEXT
    if string.lstrip()[:1] in {"{", "["} and _parsed(payload) is not None:
        return PayloadView.JSON
    return PayloadView.HEX if "\x00" in string else PayloadView.TEXT


def payload_lines(payload: bytes, view: PayloadView, width: int) -> list[Line]:
    """The payload in lines of at most `width` columns, no more than TUI_LINES of them."""
    shown = payload[:TUI_PAYLOAD_SHOWN]
    match view:
        case PayloadView.TEXT:
            lines = _folded(shown.decode(errors="replace"), width)
        case PayloadView.HEX:
            lines = _hex(shown, width)
        case PayloadView.JSON:
            lines = _json(payload, width)
    if not payload:
        return [text(("no payload", "dim"))]
    left = len(payload) - len(shown)
    if left and view is not PayloadView.JSON:
        lines.append(text((f"… {left:,} bytes more", "note")))
    if len(lines) > TUI_LINES:
        lines = [
            *lines[: TUI_LINES - 1],
            text((f"… {len(lines) - TUI_LINES + 1:,} lines more", "note")),
        ]
    return lines


def _folded(string: str, width: int) -> list[Line]:
    lines: list[Line] = []
    for each in string.splitlines():
        # A line is cut where texts are: what is longer goes on in the next one.
        for start in range(0, max(1, len(each)), 1_000):
            lines += [text(part) for part in folded(each[start : start + 1_000], width)]
    return lines


def _json(payload: bytes, width: int) -> list[Line]:
    if len(payload) > TUI_PAYLOAD_SHOWN:
        message = f"{len(payload):,} bytes are too many to show as JSON; t shows the beginning"
        return [text((message, "warn"))]
    parsed = _parsed(payload)
    if parsed is None:
        return [text(("not JSON; t shows it as text, x as bytes", "warn"))]
    string = json.dumps(parsed[0], indent=2, ensure_ascii=False)
    return _folded(string, width)


def _parsed(payload: bytes) -> tuple[object] | None:
    """The value, in a tuple, as it may be null; None for what is no JSON."""
    try:
        return (json.loads(payload),)
    except (ValueError, RecursionError):
        return None


def _hex(payload: bytes, width: int) -> list[Line]:
    # Offset, two spaces, "xx " and a character for each byte: 78 columns hold 16 of them.
    each = 16 if width >= 76 else 8
    lines = []
    for start in range(0, len(payload), each):
        part = payload[start : start + each]
        string = " ".join(f"{byte:02x}" for byte in part).ljust(3 * each - 1)
        readable = "".join(chr(byte) if byte in PRINTABLE else "·" for byte in part)
        lines.append(text((f"{start:08x}  ", "dim"), f"{string}  ", (readable, "accent")))
    return lines
