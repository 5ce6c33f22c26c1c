from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from vpnrouter.errors import SpoolError

PATH = "/vpnrouter/v1/spool/backup"
USERS = {
    "rob": {"password": "right"},
    "bea": {"password": "right", "role": "admin", "msg_vpns": ["blue"]},
    "ann": {"password": "right", "role": "admin"},
}


async def test_backup(still: Any, opened: Any) -> None:
    """The store is told where to."""
    async with opened(still) as client:
        answer = (await client.put(PATH, json={"directory": "/backup/monday"})).json()
    assert answer["data"] == {"directory": "/backup/monday"}
    assert still.store.told == ["/backup/monday"]


@pytest.mark.parametrize("directory", [None, "", "here", "../up", "/a\0b", "/" + "a" * 4_096])
async def test_where_to(still: Any, opened: Any, directory: str | None) -> None:
    """A relative path would start at a directory that only the router knows."""
    body = {} if directory is None else {"directory": directory}
    async with opened(still) as client:
        answer = await client.put(PATH, json=body)
    assert "an absolute path" in answer.json()["meta"]["error"]["description"]
    assert still.store.told == []


async def test_what_cannot_be_written(still: Any, opened: Any) -> None:
    """The reason is passed on."""
    still.store.failure = SpoolError("/b is there already", "broken")
    async with opened(still) as client:
        error = (await client.put(PATH, json={"directory": "/b"})).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (89, "/b is there already")


async def test_no_spool(still: Any, opened: Any) -> None:
    """A router without guaranteed messaging says that it has none."""
    still.context.store = None
    async with opened(still) as client:
        answer = await client.put(PATH, json={"directory": "/b"})
    assert answer.status_code == 404
    assert "no spool (guaranteed_msging)" in answer.json()["meta"]["error"]["description"]


async def test_one_at_a_time(still: Any, opened: Any) -> None:
    """The second backup waits for the first, and the router goes on meanwhile."""
    now = [0]

    def backup(directory: Path) -> None:
        now.append(now[-1] + 1)
        trio.from_thread.run(trio.lowlevel.checkpoint)
        now.append(now[-1] - 1)

    still.store.backup = backup
    async with opened(still) as client, trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(partial(client.put, PATH, json={"directory": f"/{name}"}))
    assert now == [0, 1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(("user", "status"), [("rob", 403), ("bea", 403), ("ann", 200)])
async def test_who_may(still: Any, opened: Any, user: str, status: int) -> None:
    """Who sees only some message VPNs gets no copy of all their messages."""
    async with opened(still, USERS, auth=(user, "right")) as client:
        assert (await client.put(PATH, json={"directory": "/b"})).status_code == status
    assert still.store.told == (["/b"] if status == 200 else [])
