"""vpnrouter.core.guaranteed.dispatch: who gets what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.flow import FAILED, RELEASED
from vpnrouter.core.guaranteed.unit_of_work import SPOOLED

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld


def fill(world: SpoolWorld, count: int, topic: str = "a/b", first: int = 0) -> list[bytes]:
    """Publish and commit numbered messages; their payloads."""
    payloads = [b"%04d" % number for number in range(first, first + count)]
    for payload in payloads:
        assert world.publish(topic, payload) == SPOOLED
    world.commit()
    return payloads


def test_exclusive(world: SpoolWorld) -> None:
    """The first flow gets all; the next takes over in its order and is told so, with what came back."""
    queue = world.endpoint("q", "a/#")
    first, second, third = (world.bind(queue, name) for name in "abc")
    assert [flow.turns for flow in (first, second, third)] == [[True], [], []]
    payloads = fill(world, 4)
    assert (first.counts(), second.sent, third.sent) == ([0, 0, 0, 0], [], [])
    first.settle(b"0000")
    queue.unbind(third, counts=False)
    queue.unbind(first, counts=True)
    world.commit()
    assert second.turns == [True]
    assert [(payload, count) for _, payload, count in second.sent] == [
        (payload, 1) for payload in payloads[1:]
    ]
    queue.unbind(second, counts=False)
    fourth = world.bind(queue)
    world.commit()
    assert fourth.counts() == [1, 1, 1], "what does not count leaves the count"


def test_a_released_message_says_that_it_may_have_been_seen(world: SpoolWorld) -> None:
    """Not counted, but flagged."""
    queue = world.endpoint("q", "a/#")
    flow = world.bind(queue)
    fill(world, 1)
    flow.settle_all(RELEASED)
    world.commit()
    assert flow.counts() == [0, -1]


def test_non_exclusive_takes_turns_within_windows(world: SpoolWorld) -> None:
    """Each in turn, while it has room; what has none waits, and goes to whom is first to have some."""
    queue = world.endpoint("q", "a/#", exclusive=False)
    wide = world.bind(queue, "wide", 100)
    narrow = world.bind(queue, "narrow", 2)
    fill(world, 8)
    assert wide.payloads() == [b"0000", b"0002", b"0004", b"0005", b"0006", b"0007"]
    assert narrow.payloads() == [b"0001", b"0003"]
    wide.window = 6
    fill(world, 2, first=8)
    assert (wide.sent, narrow.sent) == ([], [])
    assert narrow.window_closed > 0
    narrow.settle(b"0001")
    world.commit()
    assert narrow.payloads() == [b"0008"]
    assert [wide.delivered, narrow.delivered] == [6, 3]


def test_max_delivered_unacked(world: SpoolWorld) -> None:
    """`max_delivered_unacked_msgs_per_flow` holds whatever window the consumer has."""
    queue = world.endpoint("q", "a/#", max_delivered_unacked_msgs_per_flow=3)
    flow = world.bind(queue)
    fill(world, 5)
    assert len(flow.payloads()) == 3
    flow.settle(b"0001")
    world.commit()
    assert flow.payloads() == [b"0003"]


def test_what_comes_back_takes_its_old_place(world: SpoolWorld) -> None:
    """First in, first out, also for what was tried before."""
    queue = world.endpoint("q", "a/#")
    flow = world.bind(queue, window=3)
    fill(world, 6)
    flow.payloads()
    flow.settle(b"0001", FAILED)
    flow.settle(b"0000", RELEASED)
    flow.settle(b"0002")
    world.commit()
    assert flow.payloads() == [b"0000", b"0001", b"0003"]


def test_selectors(world: SpoolWorld) -> None:
    """A flow with a selector gets what matches, in order; the rest waits for others."""
    queue = world.endpoint("q", "a/#", exclusive=False)
    red = world.bind(queue, "red", 2, "colour = 'red'")
    for number in range(8):
        world.publish("a", b"%d" % number, colour="red" if number % 2 else "blue")
    world.commit()
    assert red.payloads() == [b"1", b"3"]
    red.settle(b"1")
    world.commit()
    assert red.payloads() == [b"5"]
    # What comes back is looked at again, though later ones were passed already.
    red.settle(b"3", FAILED)
    world.commit()
    assert red.payloads() == [b"3"]
    other = world.bind(queue, "all")
    world.commit()
    assert other.payloads() == [b"0", b"2", b"4", b"6", b"7"]
    other.settle(b"0", FAILED)
    other.settle(b"7", FAILED)
    queue.unbind(other, counts=False)
    red.settle_all()
    world.commit()
    assert red.payloads() == [b"7"]
    assert queue.spooled_count == 5


def test_a_selector_looks_at_a_bounded_number_each_round(world: SpoolWorld) -> None:
    """Many messages that do not match do not hold up the router."""
    queue = world.endpoint("q", "a/#", exclusive=False)
    for _ in range(2_500):
        world.publish("a", b"x", colour="blue")
    world.publish("a", b"last", colour="red")
    world.commit()
    red = world.bind(queue, "red", 2, "colour = 'red'")
    world.store.commit(world.seal())  # type: ignore[arg-type]
    world.spool.committed()
    rounds = 0
    while not red.sent:
        batch = world.seal()
        if batch is not None:
            world.store.commit(batch)
            world.spool.committed()
        rounds += 1
        assert rounds < 30
    assert rounds >= 2
    assert red.payloads() == [b"last"]


def test_a_selector_on_an_exclusive_queue(world: SpoolWorld) -> None:
    """What the active flow does not want stays, also from those who stand by."""
    queue = world.endpoint("q", "a/#")
    red = world.bind(queue, "red", 10, "colour = 'red'")
    standby = world.bind(queue, "standby")
    world.publish("a", b"blue", colour="blue")
    world.publish("a", b"red", colour="red")
    world.commit()
    assert (red.payloads(), standby.payloads()) == ([b"red"], [])
    queue.unbind(red, counts=False)
    world.commit()
    assert standby.payloads() == [b"blue", b"red"]


def test_priorities(world: SpoolWorld) -> None:
    """9 first, by arrival within one; above 9 is 9, none is 4; also for a flow with a selector."""
    queue = world.endpoint("q", "a/#", respect_msg_priority_enabled=True, exclusive=False)
    plain = world.endpoint("plain", "a/#")
    for priority in ("1", "", "9", "200", "4", "0", "x"):
        world.publish("a", priority.encode(), priority=priority, colour="red")
    world.commit()
    wanted = [b"9", b"200", b"", b"4", b"x", b"1", b"0"]
    flow = world.bind(queue, "red", 7, "colour = 'red'")
    world.commit()
    assert flow.payloads() == wanted
    queue.unbind(flow, counts=False)
    flow = world.bind(queue, window=2)
    world.commit()
    assert flow.payloads() == wanted[:2]
    world.publish("a", b"late", priority="8")
    world.commit()
    flow.settle_all()
    world.commit()
    assert flow.payloads() == [b"late", b""]
    in_order = world.bind(plain)
    world.commit()
    assert in_order.payloads()[:3] == [b"1", b"", b"9"]
