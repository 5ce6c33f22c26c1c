"""Implements the two protocols that the generator speaks, MQTT 3.1.1 and NATS, for one scenario code.

A dialect says how a client introduces itself, subscribes and publishes, what exactly a broker then
delivers, and how a received stream splits into messages.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, Protocol

from typing_extensions import override

from bench.receiver import unframed
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt import (
    Connack,
    Connect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    encode_publish,
    frame_at,
)
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.properties import Properties, encode_block

_PROPERTIES: Final = encode_block(
    Properties(content_type="application/octet-stream", user_properties=[("site", "one")])
)
_MASK: Final = bytes((0x3B, 0xC7, 0x51, 0xE8))
_UPGRADE: Final = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)

Message = tuple[str, bytes]
"""Topic and payload."""


class Dialect(Protocol):
    """What the scenarios need to know of a protocol."""

    name: str
    head: int
    """First byte of every delivered frame."""
    intruder: bytes
    """Control line that the broker may put between frames; empty when it never does."""
    answer: bytes
    """What the broker wants to hear then."""
    after_topic: int
    """Bytes between topic and payload of a delivered message."""
    framed: bool
    """Whether packets come in WebSocket frames."""

    def topic(self, number: int) -> str:
        """Topic `number`; all topics have the same length in both dialects."""

    def everything(self) -> str:
        """A subscription that matches all topics."""

    def greet(self, sock: socket.socket, client: str, tls: ssl.SSLContext | None) -> socket.socket:
        """Logs in on a connected blocking socket, over TLS where there is a context, and waits for the acceptance.

        Returns the socket to go on with.
        """

    def subscribe(self, sock: socket.socket, topics: list[str]) -> None:
        """Subscribes (the n-th topic under identifier n, 0..9 at most) and waits until it is
        active.
        """

    def publish(self, topic: str, payload: bytes) -> bytes:
        """The frame that a publisher sends."""

    def delivered(self, topic: str, payload: bytes, identifier: int = 0) -> bytes:
        """The frame that a subscriber gets under subscription `identifier`."""

    def split(self, data: bytes) -> tuple[list[Message], int]:
        """Whole messages in `data` and how many bytes they and control lines take up."""


class Mqtt(Dialect):
    """MQTT 3.1.1 by this project's own codec: clean session, no keep-alive, QoS 0."""

    name = "mqtt"
    head = 0x30
    intruder = b""
    answer = b""
    after_topic = 0
    framed = False
    level = 4

    def to_wire(self, packet: bytes) -> bytes:
        """What is sent for one packet."""
        return packet

    def _reply(self, sock: socket.socket) -> Packet:
        """The next packet of the broker, a short one."""
        head = _exactly(sock, 2)
        return decode(head + _exactly(sock, head[1]), 0, 2 + head[1], self.level)

    @override
    def topic(self, number: int) -> str:
        return f"bench/t{number:04d}"

    @override
    def everything(self) -> str:
        return "bench/#"

    @override
    def greet(self, sock: socket.socket, client: str, tls: ssl.SSLContext | None) -> socket.socket:
        if tls is not None:
            sock = tls.wrap_socket(sock)
        self.log_in(sock, client)
        return sock

    def log_in(self, sock: socket.socket, client: str) -> None:
        """CONNECT, and its answer."""
        sock.sendall(self.to_wire(encode(Connect(client, protocol_level=self.level), self.level)))
        reply = self._reply(sock)
        if not isinstance(reply, Connack) or reply.reason_code:
            raise ConnectionError(f"CONNECT was answered with {reply!r}")

    @override
    def subscribe(self, sock: socket.socket, topics: list[str]) -> None:
        requests = [SubscriptionRequest(topic) for topic in topics]
        sock.sendall(self.to_wire(encode(Subscribe(1, requests), self.level)))
        reply = self._reply(sock)
        if not isinstance(reply, Suback) or any(reply.reason_codes):
            raise ConnectionError(f"SUBSCRIBE was answered with {reply!r}")

    @override
    def publish(self, topic: str, payload: bytes) -> bytes:
        return encode_publish(topic.encode(), payload, self.level)

    @override
    def delivered(self, topic: str, payload: bytes, identifier: int = 0) -> bytes:
        return encode_publish(topic.encode(), payload, self.level)

    @override
    def split(self, data: bytes) -> tuple[list[Message], int]:
        messages: list[Message] = []
        place = 0
        while size := frame_at(data, place, len(data), MQTT_PACKET_BYTES):
            packet = decode(data, place, size, self.level)
            if not isinstance(packet, Publish):
                raise TypeError(f"not a PUBLISH: {packet!r}")
            messages.append((packet.topic.decode(), packet.payload))
            place += size
        return messages, place


