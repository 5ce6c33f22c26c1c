"""Encodes messages for an MQTT provider, and says in MQTT 5 where each has been, so that it does not come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.connectors.visited import PATH_NAME, shown, visited
from vpnrouter.core.tracing import leaving
from vpnrouter.trace.events import DELIVER, EVENT_NAMES
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.encode import encode_publish_field
from vpnrouter.wire.mqtt.properties import with_user_properties
from vpnrouter.wire.mqtt.publish_block import publish_block_with

if TYPE_CHECKING:
    from vpnrouter.connectors.links import LinkSettings
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


@final
class Publishing:
    """How messages are sent over one connection.

    `level` is the protocol's, `max_packet` the most bytes of a packet that the provider takes (0: it has not said),
    `retains`: it keeps retained messages. `place` is the provider's name in traces.
    """

    __slots__ = ("_own", "_plain", "_tag", "level", "max_packet", "place", "retains", "vpn")

    def __init__(self, vpn: MessageVpn, place: str, level: int) -> None:
        self.vpn = vpn
        self.place = place
        self.level = level
        self.max_packet = 0
        self.retains = True
        self._own = vpn.vpn_id
        # That of a message which was published here, and all properties of one that has none: most are such.
        self._tag = with_user_properties(b"", [(PATH_NAME, shown([vpn.vpn_id]))])
        self._plain = publish_block_with(self._tag)

    @property
    def too_large(self) -> str:
        """Why a message cannot be sent."""
        return f"it is larger than the {self.max_packet:,} bytes that the provider takes"

    def retain(self, terms: LinkSettings, message: Message) -> bool:
        """Return whether a message leaves with RETAIN."""
        return message.retain and terms.keeps_retained and self.retains

    def frame(
        self,
        message: Message,
        topic: bytes,
        retain: bool,
        qos: int,
        packet_id: int = 0,
        dup: bool = False,
        named: str = "",
        client: str = "",
    ) -> bytes:
        """Return the PUBLISH of a message; b"" where it is too large.

        `named` is the endpoint that it comes from, `client` who sends it, as in the row of its trace.
        """
        message = message.mqtt()
        if self.level < 5:
            frame = encode_publish_field(topic, message.payload, b"", qos, retain, dup, packet_id)
        else:
            field = self._field(message, named, client)
            frame = encode_publish_field(topic, message.payload, field, qos, retain, dup, packet_id)
        if self.max_packet and len(frame) > self.max_packet:
            return b""
        return frame

    def _field(self, message: Message, named: str, client: str) -> bytes:
        if not (message.block or message.path or message.traced or message.expires_ns):
            return self._plain
        block = message.block
        if message.path:
            path = shown([*message.path, self._own])
            block = with_user_properties(visited(block)[0], [(PATH_NAME, path)])
        elif block:
            block = visited(block)[0] + self._tag
        else:
            block = self._tag
        context = self.vpn.context
        if message.traced:
            event = EVENT_NAMES[DELIVER]
            block = leaving(context, message, block, self.vpn.name, event, client, named)
        if not message.expires_ns:
            return publish_block_with(block)
        left_ns = message.expires_ns - context.now_ns
        # It can be more than the interval where the clock was set back while the router was down.
        expiry_s = min(max(0, -(-left_ns // SECOND_NS)), limits.MESSAGE_EXPIRY_S)
        return publish_block_with(block, expiry_s)
