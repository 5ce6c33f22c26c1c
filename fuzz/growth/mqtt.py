"""What a client of MQTT does in the plans that look for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.growth.plans import Value, Vocabulary
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
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    import random

HELD: Final = 20_000
"""Deliveries that a client remembers, to acknowledge them."""


class MqttTalk(Talk):
    """One client of MQTT."""

    level = 5
    connected = False
    _last: dict[str, Value] | None = None

    def connect(
        self,
        clean: bool,
        expiry: int,
        window: int,
        aliases: int,
        will: int,
        notes: int,
        level: int,
        count: int,
        name: int,
        reads: bool,
    ) -> None:
        """Log in, `count` times with different client ids, of which the last one stays."""
        self.level = level
        self.reads = True
        self._deliveries: list[tuple[int, int]] = []
        for number in range(count):
            client_id = f"{self.name}-{number}".ljust(name, "n")
            self._login(client_id, clean, expiry, window, aliases, will, notes, number)
        self.reads = reads

    def _login(
        self,
        client_id: str,
        clean: bool,
        expiry: int,
        window: int,
        aliases: int,
        will: int,
        notes: int,
        number: int,
    ) -> None:
        self.dial()
        self.connected = False
        left = None
        if will:
            terms = Properties(will_delay_interval=0xFFFF_FFFF) if self.level == 5 else None
            left = Will(f"will/{number}".encode(), b"w" * will, 1, False, terms)
        terms = Properties()
        if self.level == 5:
            terms = Properties(
                session_expiry_interval=expiry,
                receive_maximum=window,
                topic_alias_maximum=aliases,
                user_properties=self._notes(notes),
            )
        username = f"{self.username}@blue"
        packet = Connect(
            client_id, clean, 0, self.level, username, self.username.encode(), left, terms
        )
        self._packet(packet)
        self.wait(ANSWER_S, lambda: self.connected)

    def _notes(self, count: int) -> list[tuple[str, str]]:
        """User properties: many small ones, or few large ones."""
        if count > 100_000:
            return [("k", "v" * 60_000)] * (count // 60_000)
        return [(f"k{number}", "v") for number in range(min(count, 1_000))]

    def subscribe(
        self, count: int, shape: str, end: str, together: int, qos: int, share: str, identifier: int
    ) -> None:
        """Subscribe to many filters."""
        terms = Properties()
        if identifier and self.level == 5:
            terms = Properties(subscription_identifiers=[identifier])
        requests: list[SubscriptionRequest] = []
        for number in range(count):
            text = filter_of(shape, number) + end
            if share == "one":
                text = f"$share/g/{text}"
            elif share == "many":
                text = f"$share/g{number}{'g' * 150}/{text}"
            requests.append(SubscriptionRequest(text[:65_535], qos))
            if len(requests) == together or number + 1 == count:
                self._packet(Subscribe(number % 65_535 + 1, requests, terms))
                requests = []

    def unsubscribe(self, count: int, shape: str, end: str) -> None:
        """Unsubscribe from them again."""
        for number in range(count):
            self._packet(Unsubscribe(1, [filter_of(shape, number) + end]))

    def bind(self, place: str, count: int, selector: str) -> None:
        """Bind to a queue, again and again."""
        for number in range(count):
            terms = Properties()
            if selector and self.level == 5:
                terms = Properties(user_properties=[("selector", selector_of(selector, number))])
            self._packet(Subscribe(7, [SubscriptionRequest(place, 1)], terms))

    def publish(
        self,
        count: int,
        shape: str,
        same: bool,
        size: int,
        qos: int,
        retain: bool,
        notes: int,
        extra: int,
        alias: int,
    ) -> None:
        """Publish messages; those of QoS 2 are left half-way."""
        payload = b"p" * size
        parts: list[bytes] = []
        held = 0
        for number in range(count):
            terms = Properties()
            if self.level == 5:
                terms = Properties(
                    user_properties=self._notes(notes),
                    correlation_data=b"c" * extra if extra else None,
                    response_topic="r" * extra if extra else None,
                    topic_alias=(number % alias) + 1 if alias else None,
                )
            topic = text_of(shape, 0 if same else number).encode()
            packet_id = number % 65_535 + 1 if qos else 0
            data = encode(Publish(topic, payload, qos, retain, False, packet_id, terms), self.level)
            parts.append(data)
            held += len(data)
            if held > PIECE:
                self.say(b"".join(parts))
                parts, held = [], 0
                if self.sock is None:
                    return
        self.say(b"".join(parts))

    def half(self, size: int, count: int) -> None:
        """Begin a packet and do not end it, on several connections one after the other."""
        for _ in range(count):
            whole = encode(Publish(b"half", b"h" * max(size, 10), 1, packet_id=5), self.level)
            self.say_half(whole[:-5])
            if count > 1:
                self.again()

    def again(self) -> None:
        """Log in anew with what was said last."""
        self.close()
        if self._last is not None:
            super().do("connect", self._last)

    def do(self, act: str, values: dict[str, Value]) -> None:
        """Do one step; a client that was disconnected comes back first."""
        if act == "connect":
            self._last = {**values, "count": 1}
        elif self.sock is None:
            self.again()
        if self.sock is not None or act == "connect":
            super().do(act, values)

    def acknowledge(self, kind: int, code: int, count: int) -> None:
        """Answer what came."""
        for packet_id, qos in self._deliveries[:count]:
            answer = kind if qos == 2 else 4
            self._packet(Ack(answer, packet_id, code if answer < 6 else 0))
        del self._deliveries[:count]

    def answer_nothing(self, kind: int, count: int) -> None:
        """Answer what was never sent."""
        for number in range(count):
            self._packet(Ack(kind, number % 65_535 + 1))

    def ping(self, count: int) -> None:
        """Ask for signs of life."""
        self.say(encode(Pingreq(), self.level) * count)

    def leave(self, code: int) -> None:
        """Disconnect, with or without the will."""
        self._packet(Disconnect(code))
        self.close()

    def _packet(self, packet: Packet) -> None:
        self.say(encode(packet, self.level))

    def heard(self, chunk: bytes) -> None:
        """Look for what needs an answer."""
        self.came += chunk
        start = 0
        try:
            while size := frame_at(self.came, start, len(self.came), 1 << 28):
                self._note(decode(self.came, start, size, self.level))
                start += size
        except ProtocolError:
            self.close()  # a topic alias of the router, for example: not looked at here
        self.came = self.came[start:]

    def _note(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            self.connected = True
        elif isinstance(packet, Publish) and packet.qos and len(self._deliveries) < HELD:
            self._deliveries.append((packet.packet_id, packet.qos))


def _connect(draw: random.Random) -> dict[str, Value]:
    return {
        "clean": draw.randrange(2) == 0,
        "expiry": draw.choice((0, 1, 0xFFFF_FFFF)),
        "window": draw.choice((1, 1, 65_535)),
        "aliases": draw.choice((0, 65_535)),
        "will": draw.choice((0, 0, 1, 60_000)),
        "notes": draw.choice((0, 0, 1_000, 120_000)),
        "level": draw.choice((4, 5, 5)),
        "count": draw.choice((1, 1, 1, 1, 20, 300)),
        "name": draw.choice((1, 1, 1_000)),
        "reads": draw.randrange(3) != 0,
    }


def _subscribe(draw: random.Random) -> dict[str, Value]:
    shape = draw.choice(SHAPES)
    return {
        "count": draw_count(draw),
        "shape": shape,
        "end": draw.choice(("", "", "/#", "/+")),
        "together": 1 if shape == "long" else draw.choice((1, 50, 1_000)),
        "qos": draw.randrange(3),
        "share": draw.choice(("", "", "one", "many")),
        "identifier": draw.choice((0, 268_435_455)),
    }


def _publish(draw: random.Random) -> dict[str, Value]:
    size = draw_size(draw)
    return {
        "count": min(draw_count(draw), 40_000_000 // (size + 1) + 3),
        "shape": draw.choice((*SHAPES, "cached")),
        "same": draw.randrange(3) == 0,
        "size": size,
        "qos": draw.randrange(3),
        "retain": draw.randrange(4) == 0,
        "notes": draw.choice((0, 0, 0, 1_000, 60_000)),
        "extra": draw.choice((0, 0, 0, 60_000)),
        "alias": draw.choice((0, 0, 256)),
    }


PLACES: Final = (
    "$queue/many",
    "$queue/large",
    "$browse/many",
    "$browse/large",
    "$queue/none",
    "$topic-endpoint/te/t/#",
)

WORDS: Final = Vocabulary(
    "connect",
    {
        "connect": (2, _connect),
        "subscribe": (
            6,
            _subscribe,
        ),
        "unsubscribe": (
            1,
            lambda draw: {
                "count": draw_count(draw),
                "shape": draw.choice(SHAPES),
                "end": draw.choice(("", "/#")),
            },
        ),
        "bind": (
            2,
            lambda draw: {
                "place": draw.choice(PLACES),
                "count": draw.choice((1, 30)),
                "selector": draw.choice(SELECTORS),
            },
        ),
        "publish": (6, _publish),
        "half": (2, lambda draw: {"size": draw_size(draw), "count": draw.choice((1, 1, 20))}),
        "acknowledge": (
            2,
            lambda draw: {
                "kind": draw.choice((5, 7)),
                "code": draw.choice((0, 0x80)),
                "count": draw_count(draw),
            },
        ),
        "answer_nothing": (
            1,
            lambda draw: {"kind": draw.choice((4, 5, 6, 7)), "count": draw_count(draw)},
        ),
        "ping": (1, lambda draw: {"count": draw_count(draw)}),
        "reading": (2, lambda draw: {"on": draw.randrange(2) == 0}),
        "pause": (1, lambda draw: {"tenths": draw.choice((1, 5, 12))}),
        "leave": (1, lambda draw: {"code": draw.choice((0, 4))}),
    },
)
