"""Guaranteed messages of a bridge whose receivers have selectors that are much work: no turn is long, none is lost."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.parking_lot import BLOCK, PARK, SKIP
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.subscriber import Subscription
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.publish_block import message_block

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)

MANY = 6
"""Receivers. The selector of each costs more than a turn for a message that is costly."""

BOUND = limits.TURN_WORK + limits.SELECTOR_LOOKED // 32 + 200
"""As in tests/core/amqp/test_selector_work.py."""

COSTLY = message_block(Properties(user_properties=[("k", "a" * 65_000)]))
LIGHT = message_block(Properties(user_properties=[("k", "ab")]))


class Selective:
    """A flow into a message VPN with queues that select, and with one that takes all, which may be shut."""

    def __init__(self, on_reject: int) -> None:
        self.pair = flow_pair.FlowPair(
            on_reject, {f"q{n}": "" for n in range(MANY)} | {"in": "t/>"}
        )
        core = self.core = self.pair.core
        for number in range(MANY):
            text = f"p{number} = 1 OR k LIKE '%a_b%' OR k LIKE '%a%b%'"
            there = parse_filter("t/>", SMF)
            queue = core.ends[f"q{number}"]
            core.vpn.subscribe(Subscription(there, queue, selector=parse_selector(text)))
        self.longest = 0
        self.jobs = 0
        self.pair.connect()
        self.run()

    def publish(self, *costly: bool, topic: str = "t/a") -> None:
        """Messages that are costly, or not."""
        for each in costly:
            self.pair.publish(topic, block=COSTLY if each else LIGHT)

    def _turn(self) -> None:
        # What nobody has counted yet as well.
        self.longest = max(self.longest, self.core.context.work + MEASURE.work())
        self.core.context.work = 0

    def come(self) -> None:
        """What was published arrives, each message in a turn."""
        for _ in range(20):
            self.pair.edge.sync()
            self.pair.to_edge()
            while self.pair.to_core(1):
                self._turn()

    def job(self) -> None:
        """One slice."""
        self.core.context.jobs.step()
        self.jobs += 1
        self._turn()

    def run(self) -> None:
        """Everything moves until nothing does."""
        core = self.core
        for _ in range(10_000):
            self.pair.edge.sync()
            core.sync()
            self._turn()
            moved = self.pair.to_edge()
            while self.pair.to_core(1):
                moved += 1
                self._turn()
            if len(core.context.jobs):
                self.job()
            elif not moved and not core.spool.busy and not self.pair.edge.spool.busy:
                return
        raise AssertionError("it does not end")

    def wait(self) -> None:
        """The time passes until what was refused is tried again."""
        core = self.core
        core.now_ns += 9 * SECOND_NS
        context = core.context
        context.now_ns = context.wall_ns = core.now_ns
        context.work = 0
        context.timers.run(core.now_ns)
        self._turn()

    def retry(self) -> None:
        """What was refused is tried again."""
        self.wait()
        self.run()

    def taken(self) -> list[int]:
        """What the queue has that takes all; the others have what was not costly."""
        return self.pair.received("in")


@pytest.mark.parametrize("policy", [BLOCK, PARK, SKIP])
def test_arrivals(policy: int) -> None:
    """They enter in order, each once, and are acknowledged."""
    one = Selective(policy)
    one.publish(True, False, True, True, False)
    one.run()
    assert one.taken() == [1, 2, 3, 4, 5]
    for number in range(MANY):
        assert one.pair.received(f"q{number}") == [2, 5]
    assert one.pair.received("lot") == []
    assert one.pair.edge.ends["out"].spooled_count == 0
    assert one.longest <= BOUND
    assert one.jobs > 3 * MANY // 2


def test_parked_ones() -> None:
    """Those of several lanes leave the lot when there is room, each lane in order, and what came behind them."""
    one = Selective(PARK)
    one.core.open("in", False)
    for topic in ("t/a", "t/b", "t/a", "t/b"):
        one.publish(True, False, topic=topic)
    one.run()
    assert one.pair.received("lot") == [1, 2, 3, 4, 5, 6, 7, 8]
    one.core.open("in", True)
    one.retry()
    assert sorted(one.taken()) == [1, 2, 3, 4, 5, 6, 7, 8]
    for lane in ((1, 2, 5, 6), (3, 4, 7, 8)):
        assert tuple(n for n in one.taken() if n in lane) == lane
    assert one.pair.received("lot") == []
    assert one.longest <= BOUND


def test_many_light_ones_in_one_turn() -> None:
    """Held messages that enter together share out what their selectors cost."""
    one = Selective(BLOCK)
    one.core.open("in", False)
    some = message_block(Properties(user_properties=[("k", "a" * 15_000)]))
    for _ in range(40):
        one.pair.publish(block=some)
    one.run()
    one.core.open("in", True)
    for _ in range(20):
        one.retry()
    assert one.taken() == list(range(1, 41))
    assert one.longest <= BOUND


def cut(one: Selective) -> None:
    """The link is lost, and there again."""
    one.pair.cut()
    one.pair.connect()


def leave(one: Selective) -> None:
    """The bridge ends its flow, and begins it anew."""
    one.pair.taker.stop(0, "")
    one.pair.flow.end()
    one.pair.flow = None
    one.pair.linked = False
    one.pair.connect()


def shut(one: Selective) -> None:
    """The message VPN takes it no more; it does later."""
    one.core.open("in", False)
    one.run()
    one.core.open("in", True)
    one.retry()


def deeper(one: Selective) -> None:
    """Another subscription with a selector comes."""
    queue = one.core.ends["q0"]
    there = parse_filter("t/*", SMF)
    one.core.vpn.subscribe(Subscription(there, queue, selector=parse_selector("k IS NOT NULL")))


@pytest.mark.parametrize("policy", [BLOCK, PARK])
@pytest.mark.parametrize("happens", [cut, leave, shut, deeper])
def test_what_happens_meanwhile(policy: int, happens: Any) -> None:
    """Nothing is lost, doubled or out of order."""
    one = Selective(policy)
    one.publish(True, True, False)
    one.come()
    one.job()
    assert one.taken() == []
    happens(one)
    one.run()
    one.retry()
    assert one.taken() == [1, 2, 3]
    assert not one.pair.taker.lanes.waiting
    assert one.core.context.barrier.counts["task"] == 0


def taken_away(one: Selective) -> None:
    """An operator takes the message away."""
    lot = one.pair.taker.lot
    first = next(iter(lot.ids.values()))
    lot.endpoint.settle(lot, first, 0)


def closed(one: Selective) -> None:
    """The lot is closed, and opened anew."""
    one.pair.taker.lot.close()
    one.pair.taker.lot = None
    one.pair.taker.lanes.parked.clear()
    one.pair.taker.flush()
    one.pair.taker.lot = flow_pair.ParkingLot(
        one.core.ends["lot"], "b", flow_pair.LOT_MOST, one.pair.taker.lanes, 0
    )


@pytest.mark.parametrize(
    ("happens", "left"), [(cut, [1, 2, 3]), (taken_away, [2, 3]), (closed, [1, 2, 3])]
)
def test_what_happens_to_a_parked_one(happens: Any, left: list[int]) -> None:
    """The rest of its lane goes on, in order."""
    one = Selective(PARK)
    one.core.open("in", False)
    one.publish(True, True, False)
    one.run()
    one.core.open("in", True)
    one.wait()
    one.job()
    assert one.taken() == []
    happens(one)
    one.run()
    one.retry()
    assert one.taken() == left
    assert one.pair.received("lot") == []
    assert one.core.context.barrier.counts["task"] == 0
