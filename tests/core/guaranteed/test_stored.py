"""vpnrouter.core.guaranteed.message_record: messages as records."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def test_promotion(world: SpoolWorld) -> None:
    """A Direct message is kept as non-persistent by endpoints, not by sessions' queues."""
    queue = world.endpoint("q", "a/#")
    assert world.direct("a/b", b"one") == ""
    assert world.direct("b") == "no-subscription-match"
    world.commit()
    flow = world.bind(queue)
    world.commit()
    (message,) = flow.unacked.values()
    assert (message.persistent, message.payload) == (False, b"one")
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    (message,) = flow.unacked.values()
    assert (message.persistent, message.qos) == (False, 0)


def test_a_record_tells_everything(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """What comes back from the store is what went in, its life time in the new process's clock."""
    queue = world.endpoint("q", "a")
    message = spool_kit.guaranteed(
        "a", b"x", 2, priority="7", dmq_eligible="false", JMSXGroupID="k"
    )
    message.expires_ns = world.context.now_ns + 90 * spool_kit.SECOND_NS
    message.path = ["far/red"]
    message.hops = 1
    message.trace_high = 5
    world.give(message)
    world.commit()
    world.advance(30)
    (queue,) = world.restart()
    flow = world.bind(queue)
    world.commit()
    (found,) = flow.unacked.values()
    assert found is not message
    for name in ("topic", "payload", "block", "qos", "priority", "lane", "dmq_eligible", "path"):
        assert getattr(found, name) == getattr(message, name), name
    assert (found.hops, found.trace_high, found.persistent) == (1, 5, True)
    assert found.expires_ns - world.context.now_ns == 60 * spool_kit.SECOND_NS
    assert found.ingress_ns == spool_kit.WALL_NS
