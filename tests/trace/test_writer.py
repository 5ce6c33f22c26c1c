"""The thread that writes trace files."""

import errno
import inspect
import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import vpnrouter
from vpnrouter import limits
from vpnrouter.trace import events, schema
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.retention import Retention
from vpnrouter.trace.schema import DISK_FULL, INTERNAL_ERROR, IO_ERROR, PERMISSION, reason_of
from vpnrouter.trace.writer import Status, Writer, WriterThread

DAY_NS = 86_400 * 10**9


MIDNIGHT_NS = 20_000 * DAY_NS


NOON_NS = MIDNIGHT_NS + DAY_NS // 2


SECOND_NS = 10**9


CONTEXT = Context(events.INGRESS, "blue", client="c")


def put(recorder: Recorder, count: int = 1, ts_ns: int = NOON_NS) -> None:
    """Record events whose message ids go on from those recorded before."""
    for number in range(recorder.recorded + 1, recorder.recorded + count + 1):
        recorder.record(
            CONTEXT,
            ts_ns + number,
            b"t",
            trace_high=1,
            trace_low=number,
            message_id=number,
            size=1,
            since_ingress_ns=0,
            origin_ts_ns=NOON_NS,
        )


def visible(directory: Path) -> list[Path]:
    """The files under their final names, in order of number."""
    files = directory.glob("date=*/router=*/part-*.parquet")
    return sorted(files, key=lambda path: [int(part) for part in path.stem.split("-")[1:]])


def hidden(directory: Path) -> list[Path]:
    """The files being written."""
    return list(directory.glob("date=*/router=*/.*"))


def ids(directory: Path) -> list[int]:
    """The message ids of all visible files, in order of file and row."""
    return [n for path in visible(directory) for n in pq.read_table(path)["message_id"].to_pylist()]


def waiting(recorder: Recorder) -> int:
    """Events in blocks that nobody took yet."""
    return sum(block.count for block in recorder.full)


