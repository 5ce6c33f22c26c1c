"""One connection to an MQTT broker, over a plain blocking socket: packets out and in, and the time inside a payload."""

from __future__ import annotations

import re
import time
from typing import Final, Self, final

from vpnrouter import limits
from vpnrouter.cli._broker_options import Broker
from vpnrouter.cli._broker_socket import ANSWER_S, BrokerSocket, ConnectionLost
from vpnrouter.errors import OperationError, ProtocolError
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at, read_varint
from vpnrouter.wire.mqtt.packets import Connack, Connect, Disconnect, Packet, Pingreq, Pingresp
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import reason_text

_STAMP: Final = re.compile(rb"@(\d{19}) ")

STAMP_BYTES: Final = 21


def stamped(payload: bytes, now_ns: int) -> bytes:
    """`@NANOSECONDS-SINCE-1970 ` before the payload, in its first bytes where it has as many random ones."""
    return b"@%019d %b" % (now_ns, payload)


def stamp_of(payload: bytes) -> int:
    """When a payload was published, in nanoseconds since 1970; 0 where it does not say."""
    found = _STAMP.match(payload)
    return int(found[1]) if found else 0


_LONGEST_WAIT_S: Final = 3_600.0
"""Seconds that stand for no limit: a socket's timeout must be a number."""

_LEAST_HEADER: Final = 5
"""Bytes that hold any length field."""


