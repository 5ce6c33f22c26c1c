"""Which directories the demonstration takes."""

from pathlib import Path

import pytest

from vpnrouter.demo.progress import MARKER, ROUTERS, claimed
from vpnrouter.errors import OperationError


def test_new_and_empty(tmp_path: Path) -> None:
    """A directory that does not exist and one that is empty are taken and marked."""
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty"):
        with claimed(tmp_path / name) as folder:
            assert (folder / ROUTERS).is_dir()
        assert (tmp_path / name / MARKER).is_file()


def test_former(tmp_path: Path) -> None:
    """What an earlier demonstration left is removed, and nothing else."""
    with claimed(tmp_path) as folder:
        (folder / "traces").mkdir()
        (folder / "traces" / "old").touch()
    (tmp_path / "notes.txt").write_text("mine")
    with claimed(tmp_path):
        assert not (tmp_path / "traces").exists()
        assert (tmp_path / "notes.txt").read_text() == "mine"


def test_foreign(tmp_path: Path) -> None:
    """A directory with anything else in it is refused in one line and left alone."""
    (tmp_path / "traces").mkdir()
    with (
        pytest.raises(OperationError, match="choose another --output") as caught,
        claimed(tmp_path),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]


def test_a_file(tmp_path: Path) -> None:
    """A file in the directory's place is refused."""
    (tmp_path / "out").touch()
    with pytest.raises(OperationError, match="cannot use"), claimed(tmp_path / "out"):
        pass


def test_two_at_a_time(tmp_path: Path) -> None:
    """A second demonstration does not take the directory of one that is running."""
    with (
        claimed(tmp_path),
        pytest.raises(OperationError, match="another demo is running"),
        claimed(tmp_path),
    ):
        pass
    with claimed(tmp_path) as again:
        assert again == tmp_path.resolve()