class Nats(Dialect):
    """NATS client protocol, verbose off."""

    name = "nats"
    head = 0x4D
    intruder = b"PING\r\n"
    answer = b"PONG\r\n"
    after_topic = 0
    framed = False

    @override
    def topic(self, number: int) -> str:
        return f"bench.t{number:04d}"

    @override
    def everything(self) -> str:
        return "bench.>"

    @override
    def greet(self, sock: socket.socket, client: str, tls: ssl.SSLContext | None) -> socket.socket:
        information = _until(sock, b"\r\n")
        if not information.startswith(b"INFO "):
            raise ConnectionError(f"no INFO but {information[:40]!r}")
        if tls is not None:
            sock = tls.wrap_socket(sock)
        options = f'{{"verbose":false,"pedantic":false,"name":"{client}","protocol":1}}'
        sock.sendall(f"CONNECT {options}\r\nPING\r\n".encode())
        self._await_pong(sock)
        return sock

    @override
    def subscribe(self, sock: socket.socket, topics: list[str]) -> None:
        lines = "".join(f"SUB {topic} {number}\r\n" for number, topic in enumerate(topics))
        sock.sendall(lines.encode() + b"PING\r\n")
        self._await_pong(sock)

    def _await_pong(self, sock: socket.socket) -> None:
        while (line := _until(sock, b"\r\n")) != self.answer:
            if line == self.intruder:
                sock.sendall(self.answer)
            elif line.startswith(b"-ERR"):
                raise ConnectionError(line.decode())

    @override
    def publish(self, topic: str, payload: bytes) -> bytes:
        return b"PUB %s %d\r\n%s\r\n" % (topic.encode(), len(payload), payload)

    @override
    def delivered(self, topic: str, payload: bytes, identifier: int = 0) -> bytes:
        return b"MSG %s %d %d\r\n%s\r\n" % (topic.encode(), identifier, len(payload), payload)

    @override
    def split(self, data: bytes) -> tuple[list[Message], int]:
        messages: list[Message] = []
        place = 0
        while (stop := data.find(b"\r\n", place)) >= 0:
            words = data[place:stop].split()
            if words[0] in {b"PING", b"PONG", b"INFO"}:
                place = stop + 2
                continue
            if words[0] != b"MSG":
                raise ValueError(f"not a message: {data[place:stop]!r}")
            end = stop + 2 + int(words[-1])
            if end + 2 > len(data):
                break
            if data[end : end + 2] != b"\r\n":
                raise ValueError(f"payload does not end where it should: {data[place : end + 2]!r}")
            messages.append((words[1].decode(), data[stop + 2 : end]))
            place = end + 2
        return messages, place


class MqttWithProperties(Mqtt):
    """MQTT 5; each message has a content type and a user property."""

    level = 5
    after_topic = len(_PROPERTIES) + 1

    @override
    def publish(self, topic: str, payload: bytes) -> bytes:
        return encode_publish(topic.encode(), payload, self.level, _PROPERTIES)


class MqttOverWebSocket(Mqtt):
    """MQTT 3.1.1 over WebSocket (RFC 6455): each packet in a frame of its own, as client libraries do it."""

    framed = True

    @override
    def log_in(self, sock: socket.socket, client: str) -> None:
        sock.sendall(_UPGRADE)
        answer = _until(sock, b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 101 "):
            raise ConnectionError(f"the upgrade was answered with {answer[:60]!r}")
        super().log_in(sock, client)

    @override
    def to_wire(self, packet: bytes) -> bytes:
        size = len(packet)
        if size < 126:
            head = bytes((0x82, 0x80 | size))
        elif size < 65_536:
            head = bytes((0x82, 0x80 | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x82, 0x80 | 127)) + size.to_bytes(8, "big")
        key = _MASK * (size // 4 + 1)
        mixed = int.from_bytes(packet, "big") ^ int.from_bytes(key[:size], "big")
        return head + _MASK + mixed.to_bytes(size, "big")

    @override
    def publish(self, topic: str, payload: bytes) -> bytes:
        return self.to_wire(super().publish(topic, payload))

    @override
    def _reply(self, sock: socket.socket) -> Packet:
        head = _exactly(sock, 2)
        if head[0] != 0x82:
            raise ConnectionError(f"not a binary frame: {head.hex()}")
        return decode(_exactly(sock, head[1]), 0, head[1], self.level)

    @override
    def split(self, data: bytes) -> tuple[list[Message], int]:
        inner, used = unframed(data)
        messages, whole = super().split(inner)
        # A packet that runs over into another frame is read again with the next bytes.
        return (messages, used) if whole == len(inner) else ([], 0)


MQTT: Final = Mqtt()
MQTT_WITH_PROPERTIES: Final = MqttWithProperties()
MQTT_OVER_WEBSOCKET: Final = MqttOverWebSocket()
NATS: Final = Nats()


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            raise ConnectionError(f"the broker closed the connection after {data!r}")
        data += chunk
    return data


def _until(sock: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += _exactly(sock, 1)
    return data
