"""Stores that lose what was not synced."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch
from vpnrouter.testing.stores import (
    AFTER,
    BEFORE,
    DURING,
    POINTS,
    PowerCutRocks,
    SyncedFiles,
    TornStore,
)


def batch_of(key: bytes, value: bytes = b"1", delete: bytes = b"") -> Batch:
    """A batch with one row."""
    batch = Batch()
    batch.put(key, value)
    if delete:
        batch.delete(delete)
    return batch


def rows(store: TornStore) -> dict[bytes, bytes]:
    """What is there."""
    return dict(store.scan(b""))


def test_returned_commit_survives() -> None:
    """Synced is synced, whatever is kept."""
    store = TornStore(bytes(16))
    store.commit(batch_of(b"a"))
    store.commit(batch_of(b"b", delete=b"a"))
    assert (store.commits, store.unsynced) == (2, 0)
    after = store.crash()
    assert rows(after) == {b"b": b"1"}
    assert after.store_id == store.store_id


@pytest.mark.parametrize(
    ("point", "kept", "there"),
    [(BEFORE, 1, False), (DURING, 0, False), (DURING, 1, True), (AFTER, 0, True)],
)
def test_crash_in_a_commit(point: str, kept: int, there: bool) -> None:
    """A commit that has not returned may be there or not, and only as the whole batch."""
    store = TornStore(bytes(16), {b"old": b""})
    store.fail_at(point, "full")
    with pytest.raises(SpoolError) as raised:
        store.commit(batch_of(b"a", delete=b"old"))
    assert raised.value.reason == "full"
    assert rows(store.crash(kept)) == ({b"a": b"1"} if there else {b"old": b""})


@pytest.mark.parametrize("point", POINTS)
def test_same_batch_again(point: str) -> None:
    """After an error the same batch can be committed."""
    store = TornStore(bytes(16))
    store.fail_at(point, times=2)
    for _ in range(2):
        with pytest.raises(SpoolError, match=point):
            store.commit(batch_of(b"a"))
    store.commit(batch_of(b"a"))
    assert store.reached[-3:] == [BEFORE, DURING, AFTER]
    assert rows(store.crash()) == {b"a": b"1"}


@pytest.mark.parametrize("survives", [False, True])
def test_other_batch_after_a_failed_one(survives: bool) -> None:
    """The failed one is there or not, as it was told."""
    store = TornStore(bytes(16))
    store.failed_survives = survives
    store.fail_at(DURING)
    with pytest.raises(SpoolError):
        store.commit(batch_of(b"a"))
    assert rows(store) == {}
    store.commit(batch_of(b"b"))
    assert (b"a" in rows(store)) == survives


def test_full() -> None:
    """Room runs out, and comes back."""
    store = TornStore(bytes(16))
    store.space(5)
    store.commit(batch_of(b"a"))
    store.commit(batch_of(b"b"))
    with pytest.raises(SpoolError) as raised:
        store.commit(batch_of(b"c"))
    assert raised.value.reason == "full"
    store.space(None)
    store.commit(batch_of(b"c"))
    assert len(rows(store)) == 3


@pytest.mark.parametrize(("point", "seen"), [(BEFORE, False), (DURING, False), (AFTER, True)])
def test_stalled_commit(point: str, seen: bool) -> None:
    """A commit waits in its thread; reads go on and see what is synced; then it ends."""
    store = TornStore(bytes(16))
    store.stall_at(point)
    thread = threading.Thread(target=store.commit, args=(batch_of(b"a"),))
    thread.start()
    store.wait_for_stall()
    assert (store.get(b"a") is not None) == seen
    assert store.commits == 0
    store.go_on()
    thread.join()
    assert (store.get(b"a"), store.commits) == (b"1", 1)


def test_crash_ends_a_stalled_commit() -> None:
    """Whoever waits is told, and the store refuses everything from then on."""
    store = TornStore(bytes(16))
    store.stall_at(DURING)
    raised: list[str] = []

    def commit() -> None:
        try:
            store.commit(batch_of(b"a"))
        except SpoolError as error:
            raised.append(error.reason)

    thread = threading.Thread(target=commit)
    thread.start()
    store.wait_for_stall()
    after = store.crash(1)
    thread.join()
    assert raised == ["closed"]
    assert rows(after) == {b"a": b"1"}
    for ask in (lambda: store.get(b"a"), lambda: store.scan(b""), lambda: store.commit(Batch())):
        with pytest.raises(SpoolError):
            ask()


def test_nobody_stalls() -> None:
    """Waiting for a commit that never comes ends."""
    store = TornStore(bytes(16))
    store.stall_at(AFTER)
    with pytest.raises(TimeoutError, match="after"):
        store.wait_for_stall(0.01)


def batch_at(number: int, size: int, draw: random.Random) -> Batch:
    """A batch with a large value between two small ones."""
    batch = Batch()
    batch.put(b"a%d" % number, b"first")
    batch.put(b"b%d" % number, draw.randbytes(size))
    batch.put(b"c%d" % number, b"last")
    return batch


def found_in(directory: Path, numbers: int) -> list[int]:
    """How many of the three rows of each batch a start finds."""
    store = RocksStore(directory)
    found = [
        sum(store.get(b"%c%d" % (kind, number)) is not None for kind in b"abc")
        for number in range(numbers)
    ]
    # It works on: what is committed now is there for the next start.
    store.commit(batch_at(99, 10, random.Random(1)))
    store.close()
    store = RocksStore(directory)
    assert store.get(b"c99") == b"last"
    store.close()
    return found


def cuts(total: int, seed: int) -> list[int]:
    """Where to cut: around both ends and the log's blocks, and at some places between."""
    draw = random.Random(seed)
    near = [0, 1, 6, 7, 8, total - 8, total - 1]
    blocks = [place + off for place in range(32_768, total, 32_768) for off in (-7, 0, 3)]
    return sorted(
        {place for place in [*near, *blocks] if 0 <= place < total} | {draw.randrange(total)}
    )


