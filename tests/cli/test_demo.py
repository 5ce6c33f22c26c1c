"""`vpnrouter demo`: its options and refusals."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from vpnrouter.cli.app import run


def test_foreign_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory with other things in it is refused in one line on stderr, exit code 1."""
    (tmp_path / "mine.txt").touch()
    assert run(["demo", "--output", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "choose another --output" in err


@pytest.mark.parametrize("rows", ["0", "-1", "many"])
def test_rows(rows: str, tmp_path: Path) -> None:
    """A number of flights that makes no sense is wrong use."""
    assert run(["demo", "--rows", rows, "--output", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []


def test_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the extra's packages one line names them and the command that installs them."""
    real = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in {"paho", "pyspark"} else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert run(["demo", "--output", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err == (
        "vpnrouter: the demo needs paho-mqtt, pyspark: pip install '.[demo]' in vpnrouter's source\n"
    )
    assert list(tmp_path.iterdir()) == []
