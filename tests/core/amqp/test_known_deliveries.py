"""Links whose deliveries are known again: what was taken is not taken twice, over links, connections and restarts."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Disposition,
    Rejected,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

ASKED: list[object] = [Symbol(KNOWS)]


def attach(peer: Any, name: str = "sender", *, asks: bool = True, **more: Any) -> Attach:
    """Attach a link that sends to the queue q; the answer."""
    (answer, *_) = peer.attach(
        Attach(
            name,
            0,
            False,
            source=Source("here"),
            target=Target("queue://q"),
            initial_delivery_count=0,
            desired_capabilities=ASKED if asks else None,
            **more,
        )
    )
    assert isinstance(answer, Attach)
    return answer


def sends(peer: Any, number: int, tag: bytes, payload: bytes, **more: Any) -> Any:
    """Send a message with a tag; what becomes of it."""
    peer.raw(frames.encode(Transfer(0, number, tag, 0, **more), 0, payload=payload))
    states = [one.state for one in peer.answers() if isinstance(one, Disposition)]
    return states[-1] if states else None


def count(router: SpooledWorld) -> int:
    """Messages in the queue."""
    queue = router.vpn().queue("q")
    assert queue is not None
    return queue.spooled_count  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def peer(router: SpooledWorld, join: Any) -> Any:
    """A client with a queue to send to."""
    router.queue("q")
    return join()


def test_who_does_not_ask_gets_nothing(router: SpooledWorld, peer: Any, amqp: ModuleType) -> None:
    """The same tag is another message then, as before."""
    answer = attach(peer, asks=False)
    assert answer.offered_capabilities is None
    for number in range(2):
        assert sends(peer, number, b"t", amqp.message(b"x")) == Accepted()
    assert count(router) == 2
    assert len(router.vpn().known_links) == 0


@pytest.mark.parametrize("again", ["link", "connection", "router"])
def test_a_delivery_that_comes_again(
    router: SpooledWorld, peer: Any, amqp: ModuleType, again: str
) -> None:
    """It is accepted, and not in the queue twice. Another link of another name knows nothing of it."""
    answer = attach(peer)
    assert answer.offered_capabilities == ASKED
    assert answer.properties == {Symbol(KNOWS): limits.AMQP_KNOWN_DELIVERIES}
    assert sends(peer, 0, b"t", amqp.message(b"x")) == Accepted()
    world = router
    if again == "router":
        world = router.restart()
    world.vpn().known_links.restore(world.spool.ledger, world.store)
    if again != "link":
        if again == "connection":
            peer.connection.lost("cut")
            world.settle()
        peer = amqp.Peer(world)
        peer.join()
        attach(peer)
    assert sends(peer, 1, b"t", amqp.message(b"x")) == Accepted()
    assert sends(peer, 2, b"u", amqp.message(b"x")) == Accepted()
    assert count(world) == 2
    other = amqp.Peer(world)
    other.join("another")
    attach(other)
    assert sends(other, 0, b"t", amqp.message(b"x")) == Accepted()
    assert count(world) == 3


def test_it_is_answered_when_it_is_synced(
    router: SpooledWorld, peer: Any, amqp: ModuleType
) -> None:
    """What came a moment before may not be on disk yet; a crash then leaves neither the message nor its tag."""
    attach(peer)
    frame = frames.encode(Transfer(0, 0, b"t", 0), 0, payload=amqp.message(b"x"))
    again = frames.encode(Transfer(0, 1, b"t", 0), 0, payload=amqp.message(b"x"))
    peer.connection.feed(frame + again)
    assert not peer.connection.outbox.chunks
    world = router.restart()
    world.vpn().known_links.restore(world.spool.ledger, world.store)
    assert count(world) == 0
    peer = amqp.Peer(world)
    peer.join()
    attach(peer)
    assert sends(peer, 0, b"t", amqp.message(b"x")) == Accepted()
    assert count(world) == 1


def test_a_message_that_was_refused_is_not_known(
    router: SpooledWorld, peer: Any, amqp: ModuleType
) -> None:
    """It is taken when it comes again."""
    queue = router.vpn().queue("q")
    queue.settings.ingress_enabled = False
    attach(peer)
    assert isinstance(sends(peer, 0, b"t", amqp.message(b"x")), Rejected)
    queue.settings.ingress_enabled = True
    assert sends(peer, 1, b"t", amqp.message(b"x")) == Accepted()
    assert count(router) == 1


def test_transactions(router: SpooledWorld, peer: Any, amqp: ModuleType) -> None:
    """A message is known when its transaction is committed, and left out of another one then."""
    attach(peer)
    peer.coordinator()
    txn_id = peer.declare()
    state = TransactionalState(txn_id)
    assert sends(peer, 5, b"t", amqp.message(b"x"), state=state).outcome == Accepted()
    assert peer.discharge(txn_id, fail=True) == Accepted()
    for number in (20, 40):
        txn_id = peer.declare()
        state = TransactionalState(txn_id)
        told = sends(peer, number, b"t", amqp.message(b"x"), state=state)
        assert told == TransactionalState(txn_id, Accepted())
        assert peer.discharge(txn_id) == Accepted()
        assert count(router) == 1
    assert sends(peer, 60, b"t", amqp.message(b"x")) == Accepted()
    assert isinstance(sends(peer, 61, b"t", amqp.message(b"x"), state=state), Rejected)
    world = router.restart()
    assert count(world) == 1
    world.vpn().known_links.restore(world.spool.ledger, world.store)
    peer = amqp.Peer(world)
    peer.join()
    attach(peer)
    assert sends(peer, 0, b"t", amqp.message(b"x")) == Accepted()
    assert count(world) == 1


def test_the_oldest_is_forgotten(router: SpooledWorld, peer: Any, amqp: ModuleType) -> None:
    """One beyond the number that the client was told; likewise after a restart."""
    router.vpn().known_links.deliveries = 3
    attach(peer)
    for number in range(4):
        sends(peer, number, b"%d" % number, amqp.message(b"x"))
    assert count(router) == 4
    world = router.restart()
    world.vpn().known_links.deliveries = 3
    world.vpn().known_links.restore(world.spool.ledger, world.store)
    peer = amqp.Peer(world)
    peer.join()
    attach(peer)
    for number in (3, 2, 1):
        sends(peer, 10 + number, b"%d" % number, amqp.message(b"x"))
    assert count(world) == 4
    sends(peer, 20, b"0", amqp.message(b"x"))
    assert count(world) == 5
    # The turn goes on where it was: that one took the place of the oldest.
    sends(peer, 21, b"3", amqp.message(b"x"))
    assert count(world) == 5
    sends(peer, 22, b"1", amqp.message(b"x"))
    assert count(world) == 6


@pytest.mark.parametrize("bound", ["most", "of_username"])
def test_too_many_links(router: SpooledWorld, join: Any, amqp: ModuleType, bound: str) -> None:
    """The one that has been away longest makes room, with its rows; one that is attached does not."""
    setattr(router.vpn().known_links, bound, 2)
    router.queue("q")
    peers = [join(name) for name in "ab"]
    for each in peers:
        attach(each)
        sends(each, 0, b"t", amqp.message(b"x"))
    third = join("c")
    assert attach(third).offered_capabilities is None
    for number in range(2):
        assert sends(third, number, b"t", amqp.message(b"x")) == Accepted()
    assert count(router) == 4
    rows = len(list(router.store.scan(b"q")))
    for each in peers:
        each.connection.lost("cut")
    router.settle()
    fourth = join("d")
    assert attach(fourth).offered_capabilities == ASKED
    router.settle()
    assert len(list(router.store.scan(b"l"))) == 2
    assert len(list(router.store.scan(b"q"))) == rows - 1
    back = join("b")
    attach(back)
    sends(back, 0, b"t", amqp.message(b"x"))
    assert count(router) == 4


def test_a_link_that_settles_second_does_without(peer: Any) -> None:
    """Its tags are its own matter (2.6.13)."""
    assert attach(peer, rcv_settle_mode=1).offered_capabilities is None
