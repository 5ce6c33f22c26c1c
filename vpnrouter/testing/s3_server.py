"""A real S3 server in a process of its own, and a gate before it that refuses, throttles or says nothing."""

from __future__ import annotations

import http.client
import queue
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

PATIENCE_S: Final = 60.0
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:([0-9]+)")

CODES: Final = {
    301: "PermanentRedirect",
    400: "AuthorizationHeaderMalformed",
    403: "AccessDenied",
    404: "NoSuchKey",
    500: "InternalError",
    503: "SlowDown",
}
"""What S3 calls a status."""

HANG: Final = -1


MISSING: Final = ".peers/moto is missing: .ci/peers installs it"


def find_server(checkout: Path) -> str | None:
    """Return the program `moto_server` that .ci/peers has installed in a checkout, None where it has not."""
    program = checkout / ".peers" / "moto" / "bin" / "moto_server"
    return str(program) if program.exists() else None


class S3Server:
    """Moto's server on a port of its own. Ends with the `with` block."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        found: queue.Queue[int] = queue.Queue()
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        self._reader = threading.Thread(
            target=self._read, args=(self._process.stderr, found), daemon=True
        )
        self._reader.start()
        try:
            self.port = found.get(timeout=PATIENCE_S)
        except queue.Empty:
            self.end()
            raise

    @staticmethod
    def _read(stream: IO[str], found: queue.Queue[int]) -> None:
        for line in stream:
            if match := _ADDRESS.search(line):
                found.put(int(match[1]))
        stream.close()

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("PUT", f"/{name}")
        connection.getresponse().read()
        connection.close()

    def filesystem(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return pyarrow's view of what is stored."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            access_key="reader",
            secret_key="reader",  # noqa: S106 - the server lets everybody in
            region="us-east-1",
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
        )

    def files(self, place: str) -> dict[str, int]:
        """Return the sizes of the objects below a bucket and path, by their paths below it."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(place, recursive=True, allow_not_found=True)
        return {
            info.path.removeprefix(f"{place}/"): info.size
            for info in self.filesystem().get_file_info(selector)
            if info.type == FileType.File
        }

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


class StoreGate:
    """Passes requests on to an S3 server, or answers with `status`; with `hangs` it answers nothing.

    Both hold for requests whose first line has `refused` in it, "" for all. `says` is the
    text of such an answer. `asked` has the first lines.
    `hanging` is set when a request is not answered. `fault` gives the status for a request by its first line, 0 to pass
    it on, HANG to say nothing; `played` counts those it did not pass on.
    """

    def __init__(self, port: int) -> None:
        self.status = 0
        self.refused = ""
        self.says = "no"
        self.hangs = False
        self.asked: list[str] = []
        self.fault: Callable[[str], int] = lambda _: 0
        self.played = 0
        self.hanging = threading.Event()
        self._ended = threading.Event()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                gate.answer(self, port)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - their names

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The endpoint of the store."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, request: BaseHTTPRequestHandler, port: int) -> None:
        """Answer one request."""
        self.asked.append(request.requestline)
        body = self._body(request)
        line = unquote(request.requestline)
        fault = self.fault(line)
        self.played += fault != 0
        if fault == HANG or (self.hangs and self.refused in request.requestline):
            self.hanging.set()
            self._ended.wait()
            request.close_connection = True
            return
        status = fault or (self.status if self.refused in request.requestline else 0)
        if status:
            code = CODES[status]
            text = f"<Error><Code>{code}</Code><Message>{self.says}</Message></Error>".encode()
            self._give(request, status, {"Content-Type": "application/xml"}, text)
            return
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        given = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in {"expect", "transfer-encoding", "content-length"}
        }
        connection.request(request.command, request.path, body, given)
        answer = connection.getresponse()
        headers = {
            name: value
            for name, value in answer.getheaders()
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}
        }
        length = answer.getheader("content-length")
        text = answer.read()
        connection.close()
        self._give(request, answer.status, headers, text, length)

    @staticmethod
    def _body(request: BaseHTTPRequestHandler) -> bytes:
        if request.headers.get("transfer-encoding") != "chunked":
            return request.rfile.read(int(request.headers.get("content-length", 0)))
        parts = []
        while size := int(request.rfile.readline().split(b";")[0], 16):
            parts.append(request.rfile.read(size))
            request.rfile.readline()
        request.rfile.readline()
        return b"".join(parts)

    @staticmethod
    def _give(
        request: BaseHTTPRequestHandler,
        status: int,
        headers: dict[str, str],
        text: bytes,
        length: str | None = None,
    ) -> None:
        request.send_response_only(status)
        for name, value in headers.items():
            request.send_header(name, value)
        head = request.command == "HEAD"
        request.send_header("Content-Length", length if head and length else str(len(text)))
        request.end_headers()
        if not head:
            request.wfile.write(text)

    def end(self) -> None:
        """Close it."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
