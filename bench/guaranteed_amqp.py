"""Speaks AMQP 0-9-1 in bulk: publisher confirms and cumulative acknowledgements, by columns.

Only what the bench needs, after the specification's class and method numbers.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import Final

import numpy as np
from typing_extensions import override

from bench.clients import HANDSHAKE_SECONDS
from bench.guaranteed_body import BODY_BYTES, FILLER, KEY_BYTES, QUEUE, Keys, keys
from bench.guaranteed_ends import BURST, Consumer, Incoming, Outgoing, Producer
from bench.guaranteed_pipe import Pipe

PREFETCH: Final = 2000
"""Messages that a consumer may hold unacknowledged."""
_METHOD, _HEADER, _BODY = 1, 2, 3
_END: Final = b"\xce"
_ACK: Final = (60, 80)
_TAG: Final = "c"
_RING: Final = 1 << 16

_CONFIRM: Final = np.dtype(
    {
        "names": ["head", "class", "method", "tag", "multiple", "end"],
        "formats": ["u1", ">u2", ">u2", ">u8", "u1", "u1"],
        "offsets": [0, 7, 9, 11, 19, 20],
        "itemsize": 21,
    }
)


def short(text: str) -> bytes:
    """A short string."""
    return bytes([len(text)]) + text.encode()


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """A whole frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + _END


def method(channel: int, number: tuple[int, int], arguments: bytes = b"") -> bytes:
    """A method frame."""
    return frame(_METHOD, channel, struct.pack(">HH", *number) + arguments)


def content() -> bytes:
    """Header and body of a persistent message with key 0."""
    header = struct.pack(">HHQHB", 60, 0, BODY_BYTES, 0x1000, 2)
    return frame(_HEADER, 1, header) + frame(_BODY, 1, bytes(KEY_BYTES) + FILLER)


