"""The client's end of a connection to an MQTT broker: bytes to packets, and which packet is allowed when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64
from typing_extensions import override

from vpnrouter.connectors.provider_connection import ProviderConnection
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.fields import frame_at

if TYPE_CHECKING:
    from vpnrouter.connectors.mqtt.client import MqttClient
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.turn import TurnContext

GREETING: Final = 0
"""CONNECT is out; CONNACK is due."""

JOINED: Final = 1
"""The provider has let the router in."""

ALLOWED: Final[dict[tuple[int, int], str]] = {
    (GREETING, 2): "answer",
    (JOINED, 3): "publish",
    (JOINED, 4): "acknowledge",
    (JOINED, 5): "acknowledge",
    (JOINED, 6): "acknowledge",
    (JOINED, 7): "acknowledge",
    (JOINED, 9): "answer",
    (JOINED, 11): "answer",
    (JOINED, 13): "answer",
    (JOINED, 14): "answer",
}
"""(state, packet type) → what happens. What is missing is an error of the provider."""

PUBLISH_TYPE: Final = 3

PACKET_WORK: Final = 5
"""What a packet costs that is handled alone, in parts of a turn (TurnContext.work)."""

ACK_BYTES: Final = 512
ACK_WORK: Final = 60
"""Bytes of short acknowledgements that are handled at once, and what they cost."""

HEAD_BYTES: Final = 5 + 2 + 65_535 + 2
"""Bytes of a PUBLISH that tell its topic and its packet identifier, at most."""

SHORT_PUBACK: Final = 0x40
SHORT_PUBREC: Final = 0x50
SHORT_PUBREL: Final = 0x62
SHORT_PUBCOMP: Final = 0x70


@final
class MqttProviderConnection(ProviderConnection):
    """One connection to a provider, of `client`. `most` bounds a packet that it may send."""

    __slots__ = ("_skipped", "client", "most", "state")

    def __init__(
        self, context: TurnContext, client: MqttClient, peer: str, home: MemoryAccount, most: int
    ) -> None:
        super().__init__(context, client, peer, home)
        self.client = client
        self.most = most
        self.state = GREETING
        # Bytes still to come of a message that is too large to be taken.
        self._skipped = 0

    # -- input -----------------------------------------------------------------------------------

    @override
    def consume(self, data: bytes, pos: int) -> int:
        if self.ended:
            return -1
        end = len(data)
        context = self.context
        try:
            while pos < end and not self.paused:
                if context.work > context.allowance:
                    self.rest()
                    break
                if self._skipped:
                    gone = min(self._skipped, end - pos)
                    self._skipped -= gone
                    pos += gone
                    continue
                if self.state == JOINED and data[pos] & 0xC0 == 0x40:
                    pos = self._scan_acks(data, pos, min(end, pos + ACK_BYTES))
                    context.work += ACK_WORK
                    if pos >= end or self.paused:
                        break
                length = self._frame(data, pos, end)
                if length == 0:
                    break
                if length > end - pos:
                    # Its head was handled; the rest is passed over as it comes.
                    self._skipped = length - (end - pos)
                    pos = end
                    break
                context.work += PACKET_WORK
                self._handle(data, pos, length)
                pos += length
                if self.closing:
                    return -1
        except ProtocolError as error:
            self.client.violated(error)
            return -1
        return pos

    def _frame(self, data: bytes, pos: int, end: int) -> int:
        """Return the length of the packet at `pos`, 0 where it is not complete.

        It is more than what is there where a message is too large: its head has been handled then.
        Raises ProtocolError for one that is too large and no message.
        """
        if data[pos] >> 4 != PUBLISH_TYPE or self.state != JOINED:
            return frame_at(data, pos, end, self.most)
        length = _length(data, pos, end)
        if length <= self.most:
            return frame_at(data, pos, end, self.most)
        if end - pos < min(length, HEAD_BYTES):
            return 0
        self.client.passes_over(data, pos, end, length)
        return max(end - pos, length)

    def _handle(self, data: bytes, pos: int, length: int) -> None:
        kind = data[pos] >> 4
        action = ALLOWED.get((self.state, kind))
        client = self.client
        if action == "publish":
            client.publish(data, pos, length)
        elif action == "acknowledge":
            client.acknowledge(data, pos, length)
        elif action == "answer":
            client.answer(data, pos, length)
        else:
            raise ProtocolError(reason.PROTOCOL_ERROR, f"it sent packet type {kind} out of turn")

    def _scan_acks(self, buf: bytes, pos: i64, end: i64) -> i64:
        """Handle the four-byte acknowledgements that begin at `pos`; return the position of the first other byte."""
        client = self.client
        outgoing = client.outgoing
        incoming = client.incoming
        while end - pos >= 4 and buf[pos + 1] == 2:
            kind: i64 = buf[pos]
            high: i64 = buf[pos + 2]
            low: i64 = buf[pos + 3]
            packet_id: i64 = high << 8 | low
            if kind == SHORT_PUBACK:
                outgoing.puback(packet_id, 0, "")
            elif kind == SHORT_PUBREC:
                outgoing.pubrec(packet_id, 0, "")
            elif kind == SHORT_PUBREL:
                incoming.release(packet_id)
            elif kind == SHORT_PUBCOMP:
                client.completed(packet_id)
            else:
                return pos
            pos += 4
        return pos

    @override
    def largest(self) -> int:
        return self.most


def _length(data: bytes, pos: int, end: int) -> int:
    """Return the bytes of the packet at `pos`, -1 where its head is not complete, or not valid (`frame_at` says so)."""
    length = 0
    shift = 0
    for at in range(pos + 1, min(end, pos + 5)):
        byte = data[at]
        length |= (byte & 127) << shift
        if byte < 128:
            return length + at + 1 - pos
        shift += 7
    return -1
