"""Starts processes with this interpreter, exchanges lines with them, and ends them in any case."""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final, Never, cast

from vpnrouter.errors import OperationError

STOP_S: Final = 10.0
"""Seconds that a process has to end after SIGTERM; then it is killed."""

_PR_SET_PDEATHSIG: Final = 1
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CHUNK: Final = 65_536
_POLL_S: Final = 0.01
_PROGRAM: Final = (
    "import sys; from vpnrouter.demo.processes import run_child;"
    " run_child(sys.argv.pop(1), sys.argv.pop(1))"
)


def run_child(parent: str, target: str) -> None:
    """Call the function MODULE:FUNCTION in a new process, which ends together with process `parent`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit(1)
    import importlib

    module, _, function = target.partition(":")
    getattr(importlib.import_module(module), function)()


class ChildProcess:
    """A process in a session of its own: a Ctrl-C at the terminal reaches only the demonstration, which then ends it.

    Its standard input takes lines and its standard output gives them; standard error goes to `log`, or to this
    process's own.
    """

    def __init__(self, name: str, target: str, arguments: Sequence[str], log: Path | None) -> None:
        self.name = name
        self.log = log
        self._rest = b""
        with contextlib.ExitStack() as opened:
            sink: IO[bytes] | None = None if log is None else opened.enter_context(log.open("wb"))
            self.process = subprocess.Popen(
                # -P and PYTHONPATH: the child imports exactly what this process would.
                [sys.executable, "-P", "-c", _PROGRAM, str(os.getpid()), target, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=os.environ | {"PYTHONPATH": _import_path()},
                start_new_session=True,
            )

        self._input = cast(IO[bytes], self.process.stdin)
        self._output = cast(IO[bytes], self.process.stdout)

    def fileno(self) -> int:
        """Return the descriptor of the child's standard output."""
        return self._output.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one object as a line.

        Raises:
            OperationError: the process has ended.
        """
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except OSError:
            self.fail("ended early")

    def lines(self) -> list[str]:
        """Return the lines received; waits for at least a part of one.

        Raises:
            OperationError: the process has closed its output.
        """
        chunk = os.read(self.fileno(), _CHUNK)
        if not chunk:
            self.fail("ended early")
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def first_line(self, timeout_s: float) -> str:
        """Return the first line that the process writes; it writes no other before it gets one.

        Raises:
            OperationError: it ended, or wrote none in time.
        """
        end = time.monotonic() + timeout_s
        while True:
            if not select.select([self], [], [], max(0.0, end - time.monotonic()))[0]:
                self.fail(f"not ready within {timeout_s:.0f} s")
            for line in self.lines():
                return line

    def fail(self, what: str) -> Never:
        """Raise an OperationError with the last line of the log."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        words = [] if self.log is None else self.log.read_text("utf-8", "replace").splitlines()
        last = f": {words[-1]}" if words else ""
        log = "" if self.log is None else f" (all of it in {self.log})"
        raise OperationError(f"{self.name} {what}{last}{log}")

    def stop(self) -> int:
        """End the process and everything it started; returns its exit code."""
        self._signal(signal.SIGTERM)
        end = time.monotonic() + STOP_S
        while not self._has_ended() and time.monotonic() < end:
            time.sleep(_POLL_S)
        # Also when it ended well: what it started may still be there. Its own entry is kept until
        # then, so that the number of the group means nobody else.
        self._signal(signal.SIGKILL)
        code = self.process.wait()
        for pipe in (self._input, self._output):
            with contextlib.suppress(OSError):
                pipe.close()
        return code

    def _has_ended(self) -> bool:
        if not hasattr(os, "waitid"):
            return self.process.poll() is not None
        if self.process.returncode is not None:
            return True
        keep = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.process.pid, keep) is not None

    def _signal(self, number: signal.Signals) -> None:
        if self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def _import_path() -> str:
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


@contextlib.contextmanager
def child_process(
    name: str, target: str, arguments: Sequence[str], log: Path | None = None
) -> Iterator[ChildProcess]:
    """Run MODULE:FUNCTION with these arguments in a process that ends with the block.

    If this process is killed, Linux ends the child.
    """
    started = ChildProcess(name, target, arguments, log)
    try:
        yield started
    finally:
        with signals_deferred():
            started.stop()


@contextlib.contextmanager
def signals_deferred() -> Iterator[None]:
    """Delay signals that end this process until the block is done, so that tidying up is not cut short."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    try:
        with _answering(note):
            yield
    finally:
        for number in received[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Raise SIGTERM, SIGHUP and SIGINT as exceptions in the block, so that children are ended."""

    def leave(number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    with _answering(leave):
        yield


@contextlib.contextmanager
def _answering(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals that end processes with `handler`.

    A signal mask is not enough: a system thread without it, such as those of pyarrow, takes the signal.
    """
    before = {signal_number: signal.getsignal(signal_number) for signal_number in _ENDING}
    for each, old in before.items():
        # What nohup or a shell in the background wants ignored stays ignored.
        if old is not signal.SIG_IGN:
            signal.signal(each, handler)
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, signal.SIG_DFL if old is None else old)
