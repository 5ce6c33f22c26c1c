"""All packet classes under one name."""

from vpnrouter.wire.mqtt.message_packets import Ack, Publish
from vpnrouter.wire.mqtt.packet import Packet, Pingreq, Pingresp
from vpnrouter.wire.mqtt.session_packets import Auth, Connack, Connect, Disconnect, Will
from vpnrouter.wire.mqtt.subscription_packets import (
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)

__all__ = [
    "Ack",
    "Auth",
    "Connack",
    "Connect",
    "Disconnect",
    "Packet",
    "Pingreq",
    "Pingresp",
    "Publish",
    "Suback",
    "Subscribe",
    "SubscriptionRequest",
    "Unsuback",
    "Unsubscribe",
    "Will",
]
