"""Reads and writes the values of AMQP's type system (part 1).

A value comes as Python's own: None, bool, int, float, str, bytes, list, dict; arrays as lists; symbols as `Symbol`, so
that they differ from strings; what has a descriptor and no class here as `Described`; characters, decimals, times and
UUIDs as `Typed`. An int says nothing of its width. Who writes says the type: a kind of this module, such as UINT.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp.conditions import DECODE_ERROR, INVALID_FIELD

NULL: Final = 0x40
DESCRIBED: Final = 0x00

ANY: Final = "*"
BOOLEAN: Final = "boolean"
UBYTE: Final = "ubyte"
USHORT: Final = "ushort"
UINT: Final = "uint"
ULONG: Final = "ulong"
BYTE: Final = "byte"
SHORT: Final = "short"
INT: Final = "int"
LONG: Final = "long"
FLOAT: Final = "float"
DOUBLE: Final = "double"
DECIMAL32: Final = "decimal32"
DECIMAL64: Final = "decimal64"
DECIMAL128: Final = "decimal128"
CHAR: Final = "char"
TIMESTAMP: Final = "timestamp"
UUID: Final = "uuid"
BINARY: Final = "binary"
STRING: Final = "string"
SYMBOL: Final = "symbol"
LIST: Final = "list"
MAP: Final = "map"
RAW_MAP: Final = "raw map"
ARRAY: Final = "array"

KIND_OF: Final[dict[int, str]] = {
    NULL: "null",
    0x41: BOOLEAN,
    0x42: BOOLEAN,
    0x56: BOOLEAN,
    0x50: UBYTE,
    0x60: USHORT,
    0x70: UINT,
    0x52: UINT,
    0x43: UINT,
    0x80: ULONG,
    0x53: ULONG,
    0x44: ULONG,
    0x51: BYTE,
    0x61: SHORT,
    0x71: INT,
    0x54: INT,
    0x81: LONG,
    0x55: LONG,
    0x72: FLOAT,
    0x82: DOUBLE,
    0x74: DECIMAL32,
    0x84: DECIMAL64,
    0x94: DECIMAL128,
    0x73: CHAR,
    0x83: TIMESTAMP,
    0x98: UUID,
    0xA0: BINARY,
    0xB0: BINARY,
    0xA1: STRING,
    0xB1: STRING,
    0xA3: SYMBOL,
    0xB3: SYMBOL,
    0x45: LIST,
    0xC0: LIST,
    0xD0: LIST,
    0xC1: MAP,
    0xD1: MAP,
    0xE0: ARRAY,
    0xF0: ARRAY,
}
"""The type that each format code (1.6) stands for."""

_FIXED_BYTES: Final = (0, 1, 2, 4, 8, 16)
"""Bytes of the value behind a format code, by its first digit minus 4 (1.2)."""

_SIGNED: Final = frozenset({BYTE, SHORT, INT, LONG})
_OPAQUE: Final = frozenset({CHAR, DECIMAL32, DECIMAL64, DECIMAL128, UUID})
_EMPTY_LIST: Final = 0x45

LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF

_F32: Final = Struct(">f")
_F64: Final = Struct(">d")


@mypyc_attr(native_class=False)
class Symbol(str):
    """A name from a constrained domain (1.6.21): ASCII."""

    __slots__ = ()


@final
class Described:
    """A value with a descriptor (1.2.2) that has no class of its own: a `Symbol` or a number, mostly."""

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: object, value: object) -> None:
        self.descriptor = descriptor
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Described)
            and self.descriptor == other.descriptor
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((str(self.descriptor), str(self.value)))


@final
class Typed:
    """A value with its type: what Python has no type for, or what is to be written in a certain one.

    Characters, decimals and UUIDs are their bytes, times are milliseconds since 1970.
    """

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: object) -> None:
        self.kind = kind
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Typed) and self.kind == other.kind and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.kind, self.value))


@final
class RawMap:
    """A map as it is written, of which nothing is read before somebody asks (`MapWalk`)."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RawMap) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)


def malformed(what: str) -> ProtocolError:
    """Return the error for bytes that are no values of the type system."""
    return ProtocolError(DECODE_ERROR, what)


