import importlib.util
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.parking_lot import (
    BLOCK,
    ENTERED,
    LATER,
    PARK,
    REFUSED,
    SKIP,
    LaneActions,
    LaneOrder,
)
from vpnrouter.core.discard_reasons import TOPIC_PARSE_ERROR
from vpnrouter.core.vpn import VpnLimits


class Model(LaneActions):
    """A message VPN that refuses some lanes, a lot with some room, and a note of what went where.

    Of lanes that are `slow` it has to be found out first who wants a message, one at a time: `asked` is the one, and
    `known` says that it has been found out.
    """

    def __init__(self) -> None:
        self.shut: set[int] = set()
        self.room = 0
        self.down = False
        self.lane_of: dict[int, int] = {}
        self.lot: dict[int, int] = {}
        self.entered: list[int] = []
        self.given_back: list[int] = []
        self.slow: set[int] = set()
        self.asked = 0
        self.held = False
        self.known = False

    def enter(self, position: int) -> int:
        return self._enter(position, held=True)

    def _enter(self, position: int, *, held: bool) -> int:
        if self.known and self.asked == position:
            self.asked = 0
            self.known = False
        elif self.lane_of[position] in self.slow and not self.down:
            if not self.asked:
                self.asked = position
                self.held = held
            return LATER
        if self.down or self.lane_of[position] in self.shut:
            return REFUSED
        self.entered.append(position)
        return ENTERED

    def find_out(self, lanes: LaneOrder) -> None:
        """It is known who wants the message that was asked about."""
        self.known = self.asked > 0
        lanes.go_on(held=self.held)
        if self.known:
            # It entered before that was known.
            self.known = False
            self.asked = 0
            lanes.go_on(held=False)

    def park(self, position: int, number: int) -> bool:
        if self.down or len(self.lot) >= self.room:
            return False
        self.lot[number] = position
        return True

    def skip(self, position: int) -> bool:
        if self.down:
            return False
        self.given_back.append(position)
        return True

    def leave(self, number: int) -> int:
        answer = self._enter(self.lot[number], held=False)
        if answer == ENTERED:
            del self.lot[number]
        return answer


EVENTS = st.lists(
    st.one_of(
        [
            st.tuples(st.just("message"), st.integers(0, 2)),
            st.tuples(st.just("shut"), st.integers(0, 2)),
            st.tuples(st.just("open"), st.integers(0, 2)),
            st.tuples(st.just("room"), st.integers(0, 5)),
            st.tuples(st.just("down"), st.integers(0, 1)),
            st.tuples(st.just("retry"), st.just(0)),
            st.tuples(st.just("slow"), st.integers(0, 2)),
            st.tuples(st.just("fast"), st.integers(0, 2)),
            st.tuples(st.just("known"), st.just(0)),
        ],
    ),
    max_size=80,
)


@settings(max_examples=400, deadline=None)
@given(policy=st.sampled_from((BLOCK, PARK, SKIP)), events=EVENTS)
def test_order_within_a_lane_and_nothing_lost(policy: int, events: list[tuple[str, int]]) -> None:
    """Whatever is refused when: each message is in one place, and lanes keep their order."""
    model = Model()
    lanes = LaneOrder(model, policy)
    position = 0
    end = [("room", 99), ("down", 0), ("end", 0), ("retry", 0)]
    for what, number in [*events, *end, *[("known", 0)] * (len(events) + 1)]:
        if what == "message":
            position += 1
            model.lane_of[position] = number
            lanes.arrive(position, number)
        elif what == "shut":
            model.shut.add(number)
        elif what == "open":
            model.shut.discard(number)
        elif what == "room":
            model.room = number
        elif what == "down":
            model.down = number == 1
        elif what == "slow":
            model.slow.add(number)
        elif what == "fast":
            model.slow.discard(number)
        elif what == "known":
            model.find_out(lanes)
        elif what == "end":
            model.shut.clear()
        else:
            lanes.retry()
        held = [n for n, _ in lanes.held]
        everywhere = model.entered + model.given_back + list(model.lot.values()) + held
        assert sorted(everywhere) == list(range(1, position + 1))
        if policy == BLOCK:
            assert model.entered + held == list(range(1, position + 1))
        for lane in range(3):
            order = [n for n in model.entered if model.lane_of[n] == lane]
            order += [n for n in model.lot.values() if model.lane_of[n] == lane]
            order += [n for n in held if model.lane_of[n] == lane]
            assert order == sorted(order)
        assert lanes.waiting == bool(held or model.lot)
    assert not lanes.waiting
    assert policy == SKIP or not model.given_back


