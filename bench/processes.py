"""Starts the processes under test, and ends them in any case."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

START_SECONDS = 20.0
"""Longest wait for a process to become usable."""
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    """Whether something listens on the port of 127.0.0.1."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def running(
    command: Sequence[str],
    *,
    core: int | None,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process group of its own on one core; stderr goes to `log`, stdout is a
    pipe.

    On leaving, however, the group gets SIGTERM and after three seconds SIGKILL. Should this process
    be killed itself, the kernel kills the child.
    """

    def before_exec() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509 (the bench has one thread)
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(3)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits for the condition; a process that ends or does not get there is an error with its last
    words.
    """
    end = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}: {tail(log)}")
        if time.monotonic() > end:
            raise RuntimeError(
                f"{process.args!r} was not ready in {START_SECONDS:.0f} s: {tail(log)}"
            )
        time.sleep(0.01)


def tail(log: Path) -> str:
    """The last of a log file, for error messages."""
    return log.read_text(encoding="utf-8", errors="replace")[-1500:].strip() if log.exists() else ""


def family(pid: int) -> list[int]:
    """A process and all that it started, and these in turn."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found.extend(parents.get(one, []))
    return found


@contextlib.contextmanager
def crowd() -> Iterator[None]:
    """Processes of lowest priority, one bound to each core, that keep all of them busy."""
    command = (sys.executable, "-c", "import os\nos.nice(19)\nwhile True: pass")
    with contextlib.ExitStack() as stack:
        for core in range(os.cpu_count() or 1):
            stack.enter_context(running(command, core=core, log=Path(os.devnull)))
        yield