@pytest.mark.parametrize("size", [20, 3_000, 100_000])
def test_cut_at_any_byte(tmp_path: Path, size: int) -> None:
    """A log that ends too early."""
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    power = PowerCutRocks(tmp_path / "spool")
    for number, each in enumerate((50, 40_000, 300, size)):
        power.commit(batch_at(number, each, draw))
    total = power.last_bytes
    assert total > size
    for kept in cuts(total, seed):
        found = found_in(power.cut(tmp_path / f"at{kept}", kept), 4)
        assert found == [3, 3, 3, 0], f"seed {seed}, {kept} of {total} bytes"
    assert found_in(power.cut(tmp_path / "whole", total), 4) == [3, 3, 3, 3]
    power.close()


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_pages_in_any_order(tmp_path: Path, size: int) -> None:
    """A log that has its full length, with pages in it that never came to the disk."""
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    power = PowerCutRocks(tmp_path / "spool")
    for number, each in enumerate((50, 40_000, 300, size)):
        power.commit(batch_at(number, each, draw))
    total = power.last_bytes
    lost = [
        (0, 4_096),
        (0, total),
        (8, 200),
        (total - 4_096, total),
        (total // 2, total // 2 + 4_096),
    ]
    for turn, (begin, end) in enumerate(lost):
        place = power.cut(tmp_path / f"lost{turn}", total, (max(begin, 0), end))
        assert found_in(place, 4) == [3, 3, 3, 0], f"seed {seed}, without {begin} to {end}"
    power.close()


def test_acknowledged_part_is_never_cut_off(tmp_path: Path) -> None:
    """Bytes of an acknowledged batch that cannot be read: the store is refused."""
    draw = random.Random(5)
    power = PowerCutRocks(tmp_path / "spool")
    for number in range(3):
        power.commit(batch_at(number, 5_000, draw))
    place = power.cut(tmp_path / "cut", power.last_bytes, (-6_000, -5_000))
    with pytest.raises(SpoolError) as raised:
        RocksStore(place)
    assert raised.value.reason == "corrupt"
    power.close()


def test_log_begins_anew(tmp_path: Path) -> None:
    """A commit that begins a new log is cut in that one; those in older logs stay."""
    draw = random.Random(6)
    power = PowerCutRocks(tmp_path / "spool")
    logs: set[str] = set()
    number = 0
    while len(logs) < 2:
        power.commit(batch_at(number, 3_000_000, draw))
        logs |= {path.name for path in power.directory.glob("*.log")}
        number += 1
    found = found_in(power.cut(tmp_path / "cut", power.last_bytes // 2), number)
    assert found == [3] * (number - 1) + [0]
    power.close()


PROGRAM = """
import os, sys
def write(name, data, sync=None):
    with open(name, "ab") as file:
        file.write(data)
        file.flush()
        if sync is not None:
            sync(file.fileno())
write("whole", b"12345", os.fsync)
write("half", b"123", os.fdatasync)
write("half", b"45")
write("none", b"12345")
write("log.log", b"12345", os.fsync)
write("renamed", b"12345", os.fsync)
os.rename("renamed", "other")
"""


@pytest.fixture
def synced(tmp_path: Path) -> SyncedFiles:
    """After PROGRAM ran in `files`."""
    made = SyncedFiles(tmp_path)
    (tmp_path / "files").mkdir()
    env = {**os.environ, **made.environment}
    subprocess.run([sys.executable, "-c", PROGRAM], env=env, cwd=tmp_path / "files", check=True)
    return made


def found(folder: Path) -> dict[str, bytes]:
    """What is in the files."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_cut(synced: SyncedFiles, tmp_path: Path) -> None:
    """A file is as it was when it was synced last, whatever it is called now."""
    whole = {"whole": b"12345", "other": b"12345", "log.log": b"12345"}
    assert synced.cut(tmp_path / "files") == 2 + 5
    assert found(tmp_path / "files") == {**whole, "half": b"123", "none": b""}
    assert synced.cut(tmp_path / "files") == 0


def test_never_synced(synced: SyncedFiles, tmp_path: Path) -> None:
    """Files can be told to count as never synced."""
    assert synced.cut(tmp_path / "files", unsynced=".log") == 2 + 5 + 5
    assert found(tmp_path / "files")["log.log"] == b""


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a C compiler there is nothing to load."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OperationError, match="no C compiler"):
        SyncedFiles(tmp_path)
