"""The one name for all packet classes."""

from vpnrouter.wire import mqtt
from vpnrouter.wire.mqtt import packets
from vpnrouter.wire.mqtt.packets import Packet


def test_every_packet_class_is_exported() -> None:
    """Each class of packet is in packets.py and in the package."""
    classes = {name for name in packets.__all__ if issubclass(getattr(packets, name), Packet)}
    assert classes == {"Packet", *(one.__name__ for one in Packet.__subclasses__())}
    assert all(getattr(mqtt, name) is getattr(packets, name) for name in packets.__all__)