# -- reading -----------------------------------------------------------------------------------------


@final
class Budget:
    """How many values may still be read out of one frame or section. `spent` counts those that were.

    A value that is described counts twice: each is an object of its own.
    """

    __slots__ = ("left", "spent")

    def __init__(self, most: int = limits.AMQP_VALUES) -> None:
        self.left: i64 = most
        self.spent: i64 = 0

    def spend(self, count: int) -> None:
        """Count values that are about to be read. Raises ProtocolError where they are too many."""
        self.left -= count
        self.spent += count
        if self.left < 0:
            raise malformed(f"1.1: more than {self.left + self.spent:,} values in one place")


def after(buf: bytes, pos: int, end: int, depth: int = 0) -> int:
    """Return the position behind the value at `pos`, which ends by `end`. What compound values hold is not looked at.

    Raises ProtocolError where it is cut off, or begins with no format code, or has descriptors more than
    limits.AMQP_DEPTH deep.
    """
    while pos < end and buf[pos] == DESCRIBED:
        check_depth(depth)
        depth += 1
        pos = _behind(buf, descriptor_at(buf, pos, end), end)
    return _behind(buf, pos, end)


def _behind(buf: bytes, pos: int, end: int) -> int:
    """Return the position behind the value at `pos`, which has no descriptor."""
    if pos >= end:
        raise malformed("1.2: a value is due where the data ends")
    code = buf[pos]
    if code not in KIND_OF:
        raise malformed(f"1.6: {code:#04x} is no format code")
    return _extent(buf, pos + 1, end, code)[1]


def descriptor_at(buf: bytes, pos: int, end: int) -> int:
    """Return where the descriptor of the described value at `pos` begins.

    Raises ProtocolError for one that is a compound or described value itself: 1.2.2 reserves all but symbols and
    numbers, and a tree of them would cost more than it says.
    """
    at = pos + 1
    if at < end and (buf[at] == DESCRIBED or buf[at] >= 0xC0):
        raise malformed("1.2.2: a descriptor is a simple value")
    return at


def _extent(buf: bytes, pos: int, end: int, code: int) -> tuple[int, int]:
    """Return where the bytes of the value of `code` begin, with `pos` behind the code, and where they end."""
    width = code >> 4
    if width <= 0x9:
        behind = pos + _FIXED_BYTES[width - 4]
        if behind > end:
            raise malformed("1.2: a value is cut off")
        return pos, behind
    if width & 1 == 0:
        if pos >= end:
            raise malformed("1.2: a size is cut off")
        start = pos + 1
        behind = start + buf[pos]
    else:
        start = pos + 4
        if start > end:
            raise malformed("1.2: a size is cut off")
        behind = start + int.from_bytes(buf[pos:start], "big")
    if behind > end:
        raise malformed("1.2: a value is longer than what holds it")
    return start, behind


def read(
    buf: bytes, pos: int, end: int, depth: int = 0, budget: Budget | None = None
) -> tuple[object, int]:
    """Return the value at `pos`, which ends by `end`, and the position behind it.

    Raises ProtocolError for what breaks the type system, for more values than the `budget` has (without one:
    limits.AMQP_VALUES), and for what is nested more than limits.AMQP_DEPTH deep.
    """
    if budget is None:
        budget = Budget()
    if pos >= end:
        raise malformed("1.2: a value is due where the data ends")
    budget.spend(1)
    code = buf[pos]
    if code == DESCRIBED:
        check_depth(depth)
        descriptor, pos = read(buf, descriptor_at(buf, pos, end), end, depth + 1, budget)
        value, pos = read(buf, pos, end, depth + 1, budget)
        return Described(descriptor, value), pos
    if code not in KIND_OF:
        raise malformed(f"1.6: {code:#04x} is no format code")
    return _read(buf, pos + 1, end, code, depth, budget)


