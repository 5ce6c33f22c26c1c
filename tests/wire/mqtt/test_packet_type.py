"""The fixed header's type and flags."""

from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.reason import FLAG_CLAUSES, TYPE_NAMES, reserved_flags


def test_names_stand_at_their_numbers() -> None:
    """Table 2-1: each type's constant is the index of its name."""
    assert [getattr(reason, name) for name in TYPE_NAMES] == list(range(16))


def test_reserved_flags_of_each_type() -> None:
    """Table 2-2: 0010 for PUBREL, SUBSCRIBE and UNSUBSCRIBE, 0000 for all other fixed ones."""
    fixed = [kind for kind in range(1, 16) if TYPE_NAMES[kind] != "PUBLISH"]
    with_bit = [TYPE_NAMES[kind] for kind in fixed if reserved_flags(kind) == 2]
    assert with_bit == ["PUBREL", "SUBSCRIBE", "UNSUBSCRIBE"]
    assert {reserved_flags(kind) for kind in fixed} == {0, 2}


def test_types_with_a_bit_have_their_own_clause() -> None:
    """Whoever must set a reserved bit finds the clause that says so."""
    assert all(kind in FLAG_CLAUSES for kind in range(1, 16) if reserved_flags(kind))
