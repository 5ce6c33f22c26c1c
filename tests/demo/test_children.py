"""Processes that are surely ended."""

import os
import select
import signal
import sys
from pathlib import Path

import pytest

from vpnrouter.demo.children import child, ended_by_signals, undisturbed
from vpnrouter.errors import OperationError


def echo() -> None:
    """In a child: say the process id of a grandchild, then each line backwards."""
    grandchild = os.fork()
    if grandchild == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    print(grandchild, flush=True)
    for line in sys.stdin:
        print(line.strip()[::-1], flush=True)


def complain() -> None:
    """In a child: fail with a word on standard error."""
    sys.exit("no fuel")


def silent() -> None:
    """In a child: say nothing for ever."""
    signal.pause()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which a child imports this file."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return Path(__file__).stem


def test_lines_and_end(here: str, tmp_path: Path) -> None:
    """A child takes and gives lines; after the block it and what it started are gone."""
    with child("echo", f"{here}:echo", [], tmp_path / "log") as process:
        grandchild = os.pidfd_open(int(process.first_line(20.0)))
        process.tell({"a": 1})
        assert process.first_line(20.0) == '}1 :"a"{'
    assert process.process.returncode == -signal.SIGTERM
    # The descriptor of a process becomes readable when it has ended.
    assert select.select([grandchild], [], [], 10)[0]
    os.close(grandchild)


def test_exception_ends_the_child(here: str, tmp_path: Path) -> None:
    """An exception in the block ends the child as well."""
    with (
        pytest.raises(ZeroDivisionError),
        child("s", f"{here}:silent", [], tmp_path / "l") as process,
    ):
        raise ZeroDivisionError
    assert process.process.returncode == -signal.SIGTERM


def test_early_end(here: str, tmp_path: Path) -> None:
    """A child that ends early is an error with its last words and the place of all of them."""
    log = tmp_path / "log"
    with child("pilot", f"{here}:complain", [], log) as process:
        with pytest.raises(OperationError, match="pilot ended early: no fuel") as caught:
            process.first_line(20.0)
        assert str(log) in str(caught.value)
        with pytest.raises(OperationError):
            process.tell({"more": "x" * 100_000})


def test_too_late(here: str, tmp_path: Path) -> None:
    """A child that says nothing in time is an error."""
    with (
        child("mute", f"{here}:silent", [], tmp_path / "log") as process,
        pytest.raises(OperationError, match="mute not ready within"),
    ):
        process.first_line(0.0)


def test_signals_leave_as_exceptions() -> None:
    """SIGTERM ends the block as an exception, but not while something is being tidied up."""
    before = signal.getsignal(signal.SIGTERM)
    tidied = False

    def tidy() -> None:
        nonlocal tidied
        with ended_by_signals(), undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            tidied = True

    with pytest.raises(SystemExit) as caught:
        tidy()
    assert tidied
    assert caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
