"""Routers that start in a moment, for tests that start hundreds: forks of a process that has loaded everything.

Most of a start is the interpreter's loading of modules. A process that has done that, and nothing else, waits
for orders and forks; what the child does from there on is what `vpnrouter` does. It has an environment, a
directory and streams of its own, and shares with its siblings nothing but memory that neither changes.

    with Prefork(os.environ) as prefork:
        router = prefork.popen(["run", "edge.yaml"], env=os.environ)
        router.kill()
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self, final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import IO

LOADED: Final = (
    "vpnrouter.cli.app",
    "vpnrouter.config.load",
    "vpnrouter.server.run",
    "vpnrouter.server.net.reactor",
    "vpnrouter.spool.rocks_store",
    "vpnrouter.management.application",
    "vpnrouter.server.net.http",
)
"""Modules that a router loads, and with them all the others."""

ORDER_BYTES: Final = 262_144
POLL_S: Final = 0.005


@final
class ForkedRouter:
    """One router, with what `subprocess.Popen` offers of a process. `stdout` and `stderr` are its pipes."""

    def __init__(self, prefork: Prefork, pid: int, stdout: IO[str], stderr: IO[str]) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._prefork = prefork

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._prefork.ask({"wait": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(["vpnrouter"], timeout or 0.0)
            time.sleep(POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


@final
class Prefork:
    """The process that has loaded everything. Use it as a context, or close it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env` is its own environment: where the router's modules are."""
        self._one_at_a_time = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=theirs.fileno(), env=dict(env)
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it. Its routers go on."""
        self._orders.close()
        self._process.wait()

    def popen(
        self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: object = None
    ) -> ForkedRouter:
        """Start `vpnrouter` with these arguments."""
        order = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd or ".")}
        out, their_out = os.pipe()
        err, their_err = os.pipe()
        try:
            pid = self.ask(order, their_out, their_err)
        finally:
            os.close(their_out)
            os.close(their_err)
        if pid is None:
            raise AssertionError("no process came of it")
        return ForkedRouter(self, pid, os.fdopen(out, "r"), os.fdopen(err, "r"))

    def ask(self, order: dict[str, Any], *streams: int) -> int | None:
        """Give an order; its answer."""
        data = json.dumps(order).encode()
        with self._one_at_a_time:
            socket.send_fds(self._orders, [data], list(streams))
            answer: int | None = json.loads(self._orders.recv(ORDER_BYTES))
        return answer


def run_orders(orders: socket.socket) -> list[str] | None:
    """Fork routers on request. Returns its arguments in each child, and None in the parent at the end."""
    while True:
        data, streams, _, _ = socket.recv_fds(orders, ORDER_BYTES, 2)
        if not data:
            return None
        order = json.loads(data)
        if "wait" in order:
            pid, status = os.waitpid(order["wait"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if not answer:
                _become(order, streams)
                return ["vpnrouter", *order["arguments"]]
            for each in streams:
                os.close(each)
        orders.send(json.dumps(answer).encode())


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Be the child that was ordered."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, each in enumerate((nothing, *streams)):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])


def main() -> None:
    """Load, obey, and in the children be `vpnrouter`."""
    for name in LOADED:
        importlib.import_module(name)
    # Descriptor 0 is replaced in the children: the socket closes with it.
    orders = socket.socket(fileno=0)
    arguments = run_orders(orders)
    if arguments is not None:
        orders.detach()
        sys.argv = arguments
        sys.modules["vpnrouter.cli.app"].main()


if __name__ == "__main__":
    main()
