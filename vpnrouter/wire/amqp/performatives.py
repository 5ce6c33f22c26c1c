"""Declares the composite types of AMQP (2.7, 2.8, 3.2, 3.4, 3.5, 4.5, 5.3) and reads and writes them by one table.

A class has the fields of its type in their order and with their defaults; one without a default is mandatory.
`SHAPES` adds the descriptors and the types of the fields. Those that are states of deliveries may be empty tuples:
compare them by class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import types
from vpnrouter.wire.amqp.conditions import DECODE_ERROR, INVALID_FIELD
from vpnrouter.wire.amqp.types import (
    ANY,
    ARRAY,
    BINARY,
    BOOLEAN,
    MAP,
    RAW_MAP,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UBYTE,
    UINT,
    ULONG,
    USHORT,
    Budget,
    Described,
    RawMap,
    Symbol,
)

Map = dict[object, object]

UINT_MAX: Final = 0xFFFF_FFFF
USHORT_MAX: Final = 0xFFFF


class Error(NamedTuple):
    """Why something ended (2.8.14)."""

    condition: str
    description: str | None = None
    info: Map | None = None


# -- the performatives (2.7) -------------------------------------------------------------------------


class Open(NamedTuple):
    """Negotiates the connection. `idle_time_out` in milliseconds, 0 for none."""

    container_id: str
    hostname: str | None = None
    max_frame_size: int = UINT_MAX
    channel_max: int = USHORT_MAX
    idle_time_out: int = 0
    outgoing_locales: list[object] | None = None
    incoming_locales: list[object] | None = None
    offered_capabilities: list[object] | None = None
    desired_capabilities: list[object] | None = None
    properties: Map | None = None


class Begin(NamedTuple):
    """Begins a session. Without `remote_channel` the peer is asked for one, with it this is the answer."""

    remote_channel: int | None
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int = UINT_MAX
    offered_capabilities: list[object] | None = None
    desired_capabilities: list[object] | None = None
    properties: Map | None = None


class Attach(NamedTuple):
    """Attaches a link. `role` is true where the sender of this frame receives. `unsettled` is read as a `RawMap`."""

    name: str
    handle: int
    role: bool
    snd_settle_mode: int = 2
    rcv_settle_mode: int = 0
    source: Any = None
    target: Any = None
    unsettled: Map | RawMap | None = None
    incomplete_unsettled: bool = False
    initial_delivery_count: int | None = None
    max_message_size: int = 0
    offered_capabilities: list[object] | None = None
    desired_capabilities: list[object] | None = None
    properties: Map | None = None


class Flow(NamedTuple):
    """The state of a session, and of a link where `handle` is one."""

    next_incoming_id: int | None
    incoming_window: int
    next_outgoing_id: int
    outgoing_window: int
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool = False
    echo: bool = False
    properties: Map | None = None


class Transfer(NamedTuple):
    """A message, or a part of one; its bytes follow in the frame."""

    handle: int
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool = False
    rcv_settle_mode: int | None = None
    state: Any = None
    resume: bool = False
    aborted: bool = False
    batchable: bool = False


class Disposition(NamedTuple):
    """What became of deliveries `first` to `last`, or of `first` alone. `role` is true from the receiver."""

    role: bool
    first: int
    last: int | None = None
    settled: bool = False
    state: Any = None
    batchable: bool = False


class Detach(NamedTuple):
    """Detaches a link; `closed` ends its terminus as well."""

    handle: int
    closed: bool = False
    error: Error | None = None


class End(NamedTuple):
    """Ends a session."""

    error: Error | None = None


class Close(NamedTuple):
    """Closes the connection."""

    error: Error | None = None


# -- SASL (5.3.3) ------------------------------------------------------------------------------------


class SaslMechanisms(NamedTuple):
    """What the server offers."""

    sasl_server_mechanisms: list[object]


class SaslInit(NamedTuple):
    """What the client chose."""

    mechanism: str
    initial_response: bytes | None = None
    hostname: str | None = None


class SaslChallenge(NamedTuple):
    """What the server asks."""

    challenge: bytes


class SaslResponse(NamedTuple):
    """What the client answers."""

    response: bytes


class SaslOutcome(NamedTuple):
    """How the login ended: `code` is 0 for success, 1 for refused."""

    code: int
    additional_data: bytes | None = None


# -- termini (3.5, 4.5) ------------------------------------------------------------------------------


class Source(NamedTuple):
    """Where the messages of a link come from. `timeout` in seconds."""

    address: Any = None
    durable: int = 0
    expiry_policy: str = "session-end"
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: Map | None = None
    distribution_mode: str | None = None
    filter: Map | None = None
    default_outcome: Any = None
    outcomes: list[object] | None = None
    capabilities: list[object] | None = None


class Target(NamedTuple):
    """Where the messages of a link go to. `timeout` in seconds."""

    address: Any = None
    durable: int = 0
    expiry_policy: str = "session-end"
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: Map | None = None
    capabilities: list[object] | None = None


class Coordinator(NamedTuple):
    """The target of a link that controls transactions."""

    capabilities: list[object] | None = None


class Declare(NamedTuple):
    """Asks for a transaction."""

    global_id: Any = None


class Discharge(NamedTuple):
    """Ends a transaction: commits it, or rolls it back where `fail` is true."""

    txn_id: bytes
    fail: bool = False


# -- states of deliveries (3.4, 4.5) -----------------------------------------------------------------


class Received(NamedTuple):
    """So far a message has come."""

    section_number: int
    section_offset: int


class Accepted(NamedTuple):
    """The message is taken."""


class Rejected(NamedTuple):
    """The message is invalid."""

    error: Error | None = None


class Released(NamedTuple):
    """The message was not looked at."""


class Modified(NamedTuple):
    """The message goes back, with changes."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    message_annotations: Map | None = None


