"""The memory that AMQP clients make the router hold: each kind of it is bounded, and given back."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.profile import ClientProfile
from vpnrouter.limits import SPARE_BYTES
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Flow,
    Rejected,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld
    from vpnrouter.core.memory_account import MemoryAccount

BOUND = 400_000
LARGE = 60_000
"""Bytes of a client, and of a message: several fit, ten do not."""

LIMIT = "amqp:resource-limit-exceeded"


@pytest.fixture
def world(spooled: ModuleType) -> SpooledWorld:
    """A router whose clients may hold BOUND bytes each."""
    profile = ClientProfile("default", max_memory_bytes=BOUND)
    made: SpooledWorld = spooled.SpooledWorld(vpn={"profile": profile})
    return made


@pytest.fixture
def neighbour(world: SpooledWorld, amqp: ModuleType) -> Any:
    """Another client of the same client username, with a sender (0) and a receiver (1) of the queue `near`."""
    world.queue("near")
    world.queue("far")
    made = amqp.Peer(world, peer="192.0.2.2")
    made.join("neighbour", max_frame_size=100_000)
    made.sender("queue://near", 0)
    made.receiver("queue://near", 1)
    made.sender("queue://far", 2)
    made.sender("topic://direct", 3)
    return made


def _attach(peer: Any, handle: int, **more: Any) -> None:
    """Attach a link to a topic that nobody has; the answer is left for later."""
    source, target = Source("x"), Target("topic://nobody")
    peer.say(
        Attach(
            f"{handle}",
            handle,
            False,
            2,
            source=source,
            target=target,
            initial_delivery_count=0,
            **more,
        )
    )


def part(peer: Any, amqp: ModuleType, number: int) -> None:
    """A message that is never finished, on a link of its own."""
    if number == 0:
        for handle in range(20):
            _attach(peer, handle)
    peer.raw(
        amqp.frames.encode(Transfer(number, number, b"t", 0, True, True), 0, payload=bytes(LARGE))
    )


def refused(peer: Any, amqp: ModuleType, number: int) -> None:
    """Links that are refused and not detached, with names that are too long."""
    for step in range(200):
        handle = number * 200 + step
        peer.say(
            Attach("n" * 5_000, handle, True, source=Source("queue://far"), target=Target("x"))
        )


def links(peer: Any, amqp: ModuleType, number: int) -> None:
    """Links that do nothing."""
    for step in range(12):
        _attach(peer, number * 12 + step)


def tags(peer: Any, amqp: ModuleType, number: int) -> None:
    """Deliveries to a topic that nobody has, which the client does not settle."""
    _attach(peer, number, rcv_settle_mode=1)
    for _ in range(110):
        peer.send(amqp.message(b"x"), number)


def transactions(peer: Any, amqp: ModuleType, number: int) -> None:
    """Transactions that stay open."""
    if number == 0:
        peer.coordinator()
        peer.sender("queue://far", 0)
    peer.send(amqp.message(bytes(LARGE)), 0, state=TransactionalState(peer.declare()))


def direct(peer: Any, amqp: ModuleType, number: int) -> None:
    """Direct messages for links without credit."""
    peer.receiver("topic://direct", number, 0, mode=1)


def browsers(peer: Any, amqp: ModuleType, number: int) -> None:
    """Looks at a large message in sessions that take one small frame of it."""
    channel = number + 1
    peer.say(Begin(None, 0, 1, 1), channel=channel)
    source = Source("queue://far", distribution_mode="copy")
    peer.say(
        Attach("look", 0, True, source=source, target=Target("x")),
        Flow(0, 1, 0, 1, 0, 0, 1),
        channel=channel,
    )


def consumers(peer: Any, amqp: ModuleType, number: int) -> None:
    """Messages that are taken and not settled."""
    if number == 0:
        peer.receiver("queue://far", 1, credit=1_000)
    peer.got()


def _selects(peer: Any, number: int, address: str, mode: str | None = None) -> None:
    """Receivers with long selectors, which are all different."""
    for step in range(3):
        handle = number * 3 + step
        text = " OR ".join([f"a = {handle}", *["b = 1"] * 100])
        wanted = {
            Symbol("jms-selector"): Described(Symbol("apache.org:selector-filter:string"), text)
        }
        source = Source(address, distribution_mode=mode, filter=wanted)
        peer.say(Attach(f"s{handle}", handle, True, 1, source=source, target=Target("x")))


def selectors_of_topics(peer: Any, amqp: ModuleType, number: int) -> None:
    """Subscriptions with long selectors."""
    _selects(peer, number, "topic://elsewhere")


def selectors_of_queues(peer: Any, amqp: ModuleType, number: int) -> None:
    """Consumers with long selectors."""
    _selects(peer, number, "queue://far")


def selectors_of_browsers(peer: Any, amqp: ModuleType, number: int) -> None:
    """Browsers with long selectors."""
    _selects(peer, number, "queue://far", "copy")


KINDS: dict[Callable[[Any, ModuleType, int], None], str] = {
    part: "closed",
    refused: "closed",
    links: "refused",
    tags: "refused",
    transactions: "refused",
    direct: "waits",
    browsers: "waits",
    consumers: "waits",
    selectors_of_topics: "refused",
    selectors_of_queues: "refused",
    selectors_of_browsers: "refused",
}
"""What is held → what happens beyond the bound."""


def _told(peer: Any) -> list[str]:
    """The conditions that came, of whatever was refused."""
    found = []
    for one in peer.answers():
        problem = getattr(one, "error", None) or getattr(getattr(one, "state", None), "error", None)
        if problem is not None:
            found.append(str(problem.condition))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kinds(
    world: SpooledWorld,
    amqp: ModuleType,
    neighbour: Any,
    kind: Callable[[Any, ModuleType, int], None],
) -> None:
    """What one client holds, of any kind, is bounded and given back, and its neighbour notices nothing."""
    memory = world.vpn().memory
    for _ in range(20):
        neighbour.sent(amqp.message(bytes(LARGE)), 2)
    before = memory.held
    peer = amqp.Peer(world)
    peer.join("greedy")
    most = 0
    told: list[str] = []
    for number in range(20):
        if peer.closed:
            break
        kind(peer, amqp, number)
        neighbour.send(amqp.message(bytes(LARGE)), 3, settled=True)
        world.settle()
        most = max(most, memory.held - before)
        assert memory.held - before <= BOUND
        told += _told(peer) if kind is not refused else []
        neighbour.sent(amqp.message(b"near"), 0)
        (got,) = neighbour.messages()
        assert got.body == b"near"
        neighbour.settle(got, Accepted())
    if kind is refused:
        told = _told(peer)
    assert most > BOUND // 2
    assert peer.closed == (KINDS[kind] == "closed")
    if KINDS[kind] != "waits":
        assert LIMIT in told
    peer.connection.lost("gone")
    world.settle()
    assert memory.held == before
    assert memory.unreturned == 0


def test_small_messages_of_many_consumers(
    world: SpooledWorld, amqp: ModuleType, neighbour: Any
) -> None:
    """A few small messages for each of many consumers count together, as those of one do."""
    queue = world.queue("many", exclusive=False)
    memory = world.vpn().memory
    consumers = 40
    peer = amqp.Peer(world)
    peer.join("greedy")
    for handle in range(consumers):
        peer.receiver("queue://many", handle, 20)
    neighbour.sender("queue://many", 4)
    links = memory.held
    for _ in range(consumers * 20):
        neighbour.send(amqp.message(bytes(100)), 4)
    neighbour.answers()
    taken = peer.messages()
    held = sum(flow.bytes_out for flow in queue.flows)
    assert held - consumers * SPARE_BYTES <= memory.held - links
    assert held < BOUND // 2
    # What is settled makes room: nothing is lost, and nothing counts then.
    count = 0
    while taken:
        count += len(taken)
        peer.say(Disposition(True, 0, 0x7FFF_FFFE, True, Accepted()))
        for handle in range(consumers):
            peer.credit(handle, 1_000)
        world.advance(0.1)
        taken = peer.messages()
    assert count == consumers * 20
    assert memory.held == links


def test_a_browser_keeps_no_copy(world: SpooledWorld, amqp: ModuleType, neighbour: Any) -> None:
    """A large message goes to a window of one frame, frame by frame, and comes whole."""
    body = bytes(range(256)) * 200
    neighbour.sent(amqp.message(body), 2)
    peer = amqp.Peer(world)
    peer.join(max_frame_size=1_000)
    peer.begin(1, window=1)
    source = Source("queue://far", distribution_mode="copy")
    peer.say(
        Attach("look", 0, True, source=source, target=Target("x")),
        Flow(0, 1, 0, 1, 0, 0, 1),
        channel=1,
    )
    data = b""
    count = 0
    more = True
    while more:
        (frame,) = [one for one in peer.got() if isinstance(one.performative, Transfer)]
        count += 1
        data += frame.payload
        more = frame.performative.more
        peer.say(Flow(count, 1, 0, 1), channel=1)
    assert body in data
    assert count > len(body) // 1_000


def test_an_outcome_twice(world: SpooledWorld, amqp: ModuleType, neighbour: Any) -> None:
    """The same outcome given again and again within a transaction is held once, and the last one holds."""
    for number in range(3):
        neighbour.sent(amqp.message(b"%d" % number), 2)
    peer = amqp.Peer(world)
    peer.join()
    peer.coordinator()
    peer.receiver("queue://far", 1)
    first, _, last = peer.messages()
    ids = first.transfer.delivery_id, last.transfer.delivery_id
    txn_id = peer.declare()
    peer.say(Disposition(True, *ids, False, TransactionalState(txn_id, Rejected())))
    peer.answers()
    held = world.vpn().memory.held
    for _ in range(1_000):
        peer.say(Disposition(True, *ids, False, TransactionalState(txn_id, Accepted())))
    peer.answers()
    assert world.vpn().memory.held == held
    assert peer.discharge(txn_id) == Accepted()
    queue = world.vpn().queue("far")
    assert queue is not None
    assert queue.spooled_count == 0  # type: ignore[attr-defined]


def test_the_one_with_most(world: SpooledWorld, amqp: ModuleType, neighbour: Any) -> None:
    """At the bound of the message VPN, the client with most ends, and not the one who asks."""
    memory: MemoryAccount = world.vpn().memory
    memory.most = memory.held + 250_000
    large = amqp.Peer(world, peer="192.0.2.3")
    large.join("large")
    for number in range(3):
        part(large, amqp, number)
    small = amqp.Peer(world, peer="192.0.2.4")
    small.join("small")
    part(small, amqp, 0)
    world.settle()
    assert (large.closed, small.closed, neighbour.closed) == (True, False, False)
    assert any(isinstance(one, Detach) or LIMIT in str(one) for one in large.answers())
    for peer in (large, small, neighbour):
        peer.connection.lost("gone")
    assert (memory.held, memory.unreturned) == (0, 0)
    assert world.router.context.memory.held == 0


@pytest.mark.parametrize("sessions", [1, 8])
@pytest.mark.parametrize("credit", [1, 10, 1_000])
def test_many_consumers_of_large_messages_get_all(
    world: SpooledWorld, amqp: ModuleType, neighbour: Any, sessions: int, credit: int
) -> None:
    """They share what their client may hold: who has no room waits, nobody is ended, and all messages come."""
    world.queue("large", exclusive=False, max_bind_count=100)
    neighbour.sender("queue://large", 4)
    count = 40
    for _ in range(count):
        neighbour.sent(amqp.message(bytes(LARGE)), 4)
    peer = amqp.Peer(world)
    peer.join("consumer", max_frame_size=100_000)
    for channel in range(1, sessions):
        peer.begin(channel)
    memory = world.vpn().memory
    by_link = [0] * 8
    for handle in range(8):
        channel = handle % sessions
        packet = Attach(
            f"consumer {handle}",
            handle,
            True,
            source=Source("queue://large"),
            target=Target("here"),
        )
        peer.say(packet, channel=channel)
        peer.say(Flow(0, 5_000, 0, 5_000, handle, 0, credit), channel=channel)
    waits = 0
    while sum(by_link) < count:
        world.settle()
        # A peer that reads slowly has all of that still before it, and the client pays for it.
        assert peer.connection.outbox.size <= BOUND
        came = [frame for frame in peer.got() if isinstance(frame.performative, Transfer)]
        assert memory.held <= 2 * BOUND
        waits = 0 if came else waits + 1
        assert waits < 100, f"{by_link} of {count} came"
        for frame in came:
            by_link[frame.performative.handle] += 1
            number = frame.performative.delivery_id
            peer.say(Disposition(True, number, None, True, Accepted()), channel=frame.channel)
            if credit == 1:
                handle = frame.performative.handle
                peer.say(
                    Flow(0, 5_000, 0, 5_000, handle, by_link[handle], 1), channel=frame.channel
                )
        world.settle()
        world.advance(0.03)
    assert not peer.closed


@pytest.mark.parametrize("kind", ["session", "consumer", "temporary queue", "temporary source"])
def test_what_clients_make_counts(
    world: SpooledWorld, amqp: ModuleType, neighbour: Any, kind: str
) -> None:
    """Sessions and endpoints of a link count for the client, which alone is stopped at its bound; all comes back."""
    peer = amqp.Peer(world)
    peer.join("many")
    ended: list[Any] = []
    made = 0
    while not ended:
        made += 1
        assert made < 500
        dynamic = {"dynamic": True, "capabilities": [Symbol("temporary-queue")]}
        if kind == "session":
            peer.say(Begin(None, 0, 1, 1), channel=made)
            found = peer.answers()
        elif kind == "consumer":
            found = peer.receiver(f"topic://t/{made}", made, credit=0)
        elif kind == "temporary queue":
            found = peer.sender(None, made, target=Target(**dynamic))
        else:
            found = peer.receiver(None, made, credit=0, **dynamic)
        ended = [one for one in found if isinstance(one, Detach | Close)]
    assert ended[0].error.condition == LIMIT
    # A session takes 2 KiB, and a link 4, with an endpoint 8.
    assert 20 < made < BOUND / 2_048 + 2
    assert neighbour.sent(amqp.message(b"x"), 0) == Accepted()
    assert world.balance() == (0, 0)
