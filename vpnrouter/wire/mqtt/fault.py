"""The two errors of MQTT 5, 1.2: bytes that cannot be parsed, and packets that break a rule."""

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.reason import MALFORMED_PACKET, PROTOCOL_ERROR


def malformed(message: str) -> ProtocolError:
    """A Malformed Packet (0x81). `message` begins with the clause."""
    return ProtocolError(MALFORMED_PACKET, message)


def violation(message: str) -> ProtocolError:
    """A Protocol Error (0x82). `message` begins with the clause."""
    return ProtocolError(PROTOCOL_ERROR, message)