class Disk:
    """Opens files that fail as the test wants, and otherwise are real ones."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.opened: list[Path] = []

    def __call__(self, path: Path) -> BinaryIO:
        disk = self
        if disk.error is not None and disk.error.errno == errno.EACCES:
            raise disk.error
        disk.opened.append(path)

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                if disk.error is not None:
                    raise disk.error
                return super().write(data)

        return io.BufferedWriter(File(path, "wb"))


def test_files_are_found_by_date_and_router(tmp_path: Path) -> None:
    """A dataset reader finds every row with the date and router of its directory."""
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "rand:1/Süd", recorder)
    put(recorder, 15)
    recorder.cut()
    writer.stop(0)
    (path,) = visible(tmp_path)
    assert path.parent.relative_to(tmp_path) == Path("date=2024-10-04/router=rand%3A1%2FSüd")
    assert path.name == f"part-{NOON_NS + 1}-1.parquet"
    rows = ds.dataset(tmp_path, partitioning="hive").to_table().to_pylist()
    assert [row["message_id"] for row in rows] == list(range(1, 16))
    assert {(row["date"], row["router"]) for row in rows} == {("2024-10-04", "rand:1/Süd")}


@pytest.mark.parametrize(("sample", "stated"), [(0.01, b"0.01"), (1.0, b"1.0"), (None, None)])
def test_a_file_says_what_it_is(sample: float | None, stated: bytes | None, tmp_path: Path) -> None:
    """Schema version, router and sampling rate stand in the metadata of each file."""
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "rand/Süd", recorder, sample=sample)
    put(recorder)
    recorder.cut()
    writer.stop(0)
    (path,) = visible(tmp_path)
    metadata = pq.read_metadata(path).metadata
    assert metadata[b"vpnrouter.trace.version"] == str(schema.VERSION).encode()
    assert metadata[b"vpnrouter.router"].decode() == "rand/Süd"
    assert metadata.get(b"vpnrouter.trace.sample") == stated


def test_a_block_over_midnight_is_split(tmp_path: Path) -> None:
    """Rows before and after midnight, even when mixed, stand under the dates of their times."""
    recorder = Recorder(100, 4)
    writer = Writer(tmp_path, "edge", recorder)
    for number in range(1, 41):
        side = 1 if number % 3 else -1
        ts = MIDNIGHT_NS + side * number
        recorder.record(
            CONTEXT,
            ts,
            b"t",
            trace_high=1,
            trace_low=1,
            message_id=number,
            size=1,
            since_ingress_ns=0,
            origin_ts_ns=1,
        )
    recorder.cut()
    writer.stop(0)
    rows = ds.dataset(tmp_path, partitioning="hive").to_table().to_pylist()
    assert sorted(row["message_id"] for row in rows) == list(range(1, 41))
    for row in rows:
        assert row["date"] == ("2024-10-03" if row["ts_ns"] < MIDNIGHT_NS else "2024-10-04")
    assert len(visible(tmp_path)) == 2


def test_a_file_is_visible_only_when_complete(tmp_path: Path) -> None:
    """At every write of a file no name but a hidden one stands for it; then one whole file does."""
    seen: list[tuple[list[Path], list[Path]]] = []

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            seen.append((visible(tmp_path), hidden(tmp_path)))
            return super().write(data)

    recorder = Recorder(1000, 4)
    writer = Writer(
        tmp_path, "edge", recorder, opener=lambda path: io.BufferedWriter(File(path, "wb"))
    )
    put(recorder, 3500)
    recorder.cut()
    writer.run_once(0)
    writer.stop(1)
    assert len(seen) > 1
    assert all(files == [] and len(making) == 1 for files, making in seen)
    assert hidden(tmp_path) == []
    assert ids(tmp_path) == list(range(1, 3501))


def test_a_file_is_finished_at_its_age(tmp_path: Path) -> None:
    """The file stays open until it is as old as asked, then the next one begins."""
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=SECOND_NS)
    for now in (0, SECOND_NS - 1):
        put(recorder, 10)
        writer.run_once(now)
        assert visible(tmp_path) == []
    assert writer.status().open == 20
    writer.run_once(SECOND_NS)
    assert ids(tmp_path) == list(range(1, 21))
    writer.run_once(9 * SECOND_NS)
    put(recorder, 10)
    writer.run_once(10 * SECOND_NS)
    assert len(visible(tmp_path)) == 1
    writer.run_once(11 * SECOND_NS)
    assert [pq.read_metadata(path).num_rows for path in visible(tmp_path)] == [20, 10]


def test_a_file_is_finished_at_its_rows(tmp_path: Path) -> None:
    """No file has more rows than asked, whatever the size of the blocks."""
    recorder = Recorder(7, 10)
    writer = Writer(tmp_path, "edge", recorder, file_rows=10)
    put(recorder, 45)
    recorder.cut()
    writer.stop(0)
    assert [pq.read_metadata(path).num_rows for path in visible(tmp_path)] == [10, 10, 10, 10, 5]
    assert ids(tmp_path) == list(range(1, 46))


def test_a_file_is_finished_at_its_size(tmp_path: Path) -> None:
    """A file that has reached its size takes no other block; the default is the bound in limits."""
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder, file_bytes=1)
    put(recorder, 30)
    writer.stop(0)
    assert [pq.read_metadata(path).num_rows for path in visible(tmp_path)] == [10, 10, 10]
    default = inspect.signature(Writer).parameters["file_bytes"].default
    assert default == limits.TRACE_FILE_BYTES


def test_a_file_without_rows_is_refused() -> None:
    """A file holds one row at least."""
    with pytest.raises(ValueError, match="one row or more"):
        Writer("unused", "edge", Recorder(), file_rows=0)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EFBIG, "disk-full"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "permission"),
        (errno.EIO, "io-error"),
    ],
)
def test_a_failing_disk_drops_events_and_recovers(number: int, reason: str, tmp_path: Path) -> None:
    """Rows that cannot be written are counted by reason; the next block is written again."""
    disk = Disk()
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder, file_bytes=1, opener=disk)
    put(recorder, 10)
    writer.run_once(0)
    disk.error = OSError(number, os.strerror(number))
    put(recorder, 20)
    writer.run_once(1)
    assert writer.status().dropped == {reason: 20}
    assert writer.status().last_error == f"{reason}: [Errno {number}] {os.strerror(number)}"
    assert hidden(tmp_path) == []
    disk.error = None
    put(recorder, 10)
    writer.stop(2)
    assert ids(tmp_path) == [*range(1, 11), *range(31, 41)]
    status = writer.status()
    assert (status.recorded, status.written, status.dropped) == (40, 20, {reason: 20})


def test_a_failure_late_in_a_file_drops_all_its_rows(tmp_path: Path) -> None:
    """When the footer cannot be written, every row of the file is counted as dropped."""
    disk = Disk()
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder, opener=disk)
    put(recorder, 30)
    writer.run_once(0)
    assert writer.status().open == 30
    disk.error = OSError(errno.ENOSPC, "full")
    writer.stop(1)
    assert writer.status().dropped == {"disk-full": 30}
    assert (visible(tmp_path), hidden(tmp_path)) == ([], [])


def test_a_directory_that_cannot_be_made_is_an_error_of_the_disk(tmp_path: Path) -> None:
    """With a file in the place of the directory nothing is written and nothing raised."""
    (tmp_path / "traces").write_text("a file")
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path / "traces", "edge", recorder)
    put(recorder, 10)
    writer.stop(0)
    assert writer.status().dropped == {"io-error": 10}


def test_a_context_that_is_wrong_costs_its_block_only(tmp_path: Path) -> None:
    """An event that cannot be converted drops its block as an internal error, no other."""
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder)
    recorder.record(
        Context(0, "blue", mode=99),
        NOON_NS,
        b"t",
        trace_high=1,
        trace_low=1,
        message_id=1,
        size=1,
        since_ingress_ns=1,
        origin_ts_ns=1,
    )
    recorder.cut()
    put(recorder, 10)
    writer.stop(0)
    assert writer.status().dropped == {"internal-error": 1}
    assert writer.status().written == 10


def test_every_event_is_somewhere(tmp_path: Path) -> None:
    """Recorded = written + open + waiting + dropped by the writer, at every step."""

    def holds() -> Status:
        status = writer.status()
        lost = sum(n for reason, n in status.dropped.items() if reason != "buffer-full")
        parts = status.written + status.open + waiting(recorder) + lost
        assert status.recorded == parts
        return status

    disk = Disk()
    recorder = Recorder(10, 4)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=SECOND_NS, opener=disk)
    for step in range(1, 40):
        put(recorder, 10 * (step % 7))
        holds()
        disk.error = OSError(errno.ENOSPC, "full") if step % 11 in {5, 6, 7} else None
        if step % 3:
            writer.run_once(step * SECOND_NS // 4)
            holds()
    disk.error = None
    writer.stop(99 * SECOND_NS)
    status = holds()
    assert (status.open, waiting(recorder)) == (0, 0)
    assert status.written == len(ids(tmp_path)) > 0
    assert status.files == len(visible(tmp_path)) > 2
    assert status.size_bytes == sum(path.stat().st_size for path in visible(tmp_path))
    assert set(status.dropped) == {"buffer-full", "disk-full"}
    assert status.dropped["buffer-full"] == recorder.dropped


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    """Hidden files of the same router go away at the start; complete and others' files stay."""
    mine = tmp_path / "date=2024-10-01" / "router=edge%3A1"
    other = tmp_path / "date=2024-10-01" / "router=core"
    for folder in (mine, other):
        folder.mkdir(parents=True)
        (folder / ".part-1-1.parquet").write_bytes(b"PAR1")
        (folder / "part-2-1.parquet").write_bytes(b"PAR1")
    (mine / ".notes").write_text("not ours")
    Writer(tmp_path, "edge:1", Recorder()).run_once(0)
    assert sorted(path.name for path in mine.iterdir()) == [".notes", "part-2-1.parquet"]
    assert sorted(path.name for path in other.iterdir()) == [
        ".part-1-1.parquet",
        "part-2-1.parquet",
    ]


