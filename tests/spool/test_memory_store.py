from pathlib import Path

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.spool.store import MemoryStore


def test_has_the_id_it_was_given() -> None:
    """Its id is drawn by whoever makes it."""
    assert MemoryStore(b"0123456789abcdef").store_id == b"0123456789abcdef"


def test_has_nothing_to_back_up(tmp_path: Path) -> None:
    """A backup of memory is refused, and leaves no directory."""
    with pytest.raises(SpoolError, match="in memory"):
        MemoryStore(bytes(16)).backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