def _read(
    buf: bytes, pos: int, end: int, code: int, depth: int, budget: Budget
) -> tuple[object, int]:
    """Return the value of a format code, with `pos` behind it, and the position behind the value."""
    start, behind = _extent(buf, pos, end, code)
    if code >= 0xC0:
        check_depth(depth)
        if code >= 0xE0:
            return _array(buf, start, behind, code, depth + 1, budget), behind
        items = _items(buf, start, behind, code, depth + 1, budget)
        return (_mapped(items) if KIND_OF[code] == MAP else items), behind
    return _scalar(buf, start, behind, code), behind


def _scalar(buf: bytes, start: int, behind: int, code: int) -> object:
    kind = KIND_OF[code]
    piece = buf[start:behind]
    if kind == STRING:
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError:
            raise malformed("1.6.20: a string is not well-formed UTF-8") from None
    if kind == SYMBOL:
        try:
            return Symbol(piece.decode("ascii"))
        except UnicodeDecodeError:
            raise malformed("1.6.21: a symbol is not ASCII") from None
    if kind == BINARY:
        return piece
    if kind == BOOLEAN:
        return _boolean(code, piece)
    if kind == FLOAT:
        return float(_F32.unpack(piece)[0])
    if kind == DOUBLE:
        return float(_F64.unpack(piece)[0])
    if kind in _OPAQUE:
        return Typed(kind, piece)
    if kind == TIMESTAMP:
        return Typed(kind, int.from_bytes(piece, "big", signed=True))
    if kind == LIST:
        return []
    if code == NULL:
        return None
    return int.from_bytes(piece, "big", signed=kind in _SIGNED)


def _boolean(code: int, piece: bytes) -> bool:
    if code != 0x56:
        return code == 0x41
    if piece[0] > 1:
        raise malformed(f"1.6.2: {piece[0]} is no boolean")
    return piece[0] == 1


def _count(buf: bytes, start: int, behind: int, code: int) -> tuple[int, int]:
    """Return the count of a list, map or array, and where its items begin."""
    width = 1 if code >> 4 & 1 == 0 else 4
    if start + width > behind:
        raise malformed("1.2.3: a count is cut off")
    return int.from_bytes(buf[start : start + width], "big"), start + width


def _items(
    buf: bytes, start: int, behind: int, code: int, depth: int, budget: Budget
) -> list[object]:
    count, pos = _count(buf, start, behind, code)
    if count > behind - pos:
        raise malformed(f"1.2.3: {count} values cannot stand in {behind - pos} bytes")
    items: list[object] = []
    for _ in range(count):
        value, pos = read(buf, pos, behind, depth, budget)
        items.append(value)
    if pos != behind:
        raise malformed("1.2.3: values end before what holds them does")
    return items


def _mapped(items: list[object]) -> dict[object, object]:
    if len(items) & 1:
        raise malformed("1.6.23: a map has a key without a value")
    found: dict[object, object] = {}
    for at in range(0, len(items), 2):
        key = items[at]
        if isinstance(key, (list, dict, Described)):
            raise malformed("1.6.23: a map has a compound key")
        found[key] = items[at + 1]
    return found


def _array(
    buf: bytes, start: int, behind: int, code: int, depth: int, budget: Budget
) -> list[object]:
    count, pos = _count(buf, start, behind, code)
    descriptors: list[object] = []
    while pos < behind and buf[pos] == DESCRIBED:
        check_depth(depth + len(descriptors))
        descriptor, pos = read(buf, descriptor_at(buf, pos, behind), behind, depth + 1, budget)
        descriptors.append(descriptor)
    if pos >= behind:
        raise malformed("1.6.24: an array without a format code")
    item = buf[pos]
    pos += 1
    if item not in KIND_OF:
        raise malformed(f"1.6: {item:#04x} is no format code")
    # Values without bytes would make a list of four thousand million of them out of nothing.
    if count > behind - pos:
        raise malformed(f"1.6.24: {count} values cannot stand in {behind - pos} bytes")
    # Each of them is an object with each of the descriptors.
    budget.spend(count * (1 + len(descriptors)))
    items: list[object] = []
    for _ in range(count):
        value, pos = _read(buf, pos, behind, item, depth + len(descriptors), budget)
        for descriptor in reversed(descriptors):
            value = Described(descriptor, value)
        items.append(value)
    if pos != behind:
        raise malformed("1.6.24: values end before the array does")
    return items


