"""The spool of a router from its opening to its end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.context import RouterContext
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, SYNCED, CompletionCallback
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.spool import committer as module
from vpnrouter.server.spool.committer import Committer
from vpnrouter.server.spool.spool_service import open_spool, open_store
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.mqtt.packets import Publish, Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


ONE = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>]}}}}"


def test_a_restore_that_was_cut_off(configured: Any, tmp_path: Path) -> None:
    """The router begins with nothing only where there was nothing."""
    old = tmp_path / "data-here" / "spool.old"
    old.mkdir(parents=True)
    with pytest.raises(OperationError, match=r"rename spool\.old to spool"):
        open_store(configured(ONE))
    assert list(old.parent.iterdir()) == [old]


def test_what_waits_is_told(stored: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """How many messages, in one line; nothing of none."""
    one = stored(ONE)
    for _ in range(3):
        assert one.publish("a/1") == SPOOLED
    one.close()
    assert capsys.readouterr().err == ""
    one = stored(ONE)
    assert capsys.readouterr().err == "vpnrouter: 3 messages wait in the spool\n"
    assert one.spooling.spool.usage == one.router.vpns["blue"].spooled_bytes > 0


def test_damage(configured: Any, tmp_path: Path) -> None:
    """What cannot be read is told by its name, and the store is closed: it can be opened again."""
    place = tmp_path / "data-here" / "spool"
    place.parent.mkdir()
    store = RocksStore(place)
    batch = Batch()
    batch.puts.append((keys.endpoint(4), b"[]"))
    store.commit(batch)
    store.close()
    config = configured(ONE)
    for _ in range(2):
        with pytest.raises(OperationError, match="the definition of endpoint 4 is damaged"):
            open_spool(build_router(config, 7, bytes(16)), config)


def test_the_quota_of_the_router(stored: Any, configured: Any) -> None:
    """A reload changes it; what is there stays."""
    one = stored("guaranteed_msging: {max_msg_spool_usage: 1}\n" + ONE)
    assert one.publish("a/1", bytes(900_000)) == SPOOLED
    assert one.publish("a/1", bytes(900_000)) == REJECTED
    one.spooling.change(
        one.router, configured("guaranteed_msging: {max_msg_spool_usage: 2}\n" + ONE)
    )
    assert one.publish("a/1", bytes(900_000)) == SPOOLED


def test_a_session_that_nobody_has(stored: Any) -> None:
    """The definition of an endpoint without a session is deleted, with its messages."""
    one = stored(ONE)
    number = one.spooling.spool.number()
    definition = EndpointDefinition(number, "blue", SESSION, "gone", True)
    one.spooling.spool.ledger.put(keys.endpoint(number), definition.encode())
    one.commit()
    one = stored(ONE)
    one.commit()
    assert one.spooling.store.get(keys.endpoint(number)) is None
    assert list(one.router.vpns["blue"].endpoints) == [(0, "q")]


OPEN = (
    'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]\n'
    "msg_vpns: {blue: {authentication: {basic: {enabled: false}}, queues: {q: {subscriptions: [b]}}}}"
)
LASTING = Properties(session_expiry_interval=600)


async def lasting(client: Any, *, clean_start: bool) -> bool:
    """Log in as a client whose session lasts; was it there?"""
    answer = await client.connect("durable", clean_start=clean_start, properties=LASTING)
    return bool(answer.session_present)


async def test_a_session_outlives_the_router(running: Any, client_of: Any, stored: Any) -> None:
    """With its messages; also a start at which its message VPN is not configured."""
    async with running(OPEN) as node:
        client = await client_of(node)
        assert not await lasting(client, clean_start=True)
        await client.send(Subscribe(1, [SubscriptionRequest("a", 1)]))
        assert isinstance(await client.packet(), Suback)
        await client.stream.aclose()
        other = await client_of(node)
        await other.connect("other")
        await other.send(Publish(b"a", b"1", qos=1, packet_id=1))
        await other.packet()
    stored("msg_vpns: {green: {}}").close()
    async with running(OPEN) as node:
        client = await client_of(node)
        assert await lasting(client, clean_start=False)
        assert await client.payload() == b"1"


# -- committer -------------------------------------------------------------------------------------


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
