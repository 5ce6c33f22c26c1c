import json
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.spool import keys
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch


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


def test_running(stopped: Any, opened_elsewhere: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What changes meanwhile is not verified."""
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "verify", str(stopped.config)]) == 1
    assert "a running router has it open" in capsys.readouterr().err


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory without a spool is not sound."""
    assert app.run(["spool", "verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"vpnrouter: {tmp_path}: there is no spool\n"
    assert list(tmp_path.iterdir()) == []
