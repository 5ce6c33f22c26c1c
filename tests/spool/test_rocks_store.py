"""The store on RocksDB."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Rdict

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys, rocks_store
from vpnrouter.spool.rocks_store import (
    BLOB_BYTES,
    COPY_MARK,
    RocksStore,
    options,
)
from vpnrouter.spool.store import Batch

Open = Callable[..., RocksStore]


Make = Callable[..., Batch]


def in_process(program: str, *arguments: str) -> dict[str, object]:
    """What a program of its own prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def reason_of(action: Callable[[], object]) -> str:
    """The reason of the SpoolError that an action raises."""
    with pytest.raises(SpoolError) as raised:
        action()
    return raised.value.reason


def test_rows_outlive_the_process(rocks: Open, batch: Make) -> None:
    """What was committed is there for the next one, and the store's id with it."""
    first = rocks()
    first.commit(batch({b"a": b"1"}))
    first.close()
    second = rocks(create=False)
    assert second.get(b"a") == b"1"
    assert second.store_id == first.store_id


def test_each_store_has_an_id_of_its_own(rocks: Open) -> None:
    """Ids are drawn."""
    assert rocks("one").store_id != rocks("two").store_id


def test_killed_process(tmp_path: Path) -> None:
    """After SIGKILL every batch is there whose commit had returned."""
    program = """
        import os, pathlib, signal, sys
        from vpnrouter.spool.rocks_store import RocksStore
        from vpnrouter.spool.store import Batch
        store = RocksStore(pathlib.Path(sys.argv[1]))
        for number in range(50):
            batch = Batch()
            batch.put(b"a%d" % number, b"x" * 5_000)
            batch.put(b"b%d" % number, b"")
            store.commit(batch)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "spool")], check=False
    )
    assert done.returncode == -9
    store = RocksStore(tmp_path / "spool")
    assert len(list(store.scan(b"a"))) == len(list(store.scan(b"b"))) == 50
    store.close()


def test_missing_store_is_not_made(rocks: Open, tmp_path: Path) -> None:
    """A command that only looks makes nothing."""
    assert reason_of(lambda: rocks("nowhere", create=False)) == "missing"
    assert not (tmp_path / "nowhere").exists()


def test_store_in_use(rocks: Open) -> None:
    """A second process is refused, and so is a second opening in this one."""
    store = rocks()
    assert reason_of(rocks) == "locked"
    program = """
        import json, pathlib, sys
        from vpnrouter.errors import SpoolError
        from vpnrouter.spool.rocks_store import RocksStore
        try:
            RocksStore(pathlib.Path(sys.argv[1]))
        except SpoolError as error:
            print(json.dumps({"reason": error.reason, "text": str(error)}))
    """
    told = in_process(program, str(store.directory))
    assert told["reason"] == "locked"
    assert str(store.directory) in str(told["text"])


def test_directory_that_cannot_be_made(rocks: Open, tmp_path: Path) -> None:
    """A file in the way is an error with the path in it."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SpoolError, match="file"):
        rocks("file")
    with pytest.raises(SpoolError, match="file"):
        rocks("file/below")


def test_no_permission(tmp_path: Path) -> None:
    """A directory that may not be written is refused with the reason; root may write everywhere."""
    program = """
        import json, os, pathlib, sys
        from vpnrouter.errors import SpoolError
        from vpnrouter.spool.rocks_store import RocksStore
        directory = pathlib.Path(sys.argv[1])
        RocksStore(directory / "spool").close()
        for path in (*directory.rglob("*"), directory):
            path.chmod(0o555 if path.is_dir() else 0o444)
        found = {}
        if os.geteuid() == 0:
            # Whoever it is, the directories above can be entered only with the rights of before.
            handle = os.open(directory, os.O_RDONLY)
            os.fchdir(handle)
            os.setegid(65_534)
            os.seteuid(65_534)
            directory = pathlib.Path(".")
        for name in ("spool", "new"):
            try:
                RocksStore(directory / name)
            except SpoolError as error:
                found[name] = error.reason
        print(json.dumps(found))
    """
    assert in_process(program, str(tmp_path)) == {"spool": "denied", "new": "denied"}
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755)


