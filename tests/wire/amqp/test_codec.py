"""AMQP 1.0: values, composite types, frames and sections, read and written."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import frames, performatives, sections, types
from vpnrouter.wire.amqp.conditions import CONDITIONS, DECODE_ERROR, FRAMING_ERROR, INVALID_FIELD
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Coordinator,
    Disposition,
    Error,
    Flow,
    Modified,
    Open,
    SaslMechanisms,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.transfers import PlainTransfer
from vpnrouter.wire.amqp.types import Described, RawMap, Symbol, Typed

VALUES: list[tuple[str, Any, str]] = [
    ("40", None, "*"),
    ("41", True, "boolean"),
    ("42", False, "boolean"),
    ("50 ff", 255, "ubyte"),
    ("60 ffff", 65_535, "ushort"),
    ("43", 0, "uint"),
    ("52 07", 7, "uint"),
    ("70 00000100", 256, "uint"),
    ("44", 0, "ulong"),
    ("53 ff", 255, "ulong"),
    ("80 ffffffffffffffff", 2**64 - 1, "ulong"),
    ("51 80", -128, "byte"),
    ("61 8000", -32_768, "short"),
    ("54 ff", -1, "int"),
    ("71 ffffff7f", -129, "int"),
    ("55 80", -128, "long"),
    ("81 8000000000000000", -(2**63), "long"),
    ("72 3fc00000", 1.5, "float"),
    ("82 3ff8000000000000", 1.5, "double"),
    ("a0 02 00ff", b"\x00\xff", "binary"),
    ("a1 03 c3a471", "äq", "string"),
    ("a3 01 71", Symbol("q"), "symbol"),
    ("45", [], "list"),
    ("c0 04 02 41 a0 00", [True, b""], "list"),
    ("c1 05 02 a1 01 61 40", {"a": None}, "map"),
    ("00 a3 01 78 55 05", Described(Symbol("x"), 5), "*"),
    ("83 ffffffffffffffff", Typed("timestamp", -1), "*"),
    ("73 0001f600", Typed("char", b"\x00\x01\xf6\x00"), "*"),
    ("98" + "ab" * 16, Typed("uuid", b"\xab" * 16), "*"),
]


@pytest.mark.parametrize(("data", "value", "kind"), VALUES)
def test_value(data: str, value: Any, kind: str) -> None:
    """The shortest form of each type is written, and read."""
    raw = bytes.fromhex(data)
    assert types.write(value, kind) == raw
    found, end = types.read(raw + b"\x40", 0, len(raw) + 1)
    assert (found, type(found), end) == (value, type(value), len(raw))
    assert types.after(raw + b"\x40", 0, len(raw) + 1) == len(raw)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("56 01", True),
        ("56 00", False),
        ("70 00000000", 0),
        ("80 0000000000000005", 5),
        ("71 ffffffff", -1),
        ("b0 00000001 61", b"a"),
        ("b1 00000001 61", "a"),
        ("b3 00000001 61", Symbol("a")),
        ("c0 01 00", []),
        ("d0 00000005 00000001 41", [True]),
        ("d1 00000006 00000002 41 42", {True: False}),
        ("e0 04 02 50 0102", [1, 2]),
        ("f0 00000009 00000002 a3 01 61 01 62", [Symbol("a"), Symbol("b")]),
        ("e0 06 02 00 53 24 50 07", None),
        ("e0 06 01 00 53 24 50 07", [Described(0x24, 7)]),
        ("e0 02 00 71", []),
    ],
)
def test_longer_forms(data: str, value: Any) -> None:
    """What peers may write otherwise is read."""
    raw = bytes.fromhex(data)
    if value is None:
        with pytest.raises(ProtocolError):
            types.read(raw, 0, len(raw))
        return
    assert types.read(raw, 0, len(raw)) == (value, len(raw))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "a value is due"),
        ("3f", "no format code"),
        ("57", "no format code"),
        ("56 02", "no boolean"),
        ("a1 01 ff", "not well-formed UTF-8"),
        ("a3 01 ff", "not ASCII"),
        ("c0 02 05 40", "5 values cannot stand in 1 bytes"),
        ("c0 03 01 40 40", "values end before"),
        ("c1 02 01 40", "a key without a value"),
        ("c1 05 02 c0 01 00 40", "a compound key"),
        # As many nulls as fit the count, and no byte for any of them.
        ("f0 00000005 ffffffff 40", "4294967295 values cannot stand in 0 bytes"),
        ("e0 03 01 3f 00", "no format code"),
        ("e0 01 00", "an array without a format code"),
        ("0040" * 40 + "40", f"more than {limits.AMQP_DEPTH} deep"),
        ("00 00 40 40 40", "a descriptor is a simple value"),
        ("00 c0 01 00 40", "a descriptor is a simple value"),
        ("e0 07 01 00 c0 01 00 50 07", "a descriptor is a simple value"),
        ("c00101" * 40, "cut off|longer|cannot stand"),
        ("e0 43 01" + "0040" * 33, f"more than {limits.AMQP_DEPTH} deep"),
    ],
)
def test_no_value(data: str, why: str) -> None:
    """Each breach of the type system is the same error."""
    raw = bytes.fromhex(data)
    with pytest.raises(ProtocolError, match=why) as raised:
        types.read(raw, 0, len(raw))
    assert raised.value.reason_code == DECODE_ERROR


def test_nested_lists_are_bounded() -> None:
    """One step too far."""
    raw = b"\x45"
    for depth in range(limits.AMQP_DEPTH + 1):
        inner = len(raw)
        assert types.read(raw, 0, inner)[1] == inner, depth
        raw = b"\xd0" + struct.pack(">II", inner + 4, 1) + raw
    with pytest.raises(ProtocolError, match="deep"):
        types.read(raw, 0, len(raw))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (256, "ubyte"),
        (-1, "uint"),
        (2**32, "uint"),
        (2**63, "long"),
        (1, "nonsense"),
        (object(), "*"),
    ],
)
def test_what_no_type_holds_is_not_written(value: object, kind: str) -> None:
    """The caller is told."""
    with pytest.raises(ValueError, match=r"fit|no AMQP value"):
        types.write(value, kind)


PERFORMATIVES: list[tuple[str, Any]] = [
    ("00 53 10 c0 04 01 a1 01 63", Open("c")),
    ("00 53 11 c0 07 04 40 43 52 0a 52 0a", Begin(None, 0, 10, 10)),
    ("00 53 24 45", Accepted()),
    ("00 53 27 c0 03 02 40 41", Modified(undeliverable_here=True)),
    (
        "00 53 15 c0 0a 05 41 43 52 63 41 00 53 24 45",
        Disposition(True, 0, 99, True, Accepted()),
    ),
    (
        "00 53 18 c0 11 01 00 53 1d c0 0b 01 a3 08" + b"not-here".hex(),
        Close(Error("not-here")),
    ),
    (
        "00 53 40 c0 14 01 f0 0000000e 00000001 b3 00000005" + b"PLAIN".hex(),
        SaslMechanisms([Symbol("PLAIN")]),
    ),
    ("00 53 14 c0 09 05 43 52 05 a0 01 01 43 41", Transfer(0, 5, b"\x01", 0, True)),
]


@pytest.mark.parametrize(("data", "value"), PERFORMATIVES)
def test_performative(data: str, value: Any) -> None:
    """Fields at their defaults are left out at the end, and null between."""
    raw = bytes.fromhex(data)
    assert performatives.write(value) == raw
    found, end = performatives.read(raw, 0, len(raw))
    assert (found, type(found), end) == (value, type(value), len(raw))


def test_symbolic_descriptors() -> None:
    """They mean the same as numbers."""
    for shape in performatives.SHAPES.values():
        if shape.mandatory:
            continue
        raw = b"\x00" + types.write(Symbol(shape.symbol)) + b"\x45"
        found, _ = performatives.read(raw, 0, len(raw))
        assert isinstance(found, shape.make)
    raw = b"\x00\x80" + bytes(7) + b"\x24\x45"
    assert isinstance(performatives.read(raw, 0, len(raw))[0], Accepted)


@pytest.mark.parametrize(
    ("data", "why", "code"),
    [
        ("40", "no descriptor", DECODE_ERROR),
        ("00 53 10 45", "lacks container_id", INVALID_FIELD),
        ("00 53 10 c0 02 01 40", "lacks container_id", INVALID_FIELD),
        ("00 53 10 c0 03 01 52 05", "type string", INVALID_FIELD),
        ("00 53 10 a1 00", "no list", DECODE_ERROR),
        ("00 53 24 c0 02 01 40", "with 1 fields", DECODE_ERROR),
        ("00 53 18 c0 02 01 41", "no descriptor", DECODE_ERROR),
        ("00 53 40 c0 03 01 a1 00", "symbols", INVALID_FIELD),
        ("00 53 16 c0 03 01 43 40", "longer than its fields", DECODE_ERROR),
        ("00 53 16 c0 02 02 43", "cut off", DECODE_ERROR),
    ],
)
def test_no_performative(data: str, why: str, code: int) -> None:
    """Fields that are missing, too many, or of another type."""
    raw = bytes.fromhex(data)
    with pytest.raises(ProtocolError, match=why) as raised:
        performatives.read(raw, 0, len(raw))
    assert raised.value.reason_code == code
    assert code in CONDITIONS


def deep_state(depth: int) -> bytes:
    """Outcomes of transactions within one another."""
    state: Any = Accepted()
    for _ in range(depth):
        state = TransactionalState(b"", state)
    return performatives.write(state)


def test_states_within_states_are_bounded() -> None:
    """They are composite values within one another."""
    raw = deep_state(limits.AMQP_DEPTH - 1)
    performatives.read(raw, 0, len(raw))
    raw = deep_state(limits.AMQP_DEPTH)
    with pytest.raises(ProtocolError, match="deep"):
        performatives.read(raw, 0, len(raw))


NAMES = st.text(max_size=300)
SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=20).map(Symbol)
UINTS = st.integers(0, 2**32 - 1)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | NAMES
    | st.binary(max_size=300)
    | SYMBOLS
)
KEYS = NAMES | SYMBOLS
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.builds(Described, SYMBOLS, inner)
    ),
    max_leaves=20,
)
MAPS = st.none() | st.dictionaries(KEYS, NESTED, max_size=4)
RAW_MAPS = st.none() | st.dictionaries(KEYS, NESTED, max_size=4).map(types.write).map(RawMap)
LISTS = st.none() | st.lists(SYMBOLS, min_size=1, max_size=3)


def built(make: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values of a composite type with these fields."""
    return st.fixed_dictionaries(fields).map(lambda values: make(**values))


