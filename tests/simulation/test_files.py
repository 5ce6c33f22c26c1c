from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from vpnrouter.simulation import files, mesh, plan
from vpnrouter.simulation.files import Press

START_NS = 1_772_352_000 * 10**9


def write(folder: Path, slices: int = 1) -> files.TraceFiles:
    """The traces of a small mesh."""
    rng = np.random.default_rng(1)
    built = mesh.build(mesh.load("sndlib/polska"), 6, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    press = Press(made, plan.share_out(made, 3_000), START_NS, rng)
    out = files.TraceFiles(folder, made, rng, 1.0)
    for at in range(slices):
        out.write(*press.draw(600.0 * (at + 1) / slices))
    out.close()
    return out


def test_a_router_has_one_file_while_there_is_room(tmp_path: Path) -> None:
    """Slices are appended as row groups; what is written is hidden until it is complete."""
    out = write(tmp_path, 5)
    found = sorted(tmp_path.rglob("*"))
    assert sorted(out.paths) == [path for path in found if path.suffix == ".parquet"]
    assert not [path for path in found if path.name.startswith(".")]
    assert len({path.parent for path in out.paths}) == len(out.paths)
    assert all(pq.read_metadata(path).num_row_groups == 5 for path in out.paths)


def test_files_and_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full file is followed by another of the router; no row is lost or doubled."""
    whole = sum(pq.read_metadata(path).num_rows for path in write(tmp_path / "one").paths)
    monkeypatch.setattr(files, "FILE_ROWS", 200)
    monkeypatch.setattr(files, "GROUP_ROWS", 50)
    out = write(tmp_path / "two")
    footers = [pq.read_metadata(path) for path in out.paths]
    assert len(out.paths) > len({path.parent for path in out.paths})
    assert sum(footer.num_rows for footer in footers) == whole
    assert max(footer.num_rows for footer in footers) < 250
    groups = [footer.row_group(at) for footer in footers for at in range(footer.num_row_groups)]
    assert max(group.num_rows for group in groups) <= 50


def test_a_write_that_fails_is_told(tmp_path: Path) -> None:
    """The error of the writing thread comes out of the next call."""
    place = tmp_path / "traces"
    place.write_text("a file is in the way")
    with pytest.raises(OSError, match="traces"):
        write(place)


def test_ids_look_drawn_and_are_distinct() -> None:
    """Message ids of neighbouring numbers differ in about half of their bits; none is met twice."""
    numbers = np.arange(1, 100_001, dtype=np.int64)
    mixed = files._mixed(numbers)
    assert len(np.unique(mixed)) == len(numbers)
    bits: Any = np.bitwise_count(mixed[1:] ^ mixed[:-1])
    assert 31 < bits.mean() < 33


def test_trace_ids_are_hexadecimal() -> None:
    """Both halves as 32 digits; none where there is no message."""
    high = np.array([0xABC, 1], np.uint64)
    low = np.array([0x12, 2], np.uint64)
    ids = files._trace_ids(high, low, np.array([False, True])).to_pylist()
    assert ids == [f"{0xABC:016x}{0x12:016x}", None]
