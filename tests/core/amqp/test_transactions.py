"""Transactions: what is sent and settled within one is done together, or not at all."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.wire.amqp import frames, performatives
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Coordinator,
    Declare,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Rejected,
    Source,
    Target,
    TransactionalState,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld


@pytest.fixture
def peer(router: SpooledWorld, amqp: ModuleType) -> Any:
    """A client with a sender (0) and a receiver (1) of the queue `q`, a sender (2) of `r`, and a coordinator (9)."""
    router.queue("q")
    router.queue("r")
    made = amqp.Peer(router)
    made.join()
    made.sender("queue://q", 0)
    made.sender("queue://r", 2)
    made.receiver("queue://q", 1)
    made.coordinator()
    return made


def _counts(router: SpooledWorld) -> tuple[int, int]:
    q, r = (router.vpn().queue(name) for name in "qr")
    assert q is not None
    assert r is not None
    return q.spooled_count, r.spooled_count  # type: ignore[attr-defined]


def test_commit(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Commit."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    state = peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
    assert state == TransactionalState(txn_id, Accepted())
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    assert _counts(router) == (1, 0)
    commits = router.commits
    assert peer.discharge(txn_id) == Accepted()
    # One unit of the spool.
    assert router.commits == commits + 1
    assert _counts(router) == (0, 1)
    assert _counts(router.restart()) == (0, 1)


def test_discharge_is_answered_when_it_is_synced(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """Discharge is answered when it is synced."""
    txn_id = peer.declare()
    peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
    peer.send(b"\x00\x53\x77" + performatives.write(performatives.Discharge(txn_id)), 9)
    assert not peer.connection.outbox.chunks
    assert _counts(router.restart()) == (0, 0)


def test_rollback(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Rollback."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    number = peer.send(
        b"\x00\x53\x77" + performatives.write(performatives.Discharge(txn_id, True)), 9
    )
    answers = peer.answers()
    assert [one.state for one in answers if getattr(one, "first", None) == number] == [Accepted()]
    assert _counts(router) == (1, 0)
    # The message came again, and that counts.
    (again,) = [one for one in answers if isinstance(one, performatives.Transfer)]
    assert again.handle == 1


def test_lost_connection_rolls_back(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Lost connection rolls back."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    peer.connection.lost("gone")
    assert _counts(router) == (1, 0)
    other = amqp.Peer(router)
    other.join("other")
    other.receiver("queue://q")
    assert other.bodies() == [b"in"]


def test_one_message_that_is_refused_refuses_all(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """One message that is refused refuses all."""
    router.vpn().queue("r").settings.max_spooled_msg_count = 1  # type: ignore[union-attr]
    txn_id = peer.declare()
    state = TransactionalState(txn_id)
    peer.sent(amqp.message(b"1"), 0, state=state)
    peer.sent(amqp.message(b"2"), 2, state=state)
    peer.sent(amqp.message(b"3"), 2, state=state)
    answer = peer.discharge(txn_id)
    assert isinstance(answer, Rejected)
    assert answer.error is not None
    assert answer.error.condition == "amqp:transaction:rollback"
    assert _counts(router) == (0, 0)
    usage = router.spool.usage
    assert usage == 0


def test_message_that_may_not_be_published_spoils_the_transaction(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """Message that may not be published spoils the transaction."""
    txn_id = peer.declare()
    peer.sent(amqp.message(b"1"), 0, state=TransactionalState(txn_id))
    peer.connection.publisher.max_size = 10
    refused = peer.sent(amqp.message(bytes(50)), 0, state=TransactionalState(txn_id))
    assert isinstance(refused, Rejected)
    assert isinstance(peer.discharge(txn_id), Rejected)
    assert _counts(router) == (0, 0)


ENDS = ["detach", "close", "detach-error", "end", "stolen"]
"""How a link may end over which something was settled in a transaction that goes on."""


@pytest.mark.parametrize("discharge", ["commit", "roll back", "control link", "connection"])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("end", "source"),
    [
        (end, source)
        for end in ENDS
        for source in ("queue", "subscription", "durable")
        # Only a durable subscription is taken over.
        if end != "stolen" or source == "durable"
    ],
)
def test_link_that_ends_before_the_discharge(
    router: SpooledWorld, amqp: ModuleType, end: str, source: str, settled: bool, discharge: str
) -> None:
    """What was settled over it is done with the transaction, or comes again and counts."""
    router.queue("q")
    router.queue("r")
    peer = amqp.Peer(router)
    peer.join()
    peer.begin(1)
    peer.coordinator()
    peer.sender("queue://r", 2)
    address = "queue://q" if source == "queue" else "topic://t"
    more = {"durable": 2, "expiry_policy": Symbol("never")} if source == "durable" else {}
    # In a session of its own, so that it may end alone.
    attach = Attach("c", 0, True, source=Source(address, **more), target=Target("here"))
    peer.say(attach, Flow(0, 5_000, 0, 5_000, 0, 0, 100), channel=1)
    peer.drain()
    peer.sender(address, 3)
    peer.sent(amqp.message(b"1"), 3)
    peer.sent(amqp.message(b"2"), 3)
    first, _ = peer.messages()
    txn_id = peer.declare()
    peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
    number = first.transfer.delivery_id
    state = TransactionalState(txn_id, Accepted())
    peer.say(Disposition(True, number, None, settled, state), channel=1)
    peer.drain()
    error = Error(Symbol("amqp:internal-error"))
    if end == "stolen":
        other = amqp.Peer(router)
        other.join()
        other.receiver(address, name="c", credit=0, **more)
    elif end == "end":
        peer.say(End(), channel=1)
    else:
        peer.say(Detach(0, end == "close", error if end.endswith("error") else None), channel=1)
    peer.drain()
    if discharge == "commit":
        assert peer.discharge(txn_id) == Accepted()
    elif discharge == "roll back":
        assert peer.discharge(txn_id, fail=True) == Accepted()
    elif discharge == "control link":
        peer.say(Detach(9, True))
        peer.drain()
    else:
        peer.connection.lost("gone")
    router.settle()
    assert _counts(router)[1] == int(discharge == "commit")
    if source == "subscription" or (source == "durable" and end == "close"):
        # It has ended with its messages.
        return
    later = amqp.Peer(router)
    later.join("me" if source == "durable" else "later")
    later.receiver(address, name="c", **more)
    found = {one.body: one.header.delivery_count for one in later.messages()}
    lost = int(end == "detach-error")
    # It is in order, as the messages were sent.
    expected = {b"1": 1, b"2": lost}
    if discharge == "commit":
        del expected[b"1"]
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("gone", ["deleted", "purged", "shut down"])
def test_queue_that_goes_before_the_discharge(
    router: SpooledWorld, amqp: ModuleType, peer: Any, gone: str
) -> None:
    """What was settled over a link that has ended is gone with the queue, or settled all the same."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    peer.say(Detach(1, False))
    peer.drain()
    queue: Any = router.vpn().queue("q")
    assert [len(one.unacked) for one in queue.holders()] == [1]
    assert len(queue.browse(0, 10)) == 1
    if gone == "deleted":
        queue.delete("503 Queue Shutdown")
    elif gone == "purged":
        assert queue.purge() == 0
        assert queue.spooled_count == 1
    else:
        queue.unbind_all("503 Queue Shutdown")
    peer.drain()
    assert peer.discharge(txn_id) == Accepted()
    assert (queue.spooled_count, queue.holders()) == (0, [])


