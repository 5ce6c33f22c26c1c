"""vpnrouter.core.guaranteed.dead_letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed.dead_letters import addressed, sources
from vpnrouter.core.guaranteed.flow import REJECTED
from vpnrouter.wire.mqtt.properties import (
    Properties,
    encode_block,
    selector_properties,
    with_user_properties,
)
from vpnrouter.wire.mqtt.publish_block import without_expiry

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def reject_one(world: SpoolWorld, **properties: str) -> None:
    """A consumer of the first endpoint refuses one message."""
    queue = world.endpoints[0]
    flow = world.bind(queue)
    world.publish("a", b"letter", **properties)
    world.commit()
    flow.settle(b"letter", REJECTED)
    world.commit()
    queue.unbind(flow, counts=False)


def test_a_dead_letter(world: SpoolWorld) -> None:
    """It keeps its topic and says why and whence; moving it is one step of the store."""
    world.endpoint("q", "a")
    world.endpoint("#DEAD_MSG_QUEUE")
    reject_one(world, colour="red")
    queue, dead = world.restart()
    assert (queue.spooled_count, dead.spooled_count) == (0, 1)
    flow = world.bind(dead)
    world.commit()
    (message,) = flow.unacked.values()
    assert message.topic == b"a"
    assert message.properties() == {
        "JMSDeliveryMode": "PERSISTENT",
        "JMSDestination": "a",
        "JMSPriority": 4,
        "colour": "red",
        "dead-letter-reason": "rejected",
        "dead-letter-queue": "q",
    }


def test_without_a_dead_message_queue(world: SpoolWorld) -> None:
    """Discarded, and counted."""
    queue = world.endpoint("q", "a")
    reject_one(world)
    assert queue.counters.discarded.counts == {"rejected": 1}
    assert (queue.counters.to_dmq, queue.counters.to_dmq_failed) == ({}, {})


@pytest.mark.parametrize(("respect", "dead_count"), [(True, 0), (False, 1)])
def test_eligibility(world: SpoolWorld, *, respect: bool, dead_count: int) -> None:
    """A message that is not eligible stays out where the endpoint respects that."""
    world.endpoint("q", "a", respect_dmq_eligible_enabled=respect)
    dead = world.endpoint("#DEAD_MSG_QUEUE")
    reject_one(world, dmq_eligible="false")
    assert dead.spooled_count == dead_count
    reject_one(world)
    assert dead.spooled_count == dead_count + 1


@pytest.mark.parametrize(
    "settings", [{"max_spooled_msg_count": 1}, {"ingress_enabled": False}, {"max_msg_size": 1}]
)
def test_a_dead_message_queue_without_room(world: SpoolWorld, settings: dict[str, int]) -> None:
    """Discarded, and counted as failed."""
    queue = world.endpoint("q", "a")
    dead = world.endpoint("#DEAD_MSG_QUEUE")
    world.publish("$queue/q", b"1")
    flow = world.bind(queue)
    world.commit()
    flow.settle_all(REJECTED)
    queue.unbind(flow, counts=False)
    assert dead.spooled_count == 1
    for name, value in settings.items():
        setattr(dead.settings, name, value)
    reject_one(world)
    assert dead.spooled_count == 1
    assert queue.counters.to_dmq_failed == {"rejected": 1}
    assert queue.counters.discarded.counts == {"rejected": 1}
    dead.settings.ingress_enabled = True


def test_two_queues_that_name_each_other(world: SpoolWorld) -> None:
    """A letter never comes back to one that gave it up; properties do not grow for ever."""
    first = world.endpoint("p", "a", dead_msg_queue="q")
    second = world.endpoint("q", dead_msg_queue="p")
    alone = world.endpoint("self", "b", dead_msg_queue="self")
    reject_one(world)
    assert second.spooled_count == 1
    flow = world.bind(second)
    world.commit()
    flow.settle_all(REJECTED)
    world.commit()
    assert (first.spooled_count, second.spooled_count) == (0, 0)
    assert second.counters.discarded.counts == {"rejected": 1}
    world.publish("b")
    flow = world.bind(alone)
    world.commit()
    flow.settle_all(REJECTED)
    assert alone.spooled_count == 0


def test_properties() -> None:
    """The old reason and the old life time go, sources stay once each, everything else is as it was."""
    block = encode_block(
        Properties(
            content_type="text",
            response_topic="r",
            correlation_data=b"dead-letter-",
            payload_format_indicator=1,
            message_expiry_interval=7,
        )
    )
    block = with_user_properties(block, [("k", "v")])
    once = addressed(block, "rejected", "q")
    block = without_expiry(block)
    assert once.startswith(block)
    assert (sources(block), sources(once)) == ([], ["q"])
    again = addressed(once, "max-ttl-expired", "q")
    assert len(again) - len(once) == len("max-ttl-expired") - len("rejected")
    other = addressed(again, "rejected", "p")
    assert sources(other) == ["q", "p"]
    assert other.startswith(block)
    assert selector_properties(b"t", other)["dead-letter-reason"] == "rejected"
