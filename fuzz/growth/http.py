"""What a client of the management API does in the plans that look for growth: it reads, or ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuzz.growth.plans import Vocabulary
from fuzz.growth.talking import Talk, draw_count

if TYPE_CHECKING:
    import random

    from fuzz.growth.plans import Value

PATHS: Final = (
    "/metrics",
    "/health/ready",
    "/SEMP/v2/config/about",
    "/SEMP/v2/monitor/msgVpns?count=100",
    "/SEMP/v2/monitor/msgVpns/blue/queues?count=100",
    "/SEMP/v2/monitor/msgVpns/blue/queues/many/msgs?count=100",
    "/SEMP/v2/monitor/msgVpns/blue/queues/large/msgs?count=100",
    "/SEMP/v2/config/msgVpns/blue?select=" + ",".join(f"a{number}*" for number in range(256)),
    "/SEMP/v2/config/msgVpns?where=" + ",".join(f"msgVpnName==a{number}*" for number in range(16)),
    "/vpnrouter/v1/config",
    "/vpnrouter/v1/events",
    "/vpnrouter/v1/topology",
    "/" + "x" * 60_000,
    "/SEMP/v2/config/msgVpns/" + "x" * 7_000,
)


HEADER_BYTES: Final = 20_000_000
"""Bytes of headers of one request, at most."""


class HttpTalk(Talk):
    """One client of the management API, with one connection after the other or many."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type] # as Talk has them
        self._others: list[Talk] = []

    def close(self) -> None:
        """Hang up, on all connections."""
        super().close()
        for other in self._others:
            other.close()
        self._others.clear()

    def _connection(self) -> Talk:
        other = Talk(self.port, self.username, self.name, self._watch)
        other.reads = self.reads
        other.dial()
        self._others.append(other)
        return other

    def _say_to(self, other: Talk, data: bytes) -> None:
        before = other.sent
        other.say(data)
        self.sent += other.sent - before

    def start(self, reads: bool) -> None:
        """Read the answers, or do not."""
        self.reads = reads

    def ask(self, path: str, count: int, connections: int) -> None:
        """Send many requests without waiting for answers."""
        request = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode()
        for _ in range(connections):
            other = self._connection()
            self._say_to(other, request * count)
        self.wait_all()

    def wait_all(self) -> None:
        """Read a little from all."""
        for other in self._others:
            other.wait(0.02)

    def half(self, part: str, size: int, count: int, connections: int) -> None:
        """Begin a request and do not end it."""
        head = b"POST /SEMP/v2/config/msgVpns HTTP/1.1\r\nHost: x\r\n"
        match part:
            case "line":
                data = b"GET /" + b"x" * size
            case "header":
                data = head + b"X: " + b"x" * size
            case "headers":
                # More than the router ever reads would only hold up the client that is served beside this one.
                lines = min(count, max(1, HEADER_BYTES // size))
                data = head + b"".join(
                    b"X%d: %b\r\n" % (number, b"x" * size) for number in range(lines)
                )
            case "chunks":
                data = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * count
            case "extension":
                data = head + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"e" * size
            case "document":
                data = (
                    b"PUT /vpnrouter/v1/config HTTP/1.1\r\nHost: x\r\nContent-Type: application/yaml\r\n"
                    b"Content-Length: 8000000\r\n\r\n" + b"# " * size
                )
            case _:
                data = head + b"Content-Length: 60000\r\n\r\n" + b"x" * min(size, 59_999)
        for _ in range(connections):
            self._say_to(self._connection(), data)
        self.wait(0.1)

    def send_body(self, kind: str, size: int, connections: int) -> None:
        """Send a whole body that is refused: nested deep, wide or long."""
        match kind:
            case "deep":
                body = b"[" * size
            case "wide":
                body = b"{" + b",".join(b'"a%d":1' % number for number in range(size // 8)) + b"}"
            case "yaml":
                body = b"a: [" + b"{}," * (size // 3) + b"]\n"
            case _:
                body = b'{"msgVpnName":"' + b"x" * size + b'"}'
        path = b"PUT /vpnrouter/v1/config" if kind == "yaml" else b"POST /SEMP/v2/config/msgVpns"
        content = b"application/yaml" if kind == "yaml" else b"application/json"
        head = b"%b HTTP/1.1\r\nHost: x\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
        for _ in range(connections):
            self._say_to(self._connection(), head % (path, content, len(body)) + body)
        self.wait_all()


def _half(draw: random.Random) -> dict[str, Value]:
    return {
        "part": draw.choice(
            ("line", "header", "headers", "chunks", "extension", "document", "body")
        ),
        "size": draw.choice((1, 1_000, 8_000, 60_000, 1_000_000)),
        "count": draw.choice((1, 50, 4_000)),
        "connections": draw.choice((1, 10, 300)),
    }


WORDS: Final = Vocabulary(
    "start",
    {
        "start": (1, lambda draw: {"reads": draw.randrange(2) == 0}),
        "ask": (
            5,
            lambda draw: {
                "path": draw.choice(PATHS),
                "count": min(draw_count(draw), 2_000),
                "connections": draw.choice((1, 10, 200)),
            },
        ),
        "half": (5, _half),
        "send_body": (
            3,
            lambda draw: {
                "kind": draw.choice(("deep", "wide", "yaml", "long")),
                "size": draw.choice((100, 10_000, 60_000, 8_000_000)),
                "connections": draw.choice((1, 10, 100)),
            },
        ),
        "pause": (1, lambda draw: {"tenths": draw.choice((1, 5, 12))}),
        "hang_up": (1, lambda draw: {"again": draw.randrange(2) == 0}),
    },
)