class Declared(NamedTuple):
    """A transaction has begun."""

    txn_id: bytes


class TransactionalState(NamedTuple):
    """A transfer, or an outcome, is part of a transaction."""

    txn_id: bytes
    outcome: Any = None


# -- sections of messages that are composite (3.2) ---------------------------------------------------


class Header(NamedTuple):
    """How a message is to be carried. `ttl` in milliseconds."""

    durable: bool = False
    priority: int = 4
    ttl: int | None = None
    first_acquirer: bool = False
    delivery_count: int = 0


class MessageProperties(NamedTuple):
    """What a message says of itself. Times in milliseconds since 1970."""

    message_id: Any = None
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: Any = None
    content_type: str | None = None
    content_encoding: str | None = None
    absolute_expiry_time: int | None = None
    creation_time: int | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    reply_to_group_id: str | None = None


# -- the table ---------------------------------------------------------------------------------------

_COMPOSITE: Final = "composite"
"""A field that holds another type of this table, or a described value that nobody here knows."""


class Shape(NamedTuple):
    """How a composite type is written."""

    code: int
    symbol: str
    make: type[NamedTuple]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    defaults: tuple[object, ...]
    """One for each field; of a mandatory one None."""
    mandatory: int
    """So many fields have no default, besides one that may be null; they come first."""


def _shape(code: int, symbol: str, make: type[NamedTuple], kinds: tuple[str, ...]) -> Shape:
    names = make._fields
    known = make._field_defaults
    if len(names) != len(kinds):
        raise ValueError(f"{symbol} has {len(names)} fields and {len(kinds)} types")
    defaults = tuple([known.get(name) for name in names])
    return Shape(code, f"amqp:{symbol}:list", make, names, kinds, defaults, len(names) - len(known))


_TERMINUS: Final = (ANY, UINT, SYMBOL, UINT, BOOLEAN, MAP)