@final
class MqttLink:
    """A connection whose CONNECT was answered well; `connack` is the answer.

    Raises OperationError, in one line with the way out, when there is no broker, it refuses, breaks the
    protocol or ends the connection, here and in all methods.
    """

    def __init__(self, broker: Broker, connect: Connect) -> None:
        self._broker = broker
        self._level = broker.level
        self._keep_alive_s = float(broker.keep_alive_s)
        self._parts: list[bytes] = []
        self._held = 0
        self._need = 0
        self._ping_sent_s = 0.0
        self._answers = 0
        self._early: list[Packet] = []
        """What came right behind the answer to CONNECT: messages of a session that lasts."""
        self._socket = BrokerSocket(broker)
        try:
            self.connack = self._open(connect)
        except BaseException:
            self._socket.close()
            raise
        server_keep_alive = self.connack.properties.server_keep_alive
        if server_keep_alive is not None:
            self._keep_alive_s = float(server_keep_alive)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def level(self) -> int:
        """4 (MQTT 3.1.1) or 5."""
        return self._level

    def send(self, data: bytes) -> None:
        """Hand over encoded packets; returns when the system has taken them."""
        try:
            self._socket.send(data)
        except ConnectionLost:
            # It may have said why before it closed.
            self._last_words()
            raise

    def send_packet(self, packet: Packet) -> None:
        """Send one packet."""
        self.send(encode(packet, self._level))

    def receive(self, until_s: float) -> list[Packet]:
        """What has come; waits for it until `until_s` (of time.monotonic), and pings meanwhile when it is
        time. [] when nothing came, or the answer to a ping.
        """
        if self._early:
            early, self._early = self._early, []
            return early
        while True:
            now_s = time.monotonic()
            self._keep_alive(now_s)
            wakes_s = min(until_s, now_s + _LONGEST_WAIT_S)
            if self._keep_alive_s:
                wakes_s = min(wakes_s, self._next_ping_s())
            chunk = self._read(max(0.0, wakes_s - now_s))
            if chunk:
                self._ping_sent_s = 0.0
                answers = self._answers
                packets = self._packets(chunk)
                if packets or self._answers != answers:
                    return packets
            if chunk is None and time.monotonic() >= until_s:
                return []

    def settle(self, patience_s: float = ANSWER_S) -> list[Packet]:
        """Wait until the broker has read everything that was sent: it answers a ping behind it. Returns
        what else came.
        """
        answers = self._answers
        self.send_packet(Pingreq())
        end_s = time.monotonic() + patience_s
        packets: list[Packet] = []
        while self._answers == answers:
            packets += self.receive(end_s)
            if time.monotonic() >= end_s:
                raise OperationError(f"{self._broker} does not answer within {patience_s:.0f} s")
        return packets

    def end(self) -> None:
        """Send DISCONNECT and wait until the broker closes, so that nothing on its way is lost."""
        self._socket.end(encode(Disconnect(), self._level))

    def _open(self, connect: Connect) -> Connack:
        self.send(encode(connect, self._level))
        end_s = time.monotonic() + ANSWER_S
        while time.monotonic() < end_s:
            chunk = self._read(end_s - time.monotonic())
            packets = self._packets(chunk) if chunk else []
            if packets:
                self._early = packets[1:]
                return self._admitted(packets[0])
        raise OperationError(f"{self._broker} did not answer; is it an MQTT broker?")

    def _admitted(self, packet: Packet) -> Connack:
        if not isinstance(packet, Connack):
            raise OperationError(f"{self._broker} answered CONNECT with another packet")
        if packet.reason_code:
            raise OperationError(
                f"{self._broker} refused client {self._broker.client_id}:"
                f" {describe_reason(packet.reason_code, packet.properties)}{_hint(self._broker)}"
            )
        return packet

    def _next_ping_s(self) -> float:
        """When the next ping is due, or the answer to the one that was sent."""
        return (self._ping_sent_s or self._socket.sent_s) + self._keep_alive_s

    def _keep_alive(self, now_s: float) -> None:
        if not self._keep_alive_s or now_s < self._next_ping_s():
            return
        if self._ping_sent_s:
            raise OperationError(
                f"{self._broker} did not answer a ping within {self._keep_alive_s:.0f} s"
            )
        self.send_packet(Pingreq())
        self._ping_sent_s = now_s

    def _read(self, wait_s: float) -> bytes | None:
        """Bytes that came within `wait_s`, None when none did."""
        chunk = self._socket.read(wait_s)
        if chunk == b"":
            hint = (
                "; a broker of MQTT 3.1.1 says no in this way, --mqtt 5 may bring the reason"
                if self._level == 4
                else ""
            )
            raise OperationError(f"{self._broker} closed the connection{hint}")
        return chunk

    def _packets(self, chunk: bytes) -> list[Packet]:
        if self._held:
            # A large packet comes in many pieces: joining them at each would be quadratic.
            self._parts.append(chunk)
            self._held += len(chunk)
            if self._held < self._need:
                return []
            chunk = b"".join(self._parts)
        found: list[Packet] = []
        start, end = 0, len(chunk)
        try:
            while size := frame_at(chunk, start, end, limits.MQTT_CLIENT_PACKET_BYTES):
                packet = decode(chunk, start, size, self._level)
                start += size
                if isinstance(packet, Pingresp):
                    self._answers += 1
                elif isinstance(packet, Disconnect):
                    why = describe_reason(packet.reason_code, packet.properties)
                    raise OperationError(f"{self._broker} ended the connection: {why}")
                else:
                    found.append(packet)
        except ProtocolError as error:
            raise OperationError(f"{self._broker} breaks the protocol: {error}") from None
        self._hold(chunk[start:])
        return found

    def _hold(self, rest: bytes) -> None:
        self._parts = [rest] if rest else []
        self._held = len(rest)
        self._need = self._held + 1
        if self._held >= _LEAST_HEADER:
            length, start = read_varint(rest, 1, len(rest))
            self._need = start + length

    def _last_words(self) -> None:
        """Raise what the broker said before it closed, if it did."""
        while chunk := self._read(0.2):
            self._packets(chunk)


def describe_reason(reason_code: int, properties: Properties) -> str:
    """`0x97 Quota exceeded (503 Spool Over Quota)`."""
    text = reason_text(reason_code)
    return f"{text} ({properties.reason_string})" if properties.reason_string else text


def _hint(broker: Broker) -> str:
    return "" if broker.username else "; it may want --user and --password-file"
