"""`vpnrouter spool`: backup, restore and verify, of a running router or a stopped one."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.cli.spool import findings, held, is_running
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
from vpnrouter.errors import OperationError
from vpnrouter.spool import keys
from vpnrouter.spool.read_only_store import ReadOnlyStore
from vpnrouter.spool.rocks_store import COPY_MARK, RocksStore
from vpnrouter.spool.store import Batch
from vpnrouter.spool.write_ahead_log import MARK


@pytest.mark.parametrize("arguments", [[], ["copy"], ["backup", "c.yaml"], ["restore", "c", "/no"]])
def test_wrong_use(arguments: list[str]) -> None:
    """Exit code 2, before anything is read."""
    assert app.run(["spool", *arguments]) == 2


@pytest.mark.parametrize("verb", ["backup", "restore", "verify"])
def test_a_refused_configuration(verb: str, tmp_path: object) -> None:
    """Exit code 2 as everywhere."""
    more = [] if verb == "verify" else [str(tmp_path)]
    assert app.run(["spool", verb, "/no/such.yaml", *more]) == 2


def with_listener(stopped: Any, url: str) -> str:
    """The configuration with an http listener at the address of `url`; its path."""
    data = json.loads(stopped.config.read_text(encoding="utf-8"))
    address = url.removeprefix("http://")
    data["listeners"] = [{"protocol": "http", "bind": address}]
    stopped.config.write_text(json.dumps(data), encoding="utf-8")
    return str(stopped.config)


def test_stopped(stopped: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The spool is opened here, and the copy is sound."""
    target = tmp_path / "deep" / "copy"
    assert app.run(["spool", "backup", str(stopped.config), str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: spool of router here, stopped\n"
    assert findings(target) == []
    assert stopped.endpoint() == b'{"name":"orders"}'


def test_there_already(stopped: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A backup never goes over something else."""
    assert app.run(["spool", "backup", str(stopped.config), str(tmp_path)]) == 1
    assert "it is there already" in capsys.readouterr().err


def test_no_spool(stopped: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A router that never ran has nothing, and gets nothing."""
    stopped.spool.rename(tmp_path / "gone")
    assert app.run(["spool", "backup", str(stopped.config), str(tmp_path / "copy")]) == 1
    assert "there is no spool" in capsys.readouterr().err
    assert not stopped.spool.exists()
    assert not (tmp_path / "copy").exists()


def test_running(
    stopped: Any,
    served: Any,
    opened_elsewhere: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A running router is asked at its first http listener, and told a whole path."""
    monkeypatch.delenv("VPNROUTER_URL")
    monkeypatch.chdir(tmp_path)
    config = with_listener(stopped, served.url)
    served.router.context.store = store = RocksStore(tmp_path / "running")
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "backup", config, "copy", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["running"] is True
        assert (tmp_path / "copy").exists()
        assert app.run(["spool", "backup", config, "copy"]) == 1
        assert "there already" in capsys.readouterr().err
    store.close()


def test_running_somewhere(
    stopped: Any, opened_elsewhere: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the configuration does not tell where to ask, --url must."""
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "backup", str(stopped.config), str(tmp_path / "copy")]) == 2
        assert "--url" in capsys.readouterr().err
        with_listener(stopped, "127.0.0.1:0")
        assert app.run(["spool", "backup", str(stopped.config), str(tmp_path / "copy")]) == 2


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


def test_spool_restore_running(
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

    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert restore(stopped, copy, "--force") == 1
    assert "No space left on device" in capsys.readouterr().err
    assert stopped.endpoint() == NEW


@pytest.mark.parametrize("by", ["config", "spool"])
def test_sound(stopped: Any, by: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the configuration or by the directory: exit code 0."""
    assert app.run(["spool", "verify", str(getattr(stopped, by))]) == 0
    assert capsys.readouterr() == (f"{stopped.spool}: sound\n", "")


def test_damaged(stopped: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1; the findings on stderr, or all of it as JSON on stdout."""
    store = RocksStore(stopped.spool)
    batch = Batch()
    batch.put(keys.bodies(7), b"")
    store.commit(batch)
    store.close()
    finding = "segment 7: bodies without an index"
    assert app.run(["spool", "verify", str(stopped.config)]) == 1
    assert capsys.readouterr() == (f"{stopped.spool}: damaged\n", f"{finding}\n")
    assert app.run(["spool", "verify", str(stopped.config), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told == {"spool": str(stopped.spool), "sound": False, "problems": [finding]}


def test_spool_verify_running(
    stopped: Any, opened_elsewhere: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """What changes meanwhile is not verified."""
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "verify", str(stopped.config)]) == 1
    assert "a running router has it open" in capsys.readouterr().err


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory without a spool is not sound."""
    assert app.run(["spool", "verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"vpnrouter: {tmp_path}: there is no spool\n"
    assert list(tmp_path.iterdir()) == []


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


def test_what_cannot_be_read(stopped: Any) -> None:
    """A database that cannot be opened is one finding."""
    (stopped.spool / "CURRENT").write_text("MANIFEST-999999\n", encoding="utf-8")
    (only,) = findings(stopped.spool)
    assert only.startswith(f"spool {stopped.spool}: its files are damaged")


def test_the_end_that_a_power_cut_tore(stopped: Any, tmp_path: Path) -> None:
    """A write that nobody was told of is no damage: a router that starts reads over it."""
    running = RocksStore(stopped.spool)
    for number in (2, 3):
        synced = (stopped.spool / MARK).read_bytes()
        batch = Batch()
        batch.put(keys.endpoint(number), b"{}")
        running.commit(batch)
    killed = tmp_path / "killed"
    shutil.copytree(stopped.spool, killed)
    (killed / MARK).write_bytes(synced)
    running.close()
    (log,) = killed.glob("*.log")
    log.write_bytes(log.read_bytes()[:-3] + b"\0\0\0")
    assert findings(killed) == []
    store = ReadOnlyStore(killed)
    found = [key for key, _ in store.scan(keys.ENDPOINT)]
    assert found == [keys.endpoint(1), keys.endpoint(2)]
    assert store.get(keys.endpoint(3)) is None
    store.close()


def test_spool_place_running(stopped: Any, opened_elsewhere: Any, tmp_path: Path) -> None:
    """A router runs as long as its process has the spool open."""
    assert not is_running(tmp_path / "none")
    with opened_elsewhere(stopped.spool):
        assert is_running(stopped.spool)
    assert not is_running(stopped.spool)


def test_held(stopped: Any, opened_elsewhere: Any) -> None:
    """While it is held here, no router can open it."""
    with held(stopped.spool), pytest.raises(AssertionError), opened_elsewhere(stopped.spool):
        pass
    with opened_elsewhere(stopped.spool):
        pass


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    """One line says what is wrong."""
    (tmp_path / "file").touch()
    with pytest.raises(OperationError, match="Not a directory"):
        is_running(tmp_path / "file")
    with pytest.raises(OperationError, match="No such file"), held(tmp_path / "none"):
        pass


@pytest.mark.parametrize("name", ["LOCK", "SYNCED"])
def test_restore_over_something_else(stopped: Any, copy: Path, name: str) -> None:
    """A spool whose lock is no file any more is replaced as any damaged one."""
    (stopped.spool / name).unlink()
    os.mkfifo(stopped.spool / name)
    assert restore(stopped, copy, "--force") == 0
    assert stopped.endpoint() == OLD


@pytest.mark.parametrize("what", ["pipe", "link"])
@pytest.mark.parametrize("name", ["LOCK", "000099.sst", "SYNCED"])
def test_a_backup_with_something_else(
    stopped: Any, copy: Path, what: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name of a spool's file that stands for no regular file is refused at once, and nothing is copied."""
    (copy / name).unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(copy / name)
    else:
        (copy / name).symlink_to("/dev/zero")
    assert app.run(["spool", "verify", str(copy)]) == 1
    assert restore(stopped, copy, "--force") == 1
    assert capsys.readouterr().err.count(f"{name} is not a regular file") == 2
    assert stopped.endpoint() == NEW


def test_other_files_of_a_backup_stay_there(stopped: Any, copy: Path) -> None:
    """Only files of a spool's names come with it."""
    (copy / "passwords").symlink_to("/etc/passwd")
    assert restore(stopped, copy, "--force") == 0
    assert not (stopped.spool / "passwords").exists()


@pytest.mark.parametrize("what", ["pipe", "link", "directory"])
@pytest.mark.parametrize("kind", ["CURRENT", "MANIFEST-*", "*.log", "*.sst", "LOCK", "SYNCED"])
def test_something_else_in_the_place_of_a_file(
    stopped: Any, what: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counts as a file that is missing, and is told."""
    stopped.write(EndpointDefinition(1, "blue", 0, "orders", True).encode())
    for name in sorted(path.name for path in stopped.spool.glob(kind)) or ["000099.sst"]:
        path = stopped.spool / name
        path.unlink(missing_ok=True)
        if what == "pipe":
            os.mkfifo(path)
        elif what == "directory":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
        told = f"{name} is not a regular file"
    assert app.run(["spool", "repair", str(stopped.config)]) == 0
    assert told in capsys.readouterr().err
    assert findings(stopped.spool) == []


def test_nothing_to_repair(stopped: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A sound spool is left alone."""
    assert app.run(["spool", "repair", str(stopped.config)]) == 0
    assert "sound, nothing to repair" in capsys.readouterr().out
    assert [path.name for path in stopped.spool.parent.iterdir()] == ["spool"]


def test_spool_repair_running(
    stopped: Any, opened_elsewhere: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A running router keeps its spool, also where its locks are gone, or something else has their names."""
    with opened_elsewhere(stopped.spool):
        for name in ("LOCK", "SYNCED"):
            (stopped.spool / name).unlink()
            assert app.run(["spool", "repair", str(stopped.config)]) == 1
            os.mkfifo(stopped.spool / name)
            assert app.run(["spool", "repair", str(stopped.config)]) == 1
    assert capsys.readouterr().err.count("a running router has it open") == 4
