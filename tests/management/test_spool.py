"""Backups of the spool."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from vpnrouter.spool.rocks_store import RocksStore

PATH = "/vpnrouter/v1/spool/backup"


async def test_backup(here: Any, stored: Path) -> None:
    """A backup is a spool that can be opened; where one is already, none is written, and it is said."""
    body = {"directory": str(stored / "copy")}
    async with here.api() as client:
        assert (await client.put(PATH, json=body)).json()["data"] == body
        error = (await client.put(PATH, json=body)).json()["meta"]["error"]
    RocksStore(stored / "copy").close()
    assert error["code"] == 89
    assert "there already" in error["description"]


@pytest.mark.parametrize("directory", [None, "", "here", "../up", "/a\0b", "/" + "a" * 4_096])
async def test_where_to(here: Any, directory: str | None) -> None:
    """A relative path would start at a directory that only the router knows."""
    body = {} if directory is None else {"directory": directory}
    async with here.api() as client:
        answer = await client.put(PATH, json=body)
    assert "an absolute path" in answer.json()["meta"]["error"]["description"]


async def test_no_spool(here: Any) -> None:
    """A router without guaranteed messaging says that it has none."""
    here.context.store = None
    async with here.api() as client:
        answer = await client.put(PATH, json={"directory": "/b"})
    assert answer.status_code == 404
    assert "no spool (guaranteed_msging)" in answer.json()["meta"]["error"]["description"]


async def test_one_at_a_time(here: Any) -> None:
    """The second backup waits for the first, and the router goes on meanwhile."""
    now = [0]

    def backup(directory: Path) -> None:
        now.append(now[-1] + 1)
        trio.from_thread.run(trio.lowlevel.checkpoint)
        now.append(now[-1] - 1)

    here.context.store = SimpleNamespace(backup=backup)
    async with here.api() as client, trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(partial(client.put, PATH, json={"directory": f"/{name}"}))
    assert now == [0, 1, 0, 1, 0, 1, 0]
