"""The guaranteed flow of a bridge over real links: once, in order, in balance, both ways, changed while it runs."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.bridges.remote_settings import FlowSettings

SPEC = importlib.util.spec_from_file_location("flow_links", Path(__file__).parent / "flow_links.py")
assert SPEC is not None
assert SPEC.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)

BLOCK, PARK, SKIP = 0, 1, 2


@pytest.fixture
def two(world: Any) -> Any:
    """As above, with what a bridge does by default."""
    return kit.Two(world)


def test_across(two: Any) -> None:
    """In order and once; counted as messages at both ends, and the remote queue is empty."""
    for _ in range(20):
        two.publish()
    assert two.crossed() == list(range(1, 21))
    assert kit.contents(two.out) == []
    assert two.told("bound", "unbound", "stalled") == [("bound", "")]
    counters = kit.balance(two.link)
    assert (counters.data_rx_msg_count, counters.delivered_rx_msg_count) == (20, 20)
    (record,) = two.world.book("edge").records.values()
    assert record.counters.data_tx_msg_count == 20
    assert record.counters.data_tx_byte_count == counters.data_rx_byte_count > 0


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "zstd"])
def test_with_direct_messages_in_between(world: Any, compress: bool) -> None:
    """Both kinds cross the same link, in pieces as they come, and each keeps its order."""
    two = kit.Two(world, piece=7, terms={"compress": compress})
    watcher = world.client(two.yellow, "w")
    watcher.subscribe("d/#")
    publisher = world.client(two.blue, "p")
    for number in range(10):
        two.publish()
        publisher.publish("d/x", b"%d" % number)
    assert two.crossed() == list(range(1, 11))
    assert watcher.payloads() == [b"%d" % number for number in range(10)]
    assert kit.balance(two.link).data_rx_msg_count == 20


def test_the_message_and_its_position_are_in_one_commit(two: Any) -> None:
    """Whatever breaks after the commit, the store knows both or none (LINK-49)."""
    two.publish()
    two.crossed()
    commits = [(b"m" in kinds, b"b" in kinds) for name, kinds in two.sea.commits if name == "core"]
    assert (True, True) in commits
    assert (True, False) not in commits


@pytest.mark.parametrize("lost_in", range(6))
def test_once_over_lost_connections(two: Any, lost_in: int) -> None:
    """Cut at any moment of the way, everything comes once, and nothing is left to remember."""
    for _ in range(5):
        two.publish()
    for step in range(lost_in):
        if step % 2:
            two.link.wire.pump()
        else:
            two.sea.sync()
    two.again()
    two.publish()
    assert two.crossed() == [1, 2, 3, 4, 5, 6]
    assert kit.contents(two.out) == []
    assert two.sea.stores["core"].get(b"byellow\0b") is None


def test_held_while_a_queue_takes_nothing(two: Any) -> None:
    """HOLD: the head waits, and all behind it; it is in flight, and goes on as soon as there is room."""
    two.open(False)
    for _ in range(3):
        two.publish()
    assert two.crossed() == []
    assert two.told("stalled") == [("stalled", "503 Queue Shutdown")]
    assert two.half.in_flight == 3
    assert kit.balance(two.link).data_rx_msg_count == 3
    assert kit.contents(two.out) == [b"1", b"2", b"3"]
    two.open(True)
    two.sea.wait(1.1)
    assert two.crossed() == [1, 2, 3]
    assert two.told("stalled", "released")[-1] == ("released", "")
    assert two.half.in_flight == 0


def test_what_is_held_when_the_connection_goes_is_the_queues(two: Any) -> None:
    """Counted as returned, not as lost, and not as in flight any more; it comes again."""
    two.open(False)
    two.publish()
    two.crossed()
    record = two.half.record
    kit.cut(two.link)
    assert record.counters.discarded_rx.counts == {"returned-to-remote-queue": 1}
    assert record.counters.rx_imbalance(0) == 0
    assert "returned-to-remote-queue" not in two.yellow.discards.counts
    two.open(True)
    two.link = two.sea.link(two.yellow, "edge", "blue", "out", taker=two.taker)
    assert two.crossed() == [1]


def test_what_nobody_wants(two: Any) -> None:
    """Discarded once, in the counts of the bridge and of the message VPN; the queue has done with it."""
    two.into.settings.reject_behavior = 0
    two.yellow.drop(two.into)
    two.publish()
    assert two.crossed() == []
    assert kit.contents(two.out) == []
    assert kit.balance(two.link).discarded_rx.counts == {"no-subscription-match": 1}


def test_too_many_hops(world: Any) -> None:
    """What may not enter is discarded here, for its reason, and settled there."""
    two = kit.Two(world, terms={"flow": FlowSettings(max_ttl=1)})
    two.publish(hops=3, path=["r/1", "r/2", "r/3"])
    assert two.crossed() == []
    assert kit.balance(two.link).discarded_rx.counts == {"ttl-exceeded": 1}
    assert two.yellow.discards.counts == {"ttl-exceeded": 1}
    assert kit.contents(two.out) == []


def test_what_went_in_a_circle_is_not_sent(two: Any) -> None:
    """The sender discards and counts what has been where the link leads."""
    two.publish(path=["core/yellow"], hops=1)
    assert two.crossed() == []
    (record,) = two.world.book("edge").records.values()
    assert record.counters.discarded_tx.counts == {"loop-detected": 1}
    assert kit.contents(two.out) == []


def test_traced_messages(world: Any) -> None:
    """A traced message leaves a send event there and a receive event here, as persistent."""
    two = kit.Two(world)
    for router in world.routers.values():
        router.context.tracing = True
    two.publish(trace_high=1, trace_low=2)
    two.publish()
    two.crossed()
    (sent,) = [event for event in world.traces("edge") if event.event == "bridge_send"]
    (came,) = [event for event in world.traces("core") if event.event == "bridge_receive"]
    assert sent.trace == came.trace == 1 << 64 | 2
    assert (sent.context.mode, came.context.mode) == (2, 2)
    assert (sent.context.peer_vpn, came.context.peer_vpn) == ("yellow", "blue")


def test_park_lets_other_lanes_pass(world: Any) -> None:
    """What is refused is set aside in the spool and acknowledged; it enters later, before its lane goes on."""
    two = kit.Two(world, flow={"on_reject": PARK})
    other = two.sea.queue(two.yellow, "other", "t/b")
    two.open(False)
    two.yellow.drop(two.into)
    two.yellow.subscribe(kit.Subscription(kit.parse_filter("t/a", kit.SMF), two.into))
    two.publish("t/a")
    two.publish("t/b")
    two.publish("t/a")
    assert two.crossed() == []
    assert kit.contents(other) == [b"2"]
    assert kit.contents(two.out) == []
    assert two.taker.lot.endpoint.spooled_count == 2
    assert two.told("stalled") == []
    two.open(True)
    two.sea.wait(1.1)
    assert two.crossed() == [1, 3]
    assert two.taker.lot.endpoint.spooled_count == 0


def test_skip_gives_to_the_dead_message_queue_there(world: Any) -> None:
    """Counted as refused here; the remote queue's dead message queue has it."""
    two = kit.Two(world, flow={"on_reject": SKIP})
    dead = two.sea.queue(two.blue, "#DEAD_MSG_QUEUE")
    two.open(False)
    two.publish(dmq_eligible=True)
    two.sea.settle()
    two.open(True)
    two.publish()
    assert two.crossed() == [2]
    assert kit.contents(dead) == [b"1"]
    assert kit.balance(two.link).discarded_rx.counts == {"refused": 1}
