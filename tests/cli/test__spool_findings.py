import shutil
from pathlib import Path
from typing import Any

from vpnrouter.cli.spool import ReadOnlyStore, findings
from vpnrouter.spool import keys
from vpnrouter.spool.rocks_store import COPY_MARK, RocksStore
from vpnrouter.spool.store import Batch


def test_sound(stopped: Any) -> None:
    """Nothing to tell of what a router left behind."""
    assert findings(stopped.spool) == []


def test_reading_changes_nothing(stopped: Any, tmp_path: Path) -> None:
    """A backup that was verified is still a backup: whoever opens it later gives it an id of its own."""
    store = RocksStore(stopped.spool)
    store.backup(tmp_path / "copy")
    before = store.store_id
    store.close()
    assert findings(tmp_path / "copy") == []
    assert (tmp_path / "copy" / COPY_MARK).exists()
    copy = RocksStore(tmp_path / "copy")
    assert copy.store_id != before
    copy.close()


def test_damage(stopped: Any) -> None:
    """What must not be is found."""
    store = RocksStore(stopped.spool)
    batch = Batch()
    batch.put(keys.bodies(7), b"")
    store.commit(batch)
    store.close()
    assert findings(stopped.spool) == ["segment 7: bodies without an index"]


def test_what_cannot_be_read(stopped: Any) -> None:
    """A database that cannot be opened is one finding."""
    (stopped.spool / "CURRENT").write_text("MANIFEST-999999\n", encoding="utf-8")
    (only,) = findings(stopped.spool)
    assert only.startswith(f"{stopped.spool}: ")


def test_the_end_that_a_power_cut_tore(stopped: Any, tmp_path: Path) -> None:
    """A write that nobody was told of is no damage: a router that starts reads over it."""
    running = RocksStore(stopped.spool)
    for number in (2, 3):
        batch = Batch()
        batch.put(keys.endpoint(number), b"{}")
        running.commit(batch)
    killed = tmp_path / "killed"
    shutil.copytree(stopped.spool, killed)
    running.close()
    (log,) = killed.glob("*.log")
    log.write_bytes(log.read_bytes()[:-3] + b"\0\0\0")
    assert findings(killed) == []
    store = ReadOnlyStore(killed)
    found = [key for key, _ in store.scan(keys.ENDPOINT)]
    assert found == [keys.endpoint(1), keys.endpoint(2)]
    assert store.get(keys.endpoint(3)) is None
    store.close()
