"""PUBLISH that the batch path left standing: properties, retain, aliases, unusual or bad ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.discards import MSG_TOO_BIG
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import SECOND_NS
from vpnrouter.core.sampled import trace
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.framing import read_varint
from vpnrouter.wire.mqtt.publish_block import split_publish_properties

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection


def handle(connection: MqttConnection, data: bytes, pos: int, length: int) -> None:
    """Check and deliver the one PUBLISH in `data[pos:pos + length]`.

    Raises ProtocolError for what MQTT forbids; a Direct message that is merely not allowed or too
    big is discarded and counted, for nobody acknowledges it.
    """
    publisher = connection.publisher
    if publisher is None:
        return
    vpn = publisher.vpn
    first = data[pos]
    if first & 0x06:
        if first & 0x06 == 0x06:
            raise ProtocolError(reason.MALFORMED_PACKET, "QoS 3 (MQTT-3.3.1-4)")
        raise ProtocolError(reason.QOS_NOT_SUPPORTED, "maximum QoS is 0 (MQTT-3.2.2-11)")
    if first & 0x08:
        raise ProtocolError(reason.MALFORMED_PACKET, "DUP with QoS 0 (MQTT-3.3.1-2)")
    end = pos + length
    body = pos + 2
    while data[body - 1] & 0x80:
        body += 1
    if end - body < 2:
        raise ProtocolError(reason.MALFORMED_PACKET, "PUBLISH without a topic")
    topic_end = body + 2 + (data[body] << 8 | data[body + 1])
    if topic_end > end:
        raise ProtocolError(reason.MALFORMED_PACKET, "the topic runs beyond the packet")
    topic = data[body + 2 : topic_end]
    start = topic_end
    block = b""
    expiry_s = -1
    alias = 0
    if connection.level == 5:
        size, start = read_varint(data, topic_end, end)
        if start + size > end:
            raise ProtocolError(reason.MALFORMED_PACKET, "the properties run beyond the packet")
        block, alias, expiry_s = split_publish_properties(data, start, start + size, True)
        start += size
    topic = connection.topic_of_alias(alias, topic)
    try:
        route = vpn.route(topic)
    except TopicError as error:
        raise ProtocolError(reason.TOPIC_NAME_INVALID, str(error)) from error
    publisher.messages += 1
    publisher.bytes_ += length
    if not publisher.allowed(route):
        publisher.acl_denied += 1
        return
    # What held at the login: that is what the client was told.
    if end - start > publisher.max_frame:
        vpn.discards.add(MSG_TOO_BIG)
        publisher.refused += 1
        return
    message = Message(topic, data[start:end], block, first & 0x01 == 1, publisher.subscriber)
    if expiry_s >= 0:
        message.expires_ns = vpn.plane.now_ns + expiry_s * SECOND_NS
    sampler = publisher.sampler
    sampler.left -= 1
    if sampler.left == 0:
        sampler.next()
        trace(publisher, message)
    publisher.publish(message)