def damage(path: Path, at: int, data: bytes) -> None:
    """Overwrite some bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_damaged_log(rocks: Open, batch: Make, tmp_path: Path) -> None:
    """Acknowledged batches behind the damage: the store is refused, not cut off."""
    store = rocks()
    for number in range(5):
        store.commit(batch({b"a%d" % number: os.urandom(1_000)}))
    # Closing writes the log's rows out and deletes it.
    shutil.copytree(store.directory, tmp_path / "copy")
    (log,) = (tmp_path / "copy").glob("*.log")
    damage(log, 2_000, b"damaged")
    before = log.read_bytes()
    assert reason_of(lambda: rocks("copy")) == "corrupt"
    assert log.read_bytes() == before


def test_damaged_table(rocks: Open, batch: Make) -> None:
    """Damage in a sorted file is an error when it is read, never a wrong value."""
    store = rocks()
    store.commit(batch({b"a%d" % number: os.urandom(100) for number in range(100)}))
    store.close()
    rocks().close()
    tables = list(store.directory.glob("*.sst"))
    assert tables, "the log was not written out"
    for table in tables:
        damage(table, 500, b"damaged")

    def read() -> None:
        opened = rocks()
        try:
            list(opened.scan(b"a"))
        finally:
            opened.close()

    assert reason_of(read) == "corrupt"


def test_damaged_manifest(rocks: Open) -> None:
    """A database that does not know its files is refused."""
    store = rocks()
    store.close()
    (store.directory / "CURRENT").write_bytes(b"nonsense")
    assert reason_of(rocks) in {"corrupt", "broken"}


def test_settings_file_torn(rocks: Open, batch: Make) -> None:
    """The files that RocksDB does not sync may be empty after a power cut."""
    store = rocks()
    store.commit(batch({b"a": b"1"}))
    store.close()
    for path in (store.directory / "rocksdict-config.json", *store.directory.glob("OPTIONS-*")):
        path.write_bytes(b"")
    assert rocks().get(b"a") == b"1"


def test_other_format(rocks: Open, batch: Make) -> None:
    """A store of another version, or a database of somebody else, is left alone."""
    store = rocks()
    known = store.get(keys.STORE)
    assert known is not None
    store.commit(batch({keys.STORE: known[:16] + b"\0\x63"}))
    store.close()
    assert reason_of(rocks) == "version"
    other = rocks("other")
    other.commit(batch({b"x": b"1"}, (keys.STORE,)))
    other.close()
    assert reason_of(lambda: rocks("other")) == "version"


FULL = """
    import json, os, pathlib, resource, sys
    from vpnrouter.errors import SpoolError
    from vpnrouter.spool.rocks_store import RocksStore
    from vpnrouter.spool.store import Batch

    def bound(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    store = RocksStore(pathlib.Path(sys.argv[1]))
    bound(1_000_000)
    made = []
    try:
        for number in range(100):
            batch = Batch()
            batch.put(b"a%03d" % number, os.urandom(70_000))
            batch.put(b"b%03d" % number, b"")
            store.commit(batch)
            made.append(number)
        reason = "none"
    except SpoolError as error:
        reason = error.reason
    read = [number for number in made if store.get(b"a%03d" % number) is not None]
    bound(4_000)
    try:
        store.commit(batch)
        again = "none"
    except SpoolError as error:
        again = error.reason
    bound(resource.RLIM_INFINITY)
    store.commit(batch)
    store.commit(batch)
    store.close()
    store = RocksStore(pathlib.Path(sys.argv[1]))
    rows = [[key.decode() for key, _ in store.scan(kind)] for kind in (b"a", b"b")]
    print(json.dumps({
        "made": len(made), "reason": reason, "again": again, "read": len(read), "rows": rows,
    }))
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("IO error: No space left on device: While appending to file", "full"),
        ("IO error: Disk quota exceeded: While appending to file", "full"),
        ("Corruption: block checksum mismatch", "corrupt"),
        ("IO error: Read-only file system", "denied"),
        ("IO error: Input/output error", "broken"),
    ],
)
def test_what_the_system_says_has_a_reason(tmp_path: Path, text: str, reason: str) -> None:
    """An operator is told what to do about it: make room, restore, or let the router write."""
    told = rocks_store._spool_error(tmp_path, Exception(text))
    assert (told.reason, text in str(told)) == (reason, True)


def test_full_disk(tmp_path: Path) -> None:
    """No room: commits say so, reads go on, nothing is lost, and the same batch passes once there is room."""
    told = in_process(FULL, str(tmp_path / "spool"))
    assert (told["reason"], told["again"]) == ("full", "full")
    made = told["made"]
    assert isinstance(made, int)
    assert made == told["read"] == 14
    assert told["rows"] == [[f"{kind}{number:03}" for number in range(made + 1)] for kind in "ab"]


