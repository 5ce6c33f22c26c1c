"""What a client publishes with QoS 1 and 2: to the spool, and answered when it is synced.

The states of an inbound QoS 2 packet identifier (MQTT 5, 4.3.3, method B) are its presence in the session's
`inbound`: from PUBLISH to PUBREL. For a session that outlives its connection they are in the spool too, in
one unit with the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.end_to_end import EndToEndAnswers, EndToEndCallback
from vpnrouter.core.guaranteed.unit_of_work import (
    DEMOTED,
    REJECTED,
    SPOOLED,
    UNMATCHED,
    CompletionCallback,
)
from vpnrouter.core.tracing import trace_kept_lost
from vpnrouter.errors import ProtocolError
from vpnrouter.spool import keys
from vpnrouter.trace.events import REJECT
from vpnrouter.wire.mqtt import reason as codes
from vpnrouter.wire.mqtt.encode import encode, encode_ack
from vpnrouter.wire.mqtt.packets import Ack
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.core.publisher import Publisher

NACKS: Final[dict[str, int]] = {
    refusals.QUEUE_NOT_FOUND: codes.TOPIC_NAME_INVALID,
    refusals.ACL_DENIED: codes.NOT_AUTHORIZED,
    refusals.PERMISSION_DENIED: codes.NOT_AUTHORIZED,
    refusals.PUBLISH_FAILURE: codes.IMPLEMENTATION_SPECIFIC_ERROR,
}
"""Reason code of a PUBACK or PUBREC for a refusal; 0x97 for all others, which are limits of some kind: the
standard knows no 0x95 here (MQTT 5, 3.4.2.1)."""

RECEIVED: Final = 0x10000
"""Flag of a token: a QoS 2 PUBLISH, to be answered with PUBREC."""

COMPLETE: Final = 0x20000
"""Flag of a token: a PUBREL, to be answered with PUBCOMP."""

UNKNOWN: Final = 0x40000
"""Flag of such a token: there was no such identifier."""


@final
class QosReceiver(EndToEndCallback):
    """The guaranteed side of one connection's publishing.

    `waiting` counts packets that the spool has not answered, `unacknowledged` those of which the client has
    to think so (MQTT 5, 3.3.4). `flows`: it counts as an ingress flow of the message VPN, since the first
    message. With `end_to_end` answers wait for a bridge too, None for all others.
    """

    __slots__ = (
        "connection",
        "end_to_end",
        "flows",
        "level",
        "publisher",
        "says_no_match",
        "session",
        "spool",
        "unacknowledged",
        "waiting",
    )

    def __init__(
        self,
        connection: MqttConnection,
        publisher: Publisher,
        session: MqttSession,
        spool: Spool,
        says_no_match: bool,
        bridge: str = "",
    ) -> None:
        self.connection: MqttConnection | None = connection
        self.level = connection.level
        self.publisher = publisher
        self.session = session
        self.spool = spool
        self.says_no_match = says_no_match
        self.waiting = 0
        self.unacknowledged = 0
        self.flows = False
        self.end_to_end = EndToEndAnswers(spool, bridge, self) if bridge else None

    def end(self) -> None:
        """Answer no more and give the ingress flow back: the connection has ended."""
        self.connection = None
        if self.flows:
            self.flows = False
            self.publisher.vpn.ingress_flows -= 1
            self.publisher.report_flow(opened=False)
        if self.end_to_end is not None:
            self.end_to_end.close()

    def begin(self, packet_id: int, qos: int) -> bool:
        """Count a PUBLISH; False when it has been taken before, so that only its answer is due.

        Raises ProtocolError 0x93 beyond the receive maximum (MQTT-3.3.4-7).
        """
        self.waiting += 1
        self.unacknowledged += 1
        if self.waiting == 1 and self.connection is not None:
            self.connection.guaranteed = True
        if self.unacknowledged > limits.RECEIVE_MAXIMUM and self.level == 5:
            raise ProtocolError(
                codes.RECEIVE_MAXIMUM_EXCEEDED,
                f"more than {limits.RECEIVE_MAXIMUM} unacknowledged messages (MQTT-3.3.4-7)",
            )
        if qos == 2 and packet_id in self.session.inbound:
            held = self.session.carried.get(packet_id, 0)
            if held and self.end_to_end is not None:
                self.end_to_end.again(self.publisher.vpn, held, packet_id | RECEIVED)
            else:
                self._answer(packet_id | RECEIVED, SPOOLED, "")
            return False
        return True

    def publish(self, message: Message, packet_id: int) -> None:
        """Give a message to the spool, and count the outcome. `message.qos` is set."""
        message.persistent = True
        publisher = self.publisher
        token = packet_id if message.qos == 1 else packet_id | RECEIVED
        if not self.flows and not self._begin_flow(message, token):
            return
        if self.end_to_end is not None:
            outcome = self.end_to_end.publish(publisher.vpn, message, token)
            if message.qos == 2 and outcome != REJECTED:
                self._remember(packet_id)
        elif message.qos == 2:
            outcome = self._publish_once(message, packet_id, token)
        else:
            outcome = self.spool.publish(publisher.vpn, message, self, token)
        if outcome == SPOOLED:
            publisher.spooled += 1
        elif outcome == DEMOTED:
            publisher.delivered += 1
        else:
            # Refused, or nobody wanted it: counted where that is found.
            publisher.refused += 1
        self.hold_back()

    def _publish_once(self, message: Message, packet_id: int, token: int) -> int:
        """Take a QoS 2 message: message and identifier are both in the unit, or neither is."""
        try:
            self._remember(packet_id)
            outcome = self.spool.publish(self.publisher.vpn, message, self, token)
        except Exception:
            if not self.spool.has_taken(message):
                self._forget(packet_id)
            raise
        if outcome == REJECTED:
            self._forget(packet_id)
        return outcome

    def _begin_flow(self, message: Message, token: int) -> bool:
        """Count the connection as an ingress flow; beyond a bound, answer and return False.

        A connection has one ingress flow, so of the client profile's bound only 0 matters.
        """
        vpn = self.publisher.vpn
        most = vpn.limits.max_ingress_flow_count
        admission = None if self.connection is None else self.connection.admission
        of_client = 1 if admission is None else admission.profile.max_ingress_flow_count
        if of_client >= 1 and (not most or vpn.ingress_flows < most):
            vpn.ingress_flows += 1
            self.flows = True
            self.publisher.report_flow(opened=True)
            return True
        vpn.rejected += 1
        self.publisher.refused += 1
        trace_kept_lost(vpn, REJECT, message, "", refusals.TOO_MANY_INGRESS_FLOWS)
        self._answer(token, REJECTED, refusals.TOO_MANY_INGRESS_FLOWS)
        self.hold_back()
        return False

    def _remember(self, packet_id: int) -> None:
        """Remember a QoS 2 message until PUBREL, so that it is not taken twice."""
        session = self.session
        session.begin_inbound(packet_id)
        value = b"\x01"
        if self.end_to_end is not None and self.end_to_end.held_id:
            session.carried[packet_id] = self.end_to_end.held_id
            value = keys.pack_id(self.end_to_end.held_id)
        if session.durable:
            self.spool.ledger.put(keys.inbound(session.number_in(self.spool), packet_id), value)

    def _forget(self, packet_id: int) -> None:
        session = self.session
        session.end_inbound(packet_id)
        session.carried.pop(packet_id, 0)
        if session.durable:
            self.spool.ledger.delete(keys.inbound(session.number_in(self.spool), packet_id))

    def lost(self, token: int) -> None:
        """End the exchange of a QoS 2 message that was refused (MQTT 5, 4.3.3)."""
        if token & RECEIVED:
            self._forget(token & 0xFFFF)

    def _answer(self, token: int, outcome: int, reason: str) -> None:
        """Answer a PUBLISH after the answers before it."""
        if self.end_to_end is not None:
            self.end_to_end.answer(token, outcome, reason)
        else:
            self.spool.unit.call_when_synced(self, token, outcome, reason)

    def hold_back(self) -> None:
        """Read no further where too much waits for the spool."""
        if self.spool.ledger.pending_bytes > limits.UNIT_BYTES or (
            self.level < 5 and self.waiting >= limits.RECEIVE_MAXIMUM
        ):
            connection = self.connection
            if connection is not None:
                connection.paused = True

    def refuse(self, packet_id: int, qos: int, reason: str) -> None:
        """Refuse a PUBLISH that may not go to the spool, after the answers before it."""
        self._answer(packet_id if qos == 1 else packet_id | RECEIVED, REJECTED, reason)

    def pass_over(self, packet_id: int, qos: int) -> None:
        """Acknowledge a PUBLISH whose message goes nowhere."""
        if qos == 2:
            self._remember(packet_id)
        self._answer(packet_id if qos == 1 else packet_id | RECEIVED, SPOOLED, "")

    def release(self, packet_id: int) -> None:
        """Handle PUBREL: forget the identifier, and answer when that is synced."""
        session = self.session
        if packet_id not in session.inbound:
            # The identifier may be free only since a moment ago: it must not be used again before that is synced.
            self.waiting += 1
            self.spool.when_synced(self, packet_id | COMPLETE | UNKNOWN)
            return
        self._forget(packet_id)
        if session.durable and self.spool.fault is not None:
            self.spool.fault("pubrel-received")
        self.waiting += 1
        self.spool.when_synced(self, packet_id | COMPLETE)

    def owning_connection(self) -> Connection | None:
        """The publisher's connection, None while it is away."""
        return self.connection

    def on_delay(self, why: str) -> None:
        """End the connection with the reason: what it has not been answered is open, and it need not wait for that."""
        if self.connection is not None:
            self.connection.fail(codes.QUOTA_EXCEEDED, why)

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Answer the publisher with PUBACK, PUBREC or PUBCOMP; a refusal ends an MQTT 3.1.1 connection."""
        connection = self.connection
        if connection is None:
            return
        self.waiting -= 1
        packet_id = token & 0xFFFF
        kind = PUBACK
        if token > 0xFFFF:
            kind = PUBREC if token & RECEIVED else PUBCOMP
        code = codes.SUCCESS
        if outcome == REJECTED:
            code = NACKS.get(reason, codes.QUOTA_EXCEEDED)
            if self.level < 5:
                # 3.1.1 has no other way to say no (MQTT-3.3.5-2 of 3.1.1).
                self.publisher.vpn.nack_disconnects += 1
                connection.fail(code, reason)
                return
        elif outcome == UNMATCHED and self.says_no_match and self.level == 5:
            code = codes.NO_MATCHING_SUBSCRIBERS
        elif token & UNKNOWN and self.level == 5:
            code = codes.PACKET_IDENTIFIER_NOT_FOUND
        if kind != PUBREC or code >= codes.UNSPECIFIED_ERROR:
            self.unacknowledged = max(0, self.unacknowledged - 1)
        if outcome == REJECTED:
            connection.outbox.control(self._nack(connection, kind, packet_id, code, reason))
        else:
            connection.outbox.control(encode_ack(kind, packet_id, self.level, code))
        if connection.paused and self.waiting * 2 <= limits.RECEIVE_MAXIMUM:
            connection.resume()

    def _nack(
        self, connection: MqttConnection, kind: int, packet_id: int, code: int, reason: str
    ) -> bytes:
        if connection.wants_problem_information:
            packet = Ack(kind, packet_id, code)
            packet.properties.reason_string = reason
            frame = encode(packet, 5)
            most = self.session.max_packet
            if not most or len(frame) <= most:
                return frame
        return encode_ack(kind, packet_id, 5, code)


@final
class FrameWhenSynced(CompletionCallback):
    """Sends a control frame when what it promises is synced."""

    __slots__ = ("connection", "frame")

    def __init__(self, connection: MqttConnection, frame: bytes) -> None:
        self.connection = connection
        self.frame = frame

    def owning_connection(self) -> Connection | None:
        """The connection that is answered."""
        return self.connection

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Send the answer, unless the connection is being closed."""
        if not self.connection.closing:
            self.connection.outbox.control(self.frame)


@final
class NoCallback(CompletionCallback):
    """The callback of a will, whose publisher has gone."""

    __slots__ = ()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Do nothing."""