ERRORS = st.none() | built(Error, condition=SYMBOLS, description=st.none() | NAMES, info=MAPS)
STATES = st.sampled_from([None, Accepted()]) | built(
    Modified, delivery_failed=st.booleans(), message_annotations=MAPS
)
WINDOWS = {"incoming_window": UINTS, "next_outgoing_id": UINTS, "outgoing_window": UINTS}
ANY_FRAME = st.one_of(
    built(
        Open,
        container_id=NAMES,
        hostname=st.none() | NAMES,
        max_frame_size=UINTS,
        desired_capabilities=LISTS,
        properties=MAPS,
    ),
    built(Begin, remote_channel=st.none() | st.integers(0, 65_535), **WINDOWS, properties=MAPS),
    built(
        Attach,
        name=NAMES,
        handle=UINTS,
        role=st.booleans(),
        source=st.none() | built(Source, address=st.none() | NAMES, filter=MAPS, outcomes=LISTS),
        target=st.none() | built(Target, address=NAMES) | built(Coordinator, capabilities=LISTS),
        unsettled=RAW_MAPS,
    ),
    built(Flow, next_incoming_id=st.none() | UINTS, **WINDOWS, handle=UINTS, drain=st.booleans()),
    built(Transfer, handle=UINTS, delivery_id=UINTS, delivery_tag=st.binary(), state=STATES),
    built(
        Disposition,
        role=st.booleans(),
        first=UINTS,
        last=UINTS,
        settled=st.booleans(),
        state=STATES,
    ),
    built(Close, error=ERRORS),
)


