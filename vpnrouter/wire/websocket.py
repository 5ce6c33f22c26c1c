"""Takes the WebSocket frames of a client apart and makes those of the server (RFC 6455, 5), as bytes in, bytes out."""

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

CONTINUATION: Final = 0x0
TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA

NORMAL: Final = 1000
PROTOCOL_ERROR: Final = 1002
UNSUPPORTED_DATA: Final = 1003
"""Reasons to close (RFC 6455, 7.4.1)."""

CONTROL_BYTES: Final = 125
"""Most payload of a control frame (RFC 6455, 5.5)."""

ANSWERED: Final = 64
"""Control frames that come together and are answered one by one."""

_FIN: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80
_WORD: Final = 8


def frame_head(opcode: int, size: int) -> bytes:
    """The bytes before the `size` bytes of payload of an unmasked frame that is a message of its own."""
    if size <= CONTROL_BYTES:
        return bytes((_FIN | opcode, size))
    if size < 65_536:
        return bytes((_FIN | opcode, 126, size >> 8, size & 255))
    return bytes((_FIN | opcode, 127)) + size.to_bytes(8, "big")


def close_frame(code: int) -> bytes:
    """The frame that closes, with its reason."""
    return frame_head(CLOSE, 2) + code.to_bytes(2, "big")


@final
class WebSocketDecoder:
    """Reads the frames of one client.

    A payload is handed on as it comes, so no frame is too long. `ended` is set by a Close frame and by what the
    standard forbids; nothing is read after it. `controls` are the control frames of the last `receive`.
    """

    __slots__ = (
        "_fragmented",
        "_left",
        "_mask",
        "_replies",
        "_rest",
        "_unanswered",
        "controls",
        "ended",
    )

    def __init__(self) -> None:
        self.ended = False
        self.controls = 0
        # What is there of a frame head or control frame that is not complete.
        self._rest = b""
        # Payload bytes that are still to come of a data frame, and the key of the next one.
        self._left: i64 = 0
        self._mask = b""
        self._fragmented = False
        self._replies: list[bytes] = []
        # Mask and payload of a ping that was not answered with those before it.
        self._unanswered = b""

    def receive(self, data: bytes) -> bytes:
        """The payload in the next bytes of the stream, unmasked."""
        self.controls = 0
        if self._rest:
            data = self._rest + data
            self._rest = b""
        out = BytesWriter()
        at: i64 = 0
        end: i64 = len(data)
        while not self.ended:
            if self._left:
                part: i64 = min(self._left, end - at)
                _unmask(out, data, at, at + part, self._mask)
                at += part
                self._left -= part
                if self._left:
                    turned = part & 3
                    self._mask = self._mask[turned:] + self._mask[:turned]
                    break
            following = self._head(data, at, end)
            if following == at:
                self._rest = data[at:]
                break
            at = following
        self._answer_last()
        return out.getvalue()

    def take_replies(self) -> bytes:
        """The control frames that answer what was received, once."""
        if not self._replies:
            return b""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def _head(self, data: bytes, at: i64, end: i64) -> i64:
        """Read one frame head, or a whole control frame, at `at`; return what follows it, `at` if it is incomplete."""
        if end - at < 2:
            return at
        first: i64 = data[at]
        opcode: i64 = first & 0x0F
        size: i64 = data[at + 1] & 0x7F
        if first & _RESERVED or not data[at + 1] & _MASKED:
            return self._fail(PROTOCOL_ERROR, end)
        body: i64 = at + 6
        if size == 126:
            body = at + 8
        elif size == 127:
            body = at + 14
        if body > end:
            return at
        if size > CONTROL_BYTES:
            least: i64 = 126 if size == 126 else 65_536
            # The highest bit of a length is 0.
            negative = size == 127 and data[at + 2] > 127
            size = 0
            for place in range(at + 2, body - 4):
                size = size << 8 | data[place]
            if negative or size < least:
                # Only the shortest form is allowed.
                return self._fail(PROTOCOL_ERROR, end)
        if opcode >= CLOSE:
            return self._control(data, at, body, size, end)
        if (opcode == CONTINUATION) != self._fragmented or opcode > BINARY:
            return self._fail(PROTOCOL_ERROR, end)
        if opcode == TEXT:
            # MQTT-6.0.0-1
            return self._fail(UNSUPPORTED_DATA, end)
        self._fragmented = not first & _FIN
        self._left = size
        self._mask = data[body - 4 : body]
        return body

    def _control(self, data: bytes, at: i64, body: i64, size: i64, end: i64) -> i64:
        """Answer the control frame whose payload of `size` bytes begins at `body`."""
        if size > CONTROL_BYTES or not data[at] & _FIN:
            return self._fail(PROTOCOL_ERROR, end)
        following: i64 = body + size
        if following > end:
            return at
        opcode: i64 = data[at] & 0x0F
        self.controls += 1
        if opcode == PING:
            # Of pings that come together the last one may be answered for all (RFC 6455, 5.5.3).
            self._unanswered = data[body - 4 : following]
            if self.controls <= ANSWERED:
                self._answer_last()
        elif opcode == CLOSE:
            out = BytesWriter()
            _unmask(out, data, body, following, data[body - 4 : body])
            payload = out.getvalue()
            code = int.from_bytes(payload[:2], "big") if payload else NORMAL
            return self._fail(code if size != 1 and _may_be_sent(code) else PROTOCOL_ERROR, end)
        elif opcode != PONG:
            return self._fail(PROTOCOL_ERROR, end)
        return following

    def _answer_last(self) -> None:
        """Answer the last ping, if it was not."""
        ping = self._unanswered
        if not ping:
            return
        self._unanswered = b""
        out = BytesWriter()
        _unmask(out, ping, 4, len(ping), ping[:4])
        payload = out.getvalue()
        self._replies.append(frame_head(PONG, len(payload)) + payload)

    def _fail(self, code: int, end: i64) -> i64:
        """Close for the reason `code`; nothing that follows is read."""
        self._answer_last()
        self._replies.append(close_frame(code))
        self.ended = True
        return end


def _may_be_sent(code: int) -> bool:
    """True for a reason that may stand in a Close frame (RFC 6455, 7.4)."""
    return (1000 <= code <= 1011 and code not in (1004, 1005, 1006)) or 3000 <= code <= 4999


def _unmask(out: BytesWriter, data: bytes, at: i64, end: i64, mask: bytes) -> None:
    """Write `data[at:end]`, each byte with its byte of the mask (RFC 6455, 5.3)."""
    if end - at >= _WORD:
        key = read_i64_le(mask + mask, 0)
        while end - at >= _WORD:
            write_i64_le(out, read_i64_le(data, at) ^ key)
            at += _WORD
    turn: i64 = 0
    while at < end:
        out.append(data[at] ^ mask[turn & 3])
        at += 1
        turn += 1
