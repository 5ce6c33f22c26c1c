"""A torn end is told from damage; the cases with a real log stand in tests/testing/test_power_cut.py."""

import os
from pathlib import Path

import pytest

from vpnrouter.spool.rocks_store import RocksStore, end_is_torn, torn
from vpnrouter.spool.store import Batch


@pytest.fixture
def log(tmp_path: Path) -> tuple[bytes, list[int]]:
    """The bytes of a real log, and where each of its batches ends."""
    store = RocksStore(tmp_path / "spool")
    (path,) = store.directory.glob("*.log")
    ends = [path.stat().st_size]
    for size in (100, 70_000, 200, 90_000):
        batch = Batch()
        batch.put(b"key", os.urandom(size))
        store.commit(batch)
        ends.append(path.stat().st_size)
    # Closing writes the log's rows out and deletes it.
    data = path.read_bytes()
    store.close()
    return data, ends


def changed(data: bytes, at: int, size: int = 9) -> bytes:
    """The bytes with a few of them turned over."""
    other = bytes(byte ^ 0x5A for byte in data[at : at + size])
    return data[:at] + other + data[at + size :]


def test_whole_log(log: tuple[bytes, list[int]]) -> None:
    """Every checksum of a real log holds: it can be called torn only where nothing is damaged."""
    assert torn(log[0])


def test_damage_in_the_last_batch(log: tuple[bytes, list[int]]) -> None:
    """What stands behind it are pieces of the same batch."""
    data, ends = log
    for at in (ends[3], ends[3] + 5, ends[3] + 40_000, ends[4] - 10):
        assert torn(changed(data, at))


def test_damage_before_the_last_batch(log: tuple[bytes, list[int]]) -> None:
    """A batch begins behind it: what is damaged was synced once."""
    data, ends = log
    for at in (3, ends[1], ends[1] + 100, ends[1] + 40_000, ends[0] + 20):
        assert not torn(changed(data, at))


def test_older_log_is_damaged(tmp_path: Path, log: tuple[bytes, list[int]]) -> None:
    """Only the newest log can be torn."""
    data, ends = log
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "000009.log").write_bytes(changed(data, ends[3] + 5))
    assert end_is_torn(folder)
    (folder / "000010.log").write_bytes(data)
    assert not end_is_torn(folder)
    (folder / "000009.log").write_bytes(data)
    (folder / "000010.log").write_bytes(changed(data, ends[3] + 5))
    assert end_is_torn(folder)


def test_no_log(tmp_path: Path) -> None:
    """Without a log, or with a file that only looks like one, nothing is torn."""
    assert not end_is_torn(tmp_path)
    (tmp_path / "notes.log").write_bytes(b"")
    assert not end_is_torn(tmp_path)
