"""Sends one message through the mesh in memory as an MQTT 5 client, and records what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.errors import Refused
from vpnrouter.explain.mesh_index import attribute, profile_rule, publish_rule, username_rule
from vpnrouter.explain.network import certificate_for, take_all
from vpnrouter.explain.request import PERSISTENT, UsageError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import UNSPECIFIED_ERROR, reason_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vpnrouter.core.credentials import ClientUsername, PeerCertificate
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.explain.mesh import MemoryMesh
    from vpnrouter.explain.providers import Passage
    from vpnrouter.explain.request import Event, ExplainRequest, Rule, Subscriber
    from vpnrouter.explain.router import MemoryRouter
    from vpnrouter.wire.mqtt.packets import Packet


MASKED_PASSWORD: Final = b"***"
"""The password of the clients here: it is taken to be right."""

_MOST_BYTES: Final = 1 << 30
_LASTING_S: Final = 3600


@final
class Session:
    """One client logged in to message VPN `vpn` of `node`, or refused: `refused` says why, else "".

    `denied` are its filters that were not granted with the router's reasons, `answer` is what the router
    said to its message, `messages` are those that it got. The session of one that is `lasting` outlives its
    connection.
    """

    def __init__(
        self,
        node: MemoryRouter,
        vpn: str,
        client_id: str,
        client_username: str,
        address: str = "",
        *,
        lasting: bool = False,
    ) -> None:
        self.node = node
        self.vpn = vpn
        self.client_id = client_id
        self.client_username = client_username
        self.connection = MqttConnection(node.router, address, vpn)
        self.connection.certificate = self._certificate()
        self.refused = ""
        self.answer = ""
        self.denied: dict[str, str] = {}
        self.messages: list[Publish] = []
        self._asked: dict[int, list[str]] = {}
        self._rest = b""
        self.connected = False
        properties = Properties()
        if lasting:
            properties.session_expiry_interval = _LASTING_S
        by_password = self.connection.certificate is None
        self._send(
            Connect(
                client_id,
                username=client_username or None,
                password=MASKED_PASSWORD if client_username and by_password else None,
                properties=properties,
            )
        )

    def _certificate(self) -> PeerCertificate | None:
        """Return the certificate that names the client username, where only certificates let it in."""
        authentication = self.node.loaded.config.msg_vpns[self.vpn].authentication
        if not authentication.client_cert.enabled or not self.client_username:
            return None
        known = self.node.router.vpns[self.vpn].credentials.usernames.get(self.client_username)
        if authentication.basic.enabled and known is not None and known.password is not None:
            return None
        return certificate_for(self.client_username, self.node.router.context.wall_ns)

    def subscribe(self, filters: list[tuple[str, int]]) -> None:
        """Subscribe to filters in MQTT's dialect, each with its QoS."""
        number = len(self._asked) + 1
        self._asked[number] = [text for text, _ in filters]
        requests = [SubscriptionRequest(text, qos) for text, qos in filters]
        self._send(Subscribe(number, requests))

    def publish(self, topic: bytes, payload: bytes, qos: int, pairs: list[tuple[str, str]]) -> None:
        """Publish one message with these user properties."""
        properties = Properties()
        properties.user_properties = pairs
        self._send(Publish(topic, payload, qos, packet_id=1 if qos else 0, properties=properties))

    def leave(self) -> None:
        """End the connection."""
        self.connection.lost("gone")

    def _send(self, packet: Packet) -> None:
        if not self.connection.closing:
            self.connection.feed(encode(packet, 5))

    def pump(self) -> bool:
        """Read what the router sends; return whether it sent anything."""
        data = take_all(self.connection)
        if not data:
            return False
        data = self._rest + data
        pos = 0
        while length := frame_at(data, pos, len(data), _MOST_BYTES):
            self._hear(decode(data, pos, length, 5))
            pos += length
        self._rest = data[pos:]
        return True

    def _hear(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            if packet.reason_code:
                reason = packet.properties.reason_string or reason_text(packet.reason_code)
                self.refused = reason
            else:
                self.connected = True
        elif isinstance(packet, Disconnect):
            reason = packet.properties.reason_string or reason_text(packet.reason_code)
            if self.connected:
                self.answer = f"disconnected: {reason}"
            else:
                self.refused = reason
        elif isinstance(packet, Suback):
            filters = self._asked.get(packet.packet_id, [])
            reason = packet.properties.reason_string or ""
            for text, code in zip(filters, packet.reason_codes, strict=False):
                if code >= UNSPECIFIED_ERROR:
                    self.denied[text] = reason or reason_text(code)
        elif isinstance(packet, Publish):
            self.messages.append(packet)
        elif isinstance(packet, Ack):
            self.answer = packet.properties.reason_string or reason_text(packet.reason_code)


CLIENT: Final = "explain"


@final
class Probe:
    """A client that publishes the message of `question`; `events` are what became of it,
    `passages` what left by connectors.

    `refused` says why the router did not even look at the message, "" where it did. Raises UsageError for a
    client username that is not there, or where nobody may log in.
    """

    def __init__(self, memory_mesh: MemoryMesh, request: ExplainRequest) -> None:
        self._twin = memory_mesh
        self._question = request
        self._node = memory_mesh.nodes[request.router]
        vpn = self._node.router.vpns[request.msg_vpn]
        self.client_username = request.client_username or _somebody(self._node, vpn, request.topic)
        self.events: list[Event] = []
        self.passages: list[Passage] = []
        self.session = Session(
            self._node,
            request.msg_vpn,
            _free_name(vpn, CLIENT),
            self.client_username,
            request.client_address,
        )
        self.username = _identify(vpn, self.client_username)
        if self.username is None:
            raise UsageError(
                f"message VPN {request.msg_vpn} of router {request.router} has no client username"
                f" {self.client_username or 'for clients without one'}"
            )

    @property
    def refused(self) -> str:
        """Why the router did not even look at the message, "" where it did."""
        session = self.session
        if session.refused:
            return f"login refused: {session.refused}"
        return session.answer if session.answer.startswith("disconnected") else ""

    def send(self, topic: bytes) -> None:
        """Log in and publish, and let the mesh come to rest."""
        memory_mesh, session, request = self._twin, self.session, self._question
        memory_mesh.sessions.append(session)
        memory_mesh.settle()
        memory_mesh.take_events()
        if session.refused:
            return
        qos = 1 if request.mode == PERSISTENT else 0
        session.publish(topic, request.content, qos, list(request.properties))
        memory_mesh.settle()
        memory_mesh.wait(limits.EXPLAIN_WAIT_MS)
        events = memory_mesh.take_events()
        self.events = events[: limits.EXPLAIN_EVENTS]
        self.passages = memory_mesh.providers.passages

    def rules(self) -> list[Rule]:
        """Return what decides whether the client may publish the message."""
        loaded, username = self._node.loaded, self.username
        vpn = self._question.msg_vpn
        if username is None:
            return []
        rules = [username_rule(loaded, vpn, username)]
        if self.session.refused:
            if not self._node.router.vpns[vpn].enabled:
                return [attribute(loaded, ("msg_vpns", vpn, "enabled"))]
            profile = ("msg_vpns", vpn, "acl_profiles", username.acl_profile, "client_connect")
            return [*rules, attribute(loaded, (*profile, "default_action"))]
        rules.append(
            publish_rule(loaded, vpn, username, self.session.client_id, self._question.topic)
        )
        if self._question.mode == PERSISTENT:
            if self._node.spool is None:
                rules.append(attribute(loaded, ("guaranteed_msging", "enabled")))
            else:
                key = "allow_guaranteed_msg_send_enabled"
                rules.append(profile_rule(loaded, vpn, username, key))
        return rules


def hypothetical(memory_mesh: MemoryMesh, subscribers: Sequence[Subscriber]) -> list[str]:
    """Log these clients in and let them subscribe; return the notes about it.

    Raises UsageError for one at a place that is not in the mesh.
    """
    notes: list[str] = []
    for number, subscriber in enumerate(subscribers[: limits.EXPLAIN_SUBSCRIPTIONS], start=1):
        node = memory_mesh.nodes.get(subscriber.router)
        vpn = None if node is None else node.router.vpns.get(subscriber.msg_vpn)
        if node is None or vpn is None:
            raise UsageError(
                f"the mesh has no message VPN {subscriber.router}/{subscriber.msg_vpn}"
            )
        name = _free_name(vpn, subscriber.name or f"subscriber-{number}")
        username = subscriber.client_username or _somebody(node, vpn, "")
        session = Session(
            node, subscriber.msg_vpn, name, username, lasting=not subscriber.connected
        )
        memory_mesh.sessions.append(session)
        memory_mesh.settle()
        if session.refused:
            notes.append(
                f"client {name} cannot log in to {subscriber.router}/{subscriber.msg_vpn}: {session.refused}"
            )
            continue
        session.subscribe(list(subscriber.filters))
        notes += _settled(memory_mesh, session)
        if not subscriber.connected:
            session.leave()
    return notes


def _settled(memory_mesh: MemoryMesh, session: Session) -> Iterable[str]:
    memory_mesh.settle()
    for text, why in session.denied.items():
        yield f"client {session.client_id} may not subscribe to {text}: {why}"


def _free_name(vpn: MessageVpn, name: str) -> str:
    free = name
    number = 1
    while free in vpn.clients:
        number += 1
        free = f"{name}-{number}"
    return free


def _identify(vpn: MessageVpn, name: str) -> ClientUsername | None:
    """Return the client username that a login with `name` comes to; None where it is not known."""
    known = vpn.credentials.usernames.get(name)
    if known is not None:
        return known
    try:
        return vpn.credentials.identify(name or None)
    except Refused:
        return None


def _somebody(node: MemoryRouter, vpn: MessageVpn, topic: str) -> str:
    """Return a client username that may publish `topic`, else one that may log in; "" where everybody may.

    Raises UsageError where nobody can log in.
    """
    credentials = vpn.credentials
    if not credentials.basic_enabled and credentials.client_cert is None:
        return ""
    names = [
        username
        for username in credentials.usernames.values()
        if username.enabled
        and (username.password is not None or credentials.client_cert is not None)
    ]
    if not names:
        raise UsageError(
            f"nobody can log in to message VPN {node.name}/{vpn.name}: it has no client username with a"
            " password"
        )
    for name in names:
        # A bridge's account may do what no client should be shown to do.
        if vpn.profiles[name.client_profile].allow_bridge_connections_enabled and len(names) > 1:
            continue
        if not topic or _may(vpn, name, topic):
            return name.name
    return next((name.name for name in names if topic and _may(vpn, name, topic)), names[0].name)


def _may(vpn: MessageVpn, username: ClientUsername, topic: str) -> bool:
    rule = vpn.acl_profiles[username.acl_profile].publish
    return rule.bind(username.name, CLIENT).allows_topic(topic)
