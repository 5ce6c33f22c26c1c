"""The messages that `pub` publishes: one and the same, random ones, or the lines of stdin."""

import os
import random
import select
import time
from datetime import UTC, datetime
from typing import Final, Protocol, final

from vpnrouter.cli._mqtt_stamp import STAMP_BYTES, stamped
from vpnrouter.errors import OperationError

_LINE_BYTES: Final = 65_536

_TIME: Final = "{time}"
_TIME_NS: Final = "{time_ns}"
_NUMBER: Final = "{seq}"

Message = tuple[bytes, bytes]
"""Topic and payload."""


class Payloads(Protocol):
    """Where payloads come from."""

    def take(self, wait_s: float) -> bytes | None:
        """The next payload; None when there is none within `wait_s` seconds. Raises EOFError at the end."""


@final
class Same:
    """One payload again and again."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def take(self, wait_s: float) -> bytes:
        """See Payloads."""
        return self._payload


@final
class Random:
    """Payloads of `size` random bytes, each another one."""

    def __init__(self, size: int, draws: random.Random) -> None:
        self._size = size
        self._draws = draws

    def take(self, wait_s: float) -> bytes:
        """See Payloads."""
        return self._draws.randbytes(self._size)


@final
class Lines:
    """Each line of a file descriptor, without its end, as soon as it is there."""

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor = descriptor
        self._most = most
        self._lines: list[bytes] = []
        self._rest = b""
        self._ended = False

    def take(self, wait_s: float) -> bytes | None:
        """See Payloads. Raises OperationError for a line that is longer than a message may be."""
        if not self._lines and not self._ended:
            ready, _, _ = select.select([self._descriptor], [], [], wait_s)
            if ready:
                self._read()
        if self._lines:
            return self._lines.pop()
        if self._ended:
            raise EOFError
        return None

    def _read(self) -> None:
        chunk = os.read(self._descriptor, _LINE_BYTES)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if not chunk:
            self._ended = True
            if self._rest:
                whole.append(self._rest)
        if len(self._rest) > self._most:
            raise OperationError(f"a line of stdin is longer than {self._most:,} bytes")
        self._lines = [line.removesuffix(b"\r") for line in reversed(whole)]


@final
class Messages:
    """Messages of `topic` from `payloads`, at most `count` (0 for no end).

    With `template`, `{seq}` (from 1), `{time}` (ISO 8601, UTC) and `{time_ns}` (since 1970) in topic and
    payload are filled in. With `stamp` the payload begins with its time, see _mqtt_stamp.py; of `size`
    random bytes it takes the first.
    """

    def __init__(
        self,
        topic: str,
        payloads: Payloads,
        *,
        count: int = 1,
        template: bool = False,
        stamp: bool = False,
    ) -> None:
        self._topic = topic
        self._topic_bytes = topic.encode()
        self._payloads = payloads
        self._count = count
        self._template = template
        self._stamp = stamp
        self.taken = 0
        self._last: Message = (b"", b"")

    def take(self, wait_s: float) -> Message | None:
        """The next message, the same object as long as it is the same; None when there is none within
        `wait_s` seconds. Raises EOFError at the end.
        """
        if self._count and self.taken >= self._count:
            raise EOFError
        payload = self._payloads.take(wait_s)
        if payload is None:
            return None
        self.taken += 1
        topic = self._topic_bytes
        if self._template:
            now_ns = time.time_ns()
            topic = self._filled(topic, now_ns)
            payload = self._filled(payload, now_ns)
        if self._stamp:
            if isinstance(self._payloads, Random):
                payload = payload[STAMP_BYTES:]
            payload = stamped(payload, time.time_ns())
        last_topic, last_payload = self._last
        if payload is not last_payload or topic is not last_topic:
            self._last = (topic, payload)
        return self._last

    def _filled(self, text: bytes, now_ns: int) -> bytes:
        """Nothing but the three words is touched: JSON is full of braces."""
        if b"{" not in text:
            return text
        moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
        values = {
            _NUMBER: str(self.taken),
            _TIME: f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ns // 1_000_000 % 1_000:03}Z",
            _TIME_NS: str(now_ns),
        }
        for name, value in values.items():
            text = text.replace(name.encode(), value.encode())
        return text
