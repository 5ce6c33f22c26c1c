"""The receiving end of a link takes what it asked for, and nothing else."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, NO_ACCESS
from vpnrouter.topics.mapping import TopicMapping, add_prefix
from vpnrouter.wire.link import encode, frames

SPEC = importlib.util.spec_from_file_location("flow_links", Path(__file__).parent / "flow_links.py")
assert SPEC is not None
assert SPEC.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)


class Forged:
    """A bridge of yellow that asked for some topics, and a peer that sends what it likes."""

    def __init__(self, world: Any, filters: tuple[str, ...] = ("weather/>",), **terms: Any) -> None:
        self.world = world
        self.yellow = world.vpn("yellow", "core")
        world.vpn("blue", "edge")
        self.link = world.link(self.yellow, "edge", "blue", filters, terms=terms)
        self.client = world.client(self.yellow, "c")
        self.client.subscribe("#")

    def send(self, *topics: str, retain: bool = False) -> None:
        """One message for each topic, all in one piece."""
        extension = frames.Extension([], 1, retain=True) if retain else None
        for topic in topics:
            message = frames.Direct(topic.encode(), b"", topic.encode(), extension)
            self.link.accepted.outbox.control(encode.message(message))
        self.world.settle()

    def took(self) -> list[str]:
        """The topics that came in since the last look; the counters are in balance."""
        kit.balance(self.link)
        return [packet.topic.decode() for packet in self.client.take()]

    @property
    def refused(self) -> int:
        """Messages that nobody had asked for, as the bridge and its message VPN count them."""
        self.link.dialed.tally()
        count = self.link.half.record.counters.discarded_rx.counts.get("not-subscribed", 0)
        assert self.yellow.discards.counts.get("not-subscribed", 0) == count
        return int(count)


def test_what_nobody_asked_for(world: Any) -> None:
    """A topic outside of the bridge's subscriptions does not enter, however often it comes; the rest does."""
    it = Forged(world)
    it.send(
        "weather/a", "commands/shutdown", "weather/b", "commands/shutdown", "weather", "weather/a"
    )
    assert it.took() == ["weather/a", "weather/b", "weather/a"]
    assert it.refused == 3


def test_a_retained_message_that_nobody_asked_for(world: Any) -> None:
    """A retained message that the bridge did not ask for is not retained here."""
    it = Forged(world)
    it.send("forged/retained", "weather/now", retain=True)
    late = world.client(it.yellow, "late")
    late.subscribe("#")
    assert [packet.topic for packet in late.take()] == [b"weather/now"]
    assert it.refused == 1


def test_a_queue_is_no_topic_of_everybody(world: Any) -> None:
    """A bridge that asked for everything still gets no message that names a queue here."""
    sea = kit.Sea(world)
    it = Forged(world, (">",))
    queue = sea.queue(it.yellow, "q")
    it.send("$queue/q", "a")
    sea.settle()
    assert kit.contents(queue) == []
    assert it.refused == 1


def test_an_exception_is_not_asked_for(world: Any) -> None:
    """What the bridge excepted does not enter by the word of the peer."""
    it = Forged(world, ("!secret/>", ">"))
    it.send("secret/x", "open/x")
    assert it.took() == ["open/x"]
    assert it.refused == 1


def test_what_is_dropped_counts_until_the_peer_has_answered(world: Any) -> None:
    """What was on the way when a subscription went is taken; behind the answer it is not."""
    it = Forged(world, ("a", "b"))
    link = it.link
    world.links.clear()
    link.half.want([(0, "b")], {})
    for topic in ("a", "b"):
        link.accepted.outbox.control(encode.message(frames.Direct(topic.encode(), b"", b"")))
    link.wire.pump()
    assert it.took() == ["a", "b"]
    world.links.append(link)
    world.settle()
    it.send("a", "b", "a")
    assert it.took() == ["b"]
    assert it.refused == 2


def test_what_is_added_counts_at_once(world: Any) -> None:
    """A topic that was refused before is taken as soon as it is asked for."""
    it = Forged(world, ("a",))
    it.send("b")
    it.link.half.want([(0, "a"), (0, "b/>"), (0, "b")], {})
    world.settle()
    it.send("b", "b/c", "c")
    assert it.took() == ["b", "b/c"]
    assert it.refused == 2


def test_a_shared_subscription_is_asked_for(world: Any) -> None:
    """The share's name is no part of the topics that it attracts."""
    it = Forged(world, ("#share/g/a/>",))
    it.send("a/b", "b/a")
    assert it.took() == ["a/b"]


def test_names_before_the_mapping_count(world: Any) -> None:
    """What is renamed here was asked for by the name that it has on the link."""
    it = Forged(world, ("a/>",), mapping=TopicMapping([add_prefix("far/", 0)]))
    it.send("a/b", "far/a/b", "b")
    assert it.took() == ["far/a/b"]
    assert it.refused == 2


def test_long_topics_are_judged_and_not_remembered(world: Any) -> None:
    """Memory of answers is bounded in bytes: a peer cannot fill it with long topics."""
    it = Forged(world)
    long = "weather/" + "x" * limits.ROUTE_CACHE_TOPIC_BYTES
    it.send(long, "no" + long)
    assert it.took() == [long]
    assert it.refused == 1
    assert it.link.dialed.sink.permitted == {}


@pytest.mark.parametrize(
    ("name", "permission", "enters"),
    [("in", NO_ACCESS, False), ("in", CONSUME, True), ("out", NO_ACCESS, True)],
)
def test_a_guaranteed_message_for_a_queue(
    world: Any, name: str, permission: int, enters: bool
) -> None:
    """A message enters the queue that it names where that has the remote queue's name, or is open to all; else it is
    discarded, and gone from the remote queue.
    """
    two = kit.Two(world)
    queue = two.into if name == "in" else two.sea.queue(two.yellow, "out")
    queue.settings.permission = permission
    forged = frames.Guaranteed(
        two.taker.flow_id, 10_000, 2, 4, frames.Direct(f"$queue/{name}".encode(), b"", b"1")
    )
    two.link.accepted.outbox.control(encode.guaranteed_message(forged))
    two.sea.settle()
    assert kit.contents(queue) == ([b"1"] if enters else [])
    counters = kit.balance(two.link)
    assert counters.discarded_rx.counts == ({} if enters else {"not-subscribed": 1})
    assert two.taker.taken == 1
