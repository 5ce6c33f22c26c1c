import shutil
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.spool import keys
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch

OLD, NEW = b'{"name":"orders"}', b'{"name":"other"}'


@pytest.fixture
def copy(stopped: Any, tmp_path: Path) -> Path:
    """A backup; the spool has changed since."""
    target = tmp_path / "copy"
    assert app.run(["spool", "backup", str(stopped.config), str(target)]) == 0
    stopped.write(NEW)
    return target


def restore(stopped: Any, copy: Path, *options: str) -> int:
    """The exit code of a restore."""
    return app.run(["spool", "restore", str(stopped.config), str(copy), *options])


def store_id(spool: Path) -> bytes:
    """The id of the store in a directory, which is opened as a router does."""
    store = RocksStore(spool, create=False)
    store.close()
    return store.store_id


def test_refuses_to_overwrite(stopped: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is there is kept until somebody says that it may go."""
    assert restore(stopped, copy) == 1
    assert "there is a spool already; --force replaces it" in capsys.readouterr().err
    assert stopped.endpoint() == NEW


def test_force(stopped: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The backup is in place, nothing else is left, and a second time works as well."""
    for _ in range(2):
        assert restore(stopped, copy, "--force") == 0
        assert stopped.endpoint() == OLD
        stopped.write(NEW)
    assert [path.name for path in stopped.spool.parent.iterdir()] == ["spool"]
    assert f"restored from {copy}" in capsys.readouterr().out


@pytest.mark.parametrize("there", ["nothing", "an empty directory"])
def test_where_nothing_is(stopped: Any, copy: Path, there: str) -> None:
    """A new machine needs no --force, nor a data directory."""
    shutil.rmtree(stopped.spool if there == "an empty directory" else stopped.spool.parent)
    if there == "an empty directory":
        stopped.spool.mkdir()
    assert restore(stopped, copy) == 0
    assert stopped.endpoint() == OLD


def test_a_life_of_its_own(stopped: Any, copy: Path) -> None:
    """Each restored spool has an id that neither the original nor another restored one has."""
    ids = [store_id(stopped.spool)]
    for _ in range(2):
        assert restore(stopped, copy, "--force") == 0
        ids.append(store_id(stopped.spool))
    assert len(set(ids)) == 3


def test_over_a_spool_that_cannot_be_opened(stopped: Any, copy: Path) -> None:
    """That is what backups are for."""
    (stopped.spool / "CURRENT").write_bytes(b"\0")
    assert restore(stopped, copy, "--force") == 0
    assert stopped.endpoint() == OLD


def test_damaged_backup(stopped: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is exchanged for something that is damaged."""
    store = RocksStore(copy)
    batch = Batch()
    batch.put(keys.bodies(7), b"")
    store.commit(batch)
    store.close()
    assert restore(stopped, copy, "--force") == 1
    told = capsys.readouterr().err
    assert "segment 7: bodies without an index" in told
    assert "is damaged; nothing was changed" in told
    assert stopped.endpoint() == NEW


def test_running(
    stopped: Any, copy: Path, opened_elsewhere: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A running router keeps its spool."""
    with opened_elsewhere(stopped.spool):
        assert restore(stopped, copy, "--force") == 1
    assert "a running router has it open; stop that router first" in capsys.readouterr().err
    assert stopped.endpoint() == NEW


def test_no_backup(stopped: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither an empty directory nor the spool itself is one."""
    (tmp_path / "empty").mkdir()
    assert restore(stopped, tmp_path / "empty", "--force") == 1
    assert "there is no backup of a spool" in capsys.readouterr().err
    assert restore(stopped, stopped.spool, "--force") == 1
    assert "is the router's spool and no backup" in capsys.readouterr().err
    assert stopped.endpoint() == OLD


def test_an_attempt_that_was_cut_off(
    stopped: Any, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A spool that was put aside and not put back is never thrown away."""
    aside = stopped.spool.with_name("spool.old")
    stopped.spool.rename(aside)
    assert restore(stopped, copy) == 1
    assert f"{aside} is there, from an attempt that was cut off" in capsys.readouterr().err
    assert aside.exists()


def test_no_room(
    stopped: Any, copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy that cannot be made leaves the spool as it is."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    assert restore(stopped, copy, "--force") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert stopped.endpoint() == NEW