def test_what_was_parked_before_a_restart_goes_first() -> None:
    """Found again in the lot, in order; what an operator took away holds nothing up."""
    model = Model()
    model.room = 9
    lanes = LaneOrder(model, PARK)
    for position in (1, 2):
        model.lane_of[position] = 7
        model.lot[lanes.found(7)] = position
    model.lane_of[3] = 7
    lanes.arrive(3, 7)
    first = next(iter(model.lot))
    del model.lot[first]
    lanes.removed(7, first)
    lanes.retry()
    assert model.entered == [2, 3]
    assert not lanes.waiting


# -- parking lot -----------------------------------------------------------------------------------


SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)


def parked(count: int) -> Any:
    """A bridge with messages in its lot."""
    pair = flow_pair.FlowPair(on_reject=1)
    pair.core.open("in", False)
    pair.connect()
    for _ in range(count):
        pair.publish(retain=True)
    pair.settle()
    return pair


def test_leaving_is_one_commit() -> None:
    """The message is in the lot or in its queue, whatever breaks, and it is what it was."""
    pair = parked(1)
    pair.core.open("in", True)
    pair.taker.retry()
    pair.core.seal()
    pair.kill(pair.core, synced=False)
    pair.core.sync()
    assert (pair.received("lot"), pair.received("in")) == ([1], [])
    pair.core.sync()
    pair.core.open("in", True)
    pair.taker.retry()
    pair.core.seal()
    pair.kill(pair.core, synced=True)
    pair.core.sync()
    assert (pair.received("lot"), pair.received("in")) == ([], [1])


def test_what_an_operator_took_away_holds_nothing_up() -> None:
    """A number whose message is gone leaves at once."""
    pair = parked(2)
    lot = pair.taker.lot
    first = next(iter(lot.ids.values()))
    del lot.unacked[first]
    pair.core.open("in", True)
    pair.taker.retry()
    pair.settle()
    assert pair.received("in") == [2]
    assert not pair.taker.lanes.waiting


def test_what_is_too_long_by_now_holds_nothing_up() -> None:
    """A parked message whose topic has too many levels since a bound was lowered leaves the lot, counted."""
    pair = parked(2)
    vpn = pair.taker.vpn
    vpn.take_bounds(VpnLimits(max_topic_levels=1))
    pair.core.open("in", True)
    pair.taker.retry()
    pair.settle()
    assert (pair.received("lot"), pair.received("in")) == ([], [])
    assert not pair.taker.lanes.waiting
    assert vpn.discards.counts[TOPIC_PARSE_ERROR] == 2


# -- flow policies ---------------------------------------------------------------------------------


def linked(**more: Any) -> Any:
    """A pair whose flow stands."""
    pair = flow_pair.FlowPair(**more)
    pair.connect()
    pair.settle()
    return pair


def test_nothing_enters_before_the_lot_is_known() -> None:
    """After a restart BIND waits until what was parked has come to light: it may hold lanes up."""
    pair = linked(on_reject=PARK)
    pair.core.open("in", False)
    pair.publish()
    pair.settle()
    pair.kill(pair.core, synced=True)
    lot = pair.core.ends["lot"]
    lot.settings.egress_enabled = False
    pair.core.open("in", True)
    pair.publish()
    pair.connect()
    pair.core.wait(1.1)
    pair.settle()
    assert pair.here.said == []
    lot.settings.egress_enabled = True
    lot.wake()
    for _ in range(3):
        pair.core.wait(1.1)
        pair.settle()
    assert pair.received("in") == [1, 2]


def test_a_full_lot_blocks_the_flow() -> None:
    """Park without room holds the flow up, as block does."""
    pair = linked(on_reject=PARK, queues={"in": "t/a", "other": "t/b"}, window=10)
    pair.core.ends["lot"].settings.max_spooled_msg_count = 1
    pair.core.open("in", False)
    for topic in ("t/a", "t/a", "t/b"):
        pair.publish(topic)
    pair.settle()
    assert pair.received("lot") == [1]
    assert pair.received("other") == []
    pair.core.open("in", True)
    pair.core.wait(1.1)
    pair.settle()
    assert (pair.received("in"), pair.received("other")) == ([1, 2], [3])


def test_skip_holds_what_a_broken_spool_refuses() -> None:
    """A store that takes nothing is no reason to throw messages away."""
    pair = linked(on_reject=SKIP)
    pair.core.spool.down = "503 Service Unavailable"
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    assert pair.taker.lanes.held
    pair.core.spool.down = ""
    pair.core.wait(1.1)
    pair.settle()
    assert pair.received() == [1]
