"""Speaks MQTT 3.1.1 at QoS 1 and 2 in bulk: frames of one size, made and read by columns."""

from __future__ import annotations

import socket
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from bench.clients import HANDSHAKE_SECONDS
from bench.guaranteed_body import BODY_BYTES, FILLER, KEY_BYTES, TOPIC, Keys, keys
from bench.guaranteed_ends import BURST, Consumer, Incoming, Outgoing, Producer
from bench.guaranteed_pipe import Pipe
from vpnrouter.wire.mqtt import Connect, Subscribe, SubscriptionRequest, encode_publish
from vpnrouter.wire.mqtt.encode import encode

_LEVEL: Final = 4
_IDENTIFIERS: Final = 65535
_PUBACK: Final = 0x40
_PUBREC: Final = 0x50
_PUBREL: Final = 0x62
_PUBCOMP: Final = 0x70
_SHORT: Final = np.dtype([("head", "u1"), ("length", "u1"), ("pid", ">u2")])


def template(qos: int) -> bytes:
    """A PUBLISH of the bench with packet identifier 0 and key 0."""
    return encode_publish(TOPIC.encode(), bytes(KEY_BYTES) + FILLER, _LEVEL, qos=qos)


def layout(size: int) -> np.dtype[np.void]:
    """Where the columns of a PUBLISH stand."""
    return np.dtype(
        {
            "names": ["head", "pid", "key"],
            "formats": ["u1", ">u2", ">u8"],
            "offsets": [0, size - BODY_BYTES - 2, size - BODY_BYTES],
            "itemsize": size,
        }
    )


def acknowledgements(identifiers: npt.NDArray[np.uint16]) -> bytes:
    """A PUBACK for each."""
    answers = np.empty(len(identifiers), _SHORT)
    answers["head"] = _PUBACK
    answers["length"] = 2
    answers["pid"] = identifiers
    return answers.tobytes()


class MqttOut(Outgoing):
    """A publisher at QoS 1 or 2."""

    def __init__(self, number: int, qos: int) -> None:
        frame = template(qos)
        self._number = number
        self._columns = np.frombuffer(bytearray(frame * BURST), layout(len(frame)))
        self._last = _PUBACK if qos == 1 else _PUBCOMP
        self._done = 0
        self._rest = b""

    @override
    def frames(self, first: int, count: int) -> bytes:
        part = self._columns[:count]
        part["pid"] = np.arange(first, first + count) % _IDENTIFIERS + 1
        part["key"] = keys(self._number, first, count)
        return part.tobytes()

    @override
    def confirmed(self, data: bytes) -> tuple[int, bytes]:
        """Acknowledgements come in the order of the messages [MQTT-4.6.0-2]."""
        data = self._rest + data
        count = len(data) // _SHORT.itemsize
        self._rest = data[count * _SHORT.itemsize :]
        part = np.frombuffer(data, _SHORT, count)
        if np.any(part["length"] != 2):
            raise ValueError(f"no acknowledgement: {data[:64]!r}")
        ends = part[part["head"] == self._last]
        wanted = np.arange(self._done, self._done + len(ends)) % _IDENTIFIERS + 1
        if np.any(ends["pid"] != wanted):
            raise ValueError("acknowledged out of order")
        self._done += len(ends)
        answers = b""
        if len(ends) < count:
            received = part[part["head"] == _PUBREC].copy()
            if self._last == _PUBACK or len(ends) + len(received) < count:
                raise ValueError(f"no acknowledgement: {data[:64]!r}")
            received["head"] = _PUBREL
            answers = received.tobytes()
        return len(ends), answers


class MqttIn(Incoming):
    """A consumer at QoS 1."""

    def __init__(self) -> None:
        self._frame = template(1)
        self._layout = layout(len(self._frame))
        self._key_at = len(self._frame) - BODY_BYTES
        self.doubtful = 0
        """Messages that the broker says may have been delivered before."""
        self._rest = b""

    @override
    def deliveries(self, data: bytes) -> tuple[Keys, bytes]:
        data = self._rest + data
        size = len(self._frame)
        count = len(data) // size
        self._rest = data[count * size :]
        part = np.frombuffer(data, self._layout, count)
        # The bits of DUP and RETAIN may be either.
        if np.any(part["head"] & 0xF6 != self._frame[0]):
            raise ValueError(f"no delivery: {data[:64]!r}")
        if count:
            # One of each chunk is compared byte for byte.
            if data[1 : self._key_at - 2] != self._frame[1 : self._key_at - 2]:
                raise ValueError(f"not what was sent: {data[:64]!r}")
            if data[self._key_at + KEY_BYTES : size] != FILLER:
                raise ValueError("not the payload that was sent")
        self.doubtful += int(np.count_nonzero(part["head"] & 0x08))
        return part["key"].astype(np.uint64), acknowledgements(part["pid"])


def producer(address: tuple[str, int], number: int, window: int, qos: int = 1) -> Producer:
    """A logged-in publisher."""
    sock = login(address, f"bench-producer-{number}", clean=True)
    return Producer(Pipe(sock), MqttOut(number, qos), number, window)


def consumer(address: tuple[str, int], client: str, topic: str = "") -> Consumer:
    """A logged-in client: subscribes to the topic (or what stands for the queue) at QoS 1, or goes
    on with the session it has.
    """
    sock = login(address, client, clean=bool(topic))
    if topic:
        subscribe(sock, topic)
    return Consumer(Pipe(sock), MqttIn())


def login(address: tuple[str, int], client: str, *, clean: bool) -> socket.socket:
    """A connected client; its session outlives the connection unless `clean`."""
    sock = socket.create_connection(address, timeout=HANDSHAKE_SECONDS)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(encode(Connect(client, clean, protocol_level=_LEVEL), _LEVEL))
        _expect(sock, b"\x20\x02", 4)
    except BaseException:
        sock.close()
        raise
    return sock


def subscribe(sock: socket.socket, topic: str) -> None:
    """Subscribes at QoS 1 and waits for the grant."""
    sock.sendall(encode(Subscribe(1, [SubscriptionRequest(topic, 1)]), _LEVEL))
    _expect(sock, b"\x90\x03\x00\x01", 5, granted=1)


def _expect(sock: socket.socket, head: bytes, count: int, granted: int = 0) -> None:
    """Waits for a packet of so many bytes that begins and ends as it should."""
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    if not data.startswith(head) or data[-1] != granted:
        raise ConnectionError(f"refused: {data.hex()}")
