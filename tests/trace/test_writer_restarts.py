"""The writer and what lies there already: files of earlier processes, and what retention makes of them."""

import errno
import os
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import pytest

from vpnrouter.trace import events
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.retention import Retention
from vpnrouter.trace.writer import Writer

DAY_NS = 86_400 * 10**9
NOON_NS = 20_000 * DAY_NS + DAY_NS // 2
SECOND_NS = 10**9
CONTEXT = Context(events.INGRESS, "blue", client="c")


def put(recorder: Recorder, count: int = 1, ts_ns: int = NOON_NS) -> None:
    """Record events whose message ids go on from those recorded before."""
    for number in range(recorder.recorded + 1, recorder.recorded + count + 1):
        recorder.record(CONTEXT, ts_ns + number, b"t", 1, number, number, 1, 0, NOON_NS)


def visible(directory: Path) -> list[Path]:
    """The files under their final names, oldest first."""
    files = directory.glob("date=*/router=*/part-*.parquet")
    return sorted(files, key=lambda path: [int(part) for part in path.stem.split("-")[1:]])


def ids(directory: Path) -> list[int]:
    """The message ids of all visible files, in order of file and row."""
    return [n for path in visible(directory) for n in pq.read_table(path)["message_id"].to_pylist()]


def test_a_file_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    """With the clock set back a restarted router would give a name twice; it counts on instead."""
    for start in (1, 11):
        recorder = Recorder(10, 10)
        recorder.recorded = start - 1
        writer = Writer(tmp_path, "edge", recorder)
        for number in range(start, start + 10):
            recorder.record(CONTEXT, NOON_NS, b"t", 1, number, number, 1, 0, NOON_NS)
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
