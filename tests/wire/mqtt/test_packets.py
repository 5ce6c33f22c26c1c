"""Packets of MQTT and their reasons."""

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from vpnrouter.wire import mqtt
from vpnrouter.wire.mqtt import packets, reason
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import (
    FLAG_CLAUSES,
    PUBACK,
    PUBREC,
    REASON_CLAUSES,
    REASON_NAMES,
    REASONS_OF,
    TYPE_NAMES,
    V3_REASONS,
    malformed,
    reason_text,
    reserved_flags,
    to_v3_return_code,
    violation,
)


def test_every_packet_class_is_exported() -> None:
    """Each class of packet is in packets.py and in the package."""
    classes = {name for name in packets.__all__ if issubclass(getattr(packets, name), Packet)}
    assert classes == {"Packet", *(one.__name__ for one in Packet.__subclasses__())}
    assert all(getattr(mqtt, name) is getattr(packets, name) for name in packets.__all__)


def test_packets_are_equal_by_type_and_fields() -> None:
    """Two pings of a kind are equal, of two kinds are not, and a packet equals nothing else."""
    assert Pingreq() == Pingreq()
    assert Pingreq() != Pingresp()
    assert Pingreq() != 12
    assert Packet(12) != Packet(13)


def test_repr_names_the_class() -> None:
    """A failing test shows what it compared."""
    assert repr(Pingreq()) == "Pingreq()"


def test_packets_have_no_hash() -> None:
    """Their fields may change, so they are no keys."""
    with pytest.raises(TypeError):
        hash(Pingreq())


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


def test_each_field_counts_in_equality() -> None:
    """Messages that differ in one field differ."""
    base = Publish(b"t", b"p")
    others = [
        Publish(b"u", b"p"),
        Publish(b"t", b"q"),
        Publish(b"t", b"p", qos=1),
        Publish(b"t", b"p", retain=True),
        Publish(b"t", b"p", dup=True),
        Publish(b"t", b"p", packet_id=1),
        Publish(b"t", b"p", properties=Properties(topic_alias=1)),
    ]
    assert base == Publish(b"t", b"p")
    assert all(base != other for other in others)


def test_acknowledgements_differ_by_kind() -> None:
    """One class serves four packets, told apart by their type."""
    assert Ack(PUBACK, 1) != Ack(PUBREC, 1)
    assert Ack(PUBACK, 1) != Ack(PUBACK, 2)
    assert Ack(PUBACK, 1) != Ack(PUBACK, 1, 0x10)
    assert Ack(PUBACK, 1) == Ack(PUBACK, 1)


def test_repr_names_every_field() -> None:
    """A failing test shows what it compared."""
    assert repr(Ack(PUBACK, 7, 0x87, Properties(reason_string="no"))) == (
        "Ack(packet_type=4, packet_id=7, reason_code=135,"
        " properties=Properties(reason_string='no'))"
    )


def test_password_stays_out_of_the_repr() -> None:
    """A CONNECT in a log or a traceback does not give its password away."""
    packet = Connect("c1", username="ann", password=b"secret")
    assert "secret" not in repr(packet)
    assert "username='ann'" in repr(packet)
    assert "password=None" in repr(Connect("c1"))


def test_each_field_of_a_connect_counts_in_equality() -> None:
    """Packets that differ in one field differ."""
    base = Connect("c1")
    others = [
        Connect("c2"),
        Connect("c1", clean_start=False),
        Connect("c1", keep_alive_s=1),
        Connect("c1", protocol_level=4),
        Connect("c1", username=""),
        Connect("c1", password=b""),
        Connect("c1", will=Will(b"w", b"")),
        Connect("c1", properties=Properties(receive_maximum=1)),
    ]
    assert base == Connect("c1")
    assert all(base != other for other in others)
    assert Connack() != Connack(session_present=True)
    assert Connack() != Connack(reason_code=0x87)
    assert Disconnect(4) != Disconnect(0)
    assert Disconnect(0) != Auth(0)
    assert Auth(0x18) == Auth(0x18)


def test_wills_are_equal_by_value() -> None:
    """A will is compared field by field."""
    assert Will(b"w", b"x", 1, True) == Will(b"w", b"x", 1, True)
    assert Will(b"w", b"x") != Will(b"w", b"x", properties=Properties(will_delay_interval=1))
    assert Will(b"w", b"x") != b"w"
    assert repr(Will(b"w", b"x")).startswith("Will(topic=b'w', payload=b'x', qos=0, retain=False")


def test_default_properties_are_not_shared() -> None:
    """Filling in one packet's properties leaves every other packet's empty."""
    first = Connack()
    first.properties.user_properties.append(("a", "b"))
    assert Connack().properties == Properties()


def test_each_option_counts_in_equality() -> None:
    """Requests that differ in one option differ."""
    base = SubscriptionRequest("a")
    others = [
        SubscriptionRequest("b"),
        SubscriptionRequest("a", qos=1),
        SubscriptionRequest("a", no_local=True),
        SubscriptionRequest("a", retain_as_published=True),
        SubscriptionRequest("a", retain_handling=1),
    ]
    assert base == SubscriptionRequest("a")
    assert all(base != other for other in [*others, "a"])
    assert repr(base).startswith("SubscriptionRequest(filter='a', qos=0, no_local=False")


def test_packets_of_one_shape_differ_by_type() -> None:
    """SUBACK and UNSUBACK hold the same fields and are not equal."""
    assert Suback(1, [0]) == Suback(1, [0])
    assert Suback(1, [0]) != Unsuback(1, [0])
    assert Subscribe(1, [SubscriptionRequest("a")]) == Subscribe(1, [SubscriptionRequest("a")])
    assert Subscribe(1, [SubscriptionRequest("a")]) != Subscribe(1, [SubscriptionRequest("a", 1)])
    assert Unsubscribe(1, ["a"]) != Unsubscribe(1, ["b"])


def test_reason_codes_of_the_two_errors() -> None:
    """What can not be parsed is 0x81, what breaks a rule 0x82; the message is kept."""
    assert (malformed("A").reason_code, str(malformed("A"))) == (0x81, "A")
    assert (violation("B").reason_code, str(violation("B"))) == (0x82, "B")


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