def test_reads_while_the_database_is_opened_again(rocks: Open, batch: Make) -> None:
    """After a failed commit another thread opens it anew; whoever reads meanwhile waits and gets the value."""
    store = rocks()
    store.commit(batch({b"a%d" % number: b"x" * 10_000 for number in range(20)}))
    over = threading.Event()
    problems: list[BaseException] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        try:
            while not over.is_set():
                assert store.get(b"a%d" % (reads % 20)) == b"x" * 10_000
                reads += 1
        except BaseException as error:  # noqa: BLE001 - told to the test
            problems.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for number in range(20):
            # As if the commit before had failed.
            store._failure = "broken"
            store.commit(batch({b"b%d" % number: b""}))
    finally:
        over.set()
        thread.join()
    assert problems == []
    assert reads > 0
    assert len(list(store.scan(b"b"))) == 20


def test_backup_while_working(rocks: Open, batch: Make, tmp_path: Path) -> None:
    """A backup is the store as of one moment, and begins a life of its own."""
    store = rocks()
    store.commit(batch({b"a": b"1", b"b": b"x" * 10_000}))
    store.backup(tmp_path / "copies" / "monday")
    store.commit(batch({b"a": b"2"}))
    copy = rocks("copies/monday")
    assert (copy.get(b"a"), copy.get(b"b")) == (b"1", b"x" * 10_000)
    assert store.get(b"a") == b"2"
    assert copy.store_id != store.store_id
    assert not (copy.directory / COPY_MARK).exists()
    copy.close()
    assert rocks("copies/monday").store_id == copy.store_id


def test_backup_over_something(rocks: Open, tmp_path: Path) -> None:
    """A backup never goes where something is."""
    (tmp_path / "there").mkdir()
    with pytest.raises(SpoolError, match="there already"):
        rocks().backup(tmp_path / "there")


def test_info_log_does_not_grow(rocks: Open) -> None:
    """However often it is opened, few logs for people are kept."""
    for _ in range(6):
        rocks().close()
    store = rocks()
    assert len(list(store.directory.glob("LOG*"))) <= 3


def test_scans_within_scans_see_all(tmp_path: Path) -> None:
    """A scan's bound is its own, however many others begin while it goes on."""
    store = RocksStore(tmp_path / "spool")
    batch = Batch()
    for outer in range(200):
        batch.put(b"s%03d" % outer, b"")
        for inner in range(3):
            batch.put(b"p%03d%d" % (outer, inner), b"")
    store.commit(batch)
    seen = 0
    for key, _ in store.scan(b"s"):
        seen += 1
        assert len(list(store.scan(b"p" + key[1:]))) == 3
    assert seen == 200
    store.close()


def rows_of(store: RocksStore) -> dict[bytes, bytes]:
    """Everything that a store shows, but for its own rows."""
    return {key: value for key, value in store.scan(b"") if key not in (keys.STORE, keys.SECRET)}


def hidden(store: RocksStore, directory: Path) -> int:
    """Rows on disk that a store does not show; it is closed for that."""
    store.close()
    database = Rdict(str(directory), options())
    try:
        return sum(b"\xf0" <= bytes(key) < b"\xf3" for key in database.keys())  # noqa: SIM118 - no dict
    finally:
        database.close()


