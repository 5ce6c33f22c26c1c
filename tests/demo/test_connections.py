"""Connections, counted."""

import socket
from pathlib import Path

import pytest

from vpnrouter.demo.clients import PROC, accepted

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue\n"
ROW = "   {number}: 0100007F:{own:04X} 0100007F:{far:04X} {state} 00000000:00000000\n"


def test_rows(tmp_path: Path) -> None:
    """An established connection counts at the end that listens; other states and ports do not count."""
    rows = [(5000, 0, "0A"), (5000, 6000, "01"), (6000, 5000, "01"), (5000, 6001, "06")]
    rows += [(5001, 6002, "01"), (5002, 6003, "01")]
    (tmp_path / "tcp").write_text(
        HEAD
        + "".join(
            ROW.format(number=number, own=own, far=far, state=state)
            for number, (own, far, state) in enumerate(rows)
        )
    )
    assert accepted({5000}, tmp_path) == 1
    assert accepted({5000, 5001}, tmp_path) == 2
    (tmp_path / "tcp6").write_text(HEAD + ROW.format(number=0, own=5000, far=7000, state="01"))
    assert accepted({5000}, tmp_path) == 2


def test_nobody_tells(tmp_path: Path) -> None:
    """Where the system has no such tables the answer is that it is not known."""
    assert accepted({1}, tmp_path) is None


@pytest.mark.skipif(not (PROC / "tcp").is_file(), reason="no such tables here")
def test_this_machine() -> None:
    """A connection of this process is one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert accepted({port}) == 0
        with socket.create_connection(("127.0.0.1", port)):
            assert accepted({port}) == 1
