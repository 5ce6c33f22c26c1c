"""The writer in a thread of its own, and in processes that are limited or killed."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq

import vpnrouter
from vpnrouter.trace import events
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.writer import Writer, WriterThread

NOON_NS = 20_000 * 86_400 * 10**9
CONTEXT = Context(events.INGRESS, "blue", client="c")


def put(recorder: Recorder, count: int) -> None:
    """Record events whose message ids go on from those recorded before."""
    for number in range(recorder.recorded + 1, recorder.recorded + count + 1):
        recorder.record(CONTEXT, NOON_NS, b"t", 1, number, number, 1, 0, NOON_NS)


def visible(directory: Path) -> list[Path]:
    """The files under their final names, in order of number."""
    files = directory.glob("date=*/router=*/part-*.parquet")
    return sorted(files, key=lambda path: int(path.stem.split("-")[2]))


def ids(directory: Path) -> list[int]:
    """The message ids of all visible files, in order of file and row."""
    return [n for path in visible(directory) for n in pq.read_table(path)["message_id"].to_pylist()]


# Another interpreter imports the build under test, not what lies in its working directory.
PYTHON = [sys.executable, "-P", "-c"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])}

SCRIPT = """
import resource, signal, sys
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.writer import Writer
recorder = Recorder(5_000, 4)
writer = Writer(sys.argv[1], "edge", recorder, flush_ns=0)
context = Context(0, "blue")
draw = 1
def put():
    global draw
    for _ in range(5_000):
        draw = draw * 6364136223846793005 % 2**64 + 1
        recorder.record(context, 10**18, b"t", draw, draw, draw, 1, draw >> 9, draw >> 9)
"""


def run(script: str, directory: Path) -> subprocess.Popen[str]:
    """Start a fresh interpreter on SCRIPT and what follows."""
    return subprocess.Popen(
        [*PYTHON, SCRIPT + script, str(directory)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_file_size_limit_of_the_system_drops_and_recovers(tmp_path: Path) -> None:
    """A real refusal of the kernel is counted; when the limit is gone, rows are written again."""
    process = run(
        """
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
put()
writer.run_once(0)
print(writer.status().dropped, writer.status().written)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
put()
writer.run_once(1)
print(writer.status().dropped, writer.status().written)
""",
        tmp_path,
    )
    output, _ = process.communicate(timeout=60)
    assert output.splitlines() == ["{'disk-full': 5000} 0", "{'disk-full': 5000} 5000"]
    assert process.returncode == 0
    assert len(ids(tmp_path)) == 5000


def test_a_killed_process_leaves_whole_files_only(tmp_path: Path) -> None:
    """After SIGKILL at any moment every visible file can be read to its end."""
    process = run(
        """
while True:
    put()
    writer.run_once(0)
    print(writer.status().files, flush=True)
""",
        tmp_path,
    )
    assert process.stdout is not None
    with process, process.stdout:
        for line in process.stdout:
            if int(line) >= 20:
                process.kill()
                break
    assert len(visible(tmp_path)) >= 20
    assert {pq.read_table(path).num_rows for path in visible(tmp_path)} == {5000}


def test_the_router_starts_without_numpy_and_pyarrow() -> None:
    """Importing and making recorder, sampler and writer loads neither library."""
    script = """
