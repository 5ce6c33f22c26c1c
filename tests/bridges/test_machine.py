"""What a bridge decides, whatever happens to it: the machine against a world that does anything in any order."""

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from vpnrouter.bridges.bridge import BridgeFacts, Inbound
from vpnrouter.bridges.half_events import HalfEvent
from vpnrouter.bridges.machine import (
    DRAIN_MOST_NS,
    DRAIN_NS,
    MERGE_AGAIN_NS,
    VERSION_WAIT_NS,
    ApplySettings,
    BridgeSettings,
    CancelDial,
    ConnectionEnds,
    DetachHalf,
    Dial,
    Drain,
    Links,
    Machine,
    Phase,
    RaiseEvent,
    Resume,
    Reuse,
)
from vpnrouter.bridges.remote_order import QUICK_LEAST_NS, Remote
from vpnrouter.events import table
from vpnrouter.units import SECOND_NS

FACTS = BridgeFacts("core", "yellow", "b")
PLACES = ("one", "two", "three")
DELAYS_S = st.sampled_from([0, 1, 3, 30])


def remote(location: str, order: int = 1, *, enabled: bool = True) -> Remote:
    """A remote in blue."""
    return Remote("blue", location, order, enabled)


SETTINGS = st.builds(
    lambda places, orders, on, enabled, vpn, retries, delay_s, back_s, paused: BridgeSettings(
        tuple(
            remote(place, order, enabled=each)
            for place, order, each in zip(places, orders, on, strict=False)
        ),
        enabled,
        vpn,
        retries,
        delay_s * SECOND_NS,
        back_s * SECOND_NS,
        paused=paused,
    ),
    places=st.lists(st.sampled_from(PLACES), unique=True, max_size=3),
    orders=st.lists(st.integers(1, 3), min_size=3, max_size=3),
    on=st.lists(st.sampled_from([True, True, True, False]), min_size=3, max_size=3),
    enabled=st.sampled_from([True, True, True, False]),
    vpn=st.sampled_from([True, True, True, False]),
    retries=st.integers(0, 2),
    delay_s=DELAYS_S,
    back_s=DELAYS_S,
    paused=st.booleans(),
)


