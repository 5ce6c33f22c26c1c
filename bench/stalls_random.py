"""Random sessions for bench.stalls: what clients may say, with extreme but legal values, as a seed draws it.

An attack is a row of `AMQP` or `MQTT`: its name, and a function that returns what the clients of one seed send, each
after its login.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any, Final

from vpnrouter import limits
from vpnrouter.wire.amqp import frames, types
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, RawMap, Symbol
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Packet,
    Pingreq,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties

SEEDS: Final = 4
"""Sessions of each protocol, by seeds from 1 on."""

FRAMES: Final = 500
"""Frames or packets of one session."""

NUMBERS: Final = (0, 1, 2, 255, 256, 65_535, 0x7FFF_FFFE, 0x8000_0000, 0xFFFF_FFFF)
NAMES: Final = ("a", "a/b", "a/*/c", "a/>", "x" * 200, "/".join("abcdefgh" * 10), "q/" + "z" * 100)
FILTERS: Final = ("a/b", "a/+/c", "a/#", "#", "+/+/+/#", "$share/g/a/#", "/".join(["+"] * 60))
CHANNELS: Final = 4
HANDLES: Final = 200
ROOM: Final = 100_000

HELD: Final = RawMap(
    types.write(
        {struct.pack(">Q", number): Described(0x24, []) for number in range(3_000)}  # accepted
    )
)
"""Deliveries that an attach says are not settled."""


def value(draws: random.Random, depth: int = 0) -> object:
    """Any value, small or large."""
    kind = draws.randrange(8 if depth < 3 else 5)
    if kind == 0:
        return draws.choice(NUMBERS)
    if kind == 1:
        return "s" * draws.choice((0, 1, 100) if depth else (0, 1, 100, 20_000))
    if kind == 2:
        return bytes(draws.choice((0, 8) if depth else (0, 8, 30_000)))
    if kind == 3:
        return Symbol("sym")
    if kind == 4:
        return None
    count = draws.choice((0, 1, 3, 40, 600)) if depth == 0 else draws.choice((0, 2, 5))
    inner = [value(draws, depth + 1) for _ in range(count)]
    if kind == 5:
        return inner
    if kind == 6:
        return {f"k{number}": one for number, one in enumerate(inner)}
    return Described(draws.choice((Symbol("d"), 77)), inner)


def address(draws: random.Random) -> str | None:
    """Where to, mostly something that is there."""
    name = draws.choice(NAMES)
    return draws.choice((f"topic://{name}", "queue://q", "queue://many", f"queue://{name}", None))


def state(draws: random.Random) -> object:
    """What became of a delivery."""
    return draws.choice((Accepted(), Released(), Rejected(), Modified(True, True), None))


def attach(draws: random.Random, handle: int) -> Attach:
    """A link of any kind."""
    wish: dict[object, object] = {Symbol("jms-selector"): " OR ".join(["a = 1"] * 300)}
    local: dict[object, object] = {Symbol("no-local"): value(draws)}
    filters = draws.choice((None, None, wish, local))
    shared: list[object] = [Symbol("topic"), Symbol("shared")]
    source = Source(
        address(draws),
        durable=draws.choice((0, 0, 2)),
        dynamic=draws.random() < 0.1,
        distribution_mode=draws.choice((None, "copy")),
        filter=filters,
        capabilities=draws.choice((None, shared)),
    )
    held = draws.choice((None, None, HELD))
    return Attach(
        f"l{draws.randrange(50)}",
        handle,
        draws.random() < 0.5,
        draws.randrange(3),
        draws.randrange(2),
        source,
        Target(address(draws), dynamic=draws.random() < 0.1),
        held,
        initial_delivery_count=draws.choice(NUMBERS),
        properties={Symbol("p"): value(draws)},
    )


def body(draws: random.Random) -> bytes:
    """A message."""
    kind = draws.randrange(3)
    pairs: dict[object, object] = {
        f"k{number}": value(draws, 3) for number in range(draws.choice((0, 5, 900)))
    }
    sections = b"\x00\x53\x74" + types.write(pairs) if pairs else b""
    if kind == 0:
        sections += b"\x00\x53\x75" + types.write(bytes(draws.choice((0, 64, 60_000))))
    elif kind == 1:
        sections += b"\x00\x53\x77" + types.write(value(draws))
    else:
        sections += (b"\x00\x53\x75" + types.write(b"x")) * draws.choice((1, 1_000))
    return sections[:ROOM]


def amqp_frame(draws: random.Random) -> bytes:
    """One frame of a session."""
    channel = draws.randrange(CHANNELS)
    handle = draws.randrange(HANDLES)
    kind = draws.randrange(12)
    packet: Any
    if kind < 3:
        packet = attach(draws, handle)
    elif kind < 4:
        packet = Detach(handle, draws.random() < 0.5)
    elif kind < 6:
        first, room, following, far = (draws.choice(NUMBERS) for _ in range(4))
        packet = Flow(first, room, following, far, drain=draws.random() < 0.2)
        if draws.random() < 0.7:
            credit = draws.choice(NUMBERS)
            packet = packet._replace(handle=handle, delivery_count=0, link_credit=credit)
    elif kind < 8:
        first = draws.choice(NUMBERS)
        width = draws.choice((0, 5, 10_000, 0x7FFF_FFFE))
        role, settled = draws.random() < 0.5, draws.random() < 0.7
        last = (first + width) & 0xFFFF_FFFF
        packet = Disposition(role, first, last, settled, state(draws))
    else:
        number = draws.randrange(1 << 16)
        settled = draws.random() < 0.5
        packet = Transfer(handle, number, struct.pack(">I", number), 0, settled)
        return frames.encode(packet, channel, payload=body(draws))
    return frames.encode(packet, channel)[: limits.AMQP_FRAME_BYTES]


def amqp_session(seed: int) -> list[bytes]:
    """What one client of AMQP sends behind `begin` of its first session."""
    draws = random.Random(seed)
    begins = [
        frames.encode(Begin(None, 0, draws.choice((1, 1_000, 1 << 30)), 1 << 30), channel)
        for channel in range(1, CHANNELS)
    ]
    return begins + [amqp_frame(draws) for _ in range(FRAMES)]


def properties(draws: random.Random) -> Properties:
    """Some, many, or none."""
    count = draws.choice((0, 0, 3, 1_000))
    pairs = [(f"k{number}", "v" * draws.choice((0, 10, 50))) for number in range(count)]
    return Properties(
        user_properties=pairs,
        content_type=draws.choice((None, "text/plain")),
        response_topic=draws.choice((None, "a/b")),
        correlation_data=draws.choice((None, bytes(1_000))),
        message_expiry_interval=draws.choice((None, 0xFFFF_FFFF)),
    )


def mqtt_packet(draws: random.Random, number: int) -> Packet:
    """One packet."""
    kind = draws.randrange(8)
    if kind < 4:
        topic = draws.choice(
            ("a/b", "a/x/c", "/".join("abcdefgh" * 10), f"n/{draws.randrange(100_000)}", "t" * 200)
        ).encode()
        qos = draws.randrange(3)
        return Publish(
            topic,
            bytes(draws.choice((0, 10, 5_000))),
            qos,
            draws.random() < 0.2,
            packet_id=number if qos else 0,
            properties=properties(draws),
        )
    count = draws.choice((1, 1, 5, 300, 4_000))
    names = [
        draws.choice(FILTERS) if draws.random() < 0.3 else f"f/{draws.randrange(5_000)}/+/x"
        for _ in range(count)
    ]
    if kind < 6:
        wishes = [("selector", " OR ".join(["a = 'b'"] * draws.choice((1, 700))))]
        some = Properties(user_properties=wishes if draws.random() < 0.5 else None)
        return Subscribe(number, [SubscriptionRequest(name, 1) for name in names], some)
    if kind < 7:
        return Unsubscribe(number, names)
    return Pingreq()


def mqtt_session(seed: int) -> list[bytes]:
    """What one client of MQTT 5 sends behind its login."""
    draws = random.Random(seed)
    return [encode(mqtt_packet(draws, number % 65_000 + 1), 5) for number in range(FRAMES // 2)]


def sessions(make: Callable[[int], list[bytes]]) -> list[list[bytes]]:
    """The sessions of all seeds."""
    return [make(seed) for seed in range(1, SEEDS + 1)]
