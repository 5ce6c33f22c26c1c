"""PUBLISH that the batch path left standing: QoS 1 and 2, properties, retain, aliases, unusual or bad ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from mypy_extensions import i64

from vpnrouter.core.direct import trace
from vpnrouter.core.discards import MSG_TOO_BIG, PUBLISH_TOPIC_ACL
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.reasons import may_learn
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import SECOND_NS
from vpnrouter.core.publisher import LARGE, PUBLISH_DENIED, TOO_BIG
from vpnrouter.core.route import Route
from vpnrouter.core.tracing import read
from vpnrouter.errors import ProtocolError, TopicError
from vpnrouter.trace.events import DIRECT, DISCARD, PERSISTENT, REJECT
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.fields import read_varint
from vpnrouter.wire.mqtt.publish_block import split_publish_properties

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.publisher import Publisher

PUBLISH_QOS1: Final = 0x32
"""PUBLISH, QoS 1, neither duplicate nor retained."""


def scan(connection: MqttConnection, buf: bytes, pos: i64, end: i64) -> i64:
    """Take the plain QoS 1 frames that begin at `pos`; return where the first other byte stands.

    Plain are those without properties, allowed, small enough, on a topic that is known; all others are left to
    `handle`. Raises ProtocolError for more messages than the client may send.
    """
    ingress = connection.ingress
    publisher = connection.publisher
    if ingress is None or publisher is None or not ingress.session.sends:
        return pos
    routes = publisher.vpn.cache.entries
    extra: i64 = publisher.extra
    max_frame: i64 = publisher.max_frame
    rule = publisher.rule
    source = publisher.subscriber
    sampler = publisher.sampler
    picking = publisher.picking
    while end - pos > 6 and not connection.paused:
        if buf[pos] != PUBLISH_QOS1:
            return pos
        length: i64 = buf[pos + 1]
        body: i64 = pos + 2
        if length > 127:
            second: i64 = buf[pos + 2]
            if second > 127 or second == 0:
                return pos
            length = (length & 127) | second << 7
            body = pos + 3
        following: i64 = body + length
        if following > end or following - pos > max_frame or length < 5:
            return pos
        high: i64 = buf[body]
        low: i64 = buf[body + 1]
        topic_end: i64 = body + 2 + (high << 8 | low)
        start: i64 = topic_end + 2 + extra
        if start > following or (extra == 1 and buf[topic_end + 2] != 0):
            return pos
        high = buf[topic_end]
        low = buf[topic_end + 1]
        packet_id: i64 = high << 8 | low
        topic = buf[body + 2 : topic_end]
        found = routes.get(topic)
        if found is None or packet_id == 0:
            return pos
        route = cast(Route, found)
        if rule is not None and route.allowed_by is not rule and not publisher.allowed(route):
            return pos
        if route.guarded and (route.missing_queue or not route.may_put(publisher.username, rule)):
            return pos
        publisher.messages += 1
        publisher.bytes_ += following - pos
        if ingress.begin(packet_id, 1):
            message = Message(topic, buf[start:following], b"", False, source)
            message.qos = 1
            if picking is not None:
                sampler = publisher.sampler_for(route)
            sampler.left -= 1
            if sampler.left == 0:
                sampler.next()
                trace(publisher, message)
            ingress.publish(message, packet_id)
        pos = following
    return pos


def handle(connection: MqttConnection, data: bytes, pos: int, length: int) -> None:
    """Check and deliver the one PUBLISH in `data[pos:pos + length]`.

    Raises ProtocolError for what MQTT forbids. A Direct message that is merely not allowed or too big is
    discarded and counted, for nobody acknowledges it; a guaranteed one is answered so.
    """
    publisher = connection.publisher
    if publisher is None:
        return
    vpn = publisher.vpn
    first = data[pos]
    qos = (first >> 1) & 3
    ingress = connection.ingress
    if qos == 3:
        raise ProtocolError(reason.MALFORMED_PACKET, "QoS 3 (MQTT-3.3.1-4)")
    if qos and ingress is None:
        raise ProtocolError(reason.QOS_NOT_SUPPORTED, "maximum QoS is 0 (MQTT-3.2.2-11)")
    if qos == 0 and first & 0x08:
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
    packet_id = 0
    if qos:
        start += 2
        if start > end:
            raise ProtocolError(reason.MALFORMED_PACKET, "PUBLISH without its packet identifier")
        packet_id = data[topic_end] << 8 | data[topic_end + 1]
        if packet_id == 0:
            raise ProtocolError(reason.PROTOCOL_ERROR, "packet identifier 0 (MQTT-2.2.1-3)")
    block = b""
    expiry_s = -1
    alias = 0
    if connection.level == 5:
        size, start = read_varint(data, start, end)
        if start + size > end:
            raise ProtocolError(reason.MALFORMED_PACKET, "the properties run beyond the packet")
        block, alias, expiry_s = split_publish_properties(data, start, start + size, True)
        start += size
    topic = connection.topic_of_alias(alias, topic)
    try:
        route = vpn.route(topic)
    except TopicError as error:
        raise ProtocolError(reason.TOPIC_NAME_INVALID, str(error)) from error
    if ingress is not None and qos and not ingress.begin(packet_id, qos):
        publisher.bytes_ += length
        return
    publisher.messages += 1
    publisher.bytes_ += length
    denied = "" if publisher.allowed(route) else reasons.ACL_DENIED
    if not denied and not route.may_put(publisher.username, publisher.rule):
        denied = reasons.PERMISSION_DENIED
    why = denied
    if route.missing_queue and qos and not denied and not _may_learn(publisher, route):
        denied = reasons.PERMISSION_DENIED
        why = reasons.QUEUE_NOT_FOUND
    if denied:
        if not publisher.told & PUBLISH_DENIED:
            text = f"{why}: topic {route.topic}"
            publisher.report_once(PUBLISH_DENIED, text)
        if why == denied:
            publisher.acl_denied += 1
            _lost(publisher, DISCARD, topic, qos, PUBLISH_TOPIC_ACL)
        else:
            publisher.refused += 1
            vpn.rejected += 1
            _lost(publisher, REJECT, topic, qos, why)
        if ingress is not None and qos:
            ingress.refuse(packet_id, qos, denied)
        return
    if ingress is not None and qos and not ingress.session.sends:
        # The client profile let it send guaranteed messages when it logged in.
        publisher.refused += 1
        vpn.rejected += 1
        ingress.refuse(packet_id, qos, reasons.PERMISSION_DENIED)
        return
    # What held at the login: that is what the client was told.
    if end - start > publisher.max_size:
        vpn.discards.add(MSG_TOO_BIG)
        if not publisher.told & TOO_BIG:
            text = f"a message of {end - start:,} bytes; at most {publisher.max_size:,} are taken"
            publisher.report_once(TOO_BIG, text)
        publisher.refused += 1
        _lost(publisher, DISCARD, topic, qos, MSG_TOO_BIG)
        if ingress is not None and qos:
            ingress.refuse(packet_id, qos, reasons.TOO_LARGE)
        return
    large = vpn.limits.large_msg_size
    if large and end - start > large and not publisher.told & LARGE:
        text = f"a message of {end - start:,} bytes on topic {route.topic}"
        publisher.report_once(LARGE, text)
    message = Message(topic, data[start:end], block, first & 0x01 == 1, publisher.subscriber)
    message.qos = qos
    if expiry_s >= 0:
        message.expires_ns = vpn.plane.now_ns + expiry_s * SECOND_NS
    parent = read(block) if block and vpn.plane.honours else None
    if parent is not None and parent.sampled:
        # Who publishes traces it: that is no draw of ours.
        trace(publisher, message, parent)
    else:
        sampler = publisher.sampler_for(route)
        sampler.left -= 1
        if sampler.left == 0:
            sampler.next()
            trace(publisher, message, parent)
    if ingress is not None and qos:
        ingress.publish(message, packet_id)
    else:
        publisher.publish(message)


def _may_learn(publisher: Publisher, route: Route) -> bool:
    """Whether the publisher may learn that no queue has that name. One whom an ACL exception lets publish to it may."""
    rule = publisher.rule
    return may_learn(publisher.username) or (rule is not None and rule.names(route.topic))


def _lost(publisher: Publisher, event: int, topic: bytes, qos: int, why: str) -> None:
    """Tell of a message that may not enter: before anybody asks whether it is traced."""
    losses = publisher.vpn.plane.losses
    if losses is not None:
        name = publisher.subscriber.client_name
        mode = PERSISTENT if qos else DIRECT
        losses.add((event, publisher.vpn.name, mode, name, "", why, "", "", 0, "", topic), 1)