def test_consumer_that_was_unbound_spoils_the_transaction(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """A queue that is shut down takes its messages back, and the client is told at the discharge."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    peer.drain()
    queue: Any = router.vpn().queue("q")
    queue.unbind_all("503 Queue Shutdown")
    peer.drain()
    answer = peer.discharge(txn_id)
    assert isinstance(answer, Rejected)
    assert _counts(router) == (1, 0)


def test_browser_in_a_transaction(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Who only looks at messages takes none, whatever it says in a transaction."""
    peer.say(Detach(1, True))
    peer.drain()
    peer.sent(amqp.message(b"in"))
    peer.receiver("queue://q", 4, distribution_mode=Symbol("copy"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    peer.say(Detach(4, True))
    peer.drain()
    peer.discharge(txn_id)
    assert _counts(router) == (1, 0)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("way", ["detach", "end"])
def test_end_of_the_link_to_the_coordinator(
    router: SpooledWorld, amqp: ModuleType, peer: Any, way: str, closed: bool
) -> None:
    """It rolls back what was declared over it (4.3), and nothing else."""
    peer.begin(1)
    control = Coordinator([Symbol("amqp:local-transactions")])
    peer.say(Attach("other", 0, False, target=control, initial_delivery_count=0), channel=1)
    peer.drain()
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    kept = peer.declare()
    peer.sent(amqp.message(b"kept"), 2, state=TransactionalState(kept))
    declare = b"\x00\x53\x77" + performatives.write(Declare())
    peer.raw(frames.encode(performatives.Transfer(0, 0, b"t", 0), 1, payload=declare))
    gone = peer.answer(Disposition).state.txn_id
    assert gone != kept
    peer.sent(amqp.message(b"gone"), 2, state=TransactionalState(gone))
    peer.settle(got, TransactionalState(gone, Accepted()))
    peer.drain()
    peer.say(Detach(0, closed) if way == "detach" else End(), channel=1)
    (again,) = [one.performative for one in peer.got() if one.payload]
    # It came again at once.
    assert again.handle == 1
    refused = peer.sent(amqp.message(b"late"), 2, state=TransactionalState(gone))
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:transaction:unknown-id"
    assert peer.discharge(kept) == Accepted()
    assert _counts(router) == (1, 1)
    assert not peer.connection.transactions._open


@pytest.mark.parametrize("transactions", [1, 500])
def test_thousands_are_rolled_back_in_slices(
    router: SpooledWorld, amqp: ModuleType, peer: Any, transactions: int
) -> None:
    """A roll-back stalls nobody, and what comes again is in order."""
    count = 2_000
    peer.say(Detach(1, False))
    for number in range(count):
        peer.send(amqp.message(b"%d" % number))
    peer.drain()
    peer.receiver("queue://q", 1, credit=count)
    got: list[Any] = []
    for _ in range(100):
        router.advance(0.05)
        got += peer.messages()
    assert len(got) == count
    first = got[0].transfer.delivery_id
    each = count // transactions
    for begin in range(first, first + count, each):
        txn_id = peer.declare()
        state = TransactionalState(txn_id, Accepted())
        peer.say(Disposition(True, begin, begin + each - 1, True, state))
    peer.drain()
    peer.say(Detach(1, False))
    peer.drain()
    context = router.router.context
    context.work = 0
    if transactions == 1:
        body = b"\x00\x53\x77" + performatives.write(performatives.Discharge(txn_id, True))
        peer.send(body, 9)
    else:
        # All of them end with the link to the coordinator.
        peer.say(Detach(9, True))
    assert context.work < context.allowance + 500
    peer.drain()
    peer.receiver("queue://q", 5, credit=count)
    again: list[Any] = []
    for _ in range(100):
        router.advance(0.05)
        again += peer.messages()
    assert [one.body for one in again] == [b"%d" % number for number in range(count)]
    assert {one.header.delivery_count for one in again} == {1}


def test_unknown_transaction(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Unknown transaction."""
    state = peer.sent(amqp.message(b"1"), 0, state=TransactionalState(b"nothing"))
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:transaction:unknown-id"
    answer = peer.discharge(b"nothing")
    assert isinstance(answer, Rejected)
    peer.sent(amqp.message(b"2"))
    (got,) = peer.messages()
    peer.settle(got, TransactionalState(b"nothing", Accepted()))
    closed = peer.answer(Close)
    assert closed.error.condition == "amqp:transaction:unknown-id"


def test_transaction_of_another_connection(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """Ids begin anew with each connection, and mean nothing to others."""
    peer.declare()
    foreign = peer.declare()
    other = amqp.Peer(router)
    other.join("other")
    other.coordinator()
    other.sender("queue://q")
    assert other.declare() != foreign
    state = TransactionalState(foreign)
    for refused in (other.sent(amqp.message(b"1"), 0, state=state), other.discharge(foreign)):
        assert isinstance(refused, Rejected)
        assert refused.error is not None
        assert refused.error.condition == "amqp:transaction:unknown-id"
    assert _counts(router)[0] == 0
    assert peer.discharge(foreign) == Accepted()


def test_transactions_that_are_open(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Each transacted session has one: hundreds are open, and beyond the bound the client is told."""
    for _ in range(limits.AMQP_TRANSACTIONS):
        peer.declare()
    refused = peer.sent(b"\x00\x53\x77" + performatives.write(Declare()), 9)
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    assert "4,096 open transactions" in str(refused.error.description)


def test_transactions_count_for_the_client(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """Those in which nothing is done take memory, which the client's account bounds."""
    account = peer.connection.account
    before = account.held
    txn_ids = [peer.declare() for _ in range(10)]
    assert account.held - before >= 10 * 1_024
    for txn_id in txn_ids:
        peer.discharge(txn_id)
    assert account.held == before


@pytest.mark.parametrize("bound", ["bytes", "messages"])
def test_message_that_is_one_too_many(
    router: SpooledWorld, amqp: ModuleType, peer: Any, bound: str
) -> None:
    """The sender is told at the message, and again at the discharge."""
    txn_id = peer.declare()
    transaction = peer.connection.transactions._open[txn_id]
    if bound == "bytes":
        assert transaction.has_room(limits.AMQP_TRANSACTION_BYTES - 256 - transaction.size)
    else:
        transaction.count = limits.AMQP_TRANSACTION_MESSAGES
    refused = peer.sent(amqp.message(), 0, state=TransactionalState(txn_id))
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    answer = peer.discharge(txn_id)
    assert isinstance(answer, Rejected)
    assert answer.error is not None
    assert answer.error.condition == "amqp:transaction:rollback"
    for one in (refused, answer):
        assert str(one.error.description).startswith("the transaction is too large: it has at most")
    assert _counts(router) == (0, 0)


@pytest.mark.parametrize("settled", [True, False])
def test_delivery_that_is_one_too_many(
    router: SpooledWorld, amqp: ModuleType, peer: Any, settled: bool
) -> None:
    """The consumer's link ends with the reason, in place of silence, and the commit fails with it."""
    for body in (b"1", b"2", b"3"):
        peer.sent(amqp.message(body))
    got = peer.messages()
    txn_id = peer.declare()
    transaction = peer.connection.transactions._open[txn_id]
    transaction.count = limits.AMQP_TRANSACTION_MESSAGES - 1
    first, last = got[0].transfer.delivery_id, got[-1].transfer.delivery_id
    peer.say(Disposition(True, first, last, settled, TransactionalState(txn_id, Accepted())))
    detached = peer.answer(Detach)
    assert detached.handle == 1
    assert detached.error.condition == "amqp:resource-limit-exceeded"
    assert "10,000 messages and outcomes" in detached.error.description
    answer = peer.discharge(txn_id)
    assert isinstance(answer, Rejected)
    assert answer.error is not None
    assert answer.error.description == detached.error.description
    router.settle()
    assert _counts(router) == (3, 0)
    other = amqp.Peer(router)
    other.join("other")
    other.receiver("queue://q")
    assert other.bodies() == [b"1", b"2", b"3"]


def test_outcomes_behind_trouble_wait_for_the_discharge(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """A transaction that can only be rolled back does not send messages round and round meanwhile."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.connection.transactions._open[txn_id].trouble = "503 Queue Shutdown"
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    assert peer.messages() == []
    number = peer.send(b"\x00\x53\x77" + performatives.write(performatives.Discharge(txn_id)), 9)
    answers = peer.answers()
    (state,) = [one.state for one in answers if getattr(one, "first", None) == number]
    assert isinstance(state, Rejected)
    assert [one.handle for one in answers if isinstance(one, performatives.Transfer)] == [1]


def test_coordinator_takes_nothing_else(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Coordinator takes nothing else."""
    peer.send(amqp.message(b"hello"), 9)
    detached = peer.answer(Detach)
    assert detached.error.condition == "amqp:not-implemented"


@pytest.mark.parametrize("waits_for", ["outcome", "discharge"])
def test_who_waits_long_for_a_store_that_is_down_is_told(
    router: SpooledWorld, amqp: ModuleType, peer: Any, waits_for: str
) -> None:
    """Its connection ends with the reason; what it sent is kept when the store is well again."""
    idle = amqp.Peer(router)
    idle.join("idle")
    idle.sender("queue://q", 0)
    if waits_for == "discharge":
        txn_id = peer.declare()
        peer.sent(amqp.message(b"out"), 2, state=TransactionalState(txn_id))
        peer.send(b"\x00\x53\x77" + performatives.write(performatives.Discharge(txn_id)), 9)
    else:
        peer.send(amqp.message(b"out"), 2)
    batch = router.spool.end_round()
    assert batch is not None
    for _ in range(limits.SPOOL_DELAY_S):
        router.spool.failed("no space left")
        router.router.context.jobs.finish()
        assert not peer.closed
        router.advance(1)
    router.spool.failed("no space left")
    router.router.context.jobs.finish()
    assert peer.closed
    assert not idle.closed
    router.store.commit(batch)
    router.spool.committed()
    assert _counts(router) == (0, 1)
    (close,) = [one for one in peer.answers() if isinstance(one, Close)]
    assert close.error.condition == "amqp:resource-limit-exceeded"
    assert "no space left" in close.error.description
