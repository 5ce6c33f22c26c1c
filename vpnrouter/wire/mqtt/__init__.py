"""Encodes and decodes MQTT 3.1.1 and 5.0 packets, both directions; sessions are elsewhere.

`frame_at` finds a frame, `decode` makes it a packet, `encode` writes one. The only exception that received bytes can
cause is ProtocolError. Clauses in messages ("MQTT-3.1.2-3") are those of the OASIS standard MQTT 5.0, or of 3.1.1 where
the message says so; without a dash ("MQTT 3.8.3.1") they are section numbers.

`decode`, `encode` and `burst` are imported from the modules of those names.
"""

from vpnrouter.wire.mqtt.burst import PublishCounter
from vpnrouter.wire.mqtt.decode import protocol_level
from vpnrouter.wire.mqtt.encode import (
    encode_ack,
    encode_publish,
    encode_publish_field,
    publish_prefix,
)
from vpnrouter.wire.mqtt.fields import frame_at, read_varint, varint
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
from vpnrouter.wire.mqtt.properties import (
    Properties,
    decode_properties,
    encode_properties,
)
from vpnrouter.wire.mqtt.publish_block import (
    message_block,
    payload_format_holds,
    publish_block_with,
    split_publish_properties,
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
    "Properties",
    "Publish",
    "PublishCounter",
    "Suback",
    "Subscribe",
    "SubscriptionRequest",
    "Unsuback",
    "Unsubscribe",
    "Will",
    "decode_properties",
    "encode_ack",
    "encode_properties",
    "encode_publish",
    "encode_publish_field",
    "frame_at",
    "message_block",
    "payload_format_holds",
    "protocol_level",
    "publish_block_with",
    "publish_prefix",
    "read_varint",
    "split_publish_properties",
    "varint",
]
