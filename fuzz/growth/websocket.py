"""What a client of MQTT over WebSocket does in the plans that look for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.growth import mqtt
from fuzz.growth.plans import Vocabulary
from fuzz.growth.talking import ANSWER_S, draw_count, draw_size

if TYPE_CHECKING:
    import random

    from fuzz.growth.plans import Value

_HANDSHAKE: Final = (
    b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
_MASK: Final = bytes(4)


def frame(opcode: int, payload: bytes, *, fin: bool = True, claims: int = -1) -> bytes:
    """A masked frame with a mask of zeros; `claims` is the length that its head tells."""
    size = len(payload) if claims < 0 else claims
    head = bytes((opcode | (0x80 if fin else 0),))
    if size < 126:
        head += bytes((0x80 | size,))
    elif size < 65_536:
        head += bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    else:
        head += bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    return head + _MASK + payload


class WebSocketTalk(mqtt.MqttTalk):
    """One client of MQTT over WebSocket."""

    wrapped = False
    shaken = False
    pieces = 0

    def dial(self) -> None:
        """Connect anew and shake hands."""
        super().dial()
        self.wrapped = self.shaken = False
        self.say(_HANDSHAKE)
        self.wait(ANSWER_S, lambda: self.shaken)
        self.wrapped = True

    def say(self, data: bytes) -> None:
        """Send it in one frame, or in fragments."""
        if not self.wrapped:
            super().say(data)
        elif self.pieces and len(data) < 200_000:
            cut = [data[at : at + self.pieces] for at in range(0, len(data), self.pieces)]
            last = len(cut) - 1
            super().say(
                b"".join(
                    frame(0 if number else 2, part, fin=number == last)
                    for number, part in enumerate(cut)
                )
            )
        else:
            super().say(frame(2, data))

    def heard(self, chunk: bytes) -> None:
        """Unwrap what came; the router's frames are whole messages."""
        if not self.shaken:
            self.came += chunk
            _, found, chunk = self.came.partition(b"\r\n\r\n")
            if not found:
                return
            self.shaken = True
            self.came = b""
            self._frames = b""
        self._frames += chunk
        while len(self._frames) >= 2:
            size, at = self._frames[1] & 127, 2
            if size == 126:
                size, at = int.from_bytes(self._frames[2:4], "big"), 4
            elif size == 127:
                size, at = int.from_bytes(self._frames[2:10], "big"), 10
            if len(self._frames) < at + size:
                return
            opcode, payload = self._frames[0] & 15, self._frames[at : at + size]
            self._frames = self._frames[at + size :]
            if opcode == 2:
                super().heard(payload)

    def cut(self, pieces: int) -> None:
        """Send in fragments of so many bytes from now on."""
        self.pieces = pieces

    def control(self, opcode: int, size: int, count: int) -> None:
        """Send control frames."""
        raw = frame(opcode, b"c" * size)
        for _ in range(count // 1_000):
            self.raw(raw * 1_000)
        self.raw(raw * (count % 1_000))

    def raw(self, data: bytes) -> None:
        """Send bytes of the layer below."""
        self.wrapped = False
        self.say(data)
        self.wrapped = True

    def open_frame(self, claims: int, size: int, count: int) -> None:
        """Begin a frame that claims to be long, and send a part of a packet in it; on several connections."""
        for _ in range(count):
            publish = b"\x30\xff\xff\xff\x7f\x00\x01h" + b"h" * size
            self.raw(frame(2, publish, fin=False, claims=claims))
            self._mute = True
            if count > 1:
                self.again()

    def empty_fragments(self, count: int) -> None:
        """Begin a message and go on with fragments of no bytes."""
        self.raw(frame(2, b"", fin=False))
        for _ in range(count // 1_000 + 1):
            self.raw(frame(0, b"", fin=False) * min(count, 1_000))

    def half_handshake(self, size: int, lines: int) -> None:
        """Shake hands half, with long or many header lines."""
        super(mqtt.MqttTalk, self).dial()
        self.wrapped = False
        self.say(
            _HANDSHAKE[:-2] + b"".join(b"X%d: %b\r\n" % (n, b"v" * size) for n in range(lines))
        )
        self.wait(0.2)


def _control(draw: random.Random) -> dict[str, Value]:
    return {
        "opcode": draw.choice((9, 10)),
        "size": draw.choice((0, 125)),
        "count": 10 * draw_count(draw),
    }


WORDS: Final = Vocabulary(
    "connect",
    {
        **{
            name: mqtt.WORDS.acts[name]
            for name in ("connect", "subscribe", "publish", "half", "reading", "pause", "ping")
        },
        "cut": (4, lambda draw: {"pieces": draw.choice((1, 3, 125, 4_000))}),
        "control": (4, _control),
        "open_frame": (
            4,
            lambda draw: {
                "claims": draw.choice((1 << 20, 1 << 40, (1 << 63) - 1)),
                "size": draw_size(draw),
                "count": draw.choice((1, 20)),
            },
        ),
        "empty_fragments": (2, lambda draw: {"count": 10 * draw_count(draw)}),
        "half_handshake": (
            2,
            lambda draw: {
                "size": draw.choice((1, 1_000, 60_000)),
                "lines": draw.choice((1, 50, 4_000)),
            },
        ),
    },
)
