"""vpnrouter.core.guaranteed.spool: units, and what publishers are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, UNMATCHED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def test_nothing_is_told_or_delivered_before_the_sync(world: SpoolWorld) -> None:
    """Promise COMMIT: publishers and consumers hear of a message when it is in the store."""
    queue = world.endpoint("q", "a/#")
    flow = world.bind(queue)
    world.publish("a/b", b"one")
    batch = world.seal()
    assert batch is not None
    world.publish("a/b", b"two")
    assert world.seal() is None, "one unit is in flight at a time"
    assert (flow.sent, world.told.heard) == ([], [])
    world.store.commit(batch)
    world.spool.committed()
    assert (flow.payloads(), world.told.outcomes()) == ([b"one"], [SPOOLED])
    world.commit()
    assert (flow.payloads(), world.told.outcomes()) == ([b"two"], [SPOOLED])


def test_while_the_store_fails(world: SpoolWorld) -> None:
    """Nothing more is taken until the commit succeeds; what waits for it is told in order."""
    queue = world.endpoint("q", "a/#")
    world.publish("a", b"one")
    batch = world.seal()
    assert batch is not None
    world.spool.failed("no space")
    assert world.publish("a", b"two") == REJECTED
    assert world.direct("a", b"three") != ""
    world.store.commit(batch)
    world.spool.committed()
    assert world.publish("a", b"four") == SPOOLED
    world.commit()
    assert world.told.reasons() == ["", refusals.SERVICE_UNAVAILABLE, ""]
    assert queue.spooled_count == 2


def test_who_waits_for_nothing_is_refused_at_once(world: SpoolWorld) -> None:
    """Answers keep their order for each receipt; others need not wait for the store to work again."""
    world.endpoint("q", "a/#")
    world.publish("a", b"one")
    batch = world.seal()
    assert batch is not None
    world.spool.failed("no space")
    waits, other = world.told, type(world.told)()
    world.publish("a", b"two")
    world.told = other
    world.publish("a", b"three")
    world.publish("a", b"four")
    assert world.seal() is None
    assert (waits.heard, other.outcomes()) == ([], [REJECTED] * 2)
    world.store.commit(batch)
    world.spool.committed()
    world.commit()
    assert waits.outcomes() == [SPOOLED, REJECTED]
    assert other.heard == []


def test_nothing_matches(world: SpoolWorld) -> None:
    """Counted, and told as such."""
    assert world.publish("a") == UNMATCHED
    world.commit()
    assert world.told.outcomes() == [UNMATCHED]
    assert world.vpn.discards.counts == {"no-subscription-match": 1}


def test_what_two_queues_keep_is_known_as_one_message(world: SpoolWorld) -> None:
    """Bridges may take it from both, and where their ways meet its copies must be known by their id."""
    flows = [world.bind(world.endpoint(name, "a/#")) for name in ("q", "r")]
    world.publish("a/b", b"one")
    world.direct("a/b", b"two")
    world.commit()
    first, second = (flow.known_as for flow in flows)
    assert first == second
    assert len(set(first)) == 2
    assert 0 not in first
