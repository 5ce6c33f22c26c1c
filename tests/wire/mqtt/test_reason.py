"""Reason codes: names, who may carry them, and their 3.1.1 equivalents."""

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.reason import (
    REASON_CLAUSES,
    REASON_NAMES,
    REASONS_OF,
    TYPE_NAMES,
    V3_REASONS,
    reason_text,
    to_v3_return_code,
)

CODES = {
    name: value
    for name, value in vars(reason).items()
    if isinstance(value, int) and name not in TYPE_NAMES and not name.startswith(("V3_", "_"))
}


def test_every_constant_has_a_name() -> None:
    """No code is without a text, no text without a constant."""
    assert set(CODES.values()) == set(REASON_NAMES)


def test_every_code_that_may_be_carried_is_known() -> None:
    """The tables of packets use defined codes only, and each has its clause."""
    assert set().union(*REASONS_OF.values()) == set(REASON_NAMES)
    assert REASON_CLAUSES.keys() == REASONS_OF.keys()


@pytest.mark.parametrize("kind", sorted(REASONS_OF), ids=lambda kind: TYPE_NAMES[kind])
def test_codes_agree_with_an_independent_table(kind: int) -> None:
    """Another MQTT 5 implementation allows the same codes in each packet.

    It knows no CONNACK 0x99, which table 3-1 has for a will payload of the wrong format.
    """
    names = ReasonCode(PacketTypes.CONNACK).names
    known = {
        code
        for code, entries in names.items()
        for types in entries.values()
        if getattr(PacketTypes, TYPE_NAMES[kind]) in types
    }
    assert REASONS_OF[kind] - known == ({0x99} if kind == PacketTypes.CONNACK else set())
    assert known - REASONS_OF[kind] == set()


@pytest.mark.parametrize(
    ("code", "v3"),
    [
        (reason.SUCCESS, 0),
        (reason.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (reason.CLIENT_IDENTIFIER_NOT_VALID, 2),
        (reason.SERVER_UNAVAILABLE, 3),
        (reason.QUOTA_EXCEEDED, 3),
        (reason.SERVER_BUSY, 3),
        (reason.BAD_USER_NAME_OR_PASSWORD, 4),
        (reason.NOT_AUTHORIZED, 5),
        (reason.BANNED, 5),
    ],
)
def test_v3_return_code(code: int, v3: int) -> None:
    """Each refusal reaches a 3.1.1 client as the return code nearest to it."""
    assert to_v3_return_code(code) == v3


def test_v3_return_codes_are_never_out_of_range() -> None:
    """Whatever the reason, 0 means success alone and nothing is above 5."""
    assert to_v3_return_code(0) == 0
    assert {to_v3_return_code(code) for code in range(1, 256)} == {1, 2, 3, 4, 5}


def test_v3_return_codes_come_back() -> None:
    """A 3.1.1 return code read as a reason code is written as itself."""
    assert [to_v3_return_code(code) for code in V3_REASONS] == list(range(6))


def test_reason_text_names_number_and_name() -> None:
    """People see both; an unknown number stands alone."""
    assert reason_text(0x97) == "0x97 Quota exceeded"
    assert reason_text(0x55) == "0x55"