def large(letter: int, pieces: float = 2.5) -> bytes:
    """A value of so many pieces, whose bytes tell their place."""
    count = int(pieces * limits.SPOOL_BATCH_BYTES)
    return b"".join(number.to_bytes(4, "big") for number in range(letter, letter + count // 4))


def test_large_values_are_as_any_other(rocks: Open, batch: Make, tmp_path: Path) -> None:
    """Written, read, replaced by small and by large ones, deleted, and there after a restart; nothing is left over."""
    store = rocks()
    first = {
        b"a": large(1),
        b"b": b"small",
        b"c": large(2, 5),
        b"d": large(3, 0.1),
        b"z": large(4),
    }
    store.commit(batch(first))
    assert {key: store.get(key) for key in first} == first
    store.close()
    store = rocks(create=False)
    found = rows_of(store)
    assert found == first
    store.commit(batch({b"a": large(5), b"b": large(6), b"c": b""}, (b"d",)))
    assert (store.get(b"a"), store.get(b"b")) == (large(5), large(6))
    assert (store.get(b"c"), store.get(b"d"), store.get(b"z")) == (b"", None, large(4))
    store.commit(batch({}, (b"a", b"b", b"z")))
    assert rows_of(store).keys() == {b"c"}
    assert hidden(store, tmp_path / "spool") == 0


def test_a_scan_shows_large_values_of_one_moment(rocks: Open, batch: Make) -> None:
    """What is replaced or deleted while a scan goes on is shown as it was at its beginning."""
    store = rocks()
    first = {b"a": large(1), b"b": large(2), b"c": b"", b"d": large(3)}
    store.commit(batch(first))
    rows = store.scan(b"")
    store.commit(batch({b"b": large(4), b"c": large(5)}, (b"a",)))
    store.commit(batch({b"c": b"small"}, (b"d",)))
    assert {key: value for key, value in rows if key not in (keys.STORE, keys.SECRET)} == first


def test_a_commit_that_was_cut_short_leaves_nothing(
    tmp_path: Path, rocks: Open, batch: Make
) -> None:
    """Killed between pieces, a store shows what it had; the next commit takes away what was written ahead."""
    program = """
        import os, pathlib, signal, sys
        from vpnrouter.spool.rocks_store import RocksStore
        from vpnrouter.spool.store import Batch
        store = RocksStore(pathlib.Path(sys.argv[1]))
        batch = Batch()
        batch.put(b"a", b"first" * 500_000)
        store.commit(batch)
        left = int(sys.argv[2])
        write = store._write
        def counted(puts, deletes):
            global left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            write(puts, deletes)
        store._write = counted
        batch = Batch()
        batch.put(b"a", b"other" * 500_000)
        batch.put(b"b", b"small")
        store.commit(batch)
        print(0)
    """
    for writes in range(5):
        directory = tmp_path / f"spool{writes}"
        arguments = [sys.executable, "-c", textwrap.dedent(program), str(directory), str(writes)]
        assert subprocess.run(arguments, check=False).returncode == -9
        store = rocks(directory.name, create=False)
        assert rows_of(store).keys() == {b"a"}
        assert store.get(b"a") == b"first" * 500_000
        store.commit(batch({b"c": b"1"}, (b"a",)))
        assert hidden(store, directory) == 0


def test_a_store_of_the_first_format_is_read(rocks: Open, batch: Make) -> None:
    """A store of the first format keeps it until something large is written."""
    store = rocks()
    store.commit(batch({keys.STORE: store.store_id + b"\0\1", b"a": b"1"}))
    store.close()
    for value, version in ((b"2", b"\0\1"), (large(1), b"\0\2")):
        store = rocks(create=False)
        store.commit(batch({b"a": value}))
        store.close()
        store = rocks(create=False)
        assert store.get(b"a") == value
        assert (store.get(keys.STORE) or b"")[-2:] == version
        store.close()


def test_a_missing_piece_is_told(rocks: Open, batch: Make, tmp_path: Path) -> None:
    """A value that is not whole is damage, not a value."""
    store = rocks()
    store.commit(batch({b"a": large(1)}))
    store.close()
    database = Rdict(str(tmp_path / "spool"), options())
    del database[next(bytes(key) for key in database.keys() if bytes(key) >= b"\xf0")]  # noqa: SIM118
    database.close()
    store = rocks(create=False)
    assert reason_of(lambda: store.get(b"a")) == "corrupt"
    assert reason_of(lambda: list(store.scan(b""))) == "corrupt"


def test_options_reach_the_database(tmp_path: Path) -> None:
    """What bounds memory and files stands in the options that the database wrote down."""
    store = RocksStore(tmp_path / "spool")
    store.close()
    (written,) = [path.read_text() for path in store.directory.glob("OPTIONS-*")][-1:]
    lines = {line.strip() for line in written.splitlines()}
    wanted = {
        f"write_buffer_size={limits.SPOOL_WRITE_BUFFER_BYTES}",
        "max_write_buffer_number=2",
        f"max_total_wal_size={limits.SPOOL_WAL_BYTES}",
        f"max_open_files={limits.SPOOL_OPEN_FILES}",
        "max_background_jobs=2",
        "wal_recovery_mode=kPointInTimeRecovery",
        "cache_index_and_filter_blocks=true",
        "paranoid_checks=true",
        "keep_log_file_num=2",
        "stats_dump_period_sec=0",
        "enable_blob_files=true",
        f"min_blob_size={BLOB_BYTES}",
        f"recycle_log_file_num={limits.SPOOL_OLD_LOGS}",
    }
    assert wanted - lines == set()


def test_large_values_stand_apart(tmp_path: Path) -> None:
    """Bodies are in blob files once the log is written out, small values are not."""
    store = RocksStore(tmp_path / "spool")
    batch = Batch()
    batch.put(b"small", b"x" * (BLOB_BYTES - 1))
    store.commit(batch)
    store.backup(tmp_path / "without")
    assert list((tmp_path / "without").glob("*.blob")) == []
    batch.put(b"large", b"x" * BLOB_BYTES)
    store.commit(batch)
    store.backup(tmp_path / "with")
    assert len(list((tmp_path / "with").glob("*.blob"))) == 1
    store.close()
