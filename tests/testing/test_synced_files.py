"""What was not synced is cut off, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.testing.stores import SyncedFiles

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
