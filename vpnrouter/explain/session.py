"""An MQTT 5 client of the mesh in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.login import PeerCertificate
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.explain.wire import take_all
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
    from vpnrouter.explain.node import Node
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
        node: Node,
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
        """The certificate that names the client username, where only certificates let it in."""
        written = self.node.loaded.config.msg_vpns[self.vpn].authentication
        if not written.client_cert.enabled or not self.client_username:
            return None
        known = self.node.router.vpns[self.vpn].credentials.usernames.get(self.client_username)
        if written.basic.enabled and known is not None and known.password is not None:
            return None
        name = self.client_username
        wall_ns = self.node.router.plane.wall_ns
        return PeerCertificate(name, (name,), name, wall_ns, wall_ns, 0, f"CN={name}")

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
        """Take in what the router says; whether it said anything."""
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
                said = packet.properties.reason_string or reason_text(packet.reason_code)
                self.refused = said
            else:
                self.connected = True
        elif isinstance(packet, Disconnect):
            said = packet.properties.reason_string or reason_text(packet.reason_code)
            if self.connected:
                self.answer = f"disconnected: {said}"
            else:
                self.refused = said
        elif isinstance(packet, Suback):
            asked = self._asked.get(packet.packet_id, [])
            said = packet.properties.reason_string or ""
            for text, code in zip(asked, packet.reason_codes, strict=False):
                if code >= UNSPECIFIED_ERROR:
                    self.denied[text] = said or reason_text(code)
        elif isinstance(packet, Publish):
            self.messages.append(packet)
        elif isinstance(packet, Ack):
            self.answer = packet.properties.reason_string or reason_text(packet.reason_code)