def refused(take: Callable[[], object]) -> bool:
    """Whether bytes are refused, with a condition that the peer can be told. Any other exception is raised."""
    code = 0
    try:
        take()
    except ProtocolError as error:
        code = error.reason_code
    assert code == 0 or code in CONDITIONS
    return code != 0


@given(ANY_FRAME, st.integers(0, 65_535), st.binary(max_size=40), st.data())
def test_any_frame(performative: Any, channel: int, payload: bytes, data: st.DataObject) -> None:
    """What is written is read; cut at any byte it waits, and with one byte changed it is refused or something else."""
    raw = frames.encode(performative, channel, payload=payload)
    size = frames.frame_at(raw, 0, len(raw), 1 << 20)
    assert size == len(raw)
    found = frames.decode(raw, 0, size)
    assert found == frames.Frame(frames.AMQP, channel, performative, payload)
    assert type(found.performative) is type(performative)
    at = data.draw(st.integers(0, len(raw) - 1))
    assert frames.frame_at(raw, 0, at, 1 << 20) == 0
    changed = raw[:at] + bytes((data.draw(st.integers(0, 255)),)) + raw[at + 1 :]
    refused(lambda: frames.decode(changed, 0, frames.frame_at(changed, 0, len(changed), 1 << 20)))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """The one error, or a value; what is passed over ends where what is read does."""
    for pos in range(min(len(data), 3)):
        if not refused(lambda pos=pos: types.read(data, pos, len(data))):  # type: ignore[misc]
            _, end = types.read(data, pos, len(data))
            assert types.after(data, pos, len(data)) == end
    refused(lambda: performatives.read(b"\x00\x53" + data, 0, len(data) + 2))
    refused(lambda: sections.sections(data))


