"""Speaks NATS JetStream in bulk: acknowledged publishing into a stream, a durable push consumer."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Final

import numpy as np
from typing_extensions import override

from bench.clients import connect
from bench.dialects import NATS
from bench.guaranteed_body import BODY_BYTES, FILLER, KEY_BYTES, Keys, keys
from bench.guaranteed_ends import BURST, Consumer, Incoming, Outgoing, Producer
from bench.guaranteed_pipe import Pipe

PENDING: Final = 5_000
"""Messages that the consumers may hold unacknowledged."""
STREAM: Final = "BENCH"
_SUBJECT: Final = "spool.bench"
_DELIVER: Final = "deliver.bench"
_GROUP: Final = "bench"
_INBOX: Final = "_INBOX.bench"
_ACK_END: Final = b"}\r\n"
_PING: Final = b"PING\r\n"


def ask(address: tuple[str, int], subject: str, request: Mapping[str, object]) -> dict[str, object]:
    """One request to JetStream's interface. Raises ConnectionError for an error."""
    body = json.dumps(request).encode() if request else b""
    with connect(NATS, address, "bench-control") as sock:
        sock.sendall(
            b"SUB %s 1\r\nPUB %s %s %d\r\n%s\r\n"
            % (_INBOX.encode(), subject.encode(), _INBOX.encode(), len(body), body)
        )
        while True:
            line = _line(sock)
            if line.startswith(b"MSG "):
                answer = json.loads(_exactly(sock, int(line.split()[-1])))
                break
            if line.startswith(b"-ERR"):
                raise ConnectionError(line.decode())
    if not isinstance(answer, dict) or "error" in answer:
        raise ConnectionError(f"{subject}: {answer}")
    return answer


def prepare(address: tuple[str, int], consumers: int) -> None:
    """A stream in files, and a durable consumer for so many clients.

    The stream keeps its messages: a work queue would remove them, but takes no cumulative
    acknowledgements and is slower.
    """
    stream = {
        "name": STREAM,
        "subjects": [_SUBJECT],
        "storage": "file",
        "retention": "limits",
        "num_replicas": 1,
    }
    ask(address, f"$JS.API.STREAM.CREATE.{STREAM}", stream)
    config: dict[str, object] = {
        "durable_name": "C",
        "deliver_subject": _DELIVER,
        "deliver_policy": "all",
        # Cumulative where this can be: with a group it would settle others' messages.
        "ack_policy": "all" if consumers == 1 else "explicit",
        "max_ack_pending": PENDING,
    }
    if consumers > 1:
        config["deliver_group"] = _GROUP
    request = {"stream_name": STREAM, "config": config}
    ask(address, f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.C", request)


def waiting(address: tuple[str, int]) -> int:
    """Messages in the stream."""
    state = ask(address, f"$JS.API.STREAM.INFO.{STREAM}", {})["state"]
    if not isinstance(state, dict):
        raise ConnectionError(f"no state: {state}")
    return int(state["messages"])


class JetStreamOut(Outgoing):
    """A publisher into the stream."""

    def __init__(self, number: int) -> None:
        head = b"PUB %s %s.%d %d\r\n" % (_SUBJECT.encode(), _INBOX.encode(), number, BODY_BYTES)
        whole = head + bytes(KEY_BYTES) + FILLER + b"\r\n"
        self._number = number
        self._columns = np.frombuffer(
            bytearray(whole * BURST),
            np.dtype(
                {
                    "names": ["key"],
                    "formats": [">u8"],
                    "offsets": [len(head)],
                    "itemsize": len(whole),
                }
            ),
        )
        self._rest = b""

    @override
    def frames(self, first: int, count: int) -> bytes:
        part = self._columns[:count]
        part["key"] = keys(self._number, first, count)
        return part.tobytes()

    @override
    def confirmed(self, data: bytes) -> tuple[int, bytes]:
        """An acknowledgement tells stream and sequence number in JSON."""
        data = self._rest + data
        answer = b""
        if _PING in data:
            data = data.replace(_PING, b"")
            answer = b"PONG\r\n"
        end = data.rfind(_ACK_END) + len(_ACK_END) if _ACK_END in data else 0
        self._rest = data[end:]
        whole = data[:end]
        if b"error" in whole or b"-ERR" in whole:
            raise ValueError(f"no acknowledgement: {whole[:300]!r}")
        return whole.count(b'"seq":'), answer


class JetStreamIn(Incoming):
    """A client of the durable consumer."""

    def __init__(self, *, cumulative: bool) -> None:
        self._cumulative = cumulative
        self._rest = b""

    @override
    def deliveries(self, data: bytes) -> tuple[Keys, bytes]:
        """Head lines differ in length, so this goes message by message."""
        data = self._rest + data
        at = 0
        found: list[bytes] = []
        replies: list[bytes] = []
        pong = b""
        while (stop := data.find(b"\r\n", at)) >= 0:
            if data.startswith(_PING, at):
                pong = b"PONG\r\n"
                at = stop + 2
                continue
            end = stop + 2 + BODY_BYTES + 2
            if end > len(data):
                break
            words = data[at:stop].split(b" ")
            if words[0] != b"MSG" or int(words[4]) != BODY_BYTES:
                raise ValueError(f"no delivery: {data[at:stop]!r}")
            found.append(data[stop + 2 : stop + 2 + KEY_BYTES])
            replies.append(words[3])
            at = end
        self._rest = data[at:]
        if found and self._rest.startswith(b"-ERR"):
            raise ValueError(f"no delivery: {self._rest[:200]!r}")
        if self._cumulative:
            replies = replies[-1:]
        answer = b"".join([b"PUB %s 0\r\n\r\n" % reply for reply in replies])
        got = np.frombuffer(b"".join(found), ">u8").astype(np.uint64)
        return got, pong + answer


def producer(address: tuple[str, int], number: int, window: int) -> Producer:
    """A logged-in publisher with an inbox for acknowledgements."""
    sock = connect(NATS, address, f"bench-producer-{number}")
    NATS.subscribe(sock, [f"{_INBOX}.{number}"])
    return Producer(Pipe(sock), JetStreamOut(number), number, window)


def consumer(address: tuple[str, int], number: int, of: int) -> Consumer:
    """Client `number` of the durable consumer, the only one or one of a group."""
    sock = connect(NATS, address, f"bench-consumer-{number}")
    group = f" {_GROUP}" if of > 1 else ""
    sock.sendall(f"SUB {_DELIVER}{group} 1\r\n".encode())
    return Consumer(Pipe(sock), JetStreamIn(cumulative=of == 1))


def _line(sock: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n"):
        data += _exactly(sock, 1)
    return data


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        data += chunk
    return data
