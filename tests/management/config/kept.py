"""An Editor that keeps its document in memory and checks it as `check` does; conftest.py loads this by path."""

import copy
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
import yaml

from vpnrouter.config.load import load
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import Management
from vpnrouter.core.router import Router
from vpnrouter.errors import ConfigError, OperationError
from vpnrouter.management.access import Access
from vpnrouter.management.application import build_app
from vpnrouter.management.config.editor import Edited, Examined
from vpnrouter.server.net.http import serve_http
from vpnrouter.trace.recorder import Recorder


class KeptEditor:
    """See Editor. `failure` is what every edit raises once it is accepted."""

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        self._file = folder / "kept.yaml"
        self._lock = trio.Lock()
        self._document = document
        self._config = self._checked(document)
        self.edits: list[str] = []
        self.failure: Exception | None = None

    def config(self) -> Any:
        return self._config

    def document(self) -> Any:
        return self._document

    def position(self, path: tuple[str | int, ...]) -> Position:
        return Position(str(self._file), 1, 1 + len(path))

    def positions(self) -> Iterator[tuple[tuple[str | int, ...], Position]]:
        return iter([(("router",), Position(str(self._file), 1, 1))])

    def files(self) -> tuple[str, str]:
        return str(self._file), ""

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self._document, sort_keys=True).encode()).hexdigest()

    def overlay(self) -> Any:
        return {}

    async def examine(self, document: Any) -> Examined:
        await trio.lowlevel.checkpoint()
        try:
            self._checked(document)
        except ConfigError as error:
            place = Position(str(self._file), 1, 1)
            return Examined((Problem(place, "error", str(error)),), ())
        return Examined((), ())

    async def edit(self, change: Callable[[Any], None], who: str, expected: str = "") -> Edited:
        async with self._lock:
            copied = copy.deepcopy(self._document)
            change(copied)
            config = self._checked(copied)
            # Where the file is written, others have their turn.
            await trio.lowlevel.checkpoint()
            if self.failure is not None:
                raise self.failure
            self._document, self._config = copied, config
            self.edits.append(who)
            return Edited((), self.digest())

    async def return_to(self, digest: str, who: str) -> Edited:
        await trio.lowlevel.checkpoint()
        raise OperationError(f"{digest} is none of the last configurations, {who}")

    def _checked(self, document: Any) -> Any:
        self._file.write_text(yaml.safe_dump(document))
        return load(self._file, {}).config


def application(
    editor: KeptEditor | None, monitor: Any, users: dict[str, dict[str, Any]] | None = None
) -> Any:
    """The application over an editor and a router that stands still."""
    access = Access.of(Management.model_validate({"users": users or {}}))
    monitor.context.editor = editor
    return build_app(monitor.context, access)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serves an application in a thread of its own; yields its URL."""
    began = threading.Event()
    stop: list[Any] = []
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    host, port = sock.getsockname()

    async def run() -> None:
        with trio.CancelScope() as scope:
            token = trio.lowlevel.current_trio_token()
            stop.append(lambda: token.run_sync_soon(scope.cancel))
            began.set()
            await serve_http(sock, None, 100, app, Router("here", 1, Recorder()).context.barrier)

    thread = threading.Thread(target=trio.run, args=(run,))
    thread.start()
    assert began.wait(20)
    try:
        yield f"http://{host}:{port}"
    finally:
        stop[0]()
        thread.join(20)
        assert not thread.is_alive()
