from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.parking_lot import BLOCK, PARK, POLICIES, SKIP, LaneActions, LaneOrder


class Model(LaneActions):
    """A message VPN that refuses some lanes, a lot with some room, and a note of what went where."""

    def __init__(self) -> None:
        self.shut: set[int] = set()
        self.room = 0
        self.down = False
        self.lane_of: dict[int, int] = {}
        self.lot: dict[int, int] = {}
        self.entered: list[int] = []
        self.given_back: list[int] = []

    def enter(self, position: int) -> bool:
        if self.down or self.lane_of[position] in self.shut:
            return False
        self.entered.append(position)
        return True

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

    def leave(self, number: int) -> bool:
        if not self.enter(self.lot[number]):
            return False
        del self.lot[number]
        return True


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), st.integers(0, 2)),
        st.tuples(st.just("shut"), st.integers(0, 2)),
        st.tuples(st.just("open"), st.integers(0, 2)),
        st.tuples(st.just("room"), st.integers(0, 5)),
        st.tuples(st.just("down"), st.integers(0, 1)),
        st.tuples(st.just("retry"), st.just(0)),
    ),
    max_size=80,
)


@settings(max_examples=400, deadline=None)
@given(policy=st.sampled_from(sorted(POLICIES.values())), events=EVENTS)
def test_order_within_a_lane_and_nothing_lost(policy: int, events: list[tuple[str, int]]) -> None:
    """Whatever is refused when: each message is in one place, and lanes keep their order."""
    model = Model()
    lanes = LaneOrder(model, policy)
    position = 0
    for what, number in [*events, ("room", 99), ("down", 0), ("end", 0), ("retry", 0)]:
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


def test_another_lane_passes_what_is_parked() -> None:
    """Park: the refused message and what follows in its lane are set aside, the rest enters."""
    model = Model()
    model.room = 9
    model.shut = {1}
    lanes = LaneOrder(model, PARK)
    for position, lane in enumerate([1, 2, 1, 2]):
        model.lane_of[position] = lane
        lanes.arrive(position, lane)
    assert model.entered == [1, 3]
    assert list(model.lot.values()) == [0, 2]
    model.shut.clear()
    # The lane has not been tried again: what comes now still waits its turn.
    model.lane_of[4] = 1
    lanes.arrive(4, 1)
    assert list(model.lot.values()) == [0, 2, 4]
    lanes.retry()
    assert model.entered == [1, 3, 0, 2, 4]


def test_a_full_lot_blocks() -> None:
    """Park without room: as block, everything behind waits."""
    model = Model()
    model.shut = {1}
    lanes = LaneOrder(model, PARK)
    for position, lane in enumerate([2, 1, 2]):
        model.lane_of[position] = lane
        lanes.arrive(position, lane)
    assert model.entered == [0]
    assert lanes.drop() == [1, 2]
    assert not lanes.waiting


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