def test_frames() -> None:
    """Sizes and heads that no frame has; a longer head is passed over; an empty frame."""
    for data, why in (
        ("00000007 02000000", "a frame of 7 bytes"),
        ("00000010 05000000", "20 of head"),
        ("00000008 01000000", "4 of head"),
        ("00010001 02000000", "at most 65536"),
    ):
        with pytest.raises(ProtocolError, match=why) as raised:
            frames.frame_at(bytes.fromhex(data), 0, 8, 65_536)
        assert raised.value.reason_code == FRAMING_ERROR
    with pytest.raises(ProtocolError, match="type 2"):
        frames.decode(bytes.fromhex("00000008 02020000"), 0, 8)
    raw = bytes.fromhex("00000010 03 00 0007 ffffffff 00532445")
    assert frames.decode(raw, 0, 16) == frames.Frame(frames.AMQP, 7, Accepted(), b"")
    assert frames.decode(frames.EMPTY, 0, 8).performative is None
    # The channel of a SASL frame means nothing.
    assert frames.decode(bytes.fromhex("00000008 02010007"), 0, 8).channel == 0


def section(code: int, value: object) -> bytes:
    """One section."""
    return b"\x00\x53" + bytes((code,)) + types.write(value)


BODY = section(sections.DATA, b"x")


def test_sections() -> None:
    """Each with its place, in any of the forms of descriptors."""
    first = b"\x00" + types.write(Symbol("amqp:header:list")) + b"\x45"
    message = first + section(0x72, {Symbol("x-opt-a"): 1}) + BODY + BODY + section(0x78, {})
    found = sections.sections(message)
    assert [one.code for one in found] == [0x70, 0x72, 0x75, 0x75, 0x78]
    assert [message[one.start : one.end] for one in found[2:4]] == [BODY, BODY]
    assert found[-1].end == len(message)
    assert types.read(message, found[1].value, found[1].end)[0] == {"x-opt-a": 1}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (BODY + section(0x70, []), "behind"),
        (section(0x73, []) + section(0x73, []) + BODY, "behind"),
        (BODY + section(0x77, 1), "two kinds"),
        (section(0x77, 1) + section(0x77, 1), "behind"),
        (section(0x75, "text"), "is no binary"),
        (section(0x70, {}) + BODY, "is no list"),
        (section(0x79, []) + BODY, "no section"),
        (b"\x40", "no descriptor"),
        (BODY[:-1], "longer"),
    ],
)
def test_no_message(message: bytes, why: str) -> None:
    """What 3.2 forbids."""
    with pytest.raises(ProtocolError, match=why):
        sections.sections(message)


UNUSUAL = {"more": True, "rcv_settle_mode": 0, "state": Accepted(), "resume": True, "aborted": True}


@given(
    built(
        Transfer,
        handle=UINTS | st.integers(0, 300),
        delivery_id=UINTS | st.integers(0, 300),
        delivery_tag=st.binary(max_size=32),
        message_format=st.none() | UINTS,
        settled=st.sampled_from([None, False, True]),
        batchable=st.booleans(),
    ),
    st.integers(0, 65_535),
    st.binary(max_size=300),
    st.data(),
)
def test_plain_transfer(
    transfer: Transfer, channel: int, message: bytes, data: st.DataObject
) -> None:
    """It is read as `decode` reads it; one that is cut, or unusual, is left to that."""
    raw = b"\0" * 3 + frames.encode(transfer, channel, payload=message)
    plain = PlainTransfer()
    end = len(raw)
    assert plain.read(raw, 3, end, 65_536)
    found = transfer._replace(
        handle=plain.handle,
        delivery_id=plain.delivery_id,
        delivery_tag=raw[plain.tag : plain.tag_end],
        message_format=None if plain.message_format < 0 else plain.message_format,
    )
    assert found == transfer
    assert plain.settled == bool(transfer.settled)
    assert (plain.channel, plain.end, raw[plain.message : end]) == (channel, end, message)
    assert not plain.read(raw, 3, end, end - 4)
    assert not any(plain.read(raw, 3, cut, 65_536) for cut in range(3, end))
    name = data.draw(st.sampled_from(sorted(UNUSUAL)))
    unusual = frames.encode(transfer._replace(**{name: UNUSUAL[name]}), channel)
    assert not plain.read(unusual, 0, len(unusual), 65_536)
    # With one byte changed it is unusual, or sound.
    at = data.draw(st.integers(3, end - 1))
    changed = raw[:at] + bytes((data.draw(st.integers(0, 255)),)) + raw[at + 1 :]
    if plain.read(changed, 3, end, 65_536):
        frame = frames.decode(changed, 3, plain.end - 3)
        assert isinstance(frame.performative, Transfer)
        assert frame.performative.handle == plain.handle
        assert frame.payload == changed[plain.message : plain.end]
