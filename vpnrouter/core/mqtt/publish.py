"""PUBLISH that the batch path left standing: properties, retain, aliases, unusual or bad ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.direct import trace
from vpnrouter.core.discards import MSG_TOO_BIG
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import SECOND_NS
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.topics.grammar import parse_topic
from vpnrouter.wire.mqtt import Publish, reason

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection


def handle(connection: MqttConnection, packet: Publish) -> None:
    """Check and deliver one PUBLISH.

    Raises ProtocolError for what MQTT forbids; a Direct message that is merely not allowed or too
    big is discarded and counted, for nobody acknowledges it (reference §9).
    """
    publisher = connection.publisher
    if publisher is None:
        return
    if packet.qos:
        raise ProtocolError(reason.QOS_NOT_SUPPORTED, "maximum QoS is 0 (MQTT-3.2.2-11)")
    vpn = publisher.vpn
    topic = connection.topic_of_alias(packet.topic_alias, packet.topic)
    try:
        text = parse_topic(topic, vpn.limits.max_topic_levels, vpn.limits.max_topic_bytes)
    except TopicError as error:
        raise ProtocolError(reason.TOPIC_NAME_INVALID, str(error)) from error
    publisher.messages += 1
    publisher.bytes_ += len(topic) + len(packet.payload)
    if not publisher.allowed(topic, text):
        publisher.acl_denied += 1
        return
    if len(packet.payload) > vpn.limits.max_msg_size:
        vpn.discards.add(MSG_TOO_BIG)
        return
    message = Message(topic, packet.payload, packet.block, packet.retain, publisher.subscriber)
    if packet.message_expiry_s >= 0:
        message.expires_ns = vpn.plane.now_ns + packet.message_expiry_s * SECOND_NS
    sampler = publisher.sampler
    if sampler.left == 1:
        sampler.next()
        trace(publisher, message)
    else:
        sampler.left -= 1
    vpn.publish(message)