RUNNING = st.builds(
    lambda orders, retries, delay_s, back_s, paused: BridgeSettings(
        tuple(remote(place, order) for place, order in zip(PLACES, orders, strict=False)),
        retry_count=retries,
        retry_delay_ns=delay_s * SECOND_NS,
        failback_delay_ns=back_s * SECOND_NS,
        paused=paused,
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(0, 1),
    DELAYS_S,
    DELAYS_S,
    st.booleans(),
)


class Half:
    """A login as the world sees it; `asked` is the version of the configuration that it has asked for."""

    def __init__(self, where: Remote, moves_from: int = 0) -> None:
        self.remote = where
        self.moves_from = moves_from
        self.said_hello = False
        self.welcomed = False
        self.drained = False
        self.asked = -1


class World(Links):
    """Does what the machine says, and keeps what it may never do from passing unseen.

    `came_in` are the remotes whose own bridge has a link here, `doubled` says that the peer of the link in use has
    dialled as well.
    """

    def __init__(self, given: BridgeSettings, start_ns: int = 1_000 * SECOND_NS) -> None:
        self.now_ns = start_ns
        self.draw = 0.0
        self.settings = given
        self.version = 0
        self.machine = Machine(FACTS, given, self.now_ns)
        self.halves: dict[int, Half] = {}
        self.came_in: set[str] = set()
        self.doubled = False
        self.heard = 0
        self.told: list[str] = []
        self.dials: list[tuple[int, str]] = []
        self.refused_ns = -1
        self.rests_ns = 0
        self.renews = False
        self.removed = False
        self.at_once = 0

    # -- Links -----------------------------------------------------------------------------------

    def incoming(self) -> Any:
        for each in self.machine.remotes.all():
            if each.location in self.came_in:
                return each, each.location
        return None

    def serves(self, remote: Remote) -> bool:
        return remote.location in self.came_in

    def peers_connection(self, number: int, remote: Remote) -> Any:
        assert self.halves[number].welcomed
        return "doubled" if self.doubled else None

    def heard_ns(self, number: int) -> int:
        assert number in self.halves
        return self.heard

    # -- the driver ------------------------------------------------------------------------------

    @property
    def may_run(self) -> bool:
        """Whether the configuration lets the bridge connect."""
        known = self.settings
        return known.enabled and known.vpn_enabled and any(each.enabled for each in known.remotes)

    def run(self) -> None:
        """Ask the machine, and do what it says, until it has nothing more to do."""
        for _ in range(100):
            actions = self.machine.step(self.now_ns, self.draw, self)
            if not actions:
                return
            assert not self.removed, "nothing after the end"
            self.perform(actions)
        raise AssertionError("it never comes to rest")

    def perform(self, actions: Any) -> None:
        """Do this."""
        for action in actions:
            if isinstance(action, (Dial, Reuse)):
                self.begin(action)
            elif isinstance(action, CancelDial):
                assert not self.halves.pop(action.number).said_hello
            elif isinstance(action, DetachHalf):
                self.leave(action)
            elif isinstance(action, ApplySettings):
                self.halves[action.number].asked = self.version
            elif isinstance(action, Drain):
                self.halves[action.number].drained = True
            elif isinstance(action, RaiseEvent):
                self.hear_of(action)
            else:
                assert isinstance(action, Resume)

    def begin(self, action: Dial | Reuse) -> None:
        """A login begins."""
        machine = self.machine
        assert self.may_run, "a bridge that may not run dials nobody"
        assert action.remote in machine.remotes.all()
        assert action.number not in self.halves
        in_use = machine.use is not None and machine.use.number == action.number
        self.halves[action.number] = Half(action.remote, action.moves_from)
        if in_use:
            assert len(self.halves) == 1, "one link is enough"
            if self.refused_ns >= 0:
                waited_ns = self.now_ns - self.refused_ns
                assert waited_ns >= max(self.settings.retry_delay_ns, QUICK_LEAST_NS)
                self.refused_ns = -1
        if isinstance(action, Dial):
            if in_use:
                assert self.incoming() is None, "there is a link to use"
            self.dials.append((self.now_ns, action.remote.location))
        else:
            if action.moves_from:
                assert self.doubled
                assert action.moves_from in self.halves
            else:
                assert action.remote.location in self.came_in
            self.hello(action.number)

    def hello(self, number: int) -> None:
        """HELLO leaves."""
        self.machine.resolved(number, self.now_ns)
        self.halves[number].said_hello = True
        self.machine.connected(
            number, ConnectionEnds(self.halves[number].remote.location), self.now_ns
        )

    def leave(self, action: DetachHalf) -> None:
        """A half ends, and says so."""
        half = self.halves[action.number]
        assert half.said_hello
        use = self.machine.use
        if self.may_run and not self.removed and use is not None and half.welcomed:
            others = [one for one in self.halves.values() if one is not half and one.welcomed]
            in_use = use.number == action.number
            if in_use and not self.renews and not half.drained and not self.handed_over:
                assert others, "the last link is left and no other one stands"
        self.lose(action.number, "left")

    @property
    def handed_over(self) -> bool:
        """Whether the subscriptions of the login in use are with another one by now, which may be lost again."""
        mover = self.machine.mover
        return mover is not None and mover.resumed

    def lose(self, number: int, why: str = "broken") -> None:
        """A half ends."""
        del self.halves[number]
        self.perform(self.machine.on_half_event(number, HalfEvent.LOST, why, self.now_ns))

    def hear_of(self, action: RaiseEvent) -> None:
        """People hear of a bridge that is up once, and of a move while it is up alone."""
        name, what = action.kind.name, action.text.rpartition(": ")[2]
        if name == table.LINK_DOWN.name:
            self.told.append("down")
        elif name == table.LINK_UP.name:
            moved = what == "moved here"
            assert (self.told[-1:] == ["up"]) is moved
            if not moved:
                self.told.append("up")

    # -- what others do --------------------------------------------------------------------------

    def welcome(self, number: int, *, resumed: bool = False) -> None:
        """The remote lets a login in."""
        self.halves[number].welcomed = True
        self.perform(self.machine.welcomed(number, "peer", "#b", self.now_ns, resumed=resumed))

    def answer(self, number: int) -> None:
        """The connection of a login is made."""
        self.machine.resolved(number, self.now_ns)
        half = self.halves[number]
        wanted = self.machine.reached(number, self.now_ns, self)
        assert wanted is (half.moves_from > 0 or half.remote.location not in self.came_in)
        if wanted:
            self.hello(number)
        else:
            del self.halves[number]

    def pass_time(self, until_ns: int) -> None:
        """Let time pass, and the machine act whenever it wanted to."""
        self.run()
        while self.woken(until_ns):
            self.run()
        self.now_ns = max(self.now_ns, until_ns)
        self.run()

    def woken(self, until_ns: int) -> bool:
        """Go to the time at which the machine wants to act. False where that is later than `until_ns`, or never."""
        wake_ns = self.machine.wake_ns
        if wake_ns < 0 or wake_ns > until_ns:
            return False
        self.at_once = self.at_once + 1 if wake_ns <= self.now_ns else 0
        assert self.at_once < 50, "time does not pass"
        self.now_ns = max(self.now_ns, wake_ns)
        return True


class Bridges(RuleBasedStateMachine):
    """Anything happens, in any order."""

    @initialize(given=RUNNING, draw=st.floats(0, 0.999))
    def begin(self, given: BridgeSettings, draw: float) -> None:
        self.world = World(given)
        self.world.draw = draw
        self.world.run()

    def found(self, *, hello: bool, welcomed: bool) -> list[int]:
        """The logins that have come so far."""
        return [
            number
            for number, half in self.world.halves.items()
            if half.said_hello is hello and half.welcomed is welcomed
        ]

    def pick(self, data: Any, *, hello: bool, welcomed: bool) -> int:
        """One of the logins that have come so far."""
        return cast("int", data.draw(st.sampled_from(self.found(hello=hello, welcomed=welcomed))))

    @rule(milliseconds=st.sampled_from([1, 50, 900, 2_500, 11_000, 70_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.world.pass_time(self.world.now_ns + milliseconds * 1_000_000)

    @rule()
    def time_passes_until_it_acts(self) -> None:
        if self.world.machine.wake_ns >= 0:
            self.world.pass_time(self.world.machine.wake_ns)

    @precondition(lambda self: self.found(hello=False, welcomed=False))
    @rule(data=st.data(), good=st.sampled_from([True, True, False]))
    def a_connection_is_made(self, data: Any, good: bool) -> None:
        world = self.world
        number = self.pick(data, hello=False, welcomed=False)
        world.machine.resolved(number, world.now_ns)
        if good:
            world.answer(number)
        else:
            del world.halves[number]
            world.machine.failed(number, "refused", world.now_ns)
        world.run()

    @rule(resumed=st.booleans())
    def everybody_answers(self, resumed: bool) -> None:
        world = self.world
        for number in self.found(hello=False, welcomed=False):
            world.answer(number)
        for number in self.found(hello=True, welcomed=False):
            world.welcome(number, resumed=resumed and world.halves[number].moves_from > 0)
            world.perform(
                world.machine.on_half_event(number, HalfEvent.SUBSCRIBED, "", world.now_ns)
            )
        world.run()

    @precondition(lambda self: self.found(hello=True, welcomed=False))
    @rule(data=st.data(), resumed=st.booleans())
    def a_remote_welcomes(self, data: Any, resumed: bool) -> None:
        number = self.pick(data, hello=True, welcomed=False)
        moves = self.world.halves[number].moves_from
        self.world.welcome(number, resumed=resumed and moves > 0)
        self.world.run()

    @precondition(lambda self: self.found(hello=True, welcomed=False))
    @rule(data=st.data(), event=st.sampled_from([HalfEvent.REFUSED, HalfEvent.VERSION_MISMATCH]))
    def a_remote_refuses(self, data: Any, event: HalfEvent) -> None:
        world = self.world
        number = self.pick(data, hello=True, welcomed=False)
        use = world.machine.use
        if use is not None and use.number == number:
            world.refused_ns = world.now_ns
        world.perform(world.machine.on_half_event(number, event, "no", world.now_ns))
        world.lose(number, "no")
        world.run()

    @precondition(lambda self: self.found(hello=True, welcomed=True))
    @rule(data=st.data())
    def a_link_breaks(self, data: Any) -> None:
        self.world.lose(self.pick(data, hello=True, welcomed=True))
        self.world.run()

    @precondition(lambda self: self.found(hello=True, welcomed=False))
    @rule(data=st.data())
    def a_handshake_breaks(self, data: Any) -> None:
        self.world.lose(self.pick(data, hello=True, welcomed=False))
        self.world.run()

    @precondition(lambda self: self.found(hello=True, welcomed=True))
    @rule(
        data=st.data(),
        event=st.sampled_from(
            [
                HalfEvent.SUBSCRIBED,
                HalfEvent.DRAINED,
                HalfEvent.STALLED,
                HalfEvent.RELEASED,
                HalfEvent.UNBOUND,
                HalfEvent.BOUND,
                HalfEvent.PARTED,
            ]
        ),
        in_sync=st.booleans(),
    )
    def a_half_tells(self, data: Any, event: HalfEvent, in_sync: bool) -> None:
        world = self.world
        number = self.pick(data, hello=True, welcomed=True)
        world.perform(
            world.machine.on_half_event(number, event, "why", world.now_ns, in_sync=in_sync)
        )
        world.run()

    @rule(place=st.sampled_from(PLACES), there=st.booleans())
    def a_peer_comes_in_or_goes(self, place: str, there: bool) -> None:
        world = self.world
        (world.came_in.add if there else world.came_in.discard)(place)
        if there:
            world.machine.incoming(world.now_ns)
        world.run()

    @rule(there=st.booleans())
    def the_peer_has_dialled_too(self, there: bool) -> None:
        self.world.doubled = there
        self.world.run()

    @rule()
    def something_is_heard(self) -> None:
        self.world.heard += 1

    @rule(given=st.one_of(SETTINGS, RUNNING, RUNNING), reconnect=st.booleans())
    def the_configuration_changes(self, given: BridgeSettings, reconnect: bool) -> None:
        world = self.world
        before, world.settings = world.settings, given
        world.version += 1
        world.refused_ns = -1
        use = world.machine.use
        world.perform(world.machine.configure(FACTS, given, world.now_ns, reconnect=reconnect))
        if use is not None and (reconnect or given.remotes != before.remotes):
            world.renews = True
        world.run()

    @precondition(lambda self: self.world.version > 2)
    @rule()
    def the_router_has_a_fault(self) -> None:
        world = self.world
        world.renews = True
        world.refused_ns = -1
        world.perform(world.machine.broken("fault", world.now_ns, world.draw))
        assert not world.halves
        assert world.machine.wake_ns > world.now_ns, "it says when it goes on"
        world.run()
        world.rests_ns = world.machine.wake_ns

    @precondition(lambda self: self.world.version > 8)
    @rule()
    def the_bridge_is_removed(self) -> None:
        world = self.world
        world.renews = True
        if not world.removed:
            world.perform(world.machine.remove())
        world.removed = True
        world.run()

    @invariant()
    def the_record_says_how_it_is(self) -> None:
        """Up is who is logged in, paused who is to be then; disabled is who may not be logged in."""
        world = self.world
        machine, record = world.machine, world.machine.record
        use = machine.use
        if use is None or use.phase is Phase.OVER:
            world.renews = world.renews and machine.mover is not None
        up = use is not None and use.phase is Phase.WELCOMED
        assert record.is_up is up
        if world.removed:
            assert not world.halves
            return
        if up:
            assert (record.inbound_state is Inbound.PAUSED) is world.settings.paused
        off = not (world.settings.enabled and world.settings.vpn_enabled)
        if world.now_ns >= world.rests_ns:
            assert (record.inbound_state is Inbound.DISABLED) is off
        if not world.may_run:
            assert not world.halves, "a bridge that may not run leaves all links"

    @invariant()
    def it_never_sleeps_for_ever(self) -> None:
        """While it is not logged in it has a time to act at, no later than the longest delay."""
        world = self.world
        machine = world.machine
        if world.removed or not world.may_run:
            return
        use = machine.use
        if use is None or use.phase is not Phase.WELCOMED:
            assert machine.wake_ns >= 0
            longest_ns = max(VERSION_WAIT_NS, 3 * world.settings.retry_delay_ns)
            assert machine.wake_ns - world.now_ns <= longest_ns

    @invariant()
    def there_are_few_logins(self) -> None:
        """One in use, one that stands by, one that it moves to: each is known to the world, and none is forgotten."""
        world = self.world
        known = {one.number for one in world.machine.logins() if one.phase is not Phase.OVER}
        assert known == set(world.halves)
        assert len(known) <= 3
        if world.settings.failback_delay_ns == 0:
            assert world.machine.standby is None

    @invariant()
    def the_half_in_use_asks_for_what_is_configured(self) -> None:
        """Whatever was changed, and when, is asked for in the end."""
        world = self.world
        machine = world.machine
        use = machine.use
        if use is None or use.phase is not Phase.WELCOMED or world.removed:
            return
        half = world.halves[use.number]
        if machine.mover is None and not half.drained:
            assert half.asked == world.version


def test_whatever_happens() -> None:
    """No order of events makes the bridge break one of the rules above."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Bridges, settings=settings(max_examples=150, stateful_step_count=50, deadline=None)
    )


# -- what it reaches in the end --------------------------------------------------------------------


def world_of(*remotes: Remote, retry_s: int = 3, back_s: int = 0, retries: int = 0) -> World:
    """A bridge that has just been started."""
    given_ = BridgeSettings(
        remotes,
        retry_count=retries,
        retry_delay_ns=retry_s * SECOND_NS,
        failback_delay_ns=back_s * SECOND_NS,
    )
    world = World(given_)
    world.run()
    return world


def let_in(world: World, *up: str, resumed: bool = False) -> None:
    """Answer at once what is dialled at these hosts; the others refuse the connection."""
    for _ in range(20):
        waiting = [n for n, half in world.halves.items() if not half.welcomed]
        if not waiting:
            return
        for number in waiting:
            half = world.halves[number]
            world.machine.resolved(number, world.now_ns)
            if half.remote.location not in up:
                del world.halves[number]
                world.machine.failed(number, "refused", world.now_ns)
            else:
                if not half.said_hello:
                    world.hello(number)
                world.welcome(number, resumed=resumed and half.moves_from > 0)
                world.perform(
                    world.machine.on_half_event(number, HalfEvent.SUBSCRIBED, "", world.now_ns)
                )
        world.run()
    raise AssertionError("it dials again and again, without a pause")


def until(world: World, end_ns: int, *up: str) -> None:
    """Let time pass, with these hosts up."""
    world.run()
    let_in(world, *up)
    while world.woken(end_ns):
        world.run()
        let_in(world, *up)
    world.now_ns = end_ns
    world.run()


def in_use(world: World) -> str:
    """Where the bridge is logged in, "" for nowhere."""
    use = world.machine.use
    return use.remote.location if use is not None and use.phase is Phase.WELCOMED else ""


ONE, TWO = remote("one", 1), remote("two", 2)


@pytest.mark.parametrize("retries", [0, 2])
def test_each_has_its_tries(retries: int) -> None:
    """The remote of the lowest connect order comes first; each has its retries before the next one has its turn."""
    world = world_of(TWO, ONE, retries=retries)
    until(world, world.now_ns + 300 * SECOND_NS)
    hosts = [host for _, host in world.dials]
    turn = ["one"] * (retries + 1) + ["two"] * (retries + 1)
    assert hosts[: 3 * len(turn)] == turn * 3


def test_the_next_best_after_a_loss() -> None:
    """A link that was up and broke is replaced at once by one to the next best remote; the lost one comes last."""
    world = world_of(ONE, TWO)
    let_in(world, "one", "two")
    assert in_use(world) == "one"
    world.now_ns += 60 * SECOND_NS
    world.lose(next(iter(world.halves)))
    world.run()
    let_in(world, "two")
    assert in_use(world) == "two"
    assert world.dials[-1] == (world.now_ns, "two")
    world.now_ns += 60 * SECOND_NS
    world.lose(next(iter(world.halves)))
    until(world, world.now_ns + SECOND_NS // 5, "two")
    assert [host for _, host in world.dials[-2:]] == ["one", "two"]


@given(
    retry_s=st.sampled_from([0, 1, 3, 30, 255]),
    back_s=st.sampled_from([1, 5, 30, 3_600]),
    draw=st.floats(0, 0.999),
    resumed=st.booleans(),
)
def test_it_goes_back_in_time(retry_s: int, back_s: int, draw: float, resumed: bool) -> None:
    """A better remote that answers again and stands is in use after its fail-back time, never before."""
    world = world_of(ONE, TWO, retry_s=retry_s, back_s=back_s)
    world.draw = draw
    until(world, world.now_ns + 20 * SECOND_NS, "two")
    assert in_use(world) == "two"
    back_ns = world.now_ns
    until(world, back_ns + back_s * SECOND_NS - 1, "one", "two")
    assert in_use(world) == "two"
    look_ns = int(max(1, retry_s) * SECOND_NS * 1.5)
    until(world, back_ns + back_s * SECOND_NS + look_ns + DRAIN_MOST_NS + 1, "one", "two")
    assert in_use(world) == "one"
    assert len(world.halves) == 1
    assert world.told == ["up"]


def test_a_better_one_that_does_not_stand() -> None:
    """A better remote that is lost again and again before its time moves nobody, and is tried with pauses."""
    world = world_of(ONE, TWO, retry_s=2, back_s=5)
    until(world, world.now_ns + SECOND_NS, "two")
    begin_ns, before = world.now_ns, len(world.dials)
    for _ in range(20):
        until(world, world.now_ns + 4 * SECOND_NS, "one", "two")
        standby = world.machine.standby
        if standby is not None and standby.phase is Phase.WELCOMED:
            world.lose(standby.number)
            world.run()
        assert in_use(world) == "two"
    tries = len(world.dials) - before
    assert 5 < tries <= (world.now_ns - begin_ns) // SECOND_NS


def test_the_one_that_stands_by_takes_over() -> None:
    """When the link in use breaks, a better remote that stands by is used at once, and nothing is dialled."""
    world = world_of(ONE, TWO, back_s=60)
    until(world, world.now_ns + SECOND_NS, "two")
    until(world, world.now_ns + 10 * SECOND_NS, "one", "two")
    dials = len(world.dials)
    assert world.machine.use is not None
    world.lose(world.machine.use.number)
    world.run()
    assert in_use(world) == "one"
    assert len(world.dials) == dials


def test_tries_become_rare() -> None:
    """Some twenty tries a second for five seconds, then between `retry_delay` and half a minute."""
    world = world_of(ONE, retry_s=3)
    begin_ns = world.now_ns
    for number in range(10_000):
        world.draw = number * 0.618 % 1
        until(world, max(world.machine.wake_ns, world.now_ns))
        if world.now_ns > begin_ns + 600 * SECOND_NS:
            break
    times = [at_ns - begin_ns for at_ns, _ in world.dials]
    gaps = [(before, after - before) for before, after in pairwise(times)]
    quick = [gap for before, gap in gaps if before < 4.9 * SECOND_NS]
    slow = [gap for before, gap in gaps if before > 5.1 * SECOND_NS]
    assert QUICK_LEAST_NS <= min(quick) <= max(quick) <= 80_000_000
    assert 3 * SECOND_NS <= min(slow) <= max(slow) <= 30 * SECOND_NS
    assert len({gap // SECOND_NS for gap in slow}) > 3, "many would come in step"


def test_only_a_link_that_stayed_up_starts_anew() -> None:
    """A link that comes and goes is dialled less and less often; one that stood comes back at once."""
    world = world_of(ONE, retry_s=3)
    let_in(world, "one")
    waits = []
    for up_s in [1] * 12 + [11]:
        assert in_use(world) == "one"
        world.now_ns += up_s * SECOND_NS
        lost_ns = world.now_ns
        world.lose(next(iter(world.halves)))
        world.run()
        if not world.halves:
            world.pass_time(world.machine.wake_ns)
        let_in(world, "one")
        waits.append(world.dials[-1][0] - lost_ns)
    assert max(waits[:3]) < SECOND_NS // 10
    assert min(waits[6:-1]) >= 3 * SECOND_NS
    assert waits[-1] < SECOND_NS // 10


@pytest.mark.parametrize("silent", [1, 3])
def test_remotes_that_say_nothing(silent: int) -> None:
    """A remote that takes the connection and says nothing costs three seconds; then the next one is tried."""
    names = [*PLACES[:silent], "good"]
    world = world_of(*(remote(name, order) for order, name in enumerate(names, 1)))
    begin_ns = world.now_ns
    for name in names[:-1]:
        (number,) = world.halves
        assert world.halves[number].remote.location == name
        world.hello(number)
        world.pass_time(world.now_ns + 3 * SECOND_NS)
        world.pass_time(world.now_ns + SECOND_NS // 10)
    let_in(world, "good")
    assert in_use(world) == "good"
    assert world.now_ns - begin_ns <= silent * 3.2 * SECOND_NS


@pytest.mark.parametrize(
    ("each_ns", "until_ns", "left_ns"),
    [
        (0, 0, DRAIN_NS),
        (3 * DRAIN_NS // 4, 3 * DRAIN_NS, 5 * DRAIN_NS),
        (DRAIN_NS // 2, 1 << 60, DRAIN_MOST_NS),
    ],
    ids=["silent", "slow", "endless"],
)
def test_how_long_a_link_that_is_left_is_waited_for(
    each_ns: int, until_ns: int, left_ns: int
) -> None:
    """Two seconds of silence are enough; a slow peer has longer, and none has more than ten seconds."""
    world = world_of(ONE)
    let_in(world, "one")
    (old,) = world.halves
    world.renews = True
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns, reconnect=True))
    world.run()
    let_in(world, "one")
    assert world.halves[old].drained
    begin_ns = world.now_ns
    while old in world.halves:
        world.now_ns += each_ns or DRAIN_NS // 8
        if each_ns and world.now_ns - begin_ns <= until_ns:
            world.heard += 1
        world.run()
    assert world.now_ns - begin_ns <= left_ns
    assert world.now_ns - begin_ns >= min(left_ns, DRAIN_NS)


def test_a_connection_that_changes_and_cannot_be_made() -> None:
    """A new connection that fails does not keep the old one alive: what is configured now may be safer."""
    world = world_of(ONE)
    let_in(world, "one")
    (old,) = world.halves
    world.renews = True
    assert not world.machine.reconnecting
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns, reconnect=True))
    assert world.machine.reconnecting
    world.run()
    assert world.machine.reconnecting
    let_in(world)
    assert world.halves[old].drained
    assert world.machine.reconnecting
    world.pass_time(world.now_ns + DRAIN_NS + SECOND_NS)
    assert old not in world.halves
    assert not world.machine.reconnecting
    assert world.told == ["up", "down"]


def test_a_peer_that_does_not_let_it_in_is_asked_again() -> None:
    """Where the peer refuses its connection, both stay, and the bridge asks again three seconds later."""
    world = world_of(ONE)
    let_in(world, "one")
    (old,) = world.halves
    for _ in range(3):
        world.doubled = True
        world.run()
        (new,) = set(world.halves) - {old}
        assert world.halves[new].moves_from == old
        world.lose(new, "403 Forbidden")
        world.run()
        assert list(world.halves) == [old]
        world.now_ns += MERGE_AGAIN_NS - 1
        world.run()
        assert list(world.halves) == [old]
        world.now_ns += 1
    assert world.told == ["up"]


def test_faults_that_repeat() -> None:
    """After a fault of the router the bridge rests for a second, and twice as long after each that follows soon."""
    world = world_of(ONE)
    rests = []
    for _ in range(8):
        world.perform(world.machine.broken("fault", world.now_ns, 0.0))
        world.run()
        assert not world.halves
        rests.append((world.machine.wake_ns - world.now_ns) // SECOND_NS)
        world.pass_time(world.machine.wake_ns)
    assert rests == [1, 2, 4, 8, 16, 32, 32, 32]


def test_why_it_does_not_run() -> None:
    """Each reason not to connect is in the record; with the last one gone the bridge runs."""
    world = world_of(ONE)
    record = world.machine.record
    for changed, why in (
        (BridgeSettings((ONE,), enabled=False), "Bridge disabled"),
        (BridgeSettings((ONE,), vpn_enabled=False), "Local message-vpn is disabled"),
        (BridgeSettings(()), "No remote message-vpns configured"),
        (BridgeSettings((remote("one", enabled=False),)), "Remote message-vpns disabled"),
    ):
        world.settings = changed
        world.perform(world.machine.configure(FACTS, changed, world.now_ns))
        world.run()
        assert record.inbound_failure_reason == why
        assert not world.halves
    world.settings = BridgeSettings((ONE,))
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns))
    world.run()
    assert record.inbound_state is Inbound.PREPARE_FETCHING_DNS


def test_many_bridges_do_not_come_in_step() -> None:
    """Of 200 bridges that lost one remote at once, no more than a third dial it within a second, ever."""
    for retry_s in (0, 3, 30, 255):
        seconds: Counter[int] = Counter()
        for seed in range(200):
            draw = random.Random(seed)
            world = world_of(ONE, retry_s=retry_s)
            begin_ns = world.now_ns
            end_ns = begin_ns + (60 + 5 * max(30, 3 * retry_s)) * SECOND_NS
            while world.now_ns < end_ns:
                world.draw = draw.random()
                until(world, max(world.machine.wake_ns, world.now_ns))
            found = [(at_ns - begin_ns) // SECOND_NS for at_ns, _ in world.dials]
            seconds.update(second for second in found if second > 60)
        assert sum(seconds.values()) / 200 >= 5
        assert max(seconds.values()) <= 67, (retry_s, seconds.most_common(3))


def test_a_slow_remote_has_its_time_in_the_end() -> None:
    """The first pass goes on from a remote that says nothing for three seconds, later ones wait for ten."""
    world = world_of(ONE, TWO)
    world.pass_time(world.now_ns + 60 * SECOND_NS)
    gaps = [after - before for (before, _), (after, _) in pairwise(world.dials)]
    assert 3 * SECOND_NS <= max(gaps[:2]) < 4 * SECOND_NS
    assert min(gaps[2:]) >= 10 * SECOND_NS


def test_who_comes_in_is_dialled() -> None:
    """A bridge that waits for its next try dials at once when the remote's bridge comes in, unless it was refused."""
    world = world_of(ONE)
    until(world, world.now_ns + 60 * SECOND_NS)
    dials = len(world.dials)
    world.machine.incoming(world.now_ns)
    world.run()
    assert len(world.dials) == dials + 1
    (number,) = world.halves
    world.hello(number)
    world.perform(world.machine.on_half_event(number, HalfEvent.REFUSED, "no", world.now_ns))
    world.lose(number, "no")
    world.run()
    world.machine.incoming(world.now_ns)
    world.run()
    assert not world.halves


def test_a_refusal_is_told_once() -> None:
    """A wrong password is one line, however long the bridge tries; another reason is another line."""
    world = world_of(ONE)
    texts = []
    for why in ("403 Forbidden", "403 Forbidden", "503 Too Many Clients", "403 Forbidden"):
        if not world.halves:
            world.pass_time(world.machine.wake_ns)
        (number,) = world.halves
        world.hello(number)
        actions = world.machine.on_half_event(number, HalfEvent.REFUSED, why, world.now_ns)
        texts += [
            one.text.rpartition("rejected: ")[2] for one in actions if isinstance(one, RaiseEvent)
        ]
        world.lose(number, why)
        world.run()
    assert texts == ["403 Forbidden", "503 Too Many Clients", "403 Forbidden"]
    assert world.machine.record.failures == 4


def test_stalls_are_told_once_a_minute() -> None:
    """The state follows each stall; people hear of it when it is news."""
    world = world_of(ONE)
    let_in(world, "one")
    (number,) = world.halves
    machine, record = world.machine, world.machine.record

    def texts(event: HalfEvent, why: str) -> list[str]:
        actions = machine.on_half_event(number, event, why, world.now_ns, in_sync=True)
        return [
            one.text.rpartition(" at one: ")[2] for one in actions if isinstance(one, RaiseEvent)
        ]

    assert texts(HalfEvent.UNBOUND, "503 Unknown Queue") == [
        "not bound to its queue: 503 Unknown Queue"
    ]
    for pause_s, told in ((0, True), (30, False), (31, True)):
        world.now_ns += pause_s * SECOND_NS
        assert texts(HalfEvent.STALLED, "full") == (["stalled: full"] if told else [])
        assert (record.inbound_state, record.inbound_failure_reason) == (Inbound.STALLED, "full")
        assert texts(HalfEvent.RELEASED, "") == (["goes on"] if told else [])
        assert record.inbound_state is Inbound.READY_IN_SYNC


def test_a_pause_is_told_and_shown() -> None:
    """Once each time, up or not; the bridge stays logged in, and over a new login it is paused at once."""
    world = world_of(ONE)
    let_in(world, "one")
    machine, record = world.machine, world.machine.record
    since_ns = record.up_since_ns

    def configured(**changes: Any) -> list[str]:
        world.settings = replace(world.settings, **changes)
        actions = machine.configure(FACTS, world.settings, world.now_ns)
        world.perform(actions)
        return [
            one.text.rpartition(" at one: ")[2] for one in actions if isinstance(one, RaiseEvent)
        ]

    assert configured(paused=True) == ["paused"]
    assert configured() == []
    assert (record.inbound_state, record.up_since_ns) == (Inbound.PAUSED, since_ns)
    (number,) = world.halves
    for event in (HalfEvent.STALLED, HalfEvent.RELEASED, HalfEvent.SUBSCRIBED, HalfEvent.PARTED):
        machine.on_half_event(number, event, "why", world.now_ns)
        assert record.inbound_state is Inbound.PAUSED
    assert configured(paused=False) == ["goes on"]
    assert record.inbound_state is Inbound.READY_SUBSCRIBING
    assert configured(paused=True) == ["paused"]
    world.lose(number)
    world.run()
    assert record.inbound_state is not Inbound.PAUSED
    until(world, world.now_ns + 60 * SECOND_NS, "one")
    assert record.inbound_state is Inbound.PAUSED


REMOTES: dict[str, tuple[Remote, ...]] = {
    "without the better one": (TWO,),
    "with another order": (remote("one", 2), remote("two", 3)),
    "without the one in use": (ONE,),
    "with the better one disabled": (remote("one", enabled=False), TWO),
    "none at all": (),
}


@pytest.mark.parametrize("stands_s", [1, 4])
@pytest.mark.parametrize("remotes", REMOTES.values(), ids=REMOTES)
def test_remotes_that_change_while_one_stands_by(
    remotes: tuple[Remote, ...], stands_s: int
) -> None:
    """Whatever becomes of the list of remotes, the bridge ends on the best one that is left."""
    world = world_of(ONE, TWO, retry_s=1, back_s=5)
    until(world, world.now_ns + SECOND_NS, "two")
    until(world, world.now_ns + (2 + stands_s) * SECOND_NS, "one", "two")
    assert in_use(world) == "two"
    world.settings = BridgeSettings(
        remotes, retry_delay_ns=SECOND_NS, failback_delay_ns=5 * SECOND_NS
    )
    world.renews = True
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns))
    until(world, world.now_ns + 30 * SECOND_NS, "one", "two")
    left = [each.location for each in remotes if each.enabled][:1]
    assert [half.remote.location for half in world.halves.values()] == left
    assert [in_use(world)] == (left or [""])


def test_a_link_that_came_in_meanwhile_is_used() -> None:
    """Where the remote's bridge comes in while the bridge dials, no HELLO is said on the second connection."""
    world = world_of(ONE)
    (number,) = world.halves
    world.came_in.add("one")
    world.answer(number)
    world.run()
    (other,) = world.halves
    assert other != number
    assert world.halves[other].said_hello
    assert [host for _, host in world.dials] == ["one"]


@pytest.mark.parametrize("over", ["a connection of its own", "the remote's"])
def test_a_bridge_that_was_refused_waits(over: str) -> None:
    """A wrong password is not checked twenty times a second, over whatever connection."""
    world = world_of(ONE, retry_s=3)
    (number,) = world.halves
    if over == "the remote's":
        until(world, world.now_ns)
        world.came_in.add("one")
        world.run()
        (number,) = world.halves
    else:
        world.machine.resolved(number, world.now_ns)
        world.hello(number)
    world.perform(world.machine.on_half_event(number, HalfEvent.REFUSED, "no", world.now_ns))
    world.lose(number, "no")
    world.run()
    assert not world.halves
    assert world.machine.wake_ns - world.now_ns >= 3 * SECOND_NS


def test_what_is_configured_in_a_move_that_fails() -> None:
    """What is configured while the bridge moves is asked for over the old link when nothing comes of the move."""
    world = world_of(ONE)
    let_in(world, "one")
    (old,) = world.halves
    world.doubled = True
    world.run()
    (new,) = set(world.halves) - {old}
    world.version += 1
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns))
    world.run()
    world.lose(new, "403 Forbidden")
    world.run()
    assert world.halves[old].asked == world.version


