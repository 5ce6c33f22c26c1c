"""Damage in the write-ahead log is refused, and what a power cut leaves is not."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from rocksdict import AccessType, DBRecoveryMode, Rdict, WriteBatch

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool.rocks_store import MARKED, RocksStore, options
from vpnrouter.spool.store import Batch
from vpnrouter.spool.write_ahead_log import MARK, mark_of, unread_commit

SECTOR: Final = 512

BEFORE_KEY: Final = 11 + 12 + 2
"""Bytes of a commit before its first key: the record's head, the batch's, kind and length of the key."""


class Killed:
    """A store whose process died: its files, and the keys of its commits, in order.

    `before` has the log and the mark as they were before the last commit.
    """

    def __init__(
        self, directory: Path, keys: list[bytes], before: tuple[bytes, bytes] = (b"", b"")
    ) -> None:
        self.directory = directory
        self.keys = keys
        self.before = before
        self.log = newest(directory)
        self.data = self.log.read_bytes()
        self.mark = (directory / MARK).read_bytes()

    def found(self, data: bytes, mark: bytes = b"") -> list[bytes] | None:
        """The keys that a start finds with this log, or None if it refuses and leaves all files as they are."""
        place = self.directory.with_name("started")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.directory, place)
        (place / self.log.name).write_bytes(data)
        (place / MARK).write_bytes(mark or self.mark)
        before = contents(place)
        refusal: SpoolError | None = None
        try:
            store = RocksStore(place, create=False)
        except SpoolError as error:
            refusal = error
        if refusal is not None:
            assert refusal.reason == "corrupt"
            assert str(place) in str(refusal)
            assert contents(place) == before
            return None
        keys = [key for key, _ in store.scan(b"k")]
        # It works, and the next start finds what it did.
        batch = Batch()
        batch.put(b"k~", b"")
        store.commit(batch)
        store.close()
        store = RocksStore(place, create=False)
        assert [key for key, _ in store.scan(b"k")] == [*keys, b"k~"]
        store.close()
        return keys


def contents(directory: Path) -> dict[str, bytes]:
    """All files but those in which RocksDB says what it does."""
    told = ("LOG", "OPTIONS", "rocksdict-config")
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if not path.name.startswith(told)
    }


Kill = Callable[..., Killed]


@pytest.fixture
def kill(tmp_path: Path) -> Iterator[Kill]:
    """`kill(sizes, recycled)`: a store with a commit of each size, then killed; in an old log written over, or not."""
    stores: list[RocksStore] = []

    def make(sizes: tuple[int, ...], recycled: bool = False) -> Killed:
        store = RocksStore(tmp_path / "running")
        stores.append(store)
        if recycled:
            recycle(store)
        keys = [b"k%03d" % number for number in range(len(sizes))]
        for key, size in zip(keys, sizes, strict=True):
            before = newest(store.directory).read_bytes(), (store.directory / MARK).read_bytes()
            batch = Batch()
            batch.put(key, os.urandom(size))
            store.commit(batch)
        shutil.copytree(store.directory, tmp_path / "killed")
        return Killed(tmp_path / "killed", keys, before)

    yield make
    for store in stores:
        store.close()


def newest(directory: Path) -> Path:
    """The newest log."""
    return max(directory.glob("*.log"), key=lambda path: int(path.stem))


def recycle(store: RocksStore) -> None:
    """Write until an old log is written over."""
    first = newest(store.directory)
    told = store.directory / "LOG"
    while newest(store.directory) == first or b"reusing log" not in told.read_bytes():
        batch = Batch()
        batch.put(b"filler", os.urandom(1_000_000))
        store.commit(batch)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """The bytes with one bit turned over."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.mark.parametrize("recycled", [False, True])
def test_one_flipped_bit(kill: Kill, recycled: bool) -> None:
    """At every offset of a small log: refused."""
    killed = kill((20, 0, 30), recycled)
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    bits = random.Random(seed)
    end = killed.data.rfind(b"k002") + 4 + 1 + 30
    begin = killed.data.rfind(b"k000", 0, end) - BEFORE_KEY if recycled else 0
    end = min(end, len(killed.data))
    # A recycled log is as large as a write buffer, and a copy of it takes its time.
    for at in range(max(begin, 0), end, 3 if recycled else 1):
        assert killed.found(flipped(killed.data, at, bits.randrange(8))) is None, f"byte {at}"
    # What is behind belongs to an older log.
    for at in range(end, min(end + 20, len(killed.data))):
        assert killed.found(flipped(killed.data, at, bits.randrange(8))) == killed.keys


def test_after_a_power_cut_too(kill: Kill) -> None:
    """The mark may be behind then: damage before the last commit is refused, in it, it is one that was not synced."""
    killed = kill((20, 0, 30))
    last = killed.data.index(b"k002") - BEFORE_KEY
    for at in range(len(killed.data)):
        found = killed.found(flipped(killed.data, at, at % 8), mark_of(0))
        assert found == (None if at < last else killed.keys[:-1]), f"byte {at}"


@pytest.mark.parametrize("recycled", [False, True])
def test_power_cut_in_a_commit(kill: Kill, recycled: bool) -> None:
    """Any of the sectors of the last commit have reached the disk: all before it is there."""
    killed = kill((100, 70_000, 200, 90_000), recycled)
    begin = killed.data.rfind(b"k003") - BEFORE_KEY
    log, mark = killed.before
    assert log[:begin] == killed.data[:begin]
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for _ in range(25):
        data = bytearray(log.ljust(len(killed.data), b"\0"))
        for at in range(begin - begin % SECTOR, min(begin + 90_500, len(data)), SECTOR):
            if draw.random() < 0.7:
                data[at : at + SECTOR] = killed.data[at : at + SECTOR]
        assert killed.found(bytes(data), mark) in (killed.keys[:-1], killed.keys)


