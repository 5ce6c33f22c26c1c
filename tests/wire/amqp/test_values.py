"""How many values of AMQP are read out of one place: what a frame costs is bounded by them, and by its bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import frames, performatives, types
from vpnrouter.wire.amqp.conditions import DECODE_ERROR, INVALID_FIELD
from vpnrouter.wire.amqp.performatives import Accepted, Attach, Flow, Open, SaslInit, Source
from vpnrouter.wire.amqp.types import Budget, Described, MapWalk, RawMap, Symbol, Typed, write


def compound(code: int, count: int, body: bytes) -> bytes:
    """A list, a map or an array in its long form, sound or not."""
    return bytes((code,)) + struct.pack(">II", len(body) + 4, count) + body


def array(count: int, constructor: bytes, items: bytes) -> bytes:
    """An array of so many items."""
    return compound(0xF0, count, constructor + items)


MOST = limits.AMQP_VALUES

TOO_MANY: dict[str, bytes] = {
    "a list": compound(0xD0, MOST, b"\x40" * MOST),
    "a map": compound(0xD1, MOST, b"\x55\x07" * MOST),
    "empty lists": compound(0xD0, MOST, b"\x45" * MOST),
    "lists of one": compound(0xD0, MOST // 2, b"\xc0\x02\x01\x40" * (MOST // 2)),
    "described values": compound(0xD0, MOST // 3 + 1, b"\x00\x40\x40" * (MOST // 3 + 1)),
    "an array": array(MOST, b"\x50", bytes(MOST)),
    "an array with a descriptor": array(MOST // 2, b"\x00\x53\x01\x50", bytes(MOST // 2)),
    "an array with many descriptors": array(
        MOST // 30, b"\x00\x40" * 29 + b"\x50", bytes(MOST // 30)
    ),
    "arrays of arrays": array(MOST // 3 + 1, b"\xe0", b"\x04\x02\x50\x01\x02" * (MOST // 3 + 1)),
}
"""Values that are some more than may be, by what they are made of."""


@pytest.mark.parametrize("name", TOO_MANY)
def test_values_are_counted_wherever_they_stand(name: str) -> None:
    """Each of them is one error, and no more are read than there may be."""
    raw = TOO_MANY[name]
    budget = Budget()
    with pytest.raises(ProtocolError, match="more than 2,048 values in one place") as raised:
        types.read(raw, 0, len(raw), 0, budget)
    assert raised.value.reason_code == DECODE_ERROR
    assert types.after(raw, 0, len(raw)) == len(raw)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (None, 1),
        ("a" * 100_000, 1),
        (b"a" * 100_000, 1),
        ([1, [2, 3], {"a": None}], 8),
        (Described(Symbol("x"), [1]), 4),
        ({"a": Described(5, "b"), "c": "d"}, 7),
        (Typed("uuid", bytes(16)), 1),
    ],
)
def test_what_a_value_counts_for(value: Any, count: int) -> None:
    """One for each value in it, a descriptor and what it describes, whatever their bytes."""
    raw = write(value)
    budget = Budget()
    types.read(raw, 0, len(raw), 0, budget)
    assert budget.spent == count


def test_as_many_values_as_may_be() -> None:
    """The bound itself is read."""
    raw = compound(0xD0, MOST - 1, b"\x40" * (MOST - 1))
    assert len(types.read(raw, 0, len(raw))[0]) == MOST - 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("packet", "most"),
    [
        (Open("c", properties={Symbol(str(number)): number for number in range(100)}), 256),
        (SaslInit("PLAIN", b"\0a\0b"), 8),
        (Flow(0, 1, 0, 1), 16),
        (Attach("l", 0, False, source=Source("a", filter={Symbol("s"): Described(1, "x")})), 32),
    ],
)
def test_what_clients_send_is_far_below(packet: Any, most: int) -> None:
    """Frames of the usual kind, with room to spare."""
    raw = frames.encode(packet)
    budget = Budget(limits.AMQP_LOGIN_VALUES)
    assert frames.decode(raw, 0, len(raw), budget).performative == packet
    assert budget.spent <= most


WRONG_TYPES: list[tuple[str, int, bytes]] = [
    ("flow properties", 0x13, b"\x43\x43\x43\x43" + b"\x40" * 6 + TOO_MANY["empty lists"]),
    ("open properties", 0x10, b"\xa1\x01c" + b"\x40" * 8 + TOO_MANY["a list"]),
    ("open hostname", 0x10, b"\xa1\x01c" + TOO_MANY["an array"]),
    ("sasl-init mechanism", 0x41, TOO_MANY["a map"]),
    ("transfer delivery_tag", 0x14, b"\x43\x43" + TOO_MANY["described values"]),
]
"""Fields that hold a large value of another type, by their descriptors, with the fields before them."""


@pytest.mark.parametrize(("name", "code", "fields"), WRONG_TYPES)
def test_types_are_looked_at_first(name: str, code: int, fields: bytes) -> None:
    """What a field may not hold is not read: the error is about its type, and nearly nothing is counted."""
    count = performatives.SHAPES[code].names.index(name.split()[1]) + 1
    raw = b"\x00\x53" + bytes((code,)) + compound(0xD0, count, fields)
    budget = Budget()
    with pytest.raises(
        ProtocolError, match=f"{name} has to be of the type".replace(" ", ":list ", 1)
    ) as raised:
        performatives.read(raw, 0, len(raw), 0, budget)
    assert raised.value.reason_code == INVALID_FIELD
    assert budget.spent < 10


def test_deliveries_are_read_one_by_one() -> None:
    """What an attach says of them does not count, however many they are."""
    held: dict[object, object] = {b"%d" % number: Described(0x24, []) for number in range(5_000)}
    raw = performatives.write(Attach("l", 0, False, unsettled=held))
    budget = Budget()
    packet, _ = performatives.read(raw, 0, len(raw), 0, budget)
    assert budget.spent < 10
    walk = MapWalk(packet.unsettled)
    found: dict[object, object] = {}
    while walk.next():
        found[walk.key] = performatives.read(walk.data, walk.value, walk.end)[0]
    assert found == dict.fromkeys(held, Accepted())


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (compound(0xD1, 1, b"\x40"), "a key without a value"),
        (compound(0xD1, 2, b"\x45\x40"), None),
        (compound(0xD1, 2, b"\xc0\x01\x00\x40"), "a compound key"),
        (compound(0xD1, 2, b"\x00\x40\x40\x40"), "a compound key"),
        (compound(0xD1, 2, b"\x40"), "a value is due"),
        (compound(0xD1, 2, b"\x40\x40\x40"), "values end before"),
        (compound(0xD1, 2, b"\xa0\x05a\x40"), "longer than what holds it"),
    ],
)
def test_entries_that_are_none(raw: bytes, why: str | None) -> None:
    """They are refused where the walk comes to them."""
    if why is None:
        walk = MapWalk(RawMap(raw))
        assert walk.next()
        assert not walk.next()
        return
    with pytest.raises(ProtocolError, match=why):  # noqa: PT012 - it is refused at the entry or behind the last
        walk = MapWalk(RawMap(raw))
        while walk.next():
            pass
