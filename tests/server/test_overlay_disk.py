"""The overlay on disk: the old one or the new one."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.server.apply.overlay_disk import OverlayDisk


def write(disk: OverlayDisk, text: bytes) -> None:
    """Let it have this text."""
    disk.stage(text)
    disk.swap()


def test_written_anew(tmp_path: Path) -> None:
    """Directories are made; nothing is left of the one before; nobody else may read it."""
    path = tmp_path / "a" / "b" / "overlay.yaml"
    disk = OverlayDisk(str(path))
    write(disk, b"one")
    assert [one.name for one in path.parent.iterdir()] == ["overlay.yaml"]
    write(disk, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["overlay.yaml"]


def test_staged_and_dropped(tmp_path: Path) -> None:
    """Nothing is left of it."""
    disk = OverlayDisk(str(tmp_path / "overlay.yaml"))
    disk.stage(b"one")
    disk.drop()
    disk.drop()
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place(tmp_path: Path) -> None:
    """What somebody put where the new one is written is not written through."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / ".overlay.yaml.new").symlink_to(victim)
    write(OverlayDisk(str(tmp_path / "overlay.yaml")), b"one")
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "overlay.yaml").read_bytes() == b"one"
    assert not (tmp_path / "overlay.yaml").is_symlink()


def test_another_hand(tmp_path: Path) -> None:
    """One that was written or removed since it was read is not written over."""
    path = tmp_path / "overlay.yaml"
    disk = OverlayDisk(str(path))
    path.write_bytes(b"by hand")
    for change in (lambda: None, lambda: path.write_bytes(b"other"), path.unlink):
        change()
        disk.stage(b"new")
        if path.exists():
            with pytest.raises(OperationError, match="by hand"):
                disk.swap()
            assert path.read_bytes() != b"new"
            disk.note()
    disk.note()
    write(disk, b"new")
    assert path.read_bytes() == b"new"
    path.unlink()
    disk.stage(b"newer")
    with pytest.raises(OperationError, match="by hand"):
        disk.swap()
    assert list(tmp_path.glob("*.new")) == []


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: Any) -> None:
    """The one before is copied, and put back where the new one cannot be synced."""

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    disk = OverlayDisk(str(tmp_path / "overlay.yaml"))
    write(disk, b"one")
    write(disk, b"two")
    monkeypatch.setattr(disk, "_sync", refuse)
    disk.stage(b"three")
    with pytest.raises(OperationError):
        disk.swap()
    assert (tmp_path / "overlay.yaml").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "overlay.yaml").stat().st_mode) == 0o600


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    """It is told."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OperationError, match=r"cannot write .*: Not a directory|File exists"):
        OverlayDisk(str(tmp_path / "file" / "overlay.yaml")).stage(b"x")
