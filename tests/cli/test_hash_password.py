"""`vpnrouter hash-password`."""

import os
import pty
import subprocess
import sys

import pytest

from vpnrouter.config.secrets import verify_password
from vpnrouter.limits import PASSWORD_BYTES

PROGRAM = [sys.executable, "-c", "from vpnrouter.cli.app import main; main()", "hash-password"]


def hashed(given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the command with this on standard input."""
    return subprocess.run(PROGRAM, input=given, capture_output=True, check=False)


def typed(*lines: str) -> tuple[int, str]:
    """Run the command on a terminal and answer its prompts; exit code and all that was shown."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, PROGRAM)  # noqa: S606 - no shell wanted
    shown = b""
    answers = iter(lines)
    while True:
        try:
            chunk = os.read(terminal, 4_096)
        except OSError:  # the other side of the terminal is closed
            break
        if not chunk:
            break
        shown += chunk
        # The blank comes once the echo is off; what is typed before is thrown away.
        if shown.endswith(b": "):
            os.write(terminal, next(answers).encode() + b"\n")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_hash_of_standard_input_verifies(ending: bytes) -> None:
    """The first line of standard input, without its ending, is the password."""
    done = hashed("pässword with  spaces ".encode() + ending)
    assert (done.returncode, done.stderr) == (0, b"")
    assert verify_password(done.stdout.decode().rstrip("\n"), "pässword with  spaces ".encode())


def test_same_password_has_another_hash_each_time() -> None:
    """The salt is drawn anew, so equal passwords do not show."""
    assert hashed(b"secret\n").stdout != hashed(b"secret\n").stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", b"no password on standard input"),
        (b"\n", b"no password on standard input"),
        (b"\xff\xfe\n", b"not UTF-8"),
        (b"x" * (PASSWORD_BYTES + 1) + b"\n", b"at most"),
    ],
)
def test_input_that_is_no_password_is_exit_2(given: bytes, said: bytes) -> None:
    """Nothing, bytes that are no text, and a text beyond the bound are wrong use, no traceback."""
    done = hashed(given)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr
    assert b"Traceback" not in done.stderr


def test_terminal_asks_twice_and_does_not_echo() -> None:
    """On a terminal the password is typed twice and never shown."""
    code, shown = typed("secret", "secret")
    assert code == 0
    assert "secret" not in shown
    assert verify_password(shown.split()[-1], b"secret")