def test_cut_off(kill: Kill) -> None:
    """A log that is shorter than what was synced is refused at every length, and without a mark read to its end."""
    killed = kill((20, 0, 30))
    begins = [killed.data.index(key) - BEFORE_KEY for key in killed.keys]
    for size in range(len(killed.data)):
        assert killed.found(killed.data[:size]) is None
        found = killed.found(killed.data[:size], mark_of(0))
        whole = sum(begin <= size for begin in begins[1:])
        assert found == killed.keys[:whole]


def test_damage_in_large_commits(kill: Kill) -> None:
    """Where a damaged area has eaten the begin of the next block, too, what is behind it is found."""
    killed = kill((100, 70_000, 200, 90_000, 150_000, 10))
    for at, size in ((50, 9), (40_000, 9), (30_000, 5_000), (32_768, 32_768), (70_300, 40)):
        data = bytearray(killed.data)
        data[at : at + size] = bytes(byte ^ 0x5A for byte in data[at : at + size])
        assert killed.found(bytes(data), mark_of(0)) is None


def test_mark_that_cannot_be_read(kill: Kill) -> None:
    """Nobody knows then whether the log is whole: the store is refused."""
    killed = kill((20, 0, 30))
    for mark in (flipped(killed.mark, 3, 5), b"\0" * 12, killed.mark[:5]):
        assert killed.found(killed.data, mark) is None


def test_records_in_payloads(kill: Kill, tmp_path: Path) -> None:
    """What a publisher sends is no record of the log, whatever it looks like."""
    killed = kill((20, 40, 30))
    store = RocksStore(tmp_path / "other")
    # Whole records with good checksums and the number of the log that they go to.
    assert killed.log.name == newest(store.directory).name
    batch = Batch()
    batch.put(b"k", killed.data * 3)
    store.commit(batch)
    shutil.copytree(store.directory, tmp_path / "copy")
    store.close()
    opened = RocksStore(tmp_path / "copy")
    assert opened.get(b"k") == killed.data * 3
    opened.close()


def test_backup_of_a_log_written_over(tmp_path: Path) -> None:
    """A copy has all rows, and is sound with what its logs hold besides."""
    store = RocksStore(tmp_path / "running")
    recycle(store)
    for number in range(3):
        batch = Batch()
        batch.put(b"k%d" % number, os.urandom(20))
        store.commit(batch)
    store.backup(tmp_path / "copy")
    store.close()
    copy = RocksStore(tmp_path / "copy", create=False)
    assert [key for key, _ in copy.scan(b"k")] == [b"k0", b"k1", b"k2"]
    copy.close()


def test_pieces_ahead_of_a_commit(kill: Kill) -> None:
    """Pieces of a large value are synced together: a power cut may leave any of them, and nobody was told of them."""
    killed = kill((20, limits.SPOOL_BATCH_BYTES + 1))
    at = killed.data.index(b"k000") + 300_000
    end = killed.data.rfind(b"k001")
    commit = killed.data.rfind(b"k001", 0, end) - 40
    damaged = flipped(killed.data, at, 3)
    # With the commit behind them it is damage.
    assert killed.found(damaged, mark_of(0)) is None
    cut = damaged[: commit - commit % SECTOR]
    assert killed.found(cut, mark_of(0)) == killed.keys[:1]


def test_older_log_is_damaged(kill: Kill) -> None:
    """A later log that was not read has commits from its begin on."""
    killed = kill((20, 0, 30))
    number = int(killed.log.stem)
    assert unread_commit(killed.data, number, True, 0) == 0
    assert unread_commit(killed.data, number, True, 1_000) == -1
    assert unread_commit(killed.data, number + 1, True, 0) == -1
    assert unread_commit(b"", 7, True, 0) == -1


@pytest.fixture
def earlier(tmp_path: Path) -> Killed:
    """A store that an earlier version of the router left when it was killed."""
    directory = tmp_path / "running"
    RocksStore(directory).close()
    (directory / MARK).write_bytes(b"")
    without = options()
    without.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    without.set_recycle_log_file_num(0)
    database = Rdict(str(directory), without, access_type=AccessType.read_write())
    database.delete(MARKED)
    database.close()
    database = Rdict(str(directory), without, access_type=AccessType.read_write())
    keys = [b"k%03d" % number for number in range(4)]
    for key in keys:
        rows = WriteBatch(raw_mode=True)
        rows.put(key, bytes(30))
        database.write(rows)
        database.flush_wal(True)
    shutil.copytree(directory, tmp_path / "killed")
    database.close()
    return Killed(tmp_path / "killed", keys)


def test_log_of_an_earlier_version(earlier: Killed) -> None:
    """Its records have no number of the log; damage in all but the last commit is refused."""
    assert earlier.found(earlier.data) == earlier.keys
    # A mark is there when an earlier version has written to the store again.
    assert earlier.found(earlier.data, mark_of(1)) == earlier.keys
    last = earlier.data.index(earlier.keys[-1]) - BEFORE_KEY + 4
    for at in range(len(earlier.data)):
        found = earlier.found(flipped(earlier.data, at, at % 8))
        assert found == (None if at < last else earlier.keys[:-1]), f"byte {at}"
