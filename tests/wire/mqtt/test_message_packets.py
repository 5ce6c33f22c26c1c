"""PUBLISH and its acknowledgements as objects."""

from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBREC


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
