"""What is sent to one queue by its name is never lost without a word: the queue takes it, or it is rejected."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import ALWAYS, NEVER, WHEN_ENABLED
from vpnrouter.core.guaranteed.refusals import MAKER_GONE, NOT_CONFIGURED
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    End,
    Flow,
    MessageProperties,
    Rejected,
    Target,
    TransactionalState,
    Transfer,
)
from vpnrouter.wire.amqp.types import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld

SHUT = "503 Queue Shutdown"


def _reason(state: object) -> str:
    if state == Accepted():
        return ""
    assert isinstance(state, Rejected), state
    assert state.error is not None
    return str(state.error.description)


def _link(world: SpooledWorld, join: Any, amqp: ModuleType, data: bytes) -> str:
    peer = join("sender")
    peer.sender("queue://q")
    return _reason(peer.sent(amqp.message(data)))


def _relay(world: SpooledWorld, join: Any, amqp: ModuleType, data: bytes) -> str:
    peer = join("sender")
    peer.sender(None)
    message = amqp.message(data, properties=MessageProperties(to="queue://q"))
    return _reason(peer.sent(message))


def _transaction(world: SpooledWorld, join: Any, amqp: ModuleType, data: bytes) -> str:
    peer = join("sender")
    world.queue("other")
    peer.sender("queue://other", 0)
    peer.sender("queue://q", 1)
    peer.coordinator()
    txn_id = peer.declare()
    peer.sent(amqp.message(data), 0, state=TransactionalState(txn_id))
    peer.sent(amqp.message(data), 1, state=TransactionalState(txn_id))
    why = _reason(peer.discharge(txn_id))
    other = world.vpn().queue("other")
    # All of it, or nothing.
    assert other is not None
    assert other.spooled_count == (0 if why else 1)  # type: ignore[attr-defined]
    return why


def _mqtt(qos: int) -> Callable[[SpooledWorld, Any, ModuleType, bytes], str]:
    def send(world: SpooledWorld, join: Any, amqp: ModuleType, data: bytes) -> str:
        client = world.join("mqtt")
        client.pub("$queue/q", data, qos)
        (answer,) = client.got()
        assert (answer.reason_code >= 0x80) == bool(answer.properties.reason_string)  # type: ignore[union-attr]
        return answer.properties.reason_string or ""  # type: ignore[union-attr]

    return send


SENDERS = {
    "link": _link,
    "relay": _relay,
    "transaction": _transaction,
    "mqtt-1": _mqtt(1),
    "mqtt-2": _mqtt(2),
}

STATES: dict[str, tuple[dict[str, object], dict[int, str]]] = {
    "open": ({}, {}),
    # As SEMP makes one: ingress and egress off.
    "ingress-off": (
        {"ingress_enabled": False},
        {NEVER: SHUT, WHEN_ENABLED: SHUT, ALWAYS: SHUT},
    ),
    "shut-down": (
        {"ingress_enabled": False, "egress_enabled": False},
        {NEVER: SHUT, WHEN_ENABLED: SHUT, ALWAYS: SHUT},
    ),
    "full": (
        {"max_msg_spool_usage": 1},
        {WHEN_ENABLED: "503 Spool Over Quota", ALWAYS: "503 Spool Over Quota"},
    ),
    "small": (
        {"max_msg_size": 1},
        {WHEN_ENABLED: "400 Document Is Too Large", ALWAYS: "400 Document Is Too Large"},
    ),
}
"""What a queue is like, and for each behaviour why it refuses; with `never` its owner wants a loss that is counted."""


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("behavior", [NEVER, WHEN_ENABLED, ALWAYS])
@pytest.mark.parametrize("state", STATES)
def test_queue_that_cannot_take_it(
    router: SpooledWorld, join: Any, amqp: ModuleType, state: str, behavior: int, sender: str
) -> None:
    """The publisher is told why, over each protocol, also in a transaction; or the message is there."""
    settings, reasons = STATES[state]
    queue = router.queue("q", reject_behavior=behavior, **settings)
    expected = reasons.get(behavior, "")
    assert SENDERS[sender](router, join, amqp, b"four") == expected
    assert queue.spooled_count == int(state == "open")
    counted = sum(queue.counters.refused.counts.values())
    assert counted == int(state != "open")


@pytest.mark.parametrize("sender", SENDERS)
def test_removed_and_still_holding(
    router: SpooledWorld, join: Any, amqp: ModuleType, sender: str
) -> None:
    """A queue that was removed keeps what it has, and takes nothing."""
    queue = router.queue("q")
    assert _link(router, join, amqp, b"1") == ""
    queue.put_out(NOT_CONFIGURED)
    queue.settings.ingress_enabled = False
    assert SENDERS[sender](router, join, amqp, b"2") == SHUT
    assert queue.spooled_count == 1


@pytest.mark.parametrize("behavior", [NEVER, WHEN_ENABLED, ALWAYS])
def test_topics_are_as_before(
    router: SpooledWorld, join: Any, amqp: ModuleType, behavior: int
) -> None:
    """A queue that attracts a topic decides by its settings whether it refuses for all."""
    queue = router.queue("q", "a", reject_behavior=behavior, ingress_enabled=False)
    peer = join("sender")
    peer.sender("topic://a")
    assert _reason(peer.sent(amqp.message())) == (SHUT if behavior == ALWAYS else "")
    assert queue.counters.refused.counts == {"destination-group-error": 1}


REMOVALS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "deleted": (NOT_CONFIGURED, lambda queue: queue.delete(NOT_CONFIGURED)),
    "still-holding": (NOT_CONFIGURED, lambda queue: queue.put_out(NOT_CONFIGURED)),
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_links_of_a_removed_queue_end(
    router: SpooledWorld, join: Any, amqp: ModuleType, removal: str
) -> None:
    """Senders, consumers of one client and another are told; links to other queues go on."""
    queue = router.queue("q")
    router.queue("other")
    first, second = join("first"), join("second")
    for peer in (first, second):
        peer.sender("queue://q", 0)
        peer.receiver("queue://q", 1)
        peer.sender("queue://other", 2)
        peer.sender("topic://$queue/q", 3)
    assert len(queue.senders) == 4
    reason, remove = REMOVALS[removal]
    remove(queue)
    for peer in (first, second):
        found = [one for one in peer.answers() if not isinstance(one, Flow)]
        assert sorted(one.handle for one in found) == [0, 1, 3]
        for one in found:
            assert isinstance(one, Detach)
            assert one.closed
            assert one.error is not None
            assert (one.error.condition, one.error.description) == (
                "amqp:resource-deleted",
                reason,
            )
        # What was on its way to the link is passed over.
        peer.say(Transfer(0, 0, b"t", 0))
        assert peer.answers() == []
        peer._delivery = 1
        assert peer.sent(amqp.message(), 2) == Accepted()
    assert not queue.senders


@pytest.mark.parametrize("way", ["detach", "end", "lost"])
def test_a_link_that_has_ended_is_forgotten(
    router: SpooledWorld, join: Any, amqp: ModuleType, way: str
) -> None:
    """A queue keeps nothing of senders that have gone."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q", 0)
    if way == "detach":
        peer.say(Detach(0, True))
    elif way == "end":
        peer.say(End())
    else:
        peer.connection.lost("gone")
    router.settle()
    assert not queue.senders


