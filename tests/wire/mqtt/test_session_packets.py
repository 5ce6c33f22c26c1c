"""CONNECT, CONNACK, DISCONNECT, AUTH as objects."""

from vpnrouter.wire.mqtt.packets import Auth, Connack, Connect, Disconnect, Will
from vpnrouter.wire.mqtt.properties import Properties


def test_password_stays_out_of_the_repr() -> None:
    """A CONNECT in a log or a traceback does not give its password away."""
    packet = Connect("c1", username="ann", password=b"secret")
    assert "secret" not in repr(packet)
    assert "username='ann'" in repr(packet)
    assert "password=None" in repr(Connect("c1"))


def test_each_field_counts_in_equality() -> None:
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