import sys
import vpnrouter.trace.events, vpnrouter.trace.sampler, vpnrouter.trace.schema
from vpnrouter.trace.recorder import Recorder
from vpnrouter.trace.writer import Writer, WriterThread
recorder = Recorder()
WriterThread(Writer("unused", "edge", recorder), recorder, lambda: 0)
print([name for name in ("numpy", "pyarrow") if name in sys.modules])
"""
    output = subprocess.run(
        [*PYTHON, script], env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout
    assert output == "[]\n"


def test_the_thread_writes_what_is_handed_over(tmp_path: Path) -> None:
    """tick() brings a part of a block to the file, stop() the rest, and the thread ends."""
    recorder = Recorder(1000, 4)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=0)
    thread = WriterThread(writer, recorder, time.monotonic_ns, period_s=60.0)
    thread.start()
    put(recorder, 30)
    thread.tick()
    while not visible(tmp_path):
        assert writer.status().dropped == {}
    put(recorder, 12)
    thread.finish()
    thread.finish()
    assert thread.stop(60.0)
    assert ids(tmp_path) == list(range(1, 43))


def test_full_blocks_are_written_without_a_tick(tmp_path: Path) -> None:
    """The thread looks for full blocks by itself."""
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=0)
    thread = WriterThread(writer, recorder, time.monotonic_ns, period_s=0.001)
    thread.start()
    put(recorder, 20)
    while len(ids(tmp_path)) < 20:
        assert writer.status().dropped == {}
    assert thread.stop(60.0)


def test_a_disk_that_hangs_drops_events_and_stops_nothing(tmp_path: Path) -> None:
    """While a write hangs, events beyond the bound are dropped, and stop() says it was too slow."""
    hanging, released = threading.Event(), threading.Event()

    def opener(path: Path) -> BinaryIO:
        hanging.set()
        assert released.wait(60)
        return path.open("wb")

    recorder = Recorder(10, 2)
    writer = Writer(tmp_path, "edge", recorder, opener=opener)
    thread = WriterThread(writer, recorder, time.monotonic_ns)
    thread.start()
    put(recorder, 10)
    thread.tick()
    assert hanging.wait(60)
    put(recorder, 50)
    assert recorder.dropped == 30
    assert not thread.stop(0.0)
    released.set()
    assert thread.stop(60.0)
    assert len(ids(tmp_path)) == 30
    assert writer.status().dropped == {"buffer-full": 30}


def test_status_can_be_read_while_the_thread_writes(tmp_path: Path) -> None:
    """Many events through a live thread, none lost, in order, with the status read meanwhile."""
    recorder = Recorder(100, 1 << 20)
    writer = Writer(tmp_path, "edge", recorder, file_rows=1000)
    thread = WriterThread(writer, recorder, time.monotonic_ns, period_s=0.0)
    thread.start()
    written = 0
    for _ in range(200):
        put(recorder, 97)
        recorder.cut()
        now = writer.status().written
        assert now >= written
        written = now
    assert thread.stop(60.0)
    assert ids(tmp_path) == list(range(1, 200 * 97 + 1))


def test_the_thread_outlives_what_it_does_not_expect(tmp_path: Path) -> None:
    """No descriptor, no memory, no library: rows are lost under a reason, that is told, and it goes on."""
    errors: list[Exception] = [
        OSError(24, "Too many open files"),
        MemoryError(),
        ImportError("no library"),
    ]
    raised, lost = list(errors), [MemoryError()]

    def clock() -> int:
        if errors:
            raise errors.pop()
        return time.monotonic_ns()

    def opener(path: Path) -> BinaryIO:
        if lost:
            raise lost.pop()
        return path.open("wb")

    said: list[str] = []
    faults: list[Exception] = []
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=0, opener=opener)
    thread = WriterThread(
        writer, recorder, clock, period_s=0.001, say=said.append, fault=faults.append
    )
    put(recorder, 10)
    thread.start()
    while not said:
        assert thread._thread.is_alive()
    put(recorder, 20)
    while len(ids(tmp_path)) < 20:
        assert thread._thread.is_alive()
    assert thread.stop(60.0)
    status = writer.status()
    assert {type(error) for error in faults} == {type(error) for error in raised}
    assert (status.written, sum(status.dropped.values())) == (20, 10)
    assert status.recorded == status.written + sum(status.dropped.values())
    assert said[0].startswith("traces: rows are lost: internal-error")
    assert said[1] == "traces: rows are written again; 10 were lost"
