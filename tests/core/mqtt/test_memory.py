"""The memory that MQTT clients make the router hold: each kind of it is bounded, and given back."""

from __future__ import annotations

import gc
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.mqtt.packets import Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.mqtt.spooled import SpooledWorld

BOUND = 400_000
LARGE = 50_000

QUOTA = 0x97


@pytest.fixture
def world(spooled: ModuleType) -> SpooledWorld:
    """A router whose clients may hold BOUND bytes each."""
    profile = ClientProfile("default", max_memory_bytes=BOUND)
    made: SpooledWorld = spooled.SpooledWorld(vpn={"profile": profile})
    made.queue("far")
    return made


def part(client: Any, number: int) -> None:
    """A packet that is never finished."""
    if number == 0:
        client.raw(b"\x30\xff\xff\xff\x01")
    client.raw(bytes(LARGE))


def aliases(client: Any, number: int) -> None:
    """Topic aliases for very long topics."""
    client.publish("t" * LARGE, properties=Properties(topic_alias=number + 1))


def filters(client: Any, number: int) -> None:
    """Subscriptions with very long topic filters."""
    client.send(Subscribe(1, [SubscriptionRequest(f"{number}" + "f" * LARGE, 0)]))


def levels(client: Any, number: int) -> None:
    """Subscriptions with very many levels."""
    text = "/".join([f"{number}"] * 128)
    client.send(Subscribe(1, [SubscriptionRequest(text, 0)]))


def consumer(client: Any, number: int) -> None:
    """Messages of a queue that are taken and not acknowledged."""
    if number == 0:
        client.send(Subscribe(1, [SubscriptionRequest("$queue/far", 1)]))
    client.got()


def browser(client: Any, number: int) -> None:
    """Messages of a queue that are looked at and not acknowledged."""
    if number == 0:
        client.send(Subscribe(1, [SubscriptionRequest("$browse/far", 1)]))
    client.got()
    client.world.advance(0.1)


def own(client: Any, number: int) -> None:
    """Messages of its own subscription that are not acknowledged."""
    if number == 0:
        client.send(Subscribe(1, [SubscriptionRequest("own", 1)]))
    client.got()


def _selects(client: Any, number: int, filter_: str) -> None:
    """Consumers with long selectors, which are all different."""
    client.world.queue(f"{filter_[1:6]}{number}")
    text = " OR ".join([f"a = {number}", *["b = 1"] * 800])
    wish = Properties(user_properties=[("selector", text)])
    queue = f"{filter_}/{filter_[1:6]}{number}"
    client.send(Subscribe(1, [SubscriptionRequest(queue, 1)], wish))


def selectors_of_queues(client: Any, number: int) -> None:
    """Consumers of queues with long selectors."""
    _selects(client, number, "$queue")


def selectors_of_browsers(client: Any, number: int) -> None:
    """Browsers with long selectors."""
    _selects(client, number, "$browse")


KINDS: dict[Callable[[Any, int], None], str] = {
    part: "closed",
    aliases: "closed",
    filters: "refused",
    levels: "refused",
    consumer: "waits",
    browser: "waits",
    own: "waits",
    selectors_of_queues: "refused",
    selectors_of_browsers: "refused",
}
"""What is held → what happens beyond the bound."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kinds(world: SpooledWorld, kind: Callable[[Any, int], None]) -> None:
    """What one client holds, of any kind, is bounded and given back, and its neighbour notices nothing."""
    memory = world.vpn().memory
    neighbour: Any = world.connect("neighbour", peer="192.0.2.2")
    neighbour.sub("near", 0)
    for number in range(20):
        neighbour.pub("$queue/far", bytes(LARGE), pid=number + 1)
        neighbour.got()
    client: Any = world.connect("greedy")
    most = 0
    refused = 0
    for number in range(20):
        if client.closed:
            break
        kind(client, number)
        most = max(most, memory.held)
        assert memory.held <= BOUND
        neighbour.pub("own", bytes(LARGE), pid=1)
        neighbour.got()
        neighbour.publish("near", b"x")
        assert neighbour.take() == [b"x"]
        world.settle()
        if KINDS[kind] == "refused":
            refused += sum(
                QUOTA in one.reason_codes for one in client.got() if isinstance(one, Suback)
            )
    assert most > BOUND // 4
    if KINDS[kind] == "closed":
        assert client.reason() == QUOTA
    else:
        assert not client.closed
    assert (refused > 0) == (KINDS[kind] == "refused")
    assert not neighbour.closed
    client.lose()
    neighbour.lose()
    world.settle()
    assert (memory.held, memory.lasting, memory.unreturned) == (0, 0, 0)
    assert world.router.context.memory.held == 0


@pytest.mark.parametrize("topic", ["$queue/far", "kept"])
def test_what_waits_keeps_nothing_of_its_publisher(world: SpooledWorld, topic: str) -> None:
    """A session with all its state goes when it ends, also while messages wait that it published, or are retained."""

    def sessions() -> int:
        gc.collect()
        return sum(isinstance(one, MqttSession) for one in gc.get_objects())

    before = sessions()
    for number in range(20):
        client: Any = world.connect(f"c{number}")
        client.pub(topic, b"%d" % number, pid=1, retain=topic == "kept")
        client.got()
        client.lose()
    world.settle()
    del client
    assert sessions() == before
