"""PUBACK, PUBREC, PUBREL and PUBCOMP of a client: they come in bulk, so that the short ones cost no object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED
from vpnrouter.core.mqtt.outbound import SYNCED
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode_ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.wire.mqtt.packets import Ack

SHORT_PUBACK: Final = 0x40
SHORT_PUBREC: Final = 0x50
SHORT_PUBREL: Final = 0x62
SHORT_PUBCOMP: Final = 0x70


def scan(connection: MqttConnection, buf: bytes, pos: i64, end: i64) -> i64:
    """Handle the acknowledgements of four bytes that begin at `pos`; return where something else stands."""
    while end - pos >= 4 and buf[pos + 1] == 2:
        kind: i64 = buf[pos]
        high: i64 = buf[pos + 2]
        low: i64 = buf[pos + 3]
        packet_id: i64 = high << 8 | low
        if packet_id == 0:
            return pos
        if kind == SHORT_PUBACK:
            puback(connection, packet_id, 0)
        elif kind == SHORT_PUBREL:
            pubrel(connection, packet_id)
        elif kind == SHORT_PUBREC:
            pubrec(connection, packet_id, 0)
        elif kind == SHORT_PUBCOMP:
            pubcomp(connection, packet_id)
        else:
            return pos
        pos += 4
    return pos


def handle(connection: MqttConnection, packet: Ack) -> None:
    """Handle an acknowledgement in its long form, with a reason code or properties."""
    kind = packet.packet_type
    if kind == PUBACK:
        puback(connection, packet.packet_id, packet.reason_code)
    elif kind == PUBREC:
        pubrec(connection, packet.packet_id, packet.reason_code)
    elif kind == PUBREL:
        pubrel(connection, packet.packet_id)
    else:
        pubcomp(connection, packet.packet_id)


def puback(connection: MqttConnection, packet_id: int, code: int) -> None:
    """A QoS 1 message is the client's now; with a code from 0x80 on it is rejected. Unknown ones mean nothing."""
    session = connection.session
    outbound = None if session is None else session.outbound
    if outbound is None:
        return
    held = outbound.held.get(packet_id)
    if held is None:
        if packet_id in outbound.releasing:
            raise ProtocolError(
                reason.PROTOCOL_ERROR,
                f"PUBACK for the QoS 2 message {packet_id}, whose PUBCOMP is due (MQTT-4.3.3-1)",
            )
        return
    if held.qos == 2:
        raise ProtocolError(
            reason.PROTOCOL_ERROR, f"PUBACK for the QoS 2 message {packet_id} (MQTT-4.3.3-1)"
        )
    # The identifier is kept until nothing more can raise: see Outbound.unplug.
    held.flow.settle(held.message_id, REJECTED if code >= reason.UNSPECIFIED_ERROR else ACCEPTED)
    outbound.held.pop(packet_id, None)
    fault = held.flow.endpoint.spool.fault
    if fault is not None:
        fault("ack-received")
    if outbound.narrow:
        outbound.wake()


def pubrec(connection: MqttConnection, packet_id: int, code: int) -> None:
    """A QoS 2 message is the client's: settle it, and answer PUBREL when that is synced (MQTT-4.3.3-4)."""
    session = connection.session
    if session is None:
        return
    outbound = session.outbound
    held = None if outbound is None else outbound.held.get(packet_id)
    if outbound is None or held is None:
        if outbound is not None:
            state = outbound.releasing.get(packet_id, -1)
            if state >= 0:
                # PUBREL once more, unless it waits for the sync.
                if state & SYNCED:
                    outbound.send_pubrel(packet_id)
                return
            if packet_id in [known & 0xFFFF for known in outbound.resend.values()]:
                # The message is about to be sent again, and will be answered again.
                return
            outbound.reserved.discard(packet_id)
        if code < reason.UNSPECIFIED_ERROR:
            unknown = reason.PACKET_IDENTIFIER_NOT_FOUND
            connection.outbox.control(encode_ack(PUBREL, packet_id, connection.level, unknown))
        return
    if held.qos == 1:
        raise ProtocolError(
            reason.PROTOCOL_ERROR, f"PUBREC for the QoS 1 message {packet_id} (MQTT-4.3.2-2)"
        )
    if code >= reason.UNSPECIFIED_ERROR:
        held.flow.settle(held.message_id, REJECTED)
        outbound.held.pop(packet_id, None)
        if held.flow.keyed:
            outbound.forget_key(packet_id)
        outbound.wake()
        return
    held.flow.settle(held.message_id, ACCEPTED)
    outbound.release(packet_id, held.flow)
    fault = held.flow.endpoint.spool.fault
    if fault is not None:
        fault("pubrec-received")


def pubcomp(connection: MqttConnection, packet_id: int) -> None:
    """PUBCOMP: free a QoS 2 identifier. One that is not in use is ignored: a PUBCOMP is not answered.

    Raises ProtocolError where another acknowledgement is due, or none yet.
    """
    session = connection.session
    outbound = None if session is None else session.outbound
    if outbound is None:
        return
    held = outbound.held.get(packet_id)
    if held is not None:
        due = "PUBREC" if held.qos == 2 else "PUBACK"
        raise ProtocolError(
            reason.PROTOCOL_ERROR,
            f"PUBCOMP for the QoS {held.qos} message {packet_id}, whose {due} is due (MQTT-4.3.3-1)",
        )
    if outbound.releasing.get(packet_id, SYNCED) & SYNCED == 0:
        raise ProtocolError(
            reason.PROTOCOL_ERROR,
            f"PUBCOMP for message {packet_id} before its PUBREL (MQTT-4.3.3-1)",
        )
    outbound.complete(packet_id)


def pubrel(connection: MqttConnection, packet_id: int) -> None:
    """The client has done with a QoS 2 message that it published."""
    ingress = connection.ingress
    if ingress is not None:
        ingress.release(packet_id)
    else:
        unknown = reason.PACKET_IDENTIFIER_NOT_FOUND
        connection.outbox.control(encode_ack(PUBCOMP, packet_id, connection.level, unknown))
