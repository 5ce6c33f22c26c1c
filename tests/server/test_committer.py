"""The commit thread: order, retry, close; over a store that can fail and be slow."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.context import RouterContext
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.unit_of_work import SYNCED, CompletionCallback
from vpnrouter.errors import SpoolError
from vpnrouter.server.spool import committer as module
from vpnrouter.server.spool.committer import Committer
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Slow(Store):
    """A memory store whose commits wait for `go`, and fail while `broken` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = MemoryStore(bytes(16))
        self.store_id = self.inner.store_id
        self.go = threading.Event()
        self.go.set()
        self.broken = ""
        self.commits = 0
        self.failures = 0

    def commit(self, batch: Batch) -> None:
        self.go.wait(10)
        if self.broken:
            self.failures += 1
            raise SpoolError(self.broken, "full")
        self.commits += 1
        self.inner.commit(batch)

    def get(self, key: bytes) -> bytes | None:
        return self.inner.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.inner.scan(prefix)

    def backup(self, directory: Path) -> None:
        self.inner.backup(directory)

    def close(self) -> None:
        self.inner.close()


class Told(CompletionCallback):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.tokens: list[tuple[int, int]] = []

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        assert not reason
        self.tokens.append((token, outcome))


class Rig:
    """A spool with its commit thread, and the router's side of it played by hand."""

    def __init__(self) -> None:
        self.store = Slow()
        self.spool = Spool(RouterContext("r", 1, Recorder(), 0.0), Ledger(self.store))
        self.committer = Committer(self.spool, self.store)
        self.woken = threading.Semaphore(0)
        self.committer.wake_with(self.woken.release)
        self.told = Told()

    def change(self, key: bytes, token: int) -> None:
        self.spool.ledger.put(key, b"value")
        self.spool.when_synced(self.told, token)

    def hear(self) -> None:
        assert self.woken.acquire(timeout=10)
        self.committer.finished()


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A spool with its commit thread, closed in the end."""
    made = Rig()
    yield made
    made.store.broken = ""
    made.store.go.set()
    made.committer.close()


def test_what_comes_while_a_unit_is_synced_is_the_next_one(rig: Rig) -> None:
    """One commit is under way; all that comes meanwhile is one more (group commit)."""
    rig.store.go.clear()
    rig.change(b"x1", 1)
    rig.committer.step()
    rig.change(b"x2", 2)
    rig.change(b"x3", 3)
    rig.committer.step()
    assert rig.told.tokens == []
    rig.store.go.set()
    rig.hear()
    assert rig.told.tokens == [(1, SYNCED)]
    rig.committer.step()
    rig.hear()
    assert rig.told.tokens == [(1, SYNCED), (2, SYNCED), (3, SYNCED)]
    assert rig.store.commits == 2
    assert rig.store.get(b"x3") == b"value"


def test_a_commit_that_fails_is_tried_until_it_succeeds(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who waits goes on waiting; it is told once that the store cannot be written, and that it can again."""
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    rig.store.broken = "no space left"
    rig.change(b"x1", 1)
    rig.committer.step()
    rig.hear()
    rig.hear()
    assert rig.told.tokens == []
    assert rig.spool.down
    assert capsys.readouterr().err.count("no space left") == 1
    rig.store.broken = ""
    while not rig.told.tokens:
        rig.hear()
    assert rig.told.tokens == [(1, SYNCED)]
    assert not rig.spool.down
    assert "works again" in capsys.readouterr().err


def test_close_commits_what_is_left() -> None:
    """A clean stop loses nothing that was taken."""
    rig = Rig()
    rig.change(b"x1", 1)
    rig.committer.step()
    rig.change(b"x2", 2)
    rig.committer.close()
    assert rig.told.tokens == [(1, SYNCED), (2, SYNCED)]
    assert rig.store.commits == 2


def test_close_does_not_wait_for_a_store_that_cannot_be_written() -> None:
    """A full disk does not keep a router from stopping; nobody was told a lie."""
    rig = Rig()
    rig.store.broken = "no space left"
    rig.change(b"x1", 1)
    rig.committer.step()
    rig.committer.close()
    assert rig.told.tokens == []
    assert rig.store.failures


def test_troubles_are_told_once(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """What the core cannot help stands on stderr at the end of the round, one line each."""
    rig.spool.context.operator_warnings.append("a message of q cannot be read")
    rig.change(b"x1", 1)
    rig.committer.step()
    rig.hear()
    rig.change(b"x2", 2)
    rig.committer.step()
    rig.hear()
    assert capsys.readouterr().err == "vpnrouter: a message of q cannot be read\n"