def test_a_restarted_router_overwrites_nothing(tmp_path: Path) -> None:
    """Files of two processes stand side by side, although both count from 1."""
    for start in (NOON_NS, NOON_NS + SECOND_NS):
        recorder = Recorder(10, 10)
        writer = Writer(tmp_path, "edge", recorder)
        put(recorder, 10, start)
        writer.stop(0)
    assert len(visible(tmp_path)) == 2


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


def test_a_file_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    """With the clock set back a restarted router would give a name twice; it counts on instead."""
    for start in (1, 11):
        recorder = Recorder(10, 10)
        recorder.recorded = start - 1
        writer = Writer(tmp_path, "edge", recorder)
        for number in range(start, start + 10):
            recorder.record(
                CONTEXT,
                NOON_NS,
                b"t",
                trace_high=1,
                trace_low=number,
                message_id=number,
                size=1,
                since_ingress_ns=0,
                origin_ts_ns=NOON_NS,
            )
        writer.stop(0)
    assert ids(tmp_path) == list(range(1, 21))
    assert [path.name for path in visible(tmp_path)] == [
        f"part-{NOON_NS}-1.parquet",
        f"part-{NOON_NS}-2.parquet",
    ]


def test_a_file_without_new_rows_is_finished_at_its_size_and_age(tmp_path: Path) -> None:
    """Neither bound waits for the next event."""
    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder, flush_ns=SECOND_NS)
    put(recorder, 10)
    writer.run_once(0)
    writer.run_once(SECOND_NS)
    assert len(visible(tmp_path)) == 1
    writer = Writer(tmp_path, "edge", recorder, flush_ns=SECOND_NS, file_bytes=1)
    put(recorder, 10)
    writer.run_once(0)
    assert len(visible(tmp_path)) == 2


