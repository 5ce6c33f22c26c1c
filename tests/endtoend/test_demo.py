"""`vpnrouter demo` as a command: its exit codes, what it leaves, and what it does not leave."""

import json
import os
import select
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MARK = "VPNROUTER_TEST_RUN"
END_S = 30.0

COMMAND = "from vpnrouter.cli.app import main; main()"
# A run in the background may have been told to ignore Ctrl-C, and one under nohup SIGHUP as well, which the
# command then does too.
INTERRUPTIBLE = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
{COMMAND}
"""
SABOTAGED = f"""
import functools
import vpnrouter.demo.run as module
from vpnrouter.demo.scenario import REMOTE_SUBSCRIPTIONS as ALL
module.run_demo = functools.partial(module.run_demo, remote_subscriptions=ALL[1:], with_report=False)
{COMMAND}
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """A word in the environment of everything a test starts, by which it is found again."""
    word = uuid.uuid4().hex
    monkeypatch.setenv(MARK, word)
    return word


def processes(mark: str) -> list[int]:
    """The living processes that carry the word, this one excepted."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted in environment:
                found.append(int(entry.name))
    return found


def start(program: str, output: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line as a process."""
    return subprocess.Popen(
        [sys.executable, "-c", program, "demo", "--output", str(output), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.spark
def test_short_run(tmp_path: Path, mark: str) -> None:
    """A short run passes its own checks, leaves the report, and leaves no process behind."""
    with start(COMMAND, tmp_path / "out", "--rows", "2000") as demo:
        out, err = demo.communicate()
    assert demo.returncode == 0, err
    assert out.splitlines()[-1] == "all 25 checks passed"
    assert "NOT SO" not in out
    page = tmp_path / "out" / "report" / "report.html"
    assert f"report: {page.resolve()}" in out
    assert "<html" in page.read_text(encoding="utf-8")
    edges = json.loads((page.parent / "edges.json").read_text(encoding="utf-8"))
    assert {edge["bridge"] for edge in edges} == {"from-blue", "from-yellow"}
    assert all(edge["messages"] > 0 for edge in edges)
    assert processes(mark) == []


def test_sabotage(tmp_path: Path, mark: str) -> None:
    """With a bridge that misses one remote subscription the command fails and says where."""
    with start(SABOTAGED, tmp_path / "out", "--rows", "2000") as demo:
        out, err = demo.communicate()
    assert demo.returncode == 1
    assert "yellow-all lacks messages" in err
    assert "NOT SO  core/yellow flights/#" in out
    assert "missing, 0 too many, for example flights/HA/JFK/HNL" in out
    assert processes(mark) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long),
        (signal.SIGKILL, -9),
    ],
)
def test_signals(tmp_path: Path, mark: str, number: signal.Signals, code: int) -> None:
    """However it is ended in the middle of the flights, it takes all its processes along."""
    with start(INTERRUPTIBLE, tmp_path / "out") as demo:
        assert demo.stderr is not None
        for line in demo.stderr:
            if "flights leave" in line:
                break
        running = [os.pidfd_open(each) for each in processes(mark)]
        # The command, two routers with a trace writer each, one process of publishers and two of subscribers.
        assert len(running) == 8
        demo.send_signal(number)
        for each in running:
            assert select.select([each], [], [], END_S)[0]
            os.close(each)
        demo.communicate()
    assert demo.returncode == code
    assert processes(mark) == []
