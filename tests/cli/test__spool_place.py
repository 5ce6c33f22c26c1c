from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli.spool import config_of, held, is_running, spool_of
from vpnrouter.errors import OperationError


def test_where_it_is(stopped: Any) -> None:
    """Below the router's data directory."""
    assert spool_of(config_of(stopped.config)) == stopped.spool


def test_running(stopped: Any, opened_elsewhere: Any, tmp_path: Path) -> None:
    """A router runs as long as its process has the spool open."""
    assert not is_running(tmp_path / "none")
    assert not is_running(stopped.spool)
    with opened_elsewhere(stopped.spool):
        assert is_running(stopped.spool)
        with (
            pytest.raises(OperationError, match="a running router has it open"),
            held(stopped.spool),
        ):
            pass
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