_ALL: Final = (
    _shape(
        0x10, "open", Open, (STRING, STRING, UINT, USHORT, UINT, ARRAY, ARRAY, ARRAY, ARRAY, MAP)
    ),
    _shape(0x11, "begin", Begin, (USHORT, UINT, UINT, UINT, UINT, ARRAY, ARRAY, MAP)),
    _shape(
        0x12,
        "attach",
        Attach,
        (
            STRING,
            UINT,
            BOOLEAN,
            UBYTE,
            UBYTE,
            _COMPOSITE,
            _COMPOSITE,
            RAW_MAP,
            BOOLEAN,
            UINT,
            ULONG,
            ARRAY,
            ARRAY,
            MAP,
        ),
    ),
    _shape(
        0x13, "flow", Flow, (UINT, UINT, UINT, UINT, UINT, UINT, UINT, UINT, BOOLEAN, BOOLEAN, MAP)
    ),
    _shape(
        0x14,
        "transfer",
        Transfer,
        (UINT, UINT, BINARY, UINT, BOOLEAN, BOOLEAN, UBYTE, _COMPOSITE, BOOLEAN, BOOLEAN, BOOLEAN),
    ),
    _shape(0x15, "disposition", Disposition, (BOOLEAN, UINT, UINT, BOOLEAN, _COMPOSITE, BOOLEAN)),
    _shape(0x16, "detach", Detach, (UINT, BOOLEAN, _COMPOSITE)),
    _shape(0x17, "end", End, (_COMPOSITE,)),
    _shape(0x18, "close", Close, (_COMPOSITE,)),
    _shape(0x1D, "error", Error, (SYMBOL, STRING, MAP)),
    _shape(0x23, "received", Received, (UINT, ULONG)),
    _shape(0x24, "accepted", Accepted, ()),
    _shape(0x25, "rejected", Rejected, (_COMPOSITE,)),
    _shape(0x26, "released", Released, ()),
    _shape(0x27, "modified", Modified, (BOOLEAN, BOOLEAN, MAP)),
    _shape(0x28, "source", Source, (*_TERMINUS, SYMBOL, MAP, _COMPOSITE, ARRAY, ARRAY)),
    _shape(0x29, "target", Target, (*_TERMINUS, ARRAY)),
    _shape(0x30, "coordinator", Coordinator, (ARRAY,)),
    _shape(0x31, "declare", Declare, (ANY,)),
    _shape(0x32, "discharge", Discharge, (BINARY, BOOLEAN)),
    _shape(0x33, "declared", Declared, (BINARY,)),
    _shape(0x34, "transactional-state", TransactionalState, (BINARY, _COMPOSITE)),
    _shape(0x40, "sasl-mechanisms", SaslMechanisms, (ARRAY,)),
    _shape(0x41, "sasl-init", SaslInit, (SYMBOL, BINARY, STRING)),
    _shape(0x42, "sasl-challenge", SaslChallenge, (BINARY,)),
    _shape(0x43, "sasl-response", SaslResponse, (BINARY,)),
    _shape(0x44, "sasl-outcome", SaslOutcome, (UBYTE, BINARY)),
    _shape(0x70, "header", Header, (BOOLEAN, UBYTE, UINT, BOOLEAN, UINT)),
    _shape(
        0x73,
        "properties",
        MessageProperties,
        (
            ANY,
            BINARY,
            STRING,
            STRING,
            STRING,
            ANY,
            SYMBOL,
            SYMBOL,
            TIMESTAMP,
            TIMESTAMP,
            STRING,
            UINT,
            STRING,
        ),
    ),
)

SHAPES: Final = {shape.code: shape for shape in _ALL}
_BY_SYMBOL: Final = {shape.symbol: shape for shape in _ALL}
_BY_CLASS: Final[dict[object, Shape]] = {shape.make: shape for shape in _ALL}

_NULLABLE: Final = frozenset({"remote_channel", "next_incoming_id"})
"""Fields without a default that may be null: who answers has to say which."""


