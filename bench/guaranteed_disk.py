"""Measures this disk: its own fdatasync, and how often its cache was flushed."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from bench.percentiles import summary
from bench.scenarios import Row

NAME = "disk"
_RECORD = bytes(320)
"""About what a message of the bench takes in a log."""
_FLUSHES = 15
"""Place of "flush requests completed" in a block device's stat file (kernel 5.5 and newer)."""
_MEMORY = {"tmpfs", "ramfs"}


def fdatasync(seconds: float) -> Row:
    """A file grows by one record at a time, synced each time, for so long."""
    ages: list[int] = []
    with tempfile.NamedTemporaryFile(prefix="bench-disk-") as file:
        descriptor = file.fileno()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter_ns()
            os.write(descriptor, _RECORD)
            os.fdatasync(descriptor)
            ages.append(time.perf_counter_ns() - begin)
    return {**summary(ages), "faults": []}


def flushes() -> int:
    """Flushes that the disk of the temporary directory has done so far, for anybody; 0 where the
    kernel does not tell.
    """
    device = Path(tempfile.gettempdir()).stat().st_dev
    path = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    try:
        fields = path.read_text(encoding="utf-8").split()
    except OSError:
        return 0
    return int(fields[_FLUSHES]) if len(fields) > _FLUSHES else 0


def file_system() -> str:
    """The kind of file system that the temporary directory is on."""
    here = Path(tempfile.gettempdir()).resolve()
    kind, longest = "unknown", -1
    for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
        _, point, name, *_ = line.split()
        if here.is_relative_to(point) and len(point) > longest:
            kind, longest = name, len(point)
    return kind


def warning() -> str:
    """Why nothing measured here says anything about a disk; empty when it does."""
    kind = file_system()
    if kind in _MEMORY:
        return f"{tempfile.gettempdir()} is {kind}, memory: set TMPDIR to a directory on a disk"
    return ""