class Line:
    """A blocking connection with channel 1 open. Raises ConnectionError where the broker refuses."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock = socket.create_connection(address, timeout=HANDSHAKE_SECONDS)
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.sendall(b"AMQP\0\0\x09\x01")
            self.answer((10, 10))
            login = b"\0guest\0guest"
            words = struct.pack(">I", 0) + short("PLAIN") + struct.pack(">I", len(login)) + login
            self.sock.sendall(method(0, (10, 11), words + short("en_US")))
            tune = self.answer((10, 30))
            self.sock.sendall(method(0, (10, 31), tune[:6] + bytes(2)))  # no heartbeats
            self.ask(0, (10, 40), short("/") + short("") + b"\0")
            self.ask(1, (20, 10), short(""))
        except BaseException:
            self.sock.close()
            raise

    def close(self) -> None:
        """Ends the connection without a farewell."""
        self.sock.close()

    def ask(self, channel: int, number: tuple[int, int], arguments: bytes) -> bytes:
        """Sends a method and gives the arguments of its answer, whose number is one higher."""
        self.sock.sendall(method(channel, number, arguments))
        return self.answer((number[0], number[1] + 1))

    def answer(self, number: tuple[int, int]) -> bytes:
        """The arguments of the next method, which must be this one."""
        _, _, size = struct.unpack(">BHI", self._exactly(7))
        payload = self._exactly(size + 1)[:-1]
        if struct.unpack(">HH", payload[:4]) != number:
            raise ConnectionError(f"not {number}: {payload[:200]!r}")
        return payload[4:]

    def declare(self, arguments: Mapping[str, str], *, passive: bool = False) -> int:
        """Declares the durable queue; returns how many messages are ready in it."""
        table = b"".join(
            short(name) + b"S" + struct.pack(">I", len(value)) + value.encode()
            for name, value in arguments.items()
        )
        words = b"\0\0" + short(QUEUE) + bytes([3 if passive else 2])
        reply = self.ask(1, (50, 10), words + struct.pack(">I", len(table)) + table)
        return int(struct.unpack(">I", reply[1 + reply[0] :][:4])[0])

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = self.sock.recv(count - len(data))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            data += chunk
        return data


class AmqpOut(Outgoing):
    """A publisher with confirms."""

    def __init__(self, number: int) -> None:
        words = b"\0\0" + short("") + short(QUEUE) + b"\0"
        whole = method(1, (60, 40), words) + content()
        size = len(whole)
        key_at = size - 1 - BODY_BYTES
        self._number = number
        self._columns = np.frombuffer(
            bytearray(whole * BURST),
            np.dtype({"names": ["key"], "formats": [">u8"], "offsets": [key_at], "itemsize": size}),
        )
        self._done = np.zeros(_RING, dtype=np.bool_)
        self._low = 0
        self._rest = b""

    @override
    def frames(self, first: int, count: int) -> bytes:
        """Tags are numbers from 1."""
        self._done[np.arange(first + 1, first + 1 + count) % _RING] = False
        part = self._columns[:count]
        part["key"] = keys(self._number, first, count)
        return part.tobytes()

    @override
    def confirmed(self, data: bytes) -> tuple[int, bytes]:
        """Confirms come in any order, alone or for all up to a tag."""
        data = self._rest + data
        count = len(data) // _CONFIRM.itemsize
        self._rest = data[count * _CONFIRM.itemsize :]
        part = np.frombuffer(data, _CONFIRM, count)
        if np.any((part["class"] != _ACK[0]) | (part["method"] != _ACK[1])):
            raise ValueError(f"no confirm: {data[:200]!r}")
        news = 0
        upto = int(part["tag"][part["multiple"] != 0].max(initial=0))
        if upto > self._low:
            news += self._mark(np.arange(self._low + 1, upto + 1))
            self._low = upto
        alone = part["tag"][part["multiple"] == 0].astype(np.int64)
        alone = alone[alone > self._low]
        return news + self._mark(alone), b""

    def _mark(self, tags: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        places = tags % _RING
        news = int(np.count_nonzero(~self._done[places]))
        self._done[places] = True
        return news


class AmqpIn(Incoming):
    """A consumer that acknowledges all it has got with one frame."""

    def __init__(self) -> None:
        def deliver(redelivered: int) -> bytes:
            words = short(_TAG) + bytes(8) + bytes([redelivered]) + short("") + short(QUEUE)
            return method(1, (60, 60), words) + content()

        whole = deliver(0)
        self._size = len(whole)
        self._content = content()
        # Frame header, class and method, consumer tag: then the delivery tag.
        tag_at = 7 + 4 + len(short(_TAG))
        self._layout = np.dtype(
            {
                "names": ["head", "class", "method", "tag", "redelivered", "key"],
                "formats": ["u1", ">u2", ">u2", ">u8", "u1", ">u8"],
                "offsets": [0, 7, 9, tag_at, tag_at + 8, self._size - 1 - BODY_BYTES],
                "itemsize": self._size,
            }
        )
        self.doubtful = 0
        """Messages that the broker says may have been delivered before."""
        self._rest = b""

    @override
    def deliveries(self, data: bytes) -> tuple[Keys, bytes]:
        data = self._rest + data
        count = len(data) // self._size
        self._rest = data[count * self._size :]
        part = np.frombuffer(data, self._layout, count)
        if np.any((part["class"] != 60) | (part["method"] != 60)):
            raise ValueError(f"no delivery: {data[:200]!r}")
        if not count:
            return np.empty(0, dtype=np.uint64), b""
        if not data[: self._size].endswith(FILLER + _END):
            raise ValueError("not the payload that was sent")
        self.doubtful += int(np.count_nonzero(part["redelivered"]))
        last = struct.pack(">QB", int(part["tag"][-1]), 1)
        return part["key"].astype(np.uint64), method(1, _ACK, last)


def producer(address: tuple[str, int], number: int, window: int) -> Producer:
    """A logged-in publisher."""
    line = Line(address)
    line.ask(1, (85, 10), b"\0")
    return Producer(Pipe(line.sock), AmqpOut(number), number, window)


def consumer(address: tuple[str, int], prefetch: int = PREFETCH) -> Consumer:
    """A logged-in consumer of the queue."""
    line = Line(address)
    line.ask(1, (60, 10), struct.pack(">IHB", 0, prefetch, 0))
    words = b"\0\0" + short(QUEUE) + short(_TAG) + b"\0" + struct.pack(">I", 0)
    line.ask(1, (60, 20), words)
    return Consumer(Pipe(line.sock), AmqpIn())
