from pathlib import Path

from vpnrouter import limits
from vpnrouter.spool.rocks_store import BLOB_BYTES, RocksStore
from vpnrouter.spool.store import Batch


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
        "wal_recovery_mode=kTolerateCorruptedTailRecords",
        "cache_index_and_filter_blocks=true",
        "paranoid_checks=true",
        "keep_log_file_num=2",
        "stats_dump_period_sec=0",
        "enable_blob_files=true",
        f"min_blob_size={BLOB_BYTES}",
        "recycle_log_file_num=0",
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
