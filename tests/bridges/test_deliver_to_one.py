"""A message for one consumer, where some of the consumers are behind bridges."""

from typing import Any

import pytest

from vpnrouter.wire.mqtt.properties import Properties

ONE = Properties(user_properties=[("deliver-to-one", "true")])


class Spread:
    """blue on edge, and bridges of these priorities to VPNs with one subscriber each; 0 is `da`."""

    def __init__(self, world: Any, *priorities: int) -> None:
        self.world = world
        self.blue = world.vpn("blue", "edge")
        self.far = []
        self.links = []
        for number, priority in enumerate(priorities):
            local = world.vpn(f"v{number}", f"r{number}")
            link = world.link(local, "edge", "blue", [])
            link.half.want([(priority << 1, ">")], {})
            world.settle()
            subscriber = world.client(local, "s")
            subscriber.subscribe("#")
            self.far.append(subscriber)
            self.links.append(link)
        self.publisher = world.client(self.blue, "p")

    def spread(self, count: int) -> list[int]:
        """How many of these messages for one consumer came to each of the far subscribers."""
        for number in range(count):
            self.publisher.publish("a", b"%d" % number, properties=ONE)
        return [len(subscriber.take()) for subscriber in self.far]


@pytest.mark.parametrize(
    ("priorities", "got"),
    [
        ((1, 2), [6, 0]),
        ((4, 3), [0, 6]),
        ((2, 2), [3, 3]),
        ((1, 1, 4), [3, 3, 0]),
        ((0, 1), [6, 6]),
        ((0, 0), [6, 6]),
        ((4,), [6]),
    ],
)
def test_the_best_priority_gets_it(world: Any, priorities: tuple[int, ...], got: list[int]) -> None:
    """One of the links of the best priority, in turn; `da` gets its copy in any case."""
    assert Spread(world, *priorities).spread(6) == got


def test_a_local_consumer_comes_first(world: Any) -> None:
    """While a consumer of the VPN itself can take it nothing goes over a link, but what `da` attracts."""
    spread = Spread(world, 1, 0)
    near = world.client(spread.blue, "near")
    near.subscribe("a")
    assert spread.spread(4) == [0, 4]
    assert len(near.take()) == 4


def test_a_link_that_is_gone(world: Any) -> None:
    """When the best link is gone the next best one gets it."""
    spread = Spread(world, 1, 2)
    assert spread.spread(2) == [2, 0]
    spread.links[0].accepted.goodbye(0x98, "503 Disconnected By Administrator")
    world.settle()
    assert spread.spread(2) == [0, 2]


def test_it_is_for_one_there_too(world: Any) -> None:
    """Behind the link it is for one consumer still."""
    spread = Spread(world, 1)
    second = world.client(spread.links[0].dialed.vpn, "s2")
    second.subscribe("#")
    (first,) = spread.spread(6)
    assert (first, len(second.take())) == (3, 3)


def test_not_back_over_the_link_it_came_by(world: Any) -> None:
    """A message for one consumer that came over a connection does not go back over it."""
    spread = Spread(world, 1)
    link = spread.links[0]
    world.bridge(spread.blue, link.accepted, "v0")
    publisher = world.client(link.dialed.vpn, "p")
    near = world.client(spread.blue, "near")
    publisher.publish("a", b"x", properties=ONE)
    assert spread.far[0].payloads() == [b"x"]
    assert near.take() == []
    assert spread.blue.discards.counts.get("loop-detected", 0) == 0
