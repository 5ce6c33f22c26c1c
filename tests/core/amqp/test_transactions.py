"""Transactions: what is sent and settled within one is done together, or not at all."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Close,
    Declare,
    Detach,
    Rejected,
    TransactionalState,
)

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


def test_consumer_that_has_gone_spoils_the_transaction(
    router: SpooledWorld, amqp: ModuleType, peer: Any
) -> None:
    """Consumer that has gone spoils the transaction."""
    peer.sent(amqp.message(b"in"))
    (got,) = peer.messages()
    txn_id = peer.declare()
    peer.settle(got, TransactionalState(txn_id, Accepted()))
    peer.say(Detach(1, True))
    peer.answers()
    answer = peer.discharge(txn_id)
    assert isinstance(answer, Rejected)
    assert _counts(router) == (1, 0)


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


def test_bounds(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Bounds."""
    for _ in range(100):
        peer.declare()
    refused = peer.sent(b"\x00\x53\x77" + performatives.write(Declare()), 9)
    assert isinstance(refused, Rejected)
    assert refused.error is not None
    assert refused.error.condition == "amqp:resource-limit-exceeded"
    txn_id = b"\x00" * 7 + b"\x01"
    transaction = peer.connection.transactions._open[txn_id]
    assert transaction.has_room(16_777_216 - 256)
    refused = peer.sent(amqp.message(), 0, state=TransactionalState(txn_id))
    assert isinstance(refused, Rejected)
    assert isinstance(peer.discharge(txn_id), Rejected)


def test_coordinator_takes_nothing_else(router: SpooledWorld, amqp: ModuleType, peer: Any) -> None:
    """Coordinator takes nothing else."""
    peer.send(amqp.message(b"hello"), 9)
    detached = peer.answer(Detach)
    assert detached.error.condition == "amqp:not-implemented"
