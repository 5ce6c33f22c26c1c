"""Attacks by clients of AMQP 1.0 for bench.stalls: frames that cost much for their size, and floods of what is made.

An attack is a row of `ATTACKS`: its name, and a function that gets an `Attacker`.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import Final

from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Declare,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Received,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, RawMap, Symbol

WINDOW: Final = 1 << 30

ROOM: Final = 130_000
"""Bytes of the large value of a frame."""

SECOND: Final = 1
SETTLED: Final = 1

DATA: Final = b"\x00\x53\x75"
VALUE: Final = b"\x00\x53\x77"
APPLICATION: Final = b"\x00\x53\x74"


def compound(code: int, count: int, body: bytes) -> bytes:
    """A list, a map or an array in its long form, sound or not."""
    return bytes((code,)) + struct.pack(">II", len(body) + 4, count) + body


def empty_lists(room: int) -> bytes:
    """A list of empty lists."""
    return compound(0xD0, room, b"\x45" * room)


def descriptors(room: int) -> bytes:
    """An array of items of one byte, each with thirty descriptors."""
    count = room - 200
    return compound(0xF0, count, b"\x00\xa3\x02ab" * 30 + b"\x50" + bytes(count))


def nested(room: int) -> bytes:
    """Lists within one another, each with a few values."""
    value = b"\x45"
    for _ in range(25):
        value = compound(0xD0, 9, b"\x43" * 8 + value)
    return compound(0xD0, room // len(value), value * (room // len(value)))


def pairs(room: int) -> bytes:
    """A map of numbers."""
    body = b"".join([b"\x70" + struct.pack(">I", number) + b"\x45" for number in range(room // 6)])
    return compound(0xD1, room // 6 * 2, body)


SHAPES: Final = {"lists": empty_lists, "descriptors": descriptors, "nested": nested, "pairs": pairs}
"""Values of so many bytes, by what they are made of."""


def raw_frame(
    code: int, fields: list[bytes], *, channel: int = 0, kind: int = frames.AMQP
) -> bytes:
    """A frame of fields that are written already, in the long form of a list."""
    body = b"\x00\x53" + bytes((code,)) + compound(0xD0, len(fields), b"".join(fields))
    head = struct.pack(">IBBH", 8 + len(body), 2, kind, channel)
    return head + body


def flow_with(value: bytes) -> bytes:
    """A flow of the session whose properties are this value."""
    return raw_frame(0x13, [b"\x43"] * 4 + [b"\x40"] * 6 + [value])


def attach_with(value: bytes, handle: int) -> bytes:
    """An attach whose source has this value as its filter."""
    source = b"\x00\x53\x28" + compound(0xD0, 8, b"\xa1\x01a" + b"\x40" * 6 + value)
    name = types.write(f"v{handle}")
    fields = [name, types.write(handle, types.UINT), b"\x41", b"\x40", b"\x40", source]
    return raw_frame(0x12, fields)


def open_with(value: bytes) -> bytes:
    """An open whose properties are this value."""
    return raw_frame(0x10, [b"\xa1\x01c"] + [b"\x40"] * 8 + [value])


class Attacker:
    """Makes connections, from where attacks come from. Each part of an attack lasts for `seconds` at most."""

    def __init__(self, connect: Callable[[], socket.socket], seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        self.until = time.monotonic() + seconds

    @property
    def on(self) -> bool:
        """Whether the attack still lasts."""
        return time.monotonic() < self.until

    def stranger(self, data: bytes) -> None:
        """Send bytes on a connection of their own, which is closed then."""
        with contextlib.suppress(OSError), self._connect() as sock:
            sock.sendall(data)
            sock.settimeout(0.05)
            while sock.recv(65_536):
                pass

    def session(self, name: str) -> socket.socket:
        """A client that is logged in and has a session."""
        sock = self._connect()
        hello = frames.encode(Open(name, max_frame_size=131_072))
        begin = frames.encode(Begin(None, 0, WINDOW, WINDOW))
        sock.sendall(AMQP_HEADER + hello + begin)
        drain(sock, 0.1)
        return sock

    def say(self, sock: socket.socket, pieces: Iterable[bytes]) -> None:
        """Send, and throw away what comes, for as long as a part of an attack lasts."""
        until = time.monotonic() + self._seconds
        sock.settimeout(0.0)
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                view = memoryview(piece)
                while view and time.monotonic() < until:
                    with contextlib.suppress(BlockingIOError):
                        view = view[sock.send(view) :]
                    with contextlib.suppress(BlockingIOError):
                        if not sock.recv(1 << 20):
                            return
                    if view:
                        time.sleep(0.0005)
                if view:
                    return


def drain(sock: socket.socket, quiet_s: float) -> bytes:
    """Read until nothing more comes."""
    sock.settimeout(quiet_s)
    came = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while data := sock.recv(1 << 20):
            came += data
    return came


def sender(handle: int, address: str | None, **more: object) -> bytes:
    """An attach of a link over which the client sends."""
    packet = Attach(
        f"out-{handle}",
        handle,
        False,
        source=Source("here"),
        target=Target(address),
        initial_delivery_count=0,
    )
    return frames.encode(packet._replace(**more))  # type: ignore[arg-type]


def receiver(handle: int, source: Source, **more: object) -> bytes:
    """An attach of a link over which the client is sent messages."""
    name = str(more.pop("name", f"in-{handle}"))
    packet = Attach(name, handle, True, source=source, target=Target("here"))
    return frames.encode(packet._replace(**more))  # type: ignore[arg-type]


def credit(handle: int, count: int) -> bytes:
    """A flow with credit for one link."""
    return frames.encode(Flow(0, WINDOW, 0, WINDOW, handle, 0, count))


def message(handle: int, number: int, body: bytes, **more: object) -> bytes:
    """A transfer in one frame."""
    tag = struct.pack(">I", number)
    packet = Transfer(handle, number, tag, 0)._replace(**more)  # type: ignore[arg-type]
    return frames.encode(packet, payload=body)


def fill(attacker: Attacker, queue: str, count: int, body: bytes) -> None:
    """Put messages into a queue."""
    sock = attacker.session("fill")
    told = [message(0, number, body, settled=False) for number in range(count)]
    attacker.say(sock, [sender(0, f"queue://{queue}"), *told])
    drain(sock, 0.5)


# -- attacks -------------------------------------------------------------------------------------------


def unknown_ids(attacker: Attacker) -> None:
    """Dispositions for ids that nobody has, with many tags on links that settle second."""
    sock = attacker.session("ids")
    count = 8
    attacker.say(
        sock, [sender(each, "topic://nobody", rcv_settle_mode=SECOND) for each in range(count)]
    )
    told = [message(number % count, number, DATA + b"\xa0\x00") for number in range(40_000)]
    attacker.say(sock, told)
    attacker.say(sock, [frames.encode(Disposition(False, 1 << 20, (1 << 31) + 5, True))] * 100_000)


def values(where: Callable[[bytes], bytes], room: int) -> Callable[[Attacker], None]:
    """Frames that are made of many small values."""

    def run(attacker: Attacker) -> None:
        number = 0
        while attacker.on:
            for make in SHAPES.values():
                number += 1
                with contextlib.suppress(OSError):
                    sock = attacker.session(f"values-{number}")
                    attacker.say(sock, [where(make(room))] * 20)

    return run


def before_login(data: Callable[[bytes], bytes], head: bytes) -> Callable[[Attacker], None]:
    """Connections one after the other, whose first frame is made of many small values."""

    def run(attacker: Attacker) -> None:
        while attacker.on:
            for make in SHAPES.values():
                attacker.stranger(head + data(make(7_900)))

    return run


def sasl_with(value: bytes) -> bytes:
    """A sasl-init whose hostname is this value."""
    return raw_frame(0x41, [b"\xa3\x05PLAIN", b"\x40", value], kind=frames.SASL)


def wide(state: object, *, settled: bool = True) -> Callable[[Attacker], None]:
    """Dispositions over half of all ids, with many deliveries that are not settled."""

    def run(attacker: Attacker) -> None:
        fill(attacker, "q", 9_000, DATA + b"\xa0\x08abcdefgh")
        sock = attacker.session("wide")
        attacker.say(sock, [receiver(0, Source("queue://q")), credit(0, 100_000)])
        drain(sock, 0.5)
        one = frames.encode(Disposition(True, 0, 0x7FFF_FFFE, settled, state))
        attacker.say(sock, [one] * 2_000)

    return run


def selectors(attacker: Attacker) -> None:
    """Attaches with many selectors, and with one as long as may be."""
    sock = attacker.session("selectors")
    long = " OR ".join(["a = 'b'"] * 700)
    many: dict[object, object] = {
        Symbol(f"s{number}"): Described(0x0000_468C_0000_0004, f"a{number} = 1 OR b LIKE '%x'")
        for number in range(1_500)
    }
    told: list[bytes] = []
    for number in range(40):
        one: dict[object, object] = {Symbol("jms-selector"): long + f" OR n = {number}"}
        filters = many if number & 1 else one
        told.append(receiver(number, Source("topic://s", filter=filters)))
        told.append(frames.encode(Detach(number, True)))
    attacker.say(sock, told * 50)


def links(source: Source, count: int = 4_000) -> Callable[[Attacker], None]:
    """Flows of a session with thousands of links."""

    def run(attacker: Attacker) -> None:
        sock = attacker.session("links")
        attacker.say(
            sock, [receiver(each, source, snd_settle_mode=SETTLED) for each in range(count)]
        )
        attacker.say(sock, [credit(each, 10) for each in range(count)])
        attacker.say(sock, [frames.encode(Flow(0, WINDOW, 0, WINDOW))] * 100_000)

    return run


def ending(source: Source, how: str, count: int = 4_000) -> Callable[[Attacker], None]:
    """Sessions with thousands of links that end, connections that are closed, or cut."""

    def run(attacker: Attacker) -> None:
        turn = 0
        while attacker.on:
            turn += 1
            sock = attacker.session(f"ending-{turn}")
            told = [receiver(each, source, snd_settle_mode=SETTLED) for each in range(count)]
            attacker.say(sock, told)
            drain(sock, 0.3)
            if how != "cut":
                attacker.say(sock, [frames.encode(End() if how == "end" else Close())])
                drain(sock, 0.3)
            sock.close()
            time.sleep(0.1)

    return run


def flood(make: Callable[[int], bytes], *, detach: bool = True) -> Callable[[Attacker], None]:
    """Attaches of links one after the other, many connections in turn."""

    def run(attacker: Attacker) -> None:
        warm_routes(attacker)
        turn = 0
        while attacker.on:
            turn += 1
            with contextlib.suppress(OSError):
                sock = attacker.session(f"flood-{turn}")
                told: list[bytes] = []
                for number in range(500):
                    told.append(make(turn * 500 + number))
                    if detach:
                        told.append(frames.encode(Detach((turn * 500 + number) % 4_000, True)))
                attacker.say(sock, told)
                drain(sock, 0.05)
                sock.close()

    return run


def warm_routes(attacker: Attacker) -> None:
    """Have the message VPN know the routes of many topics."""
    sock = attacker.session("routes")
    told = [sender(0, None)]
    for number in range(20_000):
        to = performatives.write(performatives.MessageProperties(to=f"topic://r/{number}"))
        told.append(message(0, number, to + DATA + b"\xa0\x00", settled=True))
    attacker.say(sock, told)


def durable(number: int) -> bytes:
    """A durable subscription of its own."""
    source = Source(f"topic://d/{number}/*", durable=2, expiry_policy="never")
    return receiver(number % 4_000, source, name=f"d{number}")


def shared(number: int) -> bytes:
    """A shared subscription of its own."""
    source = Source(f"topic://d/{number}/>", capabilities=[Symbol("topic"), Symbol("shared")])
    return receiver(number % 4_000, source, name=f"s{number}")


def dynamic(number: int) -> bytes:
    """A temporary queue."""
    return receiver(number % 4_000, Source(None, dynamic=True), name=f"t{number}")


def new_topic(number: int) -> bytes:
    """A link to a topic that is new."""
    return sender(number % 4_000, f"topic://new/{number}/x")


def tags(attacker: Attacker) -> None:
    """Attaches that name as many deliveries as fit into a frame."""
    fill(attacker, "q", 2_000, DATA + b"\xa0\x00")
    items: list[bytes] = []
    for number in range(9_000):
        items += [types.write(struct.pack(">Q", number)), performatives.write(Accepted())]
    held = RawMap(types.write_compound(items, 0xC1))
    sock = attacker.session("tags")
    told = [
        receiver(0, Source("queue://q"), unsettled=held),
        sender(1, "topic://a", rcv_settle_mode=SECOND, unsettled=held),
        frames.encode(Detach(0, False)),
        frames.encode(Detach(1, False)),
    ]
    attacker.say(sock, told * 500)


def transactions(attacker: Attacker) -> None:
    """Outcomes of many deliveries in one transaction, again and again."""
    fill(attacker, "q", 9_000, DATA + b"\xa0\x00")
    sock = attacker.session("transactions")
    control = Attach(
        "control", 1, False, source=Source("here"), target=Coordinator(), initial_delivery_count=0
    )
    attacker.say(sock, [receiver(0, Source("queue://q")), credit(0, 100_000)])
    attacker.say(sock, [frames.encode(control)])
    attacker.say(sock, [message(1, 0, VALUE + performatives.write(Declare()))])
    drain(sock, 0.5)
    state = TransactionalState((1).to_bytes(8, "big"), Accepted())
    one = frames.encode(Disposition(True, 0, 0x7FFF_FFFE, False, state))
    attacker.say(sock, [one] * 1_000)


def contents(body: bytes) -> Callable[[Attacker], None]:
    """Messages that are put into other terms for clients of MQTT, and that a selector looks at."""

    def run(attacker: Attacker) -> None:
        sock = attacker.session("reader")
        source = Source("topic://mqtt/x", filter={Symbol("jms-selector"): "never = 'so'"})
        attacker.say(sock, [receiver(0, source), credit(0, 1_000_000)])
        sock = attacker.session("contents")
        attacker.say(sock, [sender(0, "topic://mqtt/x")])
        attacker.say(sock, [message(0, number, body, settled=True) for number in range(500)])

    return run


def many_properties(count: int) -> bytes:
    """A message with so many application properties."""
    items: list[bytes] = []
    for number in range(count):
        items += [types.write(f"p{number}"), types.write(number)]
    return APPLICATION + types.write_compound(items, 0xC1) + DATA + b"\xa0\x00"


def looking(attacker: Attacker) -> None:
    """Browsers and consumers whose selectors match nothing, on a queue with many messages."""
    fill(attacker, "q", 9_000, many_properties(20))
    held = []
    for turn in range(20):
        sock = attacker.session(f"looking-{turn}")
        held.append(sock)
        told: list[bytes] = []
        for handle in range(20):
            wish: dict[object, object] = {Symbol("jms-selector"): f"p1 = 'none' AND n = {handle}"}
            mode = "copy" if handle & 1 else None
            source = Source("queue://q", filter=wish, distribution_mode=mode)
            told += [receiver(handle, source), credit(handle, 1_000_000)]
        attacker.say(sock, told)
    while attacker.on:
        time.sleep(0.1)


def choosing(attacker: Attacker) -> None:
    """Messages with a long property, for many links whose selectors have long patterns."""
    held = []
    for turn in range(12):
        sock = attacker.session(f"choosing-{turn}")
        held.append(sock)
        told: list[bytes] = []
        for handle in range(10):
            pattern = "a_" * 12 if handle & 1 else "a_" * 2_000
            text = f"p{turn * 10 + handle} = 1 OR a LIKE '%{pattern}c%'"
            source = Source("topic://choosing", filter={Symbol("jms-selector"): text})
            told += [receiver(handle, source), credit(handle, 1_000_000)]
        attacker.say(sock, told)
        drain(sock, 0.1)
    properties = types.write_compound([types.write("a"), types.write("a" * 65_000)], 0xC1)
    body = APPLICATION + properties + DATA + b"\xa0\x00"
    sock = attacker.session("chosen")
    told = [message(0, number, body, settled=bool(number & 1)) for number in range(50)]
    attacker.say(sock, [sender(0, "topic://choosing"), *told])
    while attacker.on:
        time.sleep(0.1)


def parts(attacker: Attacker) -> None:
    """Messages that come in parts of one byte."""
    sock = attacker.session("parts")
    attacker.say(sock, [sender(0, "topic://p")])
    first = frames.encode(Transfer(0, 0, b"t", 0, more=True), payload=DATA[:1])
    rest = frames.encode(Transfer(0, more=True), payload=b"x")
    attacker.say(sock, [first, rest * 200_000])


def empty(attacker: Attacker) -> None:
    """Frames that say nothing."""
    attacker.say(attacker.session("empty"), [frames.EMPTY * 100_000] * 20)


def sessions(attacker: Attacker) -> None:
    """Sessions that begin and end."""
    sock = attacker.session("sessions")
    both = b"".join(
        [
            frames.encode(Begin(None, 0, WINDOW, WINDOW), channel) + frames.encode(End(), channel)
            for channel in range(1, 256)
        ]
    )
    attacker.say(sock, [both] * 200)


def waiting(attacker: Attacker) -> None:
    """Small Direct messages that wait for credit, which comes at once then."""
    reader = attacker.session("waiting")
    count = 50
    source = Source("topic://w")
    attacker.say(reader, [receiver(each, source, snd_settle_mode=SETTLED) for each in range(count)])
    sock = attacker.session("waiting-source")
    told = [message(0, number, DATA + b"\xa0\x00", settled=True) for number in range(9_000)]
    attacker.say(sock, [sender(0, "topic://w"), *told])
    attacker.say(reader, [credit(each, 1_000_000) for each in range(count)])


ATTACKS: Final[dict[str, Callable[[Attacker], None]]] = {
    "amqp-ids": unknown_ids,
    "amqp-flow-values": values(flow_with, ROOM),
    "amqp-filters": values(lambda value: attach_with(value, 7), ROOM),
    "amqp-open": before_login(open_with, AMQP_HEADER),
    "amqp-sasl": before_login(sasl_with, SASL_HEADER),
    "amqp-wide": wide(Accepted()),
    "amqp-released": wide(Released()),
    "amqp-received": wide(Received(0, 0), settled=False),
    "amqp-selectors": selectors,
    "amqp-links": links(Source("topic://l")),
    "amqp-queue-links": links(Source("queue://many"), 900),
    "amqp-end": ending(Source("topic://l"), "end"),
    "amqp-close": ending(Source("topic://l"), "close"),
    "amqp-cut": ending(Source("topic://l"), "cut"),
    "amqp-cut-queues": ending(Source(None, dynamic=True), "cut"),
    "amqp-durable": flood(durable),
    "amqp-shared": flood(shared),
    "amqp-dynamic": flood(dynamic),
    "amqp-new-topics": flood(new_topic),
    "amqp-leaving": flood(dynamic, detach=False),
    "amqp-tags": tags,
    "amqp-transaction": transactions,
    "amqp-properties": contents(many_properties(4_000)),
    "amqp-body-lists": contents(VALUE + empty_lists(ROOM)),
    "amqp-body-nested": contents(VALUE + nested(ROOM)),
    "amqp-looking": looking,
    "amqp-choosing": choosing,
    "amqp-parts": parts,
    "amqp-empty": empty,
    "amqp-sessions": sessions,
    "amqp-waiting": waiting,
}
"""What an attack does, by its name."""
