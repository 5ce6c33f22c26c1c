"""What the system says of a process."""

import os
import time
from pathlib import Path

import pytest

from vpnrouter.management.metrics import source as module
from vpnrouter.management.metrics.source import process_figures


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
def test_this_process() -> None:
    """Figures of this process, and of nothing else."""
    before = process_figures()
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    after = process_figures()
    for descriptor in opened:
        os.close(descriptor)
    assert after.open_descriptors - before.open_descriptors == 5
    assert 1_000_000 < before.resident_size < before.virtual_size
    assert before.threads >= 1
    assert after.cpu_seconds >= before.cpu_seconds > 0
    assert before.open_descriptors <= before.most_descriptors
    assert time.time() - 100_000 < before.start_time <= time.time()


def test_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no /proc, the rest is told."""
    monkeypatch.setattr(module, "_OURS", tmp_path / "missing")
    figures = process_figures()
    assert (figures.resident_size, figures.open_descriptors) == (0, 0)
    assert figures.cpu_seconds > 0
