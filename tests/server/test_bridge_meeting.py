"""Two bridges that want each other's messages: however they meet, one connection carries both."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio

from vpnrouter.bridges.bridge import Inbound

QUICK = range(9)
# In blocks, since one test has its time limit; all thousand with VPNROUTER_LONG set.
ALL = range(30, 1_000, 97) if os.environ.get("VPNROUTER_LONG") else range(60, 70, 10)

WAYS_S = (0.005, 0.05, 0.3)
"""The longest that bytes are on the way; between two messages are up to 0.02 s."""


class Meeting:
    """Two islands whose bridges dial each other; numbered messages are published on both all the time."""

    def __init__(self, sea: Any, names: tuple[str, str], *, tls: bool) -> None:
        self.sea = sea
        self.draw = sea.draw
        self.tls = tls
        self.both = [sea.island(name, f"v-{name}") for name in names]
        self.next = 0
        self.settled = 0
        self.begun = 0

    def written(self, index: int, *, named: bool) -> dict[str, Any]:
        """The configuration of the bridge on one island, `named` if it names the other router."""
        other = self.both[1 - index]
        remote = {
            "name": other.vpn.name,
            "location": other.name,
            "tls_enabled": self.tls,
        }
        if named:
            remote["router"] = other.name
        return {"remote_msg_vpns": [remote], "remote_connection": {"retry_delay": 1}}

    async def publish(self) -> None:
        """Publish the same numbers on both islands, every few milliseconds."""
        while True:
            for island in self.both:
                island.publish(self.next)
            self.next += 1
            await trio.sleep(self.draw.random() * 0.02)

    def in_sync(self) -> bool:
        """Whether both bridges say that they are."""
        return all(
            island.runner.record.inbound_state is Inbound.READY_IN_SYNC for island in self.both
        )

    def met(self) -> bool:
        """Whether both are in sync over one connection, and there is no other."""
        standing = self.sea.standing()
        return (
            len(standing) == 1
            and self.in_sync()
            and all(
                link.own_half is not None and link.peer_half is not None
                for island in self.both
                for link in links(island)
            )
        )

    async def meet(self) -> None:
        """Let them meet, and see that they stay together and lose nothing once both are in sync."""
        await self.sea.until(self.in_sync)
        first = self.next
        await self.sea.until(self.met, within_s=10)
        cable = self.sea.standing()[0]
        for _ in range(10):
            await trio.sleep(0.15)
            assert self.met()
        assert self.sea.standing() == [cable]
        (near,) = links(self.island(cable.dialer))
        assert near.dialed
        (far,) = links(self.island(cable.acceptor))
        assert far is cable.link
        for link in (near, far):
            assert link.own_half is not None
            assert link.peer_half is not None
        logged_in = {each.dialer for each in self.sea.cables[self.begun :] if each.link.vpn}
        if len(logged_in) == 2:
            assert cable.dialer == "ash"
        self.settled = self.next
        await trio.sleep(1)
        self.check(first, self.settled, self.both)

    def island(self, name: str) -> Any:
        """The island of that name."""
        return self.sea.islands[name]

    def check(self, first: int, last: int, islands: Sequence[Any]) -> None:
        """Nothing came twice or out of order, and of first, first + 1, … last - 1 all came to `islands`."""
        for island in islands:
            (other,) = (each for each in self.both if each is not island)
            own = island.numbers(island.name)
            assert own == list(range(self.next)), "what is published here comes once"
            came = island.numbers(other.name)
            assert all(a < b for a, b in pairwise(came)), "twice, or out of order"
            missing = set(range(first, last)) - set(came)
            assert not missing, f"{len(missing)} from {other.name}, {min(missing)} first"


def links(island: Any) -> list[Any]:
    """The links of an island over which its own bridge is logged in."""
    half = island.runner.half
    return [] if half is None or half.over else [half.link]


async def meet(sea: Any) -> Meeting:
    """Both dial, at about the same time; returns them when they have met."""
    draw = sea.draw
    names = ("ash", "birch") if draw.random() < 0.5 else ("birch", "ash")
    meeting = Meeting(sea, names, tls=draw.random() < 0.5)
    sea.nursery.start_soon(meeting.publish)
    for index, island in enumerate(meeting.both):
        island.bridge(meeting.written(index, named=draw.random() < 0.5))
        await trio.sleep(draw.choice([0, 0, draw.random() * 0.3]))
    await meeting.meet()
    return meeting


async def switched_off_and_on(meeting: Meeting) -> None:
    """One bridge is disabled, which costs the other one nothing, and enabled again."""
    index = meeting.draw.randrange(2)
    island, other = meeting.both[index], meeting.both[1 - index]
    first = meeting.next
    island.change(enabled=False)
    await trio.sleep(meeting.draw.choice([0.01, 1.0]))
    assert island.runner.half is None
    assert island.runner.record.inbound_state is Inbound.DISABLED
    island.change(enabled=True)
    await meeting.meet()
    meeting.check(first, meeting.settled, (other,))


async def cut(meeting: Meeting) -> None:
    """The connection breaks, and breaks again at random moments while both come back."""
    for _ in range(meeting.draw.randrange(1, 4)):
        for cable in meeting.sea.standing():
            cable.cut()
        meeting.begun = len(meeting.sea.cables)
        await trio.sleep(0.01 + meeting.draw.random() * 0.5)
    await meeting.meet()


async def renewed(meeting: Meeting) -> None:
    """One bridge is told to take a new connection; what it attracts comes once all the same."""
    index = meeting.draw.randrange(2)
    island = meeting.both[index]
    first = meeting.next
    meeting.begun = len(meeting.sea.cables)
    before = island.runner.half
    island.change(reconnect=True)
    await meeting.sea.until(lambda: island.runner.half is not before)
    await meeting.meet()
    meeting.check(first, meeting.settled, (island,))


async def tell(sea: Any) -> None:
    """They meet, and whatever happens then, they meet again."""
    meeting = await meet(sea)
    for event in meeting.draw.sample([switched_off_and_on, cut, cut, renewed], 2):
        await event(meeting)


@pytest.mark.parametrize("seed", QUICK)
def test_they_meet(voyage: Any, seed: int) -> None:
    """Whoever dials first, and whatever happens then, they end on one connection and nothing is lost."""
    voyage(tell, seed, WAYS_S[seed % len(WAYS_S)])


@pytest.mark.slow
@pytest.mark.parametrize("first", ALL)
def test_they_meet_a_thousand_times(voyage: Any, first: int) -> None:
    """The same for many more seeds."""
    for seed in range(first, first + ALL.step):
        print("seed", seed)
        voyage(tell, seed, WAYS_S[seed % len(WAYS_S)])


def test_tls_on_one_side_only(voyage: Any) -> None:
    """Bridges of which one only is encrypted share no connection: each stays on its own, in peace."""

    async def run(sea: Any) -> None:
        meeting = Meeting(sea, ("ash", "birch"), tls=False)
        meeting.both[0].bridge(meeting.written(0, named=True))
        meeting.tls = True
        meeting.both[1].bridge(meeting.written(1, named=True))
        await sea.until(meeting.in_sync)
        first = meeting.next
        sea.nursery.start_soon(meeting.publish)
        await trio.sleep(60)
        last = meeting.next
        await trio.sleep(1)
        assert sorted(name for _, name, _, _ in sea.dialed) == ["ash", "birch"]
        assert len(sea.standing()) == 2
        assert meeting.in_sync()
        meeting.check(first, last, meeting.both)

    voyage(run)
