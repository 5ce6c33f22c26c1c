"""Subscribing at a broker: messages are written out, then acknowledged, then counted."""

import time
from collections.abc import Callable, Sequence
from typing import Final, final

from vpnrouter.cli._mqtt_link import MqttLink, said
from vpnrouter.cli._mqtt_stamp import stamp_of
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Ack, Packet, Publish, Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import (
    IMPLEMENTATION_SPECIFIC_ERROR,
    PACKET_IDENTIFIER_NOT_FOUND,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    SUCCESS,
)

_FAILED: Final = 0x80

_SUBSCRIBE_ID: Final = 1

_ANSWER_S: Final = 30.0
"""Seconds that a broker has to answer SUBSCRIBE: a queue's consumer may have to wait for a commit."""

_LAST_S: Final = 5.0
"""Seconds to finish what was begun at QoS 2 before leaving."""

Write = Callable[[Sequence[Publish], int], None]
"""Takes messages and when they came, in nanoseconds since 1970; what it has written may be acknowledged."""


@final
class Subscriber:
    """Receives over `link` what the `requests` ask for; at most `count` messages, 0 for no end.

    `accept` says whether messages of QoS 1 and 2 are acknowledged or rejected: MQTT 5 gives a rejected one
    back with reason code 0x83, upon which our routers put it into the dead message queue.
    """

    def __init__(
        self,
        link: MqttLink,
        requests: list[SubscriptionRequest],
        write: Write,
        *,
        properties: Properties | None = None,
        count: int = 0,
        accept: bool = True,
    ) -> None:
        self.total = 0
        self.bytes = 0
        self.latencies_ns: list[int] = []
        """Of the messages since they were last cleared that say when they were published."""
        self._link = link
        self._requests = requests
        self._write = write
        self._properties = properties
        self._count = count
        self._reason = SUCCESS if accept else IMPLEMENTATION_SPECIFIC_ERROR
        self._recorded: set[int] = set()
        """Packet ids of QoS 2 that are received and not yet released."""

    @property
    def done(self) -> bool:
        """Whether `count` messages are there."""
        return bool(self._count) and self.total >= self._count

    def subscribe(self) -> list[str]:
        """Subscribe; returns what was granted, a line a filter. Raises OperationError for a refusal."""
        self._link.say(Subscribe(_SUBSCRIBE_ID, self._requests, self._properties))
        end_s = time.monotonic() + _ANSWER_S
        while time.monotonic() < end_s:
            packets = self._link.receive(end_s)
            # Retained messages may come before the answer (MQTT 3.8.4).
            self._take(packets)
            for packet in packets:
                if isinstance(packet, Suback):
                    return self._granted(packet)
        raise OperationError(f"SUBSCRIBE was not answered within {_ANSWER_S:.0f} s")

    def receive(self, until_s: float) -> None:
        """Take what comes, until something came or `until_s` (of time.monotonic)."""
        self._take(self._link.receive(until_s))

    def finish(self) -> None:
        """Take leave: exchanges of QoS 2 that were begun are ended first."""
        end_s = time.monotonic() + _LAST_S
        while self._recorded and time.monotonic() < end_s:
            self._take(self._link.receive(end_s))
        self._link.end()

    def _granted(self, packet: Suback) -> list[str]:
        lines, refused = [], []
        for request, code in zip(self._requests, packet.reason_codes, strict=False):
            if code >= _FAILED:
                refused.append(f"{request.filter}: {said(code, packet.properties)}")
            else:
                less = f", {request.qos} was asked for" if code < request.qos else ""
                lines.append(f"subscribed to {request.filter} (QoS {code}{less})")
        if refused:
            raise OperationError("refused " + "; ".join(refused))
        return lines

    def _take(self, packets: Sequence[Packet]) -> None:
        now_ns = time.time_ns()
        new: list[Publish] = []
        replies: list[Packet] = []
        for packet in packets:
            if isinstance(packet, Publish):
                self._arrived(packet, new, replies)
            elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                known = packet.packet_id in self._recorded
                self._recorded.discard(packet.packet_id)
                code = SUCCESS if known else PACKET_IDENTIFIER_NOT_FOUND
                replies.append(Ack(PUBCOMP, packet.packet_id, code))
        if new:
            self._write(new, now_ns)
            for packet in new:
                self.bytes += len(packet.payload)
                sent_ns = stamp_of(packet.payload)
                if sent_ns:
                    self.latencies_ns.append(now_ns - sent_ns)
        if replies:
            level = self._link.level
            self._link.send(b"".join([encode(reply, level) for reply in replies]))

    def _arrived(self, packet: Publish, new: list[Publish], replies: list[Packet]) -> None:
        if packet.qos == 2 and packet.packet_id in self._recorded:
            replies.append(Ack(PUBREC, packet.packet_id))
            return
        if self.done:
            return  # not acknowledged: it is for somebody else, or for the next time
        self.total += 1
        new.append(packet)
        if packet.qos == 1:
            replies.append(Ack(PUBACK, packet.packet_id, self._reason))
        elif packet.qos == 2:
            replies.append(Ack(PUBREC, packet.packet_id, self._reason))
            if self._reason == SUCCESS:
                self._recorded.add(packet.packet_id)