@final
class MapWalk:
    """Goes over the entries of a map, one after the other.

    The `key` of an entry is read, its value lies from `value` to `end` in `data`. `left` is how many are still to come.
    """

    __slots__ = ("_behind", "data", "end", "key", "left", "value")

    def __init__(self, raw: RawMap) -> None:
        """Raises ProtocolError for a map with a key without a value."""
        self.data = raw.data
        count, at, self._behind = compound_at(raw.data, 0, len(raw.data))
        if count & 1:
            raise malformed("1.6.23: a map has a key without a value")
        self.left = count // 2
        self.key: object = None
        self.value = at
        self.end = at

    def next(self) -> bool:
        """Go to the next entry; False where there is none. Raises ProtocolError for one that is none."""
        if self.left == 0:
            if self.end != self._behind:
                raise malformed("1.2.3: values end before what holds them does")
            return False
        self.left -= 1
        data = self.data
        at = self.end
        if at < self._behind and (data[at] == DESCRIBED or data[at] >= 0xC0):
            raise malformed("1.6.23: a map has a compound key")
        self.key, self.value = read(data, at, self._behind)
        self.end = after(data, self.value, self._behind)
        return True


# -- writing -----------------------------------------------------------------------------------------

_WIDE: Final = {
    USHORT: (0x60, 2),
    BYTE: (0x51, 1),
    UBYTE: (0x50, 1),
    SHORT: (0x61, 2),
    TIMESTAMP: (0x83, 8),
}
"""Format code and bytes of whole numbers that have one form."""

_FORMS: Final = {
    UINT: (0x70, 4, 0x52, 0x43),
    ULONG: (0x80, 8, 0x53, 0x44),
    INT: (0x71, 4, 0x54, -1),
    LONG: (0x81, 8, 0x55, -1),
}
"""Of the others the code and bytes of the long form, the codes of the form of one byte and of zero."""

_OPAQUE_CODES: Final = {
    CHAR: 0x73,
    DECIMAL32: 0x74,
    DECIMAL64: 0x84,
    DECIMAL128: 0x94,
    UUID: 0x98,
}


def write(value: object, kind: str = ANY) -> bytes:
    """Return the bytes of a value in the type `kind`; ANY takes what its Python type tells, int as long.

    Raises ValueError for what the type cannot hold: the caller is wrong and not the peer.
    """
    if value is None:
        return b"\x40"
    if isinstance(value, Typed):
        return write(value.value, value.kind)
    if isinstance(value, Described):
        return b"\x00" + write(value.descriptor) + write(value.value)
    if isinstance(value, RawMap):
        return value.data
    if kind == ANY:
        kind = _kind_of(value)
    if kind == BOOLEAN:
        return b"\x41" if value else b"\x42"
    if isinstance(value, int):
        return _number(value, kind)
    if isinstance(value, float):
        return b"\x72" + _F32.pack(value) if kind == FLOAT else b"\x82" + _F64.pack(value)
    if isinstance(value, str):
        data = value.encode("ascii" if kind == SYMBOL else "utf-8")
        return _sized(data, 0xA3 if kind == SYMBOL else 0xA1)
    if isinstance(value, bytes):
        opaque = _OPAQUE_CODES.get(kind)
        return _sized(value, 0xA0) if opaque is None else bytes((opaque,)) + value
    if isinstance(value, dict):
        items = [one for pair in value.items() for one in pair]
        return write_compound([write(item) for item in items], 0xC1)
    if isinstance(value, list):
        if kind == ARRAY:
            return symbols(value)
        return write_compound([write(item) for item in value], 0xC0)
    raise ValueError(f"{value!r} is no AMQP value")


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return ULONG if value > LONG_MAX else LONG
    if isinstance(value, Symbol):
        return SYMBOL
    return ANY


