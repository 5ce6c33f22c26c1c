"""Implements the two protocols that the generator speaks, MQTT 3.1.1 and NATS, for one scenario code.

A dialect says how a client introduces itself, subscribes and publishes, what exactly a broker then
delivers, and how a received stream splits into messages.
"""

from __future__ import annotations

import socket
from typing import Final, Protocol

from typing_extensions import override

from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt import (
    Connect,
    Publish,
    Subscribe,
    SubscriptionRequest,
    encode_publish,
    frame_at,
)
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode

_LEVEL: Final = 4

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

    def topic(self, number: int) -> str:
        """Topic `number`; all topics have the same length in both dialects."""

    def everything(self) -> str:
        """A subscription that matches all topics."""

    def greet(self, sock: socket.socket, client: str) -> None:
        """Logs in on a connected blocking socket and waits for the acceptance."""

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

    @override
    def topic(self, number: int) -> str:
        return f"bench/t{number:04d}"

    @override
    def everything(self) -> str:
        return "bench/#"

    @override
    def greet(self, sock: socket.socket, client: str) -> None:
        sock.sendall(encode(Connect(client, protocol_level=_LEVEL), _LEVEL))
        reply = _exactly(sock, 4)
        if reply != b"\x20\x02\x00\x00":
            raise ConnectionError(f"CONNECT was answered with {reply.hex()}")

    @override
    def subscribe(self, sock: socket.socket, topics: list[str]) -> None:
        requests = [SubscriptionRequest(topic) for topic in topics]
        sock.sendall(encode(Subscribe(1, requests), _LEVEL))
        reply = _exactly(sock, 4 + len(topics))
        if reply[:4] != bytes((0x90, 2 + len(topics), 0, 1)) or any(reply[4:]):
            raise ConnectionError(f"SUBSCRIBE was answered with {reply.hex()}")

    @override
    def publish(self, topic: str, payload: bytes) -> bytes:
        return encode_publish(topic.encode(), payload, _LEVEL)

    @override
    def delivered(self, topic: str, payload: bytes, identifier: int = 0) -> bytes:
        return encode_publish(topic.encode(), payload, _LEVEL)

    @override
    def split(self, data: bytes) -> tuple[list[Message], int]:
        messages: list[Message] = []
        place = 0
        while size := frame_at(data, place, len(data), MQTT_PACKET_BYTES):
            packet = decode(data, place, size, _LEVEL)
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

    @override
    def topic(self, number: int) -> str:
        return f"bench.t{number:04d}"

    @override
    def everything(self) -> str:
        return "bench.>"

    @override
    def greet(self, sock: socket.socket, client: str) -> None:
        information = _until(sock, b"\r\n")
        if not information.startswith(b"INFO "):
            raise ConnectionError(f"no INFO but {information[:40]!r}")
        options = f'{{"verbose":false,"pedantic":false,"name":"{client}","protocol":1}}'
        sock.sendall(f"CONNECT {options}\r\nPING\r\n".encode())
        self._await_pong(sock)

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


MQTT: Final = Mqtt()
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
