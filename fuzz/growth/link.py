"""What a peer router does in the plans that look for growth: it logs in as a bridge, and asks, takes and sends."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from fuzz.growth.plans import Vocabulary
from fuzz.growth.talking import (
    ANSWER_S,
    PIECE,
    SELECTORS,
    SHAPES,
    Talk,
    draw_count,
    draw_size,
    filter_of,
    selector_of,
    text_of,
)
from vpnrouter.core.scram import auth_message, salted_password, verifier_of
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.compressed import LinkPacker
from vpnrouter.wire.link.decode import Frame, decode, link_frame_at

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Sequence

    from fuzz.growth.plans import Value

MOST_FRAME: Final = 17_039_360
SALT: Final = b"0123456789abcdef"
ROUNDS: Final = 4_096

DIALLED_S: Final = 2.0
"""Seconds in which a bridge of the router dials again."""


class LinkTalk(Talk):
    """One bridge of a peer, or several bridges one after the other."""

    _last: dict[str, Value] | None = None
    _hello: bytes
    _challenge: bytes
    _asked: frames.Hello
    doors: Sequence[socket.socket] = ()

    def connect(self, reads: bool, features: int, bridges: int, name: int, frame: int) -> None:
        """Log in as so many bridges, one after the other, of which the last one stays."""
        for number in range(bridges):
            self._forget()
            self.dial()
            hello = frames.Hello(
                f"far-{self.name}",
                f"b{number}".ljust(name, "n"),
                "v",
                "mesh",
                features=features,
                heartbeat_ms=60_000,
                max_frame=frame,
                incarnation=1,
            )
            self.say(encode.hello(hello))
            self.wait(ANSWER_S, lambda: self._up)
        self.reads = reads

    def _forget(self) -> None:
        self.reads = True
        self._up = self._accepted = False
        self._hello = b""
        self._packer: LinkPacker | None = None
        self._flows: list[int] = []
        self._positions: list[int] = []

    def accept(self, features: int) -> None:
        """Take the connection of one of the router's bridges, in place of this client's own."""
        ends = time.monotonic() + DIALLED_S
        while time.monotonic() < ends:
            self._watch(self.sent)
            self.close()
            self._forget()
            self._accepted = True
            self._features = features
            # Connections that nobody took in time wait here, too, and are closed already.
            for door in self.doors:
                with contextlib.suppress(BlockingIOError):
                    self.sock, _ = door.accept()
                    self.sock.setblocking(False)
                    self.wait(ANSWER_S, lambda: bool(self._flows))
                    if self.sock is not None and self._up:
                        return
            time.sleep(0.02)
        self._accepted = False

    def send(self, count: int, shape: str, size: int, flags: int) -> None:
        """Send guaranteed messages over the flows that the router's bridge has bound."""
        if not self._accepted:
            self.accept(frames.FLOWS)
        for number in range(count):
            message = frames.Direct(text_of(shape, number).encode(), b"", b"g" * size)
            for flow in self._flows[-8:]:
                frame = frames.Guaranteed(flow, number + 1, flags, 4, message)
                self.say(encode.guaranteed_message(frame))

    def do(self, act: str, values: dict[str, Value]) -> None:
        """Do one step; a peer whose connection was closed comes back first."""
        if act == "connect":
            self._last = values
        elif self.sock is None:
            if self._last is None:
                return
            super().do("connect", {**self._last, "bridges": 1})
        super().do(act, values)

    def subscribe(self, count: int, shape: str, end: str, selector: str, together: int) -> None:
        """Subscribe to many filters."""
        filters: list[tuple[int, str]] = []
        for number in range(count):
            filters.append((1, filter_of(shape, number).replace("+", "*") + end))
            if len(filters) == together or number + 1 == count:
                selectors = {text: selector_of(selector, number) for _, text in filters if selector}
                self.say(encode.subscribe(frames.Subscribe(number, filters, selectors)))
                filters = []

    def unsubscribe(self, count: int, shape: str, end: str) -> None:
        """Unsubscribe from them again."""
        for number in range(count):
            self.say(
                encode.unsubscribe(
                    frames.Unsubscribe(number, [filter_of(shape, number).replace("+", "*") + end])
                )
            )

    def bind(self, queue: str, count: int, window: int, ranges: int, selector: str) -> None:
        """Bind flows to a queue."""
        for number in range(count):
            accepted = {
                bytes((store,)) * 16: [(1 + 2 * at, 1) for at in range(ranges)]
                for store in range(8 if ranges else 0)
            }
            text = selector_of(selector, number)
            bind = frames.Bind(number, queue, window, accepted=accepted, selector=text)
            self.say(encode.bind(bind))
        self.wait(0.2)

    def unbind(self, count: int) -> None:
        """End flows."""
        for flow in self._flows[-count:]:
            self.say(encode.unbind(frames.Unbind(flow, 0, "")))

    def acknowledge(self, count: int, kind: str) -> None:
        """Answer messages of flows, rightly or with what was never sent."""
        for flow in self._flows[-8:]:
            for position in self._positions[:count] or range(1, min(count, 500)):
                match kind:
                    case "ack":
                        data = encode.ack(frames.Ack(flow, 65_535, [(position, 1)]))
                    case "reject":
                        data = encode.reject(frames.Reject(flow, position, 0x97, "r" * 1_000, 0))
                    case "settled":
                        data = encode.settled(frames.Settled(flow, position, 5))
                    case _:
                        data = encode.forget(frames.Forget(flow, [(position, 1)]))
                self.say(data)

    def publish(
        self, count: int, shape: str, same: bool, size: int, path: int, entry: int, notes: int
    ) -> None:
        """Send Direct messages with an extension, where the router has dialled."""
        if not self._accepted:
            self.accept(frames.FLOWS)
        parts: list[bytes] = []
        held = 0
        visited = [f"r{number}/".ljust(entry, "v") for number in range(path)]
        extension = frames.Extension([*visited, "far/v"], path + 1) if path else None
        properties = b"\x26\0\x01k\0\x01v" * notes
        for number in range(count):
            topic = text_of(shape, 0 if same else number).encode()
            message = frames.Direct(topic, properties, b"p" * size, extension)
            parts.append(encode.message(message))
            held += len(parts[-1])
            if held > PIECE:
                self._say_packed(b"".join(parts))
                parts, held = [], 0
                if self.sock is None:
                    return
        self._say_packed(b"".join(parts))

    def _say_packed(self, data: bytes) -> None:
        self.say(data if self._packer is None else self._packer.pack(data))

    def half(self, size: int) -> None:
        """Begin a frame and do not end it."""
        filters = [(1, f"half/{number}/{'h' * 1_000}") for number in range(size // 1_000)]
        self.say_half(encode.subscribe(frames.Subscribe(1, filters or [(1, "half")]))[:-5])

    def beat(self, count: int) -> None:
        """Ask for signs of life."""
        self.say(encode.heartbeat(frames.Heartbeat(7, answer=False)) * count)

    def heard(self, chunk: bytes) -> None:
        """Look for what needs an answer."""
        self.came += chunk
        start = 0
        try:
            while size := link_frame_at(self.came, start, len(self.came), MOST_FRAME):
                self._note(decode(self.came, start, size), self.came[start : start + size])
                start += size
        except ProtocolError:
            self.close()
        self.came = self.came[start:]

    def _note(self, frame: Frame, raw: bytes) -> None:
        answer = b""
        match frame:
            case frames.Welcome():
                self._up = True
                if frame.features & frames.ZSTD:
                    self._packer = LinkPacker(MOST_FRAME)
            case frames.Hello():
                self._hello, self._asked = raw, frame
                answer = self._challenge = encode.challenge(
                    frames.Challenge(bytes(frames.NONCE_BYTES), SALT, ROUNDS)
                )
                if frame.scheme != frames.SCRAM:
                    answer = self._welcome(b"")
            case frames.Proof():
                verifier = verifier_of(salted_password(b"secret", SALT, ROUNDS), SALT, ROUNDS)
                signed = auth_message(self._hello, self._challenge, b"", b"")
                answer = self._welcome(verifier.signature(signed))
            case frames.Subscribe() | frames.Unsubscribe():
                codes = [0] * len(frame.filters)
                answer = encode.subscribed(frames.Subscribed(frame.request_id, codes, ""))
            case frames.Bind():
                flow = 2 * len(self._flows) + 2
                self._flows.append(flow)
                answer = encode.bound(frames.Bound(frame.request_id, 0, flow, frame.window, SALT))
            case frames.Bound():
                if frame.flow_id:
                    self._flows.append(frame.flow_id)
            case frames.Guaranteed():
                if len(self._positions) < 5_000:
                    self._positions.append(frame.position)
        if answer and self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.sendall(answer)

    def _welcome(self, signature: bytes) -> bytes:
        self._up = True
        asked = self._asked
        features = asked.features & self._features
        if features & frames.ZSTD:
            self._packer = LinkPacker(MOST_FRAME)
        return encode.welcome(
            frames.Welcome(
                "far",
                asked.remote_vpn,
                "#bridge/fuzzed/mesh/b",
                features=features,
                heartbeat_ms=60_000,
                incarnation=1,
                signature=signature,
            )
        )


def _publish(draw: random.Random) -> dict[str, Value]:
    size = draw_size(draw)
    return {
        "count": min(draw_count(draw), 60_000_000 // (size + 1) + 3),
        "shape": draw.choice((*SHAPES, "cached")),
        "same": draw.randrange(3) == 0,
        "size": size,
        "path": draw.choice((0, 1, 7, 200)),
        "entry": draw.choice((5, 200)),
        "notes": draw.choice((0, 0, 1_000)),
    }


WORDS: Final = Vocabulary(
    "connect",
    {
        "connect": (
            1,
            lambda draw: {
                "reads": draw.randrange(3) != 0,
                "features": draw.choice((frames.FLOWS, frames.FLOWS | frames.ZSTD)),
                "bridges": draw.choice((1, 1, 1, 30, 300)),
                "name": draw.choice((1, 150)),
                "frame": draw.choice((65_536, MOST_FRAME, MOST_FRAME)),
            },
        ),
        "subscribe": (
            6,
            lambda draw: {
                "count": draw_count(draw),
                "shape": draw.choice(SHAPES),
                "end": draw.choice(("", "/>", "/*")),
                "selector": draw.choice(SELECTORS),
                "together": draw.choice((1, 50)),
            },
        ),
        "unsubscribe": (
            1,
            lambda draw: {
                "count": draw_count(draw),
                "shape": draw.choice(SHAPES),
                "end": draw.choice(("", "/>")),
            },
        ),
        "bind": (
            4,
            lambda draw: {
                "queue": draw.choice(("many", "large", "large", "none")),
                "count": draw.choice((1, 8, 64, 100)),
                "window": draw.choice((1, 65_535)),
                "ranges": draw.choice((0, 0, 1, 2_000)),
                "selector": draw.choice(SELECTORS),
            },
        ),
        "unbind": (1, lambda draw: {"count": draw.choice((1, 64))}),
        "acknowledge": (
            3,
            lambda draw: {
                "count": draw_count(draw),
                "kind": draw.choice(("ack", "reject", "settled", "forget")),
            },
        ),
        "accept": (
            8,
            lambda draw: {
                "features": draw.choice((frames.FLOWS, frames.FLOWS | frames.ZSTD)),
            },
        ),
        "publish": (8, _publish),
        "send": (
            4,
            lambda draw: {
                "count": min(draw_count(draw), 4_000),
                "shape": draw.choice(SHAPES),
                "size": draw.choice((0, 1_000, 60_000)),
                "flags": draw.choice((0, frames.PERSISTENT)),
            },
        ),
        "half": (2, lambda draw: {"size": draw.choice((1, 60_000, 4_000_000))}),
        "beat": (1, lambda draw: {"count": draw_count(draw)}),
        "reading": (2, lambda draw: {"on": draw.randrange(2) == 0}),
        "pause": (1, lambda draw: {"tenths": draw.choice((1, 5, 12))}),
        "hang_up": (1, lambda draw: {"again": draw.randrange(2) == 0}),
    },
)
