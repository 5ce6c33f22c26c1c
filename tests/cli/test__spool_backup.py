import json
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.cli.spool import findings
from vpnrouter.errors import SpoolError


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
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "backup", config, "copy", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["running"] is True
        assert served.still.store.told == [str(tmp_path / "copy")]
        served.still.store.failure = SpoolError("it is there already")
        assert app.run(["spool", "backup", config, "copy"]) == 1
        assert capsys.readouterr().err.endswith(": it is there already\n")


def test_running_somewhere(
    stopped: Any, opened_elsewhere: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the configuration does not tell where to ask, --url must."""
    with opened_elsewhere(stopped.spool):
        assert app.run(["spool", "backup", str(stopped.config), str(tmp_path / "copy")]) == 2
        assert "--url" in capsys.readouterr().err
        with_listener(stopped, "127.0.0.1:0")
        assert app.run(["spool", "backup", str(stopped.config), str(tmp_path / "copy")]) == 2
