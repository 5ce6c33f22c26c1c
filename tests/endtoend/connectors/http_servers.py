"""HTTP servers as providers of connectors: that of the standard library, and one that sends whatever it is told."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Request(NamedTuple):
    """A request as a server has read it; `connection` counts connections from 0, `at_s` is a time of this machine."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    at_s: float


class HookServer(http.server.ThreadingHTTPServer):
    """The server of the standard library. `answer` gives status, headers and body for a request, 204 without it."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        port: int = 0,
        answer: Callable[[Request], tuple[int, dict[str, str], bytes]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.answer = answer or (lambda _: (204, {}, b""))
        self.requests: list[Request] = []
        self.connections = 0
        super().__init__(("127.0.0.1", port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def bodies(self) -> list[bytes]:
        """The bodies that came, in order."""
        return [request.body for request in list(self.requests)]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections that break are what is tried."""

    def stop(self) -> None:
        """End it, and let go of the port."""
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HookServer

    def setup(self) -> None:
        super().setup()
        self.number = self.server.connections
        self.server.connections += 1

    def _take(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, self.number, time.monotonic())
        self.server.requests.append(request)
        status, more, said = self.server.answer(request)
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_PUT = do_PATCH = _take  # noqa: N815 - named by the standard library

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Said(NamedTuple):
    """What a raw server does about a request: it sends `data`, piece by piece with `pause_s` in between, `times` over,
    and closes then or not.
    """

    data: bytes = b""
    closes: bool = False
    pause_s: float = 0.0
    times: int = 1


FINE = Said(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class RawServer:
    """A server that does about each request what `behave` says. `requests` are those that were read whole."""

    def __init__(self, behave: Callable[[Request], Said], port: int = 0) -> None:
        self._behave = behave
        self.requests: list[Request] = []
        self._connections = 0
        self._open: list[socket.socket] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(128)
        self.port = int(self._listener.getsockname()[1])
        self._over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def bodies(self) -> list[bytes]:
        """The bodies that came, in order."""
        return [request.body for request in list(self.requests)]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._open.append(sock)
                number = self._connections
                self._connections += 1
                threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), sock, sock.makefile("rb") as stream:
            while line := stream.readline():
                method, path, _ = line.decode().split()
                headers: dict[str, str] = {}
                while (line := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = stream.read(int(headers["content-length"]))
                request = Request(method, path, headers, body, number, time.monotonic())
                self.requests.append(request)
                said = self._behave(request)
                self._say(sock, said)
                if said.closes:
                    # A reset would overtake what was sent.
                    sock.shutdown(socket.SHUT_WR)
                    stream.read()
                    return

    def _say(self, sock: socket.socket, said: Said) -> None:
        if not said.pause_s:
            sock.sendall(said.data * said.times)
            return
        for _ in range(said.times):
            for at in range(len(said.data)):
                sock.sendall(said.data[at : at + 1])
                if self._over.wait(said.pause_s):
                    return

    def stop(self) -> None:
        """End it, and let go of the port."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def serving(server: Any) -> Iterator[Any]:
    """Have a server for a while."""
    try:
        yield server
    finally:
        server.stop()
