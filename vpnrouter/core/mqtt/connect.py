"""Handles CONNECT: identifies the client, finds its session, checks its rights, and answers with a CONNACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.credentials import BAD_PASSWORD, NOT_AUTHORIZED
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.login import (
    Admission,
    admit,
    begin_verifying,
    check_verified,
    choose_vpn,
    report_rights,
)
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.qos_receiver import QosReceiver
from vpnrouter.core.mqtt.session import NEVER_S, MqttSession, Will
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.tracing import assign
from vpnrouter.errors import ProtocolError, Refused, TopicError
from vpnrouter.topics.grammar import parse_topic
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.packets import Connack, Connect
from vpnrouter.wire.mqtt.publish_block import message_block

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.vpn import MessageVpn

VERIFYING = 1

NAME_IN_USE: Final = "403 Client Name Already In Use"
"""The client id is reserved for the router, or a session of another client username has it."""


@final
class ConnectHandler:
    """The login of a connection with its CONNECT."""

    __slots__ = ("_connection", "_packet")

    def __init__(self, connection: MqttConnection, packet: Connect) -> None:
        self._connection = connection
        self._packet = packet

    def begin(self, length: int) -> None:
        """Admit or refuse a CONNECT of `length` bytes. The edge may still have to verify the password."""
        connection = self._connection
        packet = self._packet
        connection.level = packet.level
        connection.connect_packet = packet
        properties = packet.properties
        if properties.request_problem_information == 0:
            connection.wants_problem_information = False
        if properties.authentication_method is not None:
            raise ProtocolError(
                reason.BAD_AUTHENTICATION_METHOD, "enhanced authentication is not offered"
            )
        if not packet.client_id and not packet.clean_start and packet.level < 5:
            raise ProtocolError(
                reason.CLIENT_IDENTIFIER_NOT_VALID,
                "empty client id wants clean session (MQTT-3.1.3-8)",
            )
        if len(packet.client_id.encode()) > limits.CLIENT_ID_BYTES:
            raise ProtocolError(
                reason.CLIENT_IDENTIFIER_NOT_VALID,
                f"a client id has at most {limits.CLIENT_ID_BYTES} bytes",
            )
        if packet.client_id.startswith("#"):
            raise ProtocolError(
                reason.CLIENT_IDENTIFIER_NOT_VALID,
                "client ids that begin with # are the router's own",
            )
        vpn: MessageVpn | None = None
        try:
            vpn, username = choose_vpn(connection.router, connection.listener_vpn, packet.username)
            holder = _holder(vpn, packet.client_id)
            admission = admit(
                vpn,
                username,
                packet.password,
                connection.peer,
                holder,
                connection.certificate,
                hides=not connection.listener_vpn,
            )
        except Refused as refusal:
            connection.report_refused(vpn, refusal.why)
            connection.refuse(refusal.reason_code, refusal.reason)
            return
        connection.admission = admission
        if admission.needs_password:
            connection.state = VERIFYING
            connection.paused = True
            connection.keep_packet(length)
            try:
                begin_verifying(connection, admission, connection.router.pre_login_limits)
            except Refused as refusal:
                self.refuse(refusal.reason_code, refusal.reason)
            return
        try:
            self._establish(admission)
        except Refused as refusal:
            connection.report_refused(vpn, refusal.reason)
            connection.refuse(refusal.reason_code, refusal.reason)

    def verified(self, good: bool) -> None:
        """Go on with a login whose password the edge has verified."""
        connection = self._connection
        admission = connection.admission
        if admission is None:
            return
        if not good:
            connection.report_refused(admission.vpn, admission.why or BAD_PASSWORD)
            connection.refuse(reason.BAD_USER_NAME_OR_PASSWORD, BAD_PASSWORD)
            return
        try:
            check_verified(
                admission, connection.peer, _holder(admission.vpn, self._packet.client_id)
            )
            self._establish(admission)
        except Refused as refusal:
            connection.report_refused(admission.vpn, refusal.why)
            connection.refuse(refusal.reason_code, refusal.reason)
            return
        except ProtocolError as error:
            connection.router.protocol_errors += 1
            connection.report_protocol_error(str(error))
            connection.fail(error.reason_code, str(error))
            return
        connection.resume()

    def refuse(self, code: int, text: str) -> None:
        """Refuse a login without a look at its password."""
        connection = self._connection
        admission = connection.admission
        connection.report_refused(None if admission is None else admission.vpn, text)
        connection.refuse(code, text)

    def _establish(self, admission: Admission) -> None:
        """Find or make the session, take it over, answer CONNACK.

        Raises Refused, and leaves the session as it is, where it belongs to another client username.
        """
        connection = self._connection
        packet = self._packet
        profile = admission.profile
        context = admission.vpn.context
        client_id = packet.client_id
        assigned = ""
        if not client_id:
            assigned = admission.vpn.credentials.assigned_client_id(context.ids.next())
            client_id = assigned
        spool = spool_of(context) if profile.allow_guaranteed_msg_send_enabled else None
        session, present = self._take_session(admission, client_id, spool is not None)
        publisher = _publisher(connection, admission, session)
        if spool is not None:
            says_no_match = profile.reject_msg_to_sender_on_no_subscription_match_enabled
            connection.ingress = QosReceiver(
                connection, publisher, session, spool, says_no_match, profile.end_to_end_bridge
            )
        admission.vpn.publishers[client_id] = publisher
        longest_s = profile.max_keepalive_timeout
        keep_alive_s = packet.keep_alive_s
        if longest_s and not 0 < keep_alive_s <= longest_s:
            keep_alive_s = longest_s
        connection.established(keep_alive_s)
        connection.outbox.control(self._connack(present, assigned, keep_alive_s))
        connection.report_connected(publisher)
        if session.outbound is not None:
            session.outbound.resume()

    def _take_session(
        self, admission: Admission, client_id: str, guaranteed: bool
    ) -> tuple[MqttSession, bool]:
        """The session of this client id, with the connection attached, and whether it was there before."""
        connection = self._connection
        packet = self._packet
        properties = packet.properties
        vpn = admission.vpn
        old = vpn.clients.get(client_id)
        session = old if isinstance(old, MqttSession) else None
        if old is not None and session is None and not old.give_way():
            raise ProtocolError(reason.CLIENT_IDENTIFIER_NOT_VALID, NAME_IN_USE)
        owner = admission.username.name
        present = False
        if session is not None and session.owner and session.owner != owner:
            raise Refused(NAME_IN_USE, NOT_AUTHORIZED)
        will = _will(admission, packet, client_id, guaranteed)
        expiry_s = _expiry_s(admission, packet)
        _have_room(admission, session, will, expiry_s)
        if session is not None:
            if session.connection is not None:
                session.connection.taken_over()
            if packet.clean_start or session.expiry_s == 0:
                # Without an expiry interval a session ends with its connection, so there is none to resume.
                session.end()
                session = None
            else:
                present = True
        connection.outbox.set_limit(admission.profile.max_outbox_bytes)
        if session is None:
            session = MqttSession(vpn, client_id, connection.outbox, owner)
            vpn.clients[client_id] = session
        elif not session.owner:
            session.belong_to(owner)
        # Before it is changed or attached: if the code below raises, the end of the connection detaches it.
        connection.session = session
        session.expiry_s = expiry_s
        if expiry_s:
            session.last()
        if not present:
            session.durable = session.expiry_s > 0 and vpn.context.spool is not None
        session.have_will(will)
        changed = session.judge(admission)
        if changed and present:
            report_rights(vpn, client_id, admission, changed)
        session.is_bridge = packet.is_bridge
        session.attach(
            connection,
            packet.level,
            properties.topic_alias_maximum or 0,
            properties.maximum_packet_size or 0,
            properties.receive_maximum or 0,
        )
        return session, present

    def _connack(self, present: bool, assigned: str, keep_alive_s: int) -> bytes:
        connection = self._connection
        packet = self._packet
        answer = Connack(present, reason.SUCCESS)
        if packet.protocol_level == 5:
            properties = answer.properties
            if connection.ingress is None:
                properties.maximum_qos = 0
            else:
                properties.receive_maximum = limits.RECEIVE_MAXIMUM
            properties.topic_alias_maximum = limits.TOPIC_ALIASES
            properties.maximum_packet_size = connection.max_packet
            wanted_s = packet.properties.session_expiry_interval or 0
            if connection.session is not None and connection.session.expiry_s != wanted_s:
                properties.session_expiry_interval = connection.session.expiry_s
            if keep_alive_s != packet.keep_alive_s:
                properties.server_keep_alive = keep_alive_s
            if assigned:
                properties.assigned_client_identifier = assigned
            if packet.properties.request_response_information:
                client = assigned or packet.client_id
                properties.response_information = f"_P2P/{connection.context.router_name}/{client}"
        return connection.fitting(answer)


def _publisher(connection: MqttConnection, admission: Admission, session: MqttSession) -> Publisher:
    """Set up the publisher of the connection, as the present rights allow."""
    vpn = admission.vpn
    context = vpn.context
    publisher = Publisher(
        vpn,
        session,
        session.publish_rule,
        1 if connection.level == 5 else 0,
        vpn.limits.max_msg_size,
    )
    publisher.username = admission.username
    large = vpn.limits.large_msg_size
    if 0 < large < publisher.max_frame:
        # Those above are looked at one by one: the batch path asks for nothing more than before.
        publisher.max_frame = large
    provided = vpn.provider_clients.get(session.client_name)
    if provided is not None and provided.incoming:
        publisher.elsewhere = provided.incoming
        publisher.max_frame = 0
    if context.filters:
        assign(context, publisher, admission.username.name)
    if context.discard_rows is not None:
        connection.outbox.losses = context.discard_rows.of(vpn.name, session)
    vpn.occupy(admission.username.name)
    connection.publisher = publisher
    connection.max_packet = (
        vpn.limits.max_msg_size + vpn.limits.max_topic_bytes + limits.PROPERTY_BYTES
    )
    return publisher


def _holder(vpn: MessageVpn, client_id: str) -> Admission | None:
    """The admission of the connection that holds the session of `client_id` now; a login takes it over."""
    session = vpn.clients.get(client_id)
    connection = session.connection if isinstance(session, MqttSession) else None
    return None if connection is None else connection.admission


def _expiry_s(admission: Admission, packet: Connect) -> int:
    """Seconds for which the session outlives its connection."""
    if packet.protocol_level == 5:
        wanted_s = packet.properties.session_expiry_interval or 0
    else:
        wanted_s = 0 if packet.clean_start else NEVER_S
    longest_s = admission.profile.max_mqtt_session_expiry_interval
    return min(wanted_s, longest_s) if longest_s else wanted_s


def _have_room(
    admission: Admission, session: MqttSession | None, will: Will | None, expiry_s: int
) -> None:
    """Raise Refused where the client username or the message VPN has as many sessions or wills as it may."""
    vpn = admission.vpn
    name = admission.username.name
    if expiry_s and (session is None or not session.lasting):
        most = admission.profile.max_mqtt_session_count_per_client_username
        if not vpn.lasting.fits(name, 1, most):
            raise Refused("503 Too Many Sessions", reason.QUOTA_EXCEEDED)
    if will is not None:
        before = session.will if session is not None else None
        more = will.size - (0 if before is None else before.size)
        if more > 0 and not vpn.wills.fits(name, more, limits.WILL_BYTES_OF_USERNAME):
            raise Refused("503 Too Many Wills", reason.QUOTA_EXCEEDED)


def _will(admission: Admission, packet: Connect, client_id: str, guaranteed: bool) -> Will | None:
    wanted = packet.will
    if wanted is None:
        return None
    if wanted.qos and not guaranteed and packet.protocol_level == 5:
        raise ProtocolError(reason.QOS_NOT_SUPPORTED, "maximum QoS is 0 (MQTT-3.2.2-12)")
    vpn = admission.vpn
    try:
        text = parse_topic(wanted.topic, vpn.limits.max_topic_levels, vpn.limits.max_topic_bytes)
    except TopicError as error:
        raise ProtocolError(reason.TOPIC_NAME_INVALID, str(error)) from error
    rule = admission.acl.publish.bound(admission.username.name, client_id)
    if rule is not None and not rule.allows_topic(text):
        raise ProtocolError(reason.NOT_AUTHORIZED, "403 Publish ACL Denied")
    if len(wanted.payload) > vpn.limits.max_msg_size:
        raise ProtocolError(reason.PACKET_TOO_LARGE, "400 Document Is Too Large")
    message = Message(wanted.topic, wanted.payload, message_block(wanted.properties), wanted.retain)
    message.source_name = client_id
    if guaranteed:
        message.qos = wanted.qos
    expiry_s = wanted.properties.message_expiry_interval
    return Will(
        message,
        wanted.properties.will_delay_interval or 0,
        -1 if expiry_s is None else expiry_s,
    )