def test_retention_removes_files_of_earlier_processes(tmp_path: Path) -> None:
    """At the start what is too old goes; after each file the oldest beyond the bytes."""
    for start in (NOON_NS, NOON_NS + DAY_NS):
        recorder = Recorder(10, 10)
        writer = Writer(tmp_path, "edge", recorder)
        put(recorder, 10, start)
        writer.stop(0)
    old, kept = visible(tmp_path)
    os.utime(old, ns=(NOON_NS, NOON_NS))
    recorder = Recorder(10, 10)
    retention = Retention(tmp_path, "edge", 2 * DAY_NS, 2 * kept.stat().st_size + 100)
    now = NOON_NS + 2 * DAY_NS + SECOND_NS
    writer = Writer(tmp_path, "edge", recorder, file_rows=10, retention=retention, wall=lambda: now)
    writer.run_once(0)
    assert (old.exists(), kept.exists()) == (False, True)
    for _ in range(2):
        put(recorder, 10, now)
        writer.run_once(0)
    assert not kept.exists()
    assert len(visible(tmp_path)) == 2
    assert writer.status().removed == 2
    assert writer.status().removal_errors == {}


def test_retention_that_fails_costs_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is counted by reason in the status, a defect as an internal error; rows are written."""
    recorder = Recorder(10, 10)
    retention = Retention(tmp_path, "edge", 0, 1)
    writer = Writer(tmp_path, "edge", recorder, file_rows=10, retention=retention)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(Path, "unlink", refuse)
    put(recorder, 30)
    writer.run_once(0)
    status = writer.status()
    assert (status.written, status.removed, status.dropped) == (30, 0, {})
    assert status.removal_errors == {"permission": 2}
    assert status.last_error.startswith("permission: ")

    def broken(now_ns: int) -> bool:
        raise RuntimeError("a defect")

    monkeypatch.setattr(retention, "step", broken)
    put(recorder, 10)
    writer.run_once(1)
    assert writer.status().written == 40
    assert writer.status().dropped == {"internal-error": 0}


def test_an_observer_sees_every_block_whatever_the_disk_does(tmp_path: Path) -> None:
    """It gets the rows as a table; what it raises costs neither rows nor the next block."""
    seen: list[int] = []

    def observe(table: Any) -> None:
        seen.extend(table.column("message_id").to_pylist())
        if len(seen) == 10:
            raise RuntimeError("a defect")

    full = True

    def opener(path: Path) -> BinaryIO:
        if full:
            raise OSError(errno.ENOSPC, "full")
        return path.open("wb")

    recorder = Recorder(10, 10)
    writer = Writer(tmp_path, "edge", recorder, opener=opener, observer=observe)
    put(recorder, 20)
    writer.run_once(0)
    full = False
    put(recorder, 10)
    writer.stop(1)
    assert seen == list(range(1, 31))
    assert writer.status().dropped == {"internal-error": 0, "disk-full": 20}
    assert writer.status().written == 10


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, ""), DISK_FULL),
        (OSError(errno.EDQUOT, ""), DISK_FULL),
        (PermissionError(errno.EACCES, ""), PERMISSION),
        (OSError(errno.EROFS, ""), PERMISSION),
        (OSError(errno.EIO, ""), IO_ERROR),
        (OSError("no number"), IO_ERROR),
        (ValueError(), INTERNAL_ERROR),
    ],
)
def test_every_error_has_a_name(error: Exception, reason: str) -> None:
    """The system's number decides; what is no error of the system is a defect."""
    assert reason_of(error) == reason