def test_sender_to_another_ones_temporary_queue(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Who answers a request hears that nobody waits for it any more."""
    asks, answers = join("asks"), join("answers")
    target = Target(
        dynamic=True, expiry_policy=Symbol("link-detach"), capabilities=[Symbol("temporary-queue")]
    )
    attached = asks.sender(None, 0, target=target)[0]
    assert isinstance(attached, Attach)
    assert isinstance(attached.target, Target)
    answers.sender(attached.target.address, 0)
    assert answers.sent(amqp.message()) == Accepted()
    asks.say(Detach(0, True))
    asks.drain()
    detached = answers.answer(Detach)
    assert detached.error.condition == "amqp:resource-deleted"
    assert detached.error.description == MAKER_GONE


def test_thousands_of_senders_are_told_in_slices(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """A queue that goes stalls nobody."""
    queue = router.queue("q")
    peer = join()
    for handle in range(3_000):
        peer.say(
            Attach(
                f"s{handle}", handle, False, target=Target("queue://q"), initial_delivery_count=0
            )
        )
    peer.drain()
    assert len(queue.senders) == 3_000
    context = router.router.context
    context.work = 0
    queue.delete(NOT_CONFIGURED)
    assert context.work < context.allowance + 100
    found = [one for one in peer.answers() if isinstance(one, Detach)]
    assert len(found) == 3_000