def fail(world: World, how: str) -> None:
    """The try that is under way fails: no connection, no answer to HELLO, a refusal, another version."""
    if not world.halves:
        world.pass_time(world.machine.wake_ns)
    (number,) = world.halves
    if how == "unreachable":
        del world.halves[number]
        world.machine.failed(number, how, world.now_ns)
    else:
        world.hello(number)
        event = {"refused": HalfEvent.REFUSED, "version": HalfEvent.VERSION_MISMATCH}.get(how)
        if event is not None:
            world.perform(world.machine.on_half_event(number, event, how, world.now_ns))
        world.lose(number, how)
    world.run()


@pytest.mark.parametrize("how", ["unreachable", "closed", "refused", "version"])
@pytest.mark.parametrize("remotes", [(ONE,), (ONE, TWO)])
def test_it_gives_up_after_so_many_attempts(how: str, remotes: tuple[Remote, ...]) -> None:
    """Whatever fails, over all remotes together; then nothing is dialled until it is configured anew."""
    world = World(BridgeSettings(remotes, give_up_after=3))
    world.run()
    record = world.machine.record
    for _ in range(2):
        fail(world, how)
        assert (world.machine.stopped, record.inbound_state is Inbound.DISABLED) == ("", False)
    fail(world, how)
    why = f"gave up after 3 attempts: {how}"
    assert (record.inbound_state, record.inbound_failure_reason) == (Inbound.DISABLED, why)
    world.came_in.add("one")
    world.machine.incoming(world.now_ns)
    world.pass_time(world.now_ns + 3_600 * SECOND_NS)
    assert (world.halves, world.machine.wake_ns) == ({}, -1)
    world.came_in.clear()
    world.perform(world.machine.configure(FACTS, world.settings, world.now_ns))
    world.run()
    if not world.halves:
        world.pass_time(world.machine.wake_ns)
    # Once it is up, it begins to count anew.
    (number,) = world.halves
    world.hello(number)
    world.welcome(number)
    world.now_ns += 60 * SECOND_NS
    world.lose(number)
    world.run()
    for _ in range(2):
        fail(world, how)
    assert world.machine.stopped == ""


def test_stopping_is_told_and_ends_the_link() -> None:
    """A bridge that is to stop leaves its link, says why once, and does nothing more."""
    world = world_of(ONE)
    let_in(world, "one")
    (number,) = world.halves
    why = "a message was refused 3 times: q: 503 Queue Shutdown"
    actions = world.machine.on_half_event(number, HalfEvent.STOPPED, why, world.now_ns)
    (event,) = [one for one in actions if isinstance(one, RaiseEvent)]
    assert (event.kind, event.text.endswith(f": stopped: {why}")) == (table.STOPPED, True)
    assert world.machine.on_half_event(number, HalfEvent.STOPPED, why, world.now_ns) == []
    world.settings = BridgeSettings((ONE,), enabled=False)
    world.pass_time(world.now_ns + 3_600 * SECOND_NS)
    assert world.halves == {}
    record = world.machine.record
    assert (record.inbound_state, record.inbound_failure_reason) == (Inbound.DISABLED, why)