def _number(value: int, kind: str) -> bytes:
    signed = kind in _SIGNED or kind == TIMESTAMP
    form = _FORMS.get(kind)
    try:
        if form is None:
            code, size = _WIDE[kind]
            return bytes((code,)) + value.to_bytes(size, "big", signed=signed)
        code, size, short, zero = form
        if value == 0 and zero != -1:
            return bytes((zero,))
        if -128 <= value <= 127 if signed else 0 <= value <= 255:
            return bytes((short, value & 255))
        return bytes((code,)) + value.to_bytes(size, "big", signed=signed)
    except (OverflowError, KeyError):
        raise ValueError(f"{value} does not fit {kind}") from None


def _sized(data: bytes, code: int) -> bytes:
    if len(data) <= 255:
        return bytes((code, len(data))) + data
    return bytes((code + 0x10,)) + len(data).to_bytes(4, "big") + data


def write_compound(items: list[bytes], code: int) -> bytes:
    """Return a list (`code` 0xC0) or a map (0xC1) of items that are written already."""
    if not items and code == 0xC0:
        return b"\x45"
    body = b"".join(items)
    if len(items) <= 255 and len(body) < 255:
        return bytes((code, len(body) + 1, len(items))) + body
    size = (len(body) + 4).to_bytes(4, "big")
    return bytes((code + 0x10,)) + size + len(items).to_bytes(4, "big") + body


def symbols(names: list[object]) -> bytes:
    """Return an array of symbols."""
    data = [str(name).encode("ascii") for name in names]
    body = b"".join([len(one).to_bytes(4, "big") + one for one in data])
    size = (len(body) + 5).to_bytes(4, "big")
    return b"\xf0" + size + len(data).to_bytes(4, "big") + b"\xb3" + body


def check_depth(depth: int) -> None:
    """Raise ProtocolError for values nested too deep."""
    if depth >= limits.AMQP_DEPTH:
        raise malformed(f"1.2.2: values nested more than {limits.AMQP_DEPTH} deep")


def list_at(buf: bytes, pos: int, end: int, what: str) -> tuple[int, int, int]:
    """Return how many values the list at `pos` has, where they begin, and where it ends.

    Raises ProtocolError where there is no list, or where it is cut off.
    """
    code = buf[pos] if pos < end else NULL
    if code == _EMPTY_LIST:
        return 0, pos + 1, pos + 1
    if KIND_OF.get(code) != LIST:
        raise malformed(f"1.4: {what} is no list")
    return compound_at(buf, pos, end)


def compound_at(buf: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """Return how many values the list or map at `pos` has, keys included, where they begin, and where it ends.

    Raises ProtocolError where it is cut off. The caller knows that there is one, and that it has a size.
    """
    code = buf[pos]
    start, behind = _extent(buf, pos + 1, end, code)
    count, at = _count(buf, start, behind, code)
    return count, at, behind


_NAMES: Final = frozenset({SYMBOL, ARRAY, LIST})
"""Types that a field of several symbols may have."""


def checked(
    buf: bytes,
    pos: int,
    end: int,
    kind: str,
    what: str,
    depth: int = 0,
    budget: Budget | None = None,
) -> tuple[object, int]:
    """Return the value at `pos`, of the type `kind` or null, and the position behind it; `what` is its name.

    A field of the kind ARRAY holds one symbol or an array of them (1.3, "multiple"), and comes as a list.

    Raises ProtocolError where it is of another type, before it is read.
    """
    if pos >= end:
        raise malformed(f"{what} is cut off")
    code = buf[pos]
    if code == NULL:
        return None, pos + 1
    found = KIND_OF.get(code, "")
    if kind == RAW_MAP and found == MAP:
        behind = _behind(buf, pos, end)
        return RawMap(buf[pos:behind]), behind
    if kind == ARRAY:
        if found not in _NAMES:
            raise ProtocolError(INVALID_FIELD, f"{what} has to hold symbols")
    elif kind not in (found, ANY):
        raise ProtocolError(INVALID_FIELD, f"{what} has to be of the type {kind}")
    value, behind = read(buf, pos, end, depth, budget)
    if kind == ARRAY:
        names = value if isinstance(value, list) else [value]
        for one in names:
            if not isinstance(one, Symbol):
                raise ProtocolError(INVALID_FIELD, f"{what} has to hold symbols")
        return names, behind
    return value.value if kind == TIMESTAMP and isinstance(value, Typed) else value, behind
