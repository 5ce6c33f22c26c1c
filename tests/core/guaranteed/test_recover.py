"""vpnrouter.core.guaranteed.recover: endpoints after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint import DAMAGED
from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition, read_definitions
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED
from vpnrouter.core.message import Message
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.store import Batch, MemoryStore, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.guaranteed.spool_world import SpoolWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint


def fill(world: SpoolWorld, count: int, first: int = 0) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%04d" % number for number in range(first, first + count)]
    for payload in payloads:
        world.publish("a/b", payload)
    world.commit()
    return payloads


def test_a_backlog_drains_after_a_restart(world: SpoolWorld) -> None:
    """In order, read back from the store."""
    queue = world.endpoint("q", "a/#")
    payloads = fill(world, 500)
    (queue,) = world.restart()
    flow = world.bind(queue, window=7)
    got: list[bytes] = []
    while len(got) < 500:
        world.commit()
        got += flow.payloads()
        flow.settle_all()
    assert got == payloads
    world.commit()
    assert queue.spooled_count == 0
    assert len(world.spool.ledger) == 0


SECOND = 1_000_000_000


class Broken(Store):
    """A store of which, once `broken`, nobody can read what is settled."""

    def __init__(self, inner: Store) -> None:
        super().__init__()
        self.store_id = inner.store_id
        self.inner = inner
        self.broken = False

    def commit(self, batch: Batch) -> None:
        self.inner.commit(batch)

    def get(self, key: bytes) -> bytes | None:
        if self.broken and key.startswith(keys.SETTLED):
            raise SpoolError("checksum mismatch", "corrupt")
        return self.inner.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self.inner.scan(prefix)


def _damage(world: SpoolWorld, key: bytes) -> None:
    """Let a value of the store be no such value, and nothing of it be in memory."""
    damage = Batch()
    damage.put(key, b"no segment")
    world.store.commit(damage)
    world.spool.bodies.kept.clear()


def _with_lost(world: SpoolWorld, lost: list[Message], **settings: Any) -> Endpoint:
    """A queue with these messages, each in a segment that is damaged, and one behind them that is whole."""
    queue = world.endpoint("q", "a/#", **settings)
    firsts = []
    for message in lost:
        firsts.append(world.spool.ledger.next_id)
        assert world.give(message) == SPOOLED
        world.commit()
    assert world.publish("a/whole", b"whole") == SPOOLED
    world.commit()
    for first in firsts:
        _damage(world, keys.bodies(first))
    return queue


def _message(world: SpoolWorld, life_s: int = 0) -> Message:
    """A persistent message of 4 bytes."""
    message = Message(b"a/lost", b"lost")
    message.persistent = True
    message.qos = 1
    if life_s:
        message.expires_ns = world.context.now_ns + life_s * SECOND
    return message


@pytest.mark.parametrize("selector", ["", "nothing IS NULL"])
def test_the_next_one_has_its_turn(world: SpoolWorld, selector: str) -> None:
    """What is damaged is told and passed over, and counts as lost."""
    queue = world.endpoint("q", "a/#", exclusive=False)
    other = world.endpoint("other", "b")
    first = world.spool.ledger.next_id
    for topic, payload in (("a/1", b"lost"), ("a/2", b"next"), ("b", b"other")):
        assert world.publish(topic, payload) == SPOOLED
        world.commit()
    _damage(world, keys.bodies(first))
    flow = world.bind(queue, selector=selector)
    beside = world.bind(other)
    world.commit()
    assert (flow.payloads(), beside.payloads()) == ([b"next"], [b"other"])
    (told,) = world.context.operator_warnings
    assert told.startswith("1 messages of q in message VPN")
    assert "are damaged and lost" in told
    assert (queue.spooled_count, queue.counters.discarded.counts) == (1, {DAMAGED: 1})
    assert queue.counters.imbalance(queue.spooled_count) == 0
    assert world.spool.damaged == 1


@pytest.mark.parametrize("max_ttl", [0, 5])
def test_life_times(world: SpoolWorld, max_ttl: int) -> None:
    """Messages whose time is over and that are damaged are told and lost; the others expire."""
    lost = [_message(world, 0 if max_ttl else 5) for _ in range(2)]
    queue = _with_lost(world, lost, respect_ttl_enabled=True, max_ttl=max_ttl)
    world.advance(20)
    world.commit()
    assert world.spool.damaged == 2
    assert all("messages of q in message VPN" in line for line in world.context.operator_warnings)
    assert queue.spooled_count == (0 if max_ttl else 1)
    told = world.spool.store_failures
    world.advance(20)
    assert world.spool.store_failures == told


def test_delivery_delay(world: SpoolWorld) -> None:
    """A message that cannot be read when its delay is over holds up no other."""
    queue = _with_lost(world, [_message(world)], delivery_delay=3)
    flow = world.bind(queue)
    world.advance(10)
    world.commit()
    assert flow.payloads() == [b"whole"]
    assert (world.spool.store_failures, queue.spooled_count) == (1, 1)
    assert queue.counters.discarded.counts == {DAMAGED: 1}


def test_other_priorities(world: SpoolWorld) -> None:
    """A reload that sorts all messages again leaves out a message that cannot be read."""
    queue = _with_lost(world, [_message(world)])
    world.settings(queue, respect_msg_priority_enabled=True)
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"whole"]
    assert (world.spool.store_failures, queue.spooled_count) == (1, 1)
    assert queue.counters.discarded.counts == {DAMAGED: 1}


def test_a_last_value_queue(world: SpoolWorld) -> None:
    """The newest that can be read is the one that is kept."""
    queue = world.endpoint("q", "a/#")
    assert world.publish("a/whole", b"whole") == SPOOLED
    world.commit()
    first = world.spool.ledger.next_id
    assert world.give(_message(world)) == SPOOLED
    world.commit()
    _damage(world, keys.bodies(first))
    world.settings(queue, max_msg_spool_usage=0)
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"whole"]
    assert queue.spooled_count == 1


def test_an_operator_deletes_it(world: SpoolWorld) -> None:
    """A message that cannot be read is deleted by its id, its bytes are free, and it is not back after a restart."""
    message = _message(world)
    queue = _with_lost(world, [message])
    before = queue.spooled_bytes
    first = queue.waiting[0].first()
    assert queue.delete_message(first) == ""
    assert queue.spooled_bytes == before - message.size
    assert (queue.spooled_count, queue.counters.deleted) == (1, 1)
    world.commit()
    assert world.spool.store_failures == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_a_purge(world: SpoolWorld, restarted: bool) -> None:
    """Damaged messages are purged like others, and the store is empty then."""
    queue = _with_lost(world, [_message(world), _message(world)])
    if restarted:
        (queue,) = world.restart()
    assert queue.purge() == 3
    world.commit()
    assert (queue.spooled_count, queue.spooled_bytes, len(world.spool.ledger)) == (0, 0, 0)


def test_what_is_settled_of_a_segment_cannot_be_read(world: SpoolWorld) -> None:
    """The message has gone for everybody here, the operator is told, and the next start brings it back."""
    queue = world.endpoint("q", "a/#")
    for payload in (b"one", b"two"):
        assert world.publish("a/1", payload) == SPOOLED
    world.commit()
    flow = world.bind(queue)
    world.commit()
    flow.settle(b"one")
    world.commit()
    kept = world.store
    world.store = Broken(kept)
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    world.store.broken = True
    flow.settle_all()
    assert world.spool.store_failures == 1
    assert "may come back with the next start" in world.context.operator_warnings[0]
    assert queue.spooled_count == 0
    world.commit()
    world.store = kept
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    assert flow.payloads() == [b"two"]


def test_numbers_go_on_where_the_next_one_is_lost() -> None:
    """A new endpoint never gets the number of another one: it would get its messages."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    for number in (3, 7):
        one = EndpointDefinition(number, "blue", QUEUE, f"q{number}", True)
        batch.put(keys.endpoint(number), one.encode())
    store.commit(batch)
    found, following = read_definitions(store)
    assert [one.number for one in found] == [3, 7]
    assert following == 8
