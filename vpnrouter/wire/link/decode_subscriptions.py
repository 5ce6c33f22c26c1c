"""Bodies of SUBSCRIBE, UNSUBSCRIBE and SUBSCRIBED to frames, for decode.py.

The body is `buf[pos:end]`.
"""

from typing import Final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.close_codes import MALFORMED, PROTOCOL_ERROR
from vpnrouter.wire.link.fields import text_at, utf8

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
    """SUBSCRIBE (LINK-23)."""
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
    """UNSUBSCRIBE (LINK-24)."""
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
    """SUBSCRIBED (LINK-25)."""
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
