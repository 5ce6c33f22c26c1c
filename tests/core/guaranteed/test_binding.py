"""vpnrouter.core.guaranteed.endpoint: consumers come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, READ_ONLY, TOPIC_ENDPOINT
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from types import ModuleType

    from tests.core.guaranteed.spool_world import SpoolWorld


def refusal(world: SpoolWorld, kit: ModuleType, permission: int = CONSUME) -> str:
    """The reason for which the first endpoint refuses one more consumer."""
    queue = world.endpoints[0]
    with pytest.raises(Refused) as caught:
        queue.bind(kit.Sink(queue), permission, CONSUME)
    assert queue.counters.bind_failures[caught.value.reason] == 1
    return caught.value.reason


def test_max_bind_count(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Beyond it a bind is refused; who goes makes room."""
    queue = world.endpoint("q", max_bind_count=2)
    flow = world.bind(queue)
    world.bind(queue)
    assert refusal(world, spool_kit) == refusals.QUEUE_BINDS
    queue.unbind(flow, counts=False)
    queue.unbind(flow, counts=False)
    world.bind(queue)
    assert (queue.counters.bind_request_count, queue.counters.bind_success_count) == (4, 3)


def test_binds_to_a_topic_endpoint(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """It has its own strings."""
    queue = world.endpoint("t", kind=TOPIC_ENDPOINT, max_bind_count=0)
    assert refusal(world, spool_kit) == refusals.TOPIC_ENDPOINT_BINDS
    queue.settings.egress_enabled = False
    assert refusal(world, spool_kit) == refusals.TOPIC_ENDPOINT_SHUTDOWN
    queue.delete("gone")
    assert refusal(world, spool_kit) == refusals.UNKNOWN_TOPIC_ENDPOINT


def test_egress_disabled(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """No consumer is let in."""
    world.endpoint("q", egress_enabled=False)
    assert refusal(world, spool_kit) == refusals.QUEUE_SHUTDOWN


def test_flows_of_a_vpn_are_bounded(spool_kit: ModuleType) -> None:
    """`max_egress_flow_count` holds for queues and topic endpoints together."""
    world = spool_kit.SpoolWorld(max_egress_flow_count=2)
    queue = world.endpoint("q")
    flow = world.bind(queue)
    world.bind(world.endpoint("t", kind=TOPIC_ENDPOINT))
    assert refusal(world, spool_kit) == refusals.TOO_MANY_FLOWS
    queue.unbind(flow, counts=False)
    world.bind(queue)


def test_no_flow_binds_twice(world: SpoolWorld) -> None:
    """It would count twice."""
    queue = world.endpoint("q")
    flow = world.bind(queue)
    with pytest.raises(Refused, match=refusals.ALREADY_BOUND):
        queue.bind(flow, CONSUME, CONSUME)


def test_a_permission_that_does_not_reach(world: SpoolWorld, spool_kit: ModuleType) -> None:
    """Reading is not consuming."""
    world.endpoint("q")
    assert refusal(world, spool_kit, READ_ONLY) == refusals.PERMISSION_DENIED
