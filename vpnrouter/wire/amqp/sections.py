"""Finds the sections of a message (3.2) without a look at what they hold."""

from __future__ import annotations

from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.wire.amqp import types
from vpnrouter.wire.amqp.types import KIND_OF, LIST, MAP, malformed

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

_SYMBOLS: Final = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}

_KINDS: Final = {
    HEADER: LIST,
    DELIVERY_ANNOTATIONS: MAP,
    MESSAGE_ANNOTATIONS: MAP,
    PROPERTIES: LIST,
    APPLICATION_PROPERTIES: MAP,
    DATA: types.BINARY,
    SEQUENCE: LIST,
    FOOTER: MAP,
}


class Section(NamedTuple):
    """One section: its code, and where its value begins and ends. `start` is where its descriptor begins."""

    code: int
    start: int
    value: int
    end: int


def sections(message: bytes) -> list[Section]:
    """Return the sections of a message, in their order.

    A message without a body is one, although 3.2 wants one: JMS clients send a plain `Message` so. Raises ProtocolError
    for what is no section or of another type, and an order that 3.2 forbids.
    """
    found: list[Section] = []
    pos = 0
    end = len(message)
    before = 0
    while pos < end:
        start = pos
        if message[pos] != types.DESCRIBED:
            raise malformed("3.2: a section has no descriptor")
        descriptor, pos = types.read(message, types.descriptor_at(message, pos, end), end)
        code = descriptor if isinstance(descriptor, int) else _SYMBOLS.get(str(descriptor), 0)
        if len(found) == limits.AMQP_SECTIONS:
            raise malformed(f"3.2: more than {limits.AMQP_SECTIONS:,} sections")
        if code < HEADER or code > FOOTER:
            raise malformed(f"3.2: {descriptor} is no section")
        _check_order(before, code)
        kind = _KINDS.get(code, "")
        if kind and KIND_OF.get(message[pos] if pos < end else 0, "") != kind:
            raise malformed(f"3.2: section {code:#04x} is no {kind}")
        behind = types.after(message, pos, end)
        found.append(Section(code, start, pos, behind))
        before = code
        pos = behind
    return found


def _check_order(before: int, code: int) -> None:
    several = code in (DATA, SEQUENCE)
    body = DATA <= before <= VALUE
    if code < before or (code == before and not several):
        raise malformed(f"3.2: section {code:#04x} behind {before:#04x}")
    if body and code not in {before, FOOTER}:
        raise malformed("3.2: a body of two kinds")