def shape_at(buf: bytes, pos: int, end: int) -> tuple[Shape | None, int]:
    """Return what the descriptor at `pos` names, None where nobody here knows it, and the position behind it.

    Raises ProtocolError where the value at `pos` has no descriptor, or one that is cut off.
    """
    if pos + 2 < end and buf[pos] == types.DESCRIBED and buf[pos + 1] == 0x53:
        return SHAPES.get(buf[pos + 2]), pos + 3
    if pos >= end or buf[pos] != types.DESCRIBED:
        raise ProtocolError(DECODE_ERROR, "1.4: a composite value has no descriptor")
    descriptor, behind = types.read(buf, types.descriptor_at(buf, pos, end), end)
    if isinstance(descriptor, Symbol):
        return _BY_SYMBOL.get(descriptor), behind
    if isinstance(descriptor, int):
        return SHAPES.get(descriptor), behind
    return None, behind


def read(
    buf: bytes, pos: int, end: int, depth: int = 0, budget: Budget | None = None
) -> tuple[Any, int]:
    """Return the composite value at `pos`, and the position behind it; one that is not in the table as `Described`.

    Raises ProtocolError for what breaks the type system, fields of another type, more fields than there are, more
    values than the `budget` has (without one: limits.AMQP_VALUES), and mandatory ones that are missing.
    """
    shape, behind = shape_at(buf, pos, end)
    if shape is None:
        return types.read(buf, pos, end, depth, budget)
    return read_fields(shape, buf, behind, end, depth, budget)


def read_fields(
    shape: Shape, buf: bytes, pos: int, end: int, depth: int = 0, budget: Budget | None = None
) -> tuple[Any, int]:
    """Return the value of `shape`, whose list of fields is at `pos`, and the position behind it. Raises as `read`."""
    if budget is None:
        budget = Budget()
    count, at, behind = types.list_at(buf, pos, end, shape.symbol)
    if count > len(shape.names):
        raise ProtocolError(DECODE_ERROR, f"1.4: {shape.symbol} with {count} fields")
    budget.spend(1)
    values = list(shape.defaults)
    for number in range(count):
        kind = shape.kinds[number]
        name = shape.names[number]
        if kind == _COMPOSITE:
            value, at = _read_inner(buf, at, behind, depth + 1, budget)
        else:
            what = f"{shape.symbol} {name}"
            value, at = types.checked(buf, at, behind, kind, what, depth + 1, budget)
        if value is not None:
            values[number] = value
    if at != behind:
        raise ProtocolError(DECODE_ERROR, f"1.4: {shape.symbol} is longer than its fields")
    for number in range(shape.mandatory):
        if values[number] is None and shape.names[number] not in _NULLABLE:
            raise ProtocolError(INVALID_FIELD, f"1.4: {shape.symbol} lacks {shape.names[number]}")
    make: Callable[..., Any] = shape.make
    return make(*values), behind


def _read_inner(buf: bytes, pos: int, end: int, depth: int, budget: Budget) -> tuple[Any, int]:
    if pos < end and buf[pos] == types.NULL:
        return None, pos + 1
    types.check_depth(depth)
    return read(buf, pos, end, depth, budget)


def write(value: tuple[Any, ...] | Described | None) -> bytes:
    """Return the bytes of a value of this table; null for None, and others as `types.write` does."""
    if value is None or isinstance(value, Described):
        return types.write(value)
    shape = _BY_CLASS[type(value)]
    last = len(shape.names)
    while last and value[last - 1] == shape.defaults[last - 1]:
        last -= 1
    items = [_field(value, shape, number) for number in range(last)]
    return b"\x00\x53" + bytes((shape.code,)) + types.write_compound(items, 0xC0)


def described(value: tuple[Any, ...]) -> Described:
    """Return a value of this table as one of any type, which maps may hold."""
    data = write(value)
    return cast("Described", types.read(data, 0, len(data))[0])


def composite(value: object) -> object:
    """Return the value of this table that a value of any type is; any other as it is. Raises as `read`."""
    if not isinstance(value, Described):
        return value
    data = types.write(value)
    return read(data, 0, len(data))[0]


def _field(values: tuple[Any, ...], shape: Shape, number: int) -> bytes:
    value = values[number]
    if value == shape.defaults[number]:
        return types.write(None)
    kind = shape.kinds[number]
    return write(value) if kind == _COMPOSITE else types.write(value, kind)
