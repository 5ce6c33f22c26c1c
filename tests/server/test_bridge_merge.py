"""Two bridges that dialled each other at once, while one moves over to the other's connection."""

from typing import Any

import pytest
import trio

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.bridge import Bridge

SEEDS = range(8)


class Pair:
    """Islands ash and birch. Both bridges dial; ash's connection is the one that stays."""

    def __init__(self, sea: Any) -> None:
        self.sea = sea
        self.ash = sea.island("ash", "v")
        self.birch = sea.island("birch", "v")
        self.both = (self.ash, self.birch)
        self.next = 0

    def begin(self, *order: Any) -> None:
        """Run both bridges, in this order; neither knows the other's router by name."""
        for island in order or self.both:
            other = self.ash if island is self.birch else self.birch
            island.bridge({"remote_msg_vpns": [{"name": "v", "location": other.name}]})

    def cables(self, dialer: str) -> list[Any]:
        """The connections that stand which this router dialled."""
        return [cable for cable in self.sea.standing() if cable.dialer == dialer]

    def in_sync(self) -> bool:
        """Whether both bridges say that they are."""
        return all(
            island.runner.record.inbound_state is Inbound.READY_IN_SYNC for island in self.both
        )

    def in_sync_ash(self) -> bool:
        """Whether ash's bridge says that it is."""
        return self.ash.runner.record.inbound_state is Inbound.READY_IN_SYNC

    def publish(self) -> int:
        """Publish a number on both; returns it."""
        for island in self.both:
            island.publish(self.next)
        self.next += 1
        return self.next - 1

    def came(self, number: int) -> bool:
        """Whether what was published on either has come to the other."""
        return number in self.ash.numbers("birch") and number in self.birch.numbers("ash")


def filters(*topics: str) -> Any:
    """Remote subscriptions as a configuration holds them."""
    return Bridge.model_validate({"remote_subscriptions": topics}).remote_subscriptions


def links_on_hold(pair: Pair) -> list[Any]:
    """The connections to birch that are not read until the one before has ended."""
    return [
        cable.link for cable in pair.cables("ash") if cable.link is not None and cable.link.paused
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dialer", ["ash", "birch"])
def test_one_of_the_two_breaks(voyage: Any, seed: int, dialer: str) -> None:
    """Whenever one of two connections breaks, the other one, or a new one, carries both ways soon."""

    async def tell(sea: Any) -> None:
        pair = Pair(sea)
        pair.begin()
        await sea.until(lambda: bool(pair.cables(dialer)))
        await trio.sleep(sea.draw.random() * 0.8)
        for cable in pair.cables(dialer):
            cable.cut()
        await trio.sleep(15)
        assert pair.in_sync()
        number = pair.publish()
        await trio.sleep(1)
        assert pair.came(number)

    voyage(tell, seed, 0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_on_the_way(voyage: Any, seed: int) -> None:
    """What is written while a bridge moves holds then, whether or not something came of the move."""

    async def tell(sea: Any) -> None:
        pair = Pair(sea)
        pair.begin()
        await sea.until(lambda: bool(pair.cables("ash") and pair.cables("birch")))
        await trio.sleep(sea.draw.random() * 2)
        pair.birch.change(remote_subscriptions=filters(">", "more"))
        await trio.sleep(sea.draw.random() * 0.3)
        if sea.draw.random() < 0.5:
            for cable in pair.cables("ash"):
                cable.cut()
        await trio.sleep(15)
        assert pair.in_sync()
        assert sorted(pair.birch.runner.half.wanted) == [">", "more"]
        assert pair.ash.vpn.subscription_count == 3

    voyage(tell, seed, 0.3)


def test_a_remote_that_goes_on_the_way(voyage: Any) -> None:
    """A bridge whose remote is taken away while it moves leaves the peer's connection alive and read."""
    met: list[int] = []

    def moves(pair: Pair) -> bool:
        half = pair.birch.runner.half
        return bool(links_on_hold(pair)) or (half is not None and not half.link.dialed)

    async def tell(sea: Any) -> None:
        pair = Pair(sea)
        pair.begin()
        await sea.until(lambda: moves(pair))
        if not links_on_hold(pair):
            # The old connection ended before there was anything to hold back.
            return
        met.append(1)
        pair.birch.change(remote_msg_vpns=[])
        await trio.sleep(5)
        assert pair.birch.runner.half is None
        (cable,) = sea.standing()
        assert cable.dialer == "ash"
        assert not cable.link.paused
        pair.ash.change(remote_subscriptions=filters("birch"))
        await trio.sleep(5)
        assert pair.in_sync_ash()
        assert list(cable.link.client.subscriptions) == ["birch"]

    for seed in range(10):
        print("seed", seed)
        voyage(tell, seed, 0.3)
    assert met


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("alone_first", [False, True])
@pytest.mark.parametrize("alone", ["ash", "birch"])
def test_a_sibling_that_shared_a_connection_goes(
    voyage: Any, seed: int, alone: str, alone_first: bool
) -> None:
    """Two bridges to one remote and one back take two connections; with one of the two gone, one is left."""

    async def run(sea: Any) -> None:
        pair = Pair(sea)
        one = pair.ash if alone == "ash" else pair.birch
        two = pair.birch if alone == "ash" else pair.ash
        there = {"remote_msg_vpns": [{"name": "v", "location": two.name}]}
        back = {"remote_msg_vpns": [{"name": "v", "location": one.name}]}
        if alone_first:
            one.bridge(there)
            await pair.sea.until(lambda: in_sync(one.runner))
        siblings = [two.bridge(back | {"remote_subscriptions": ["ash", "birch"]}, name="s")]
        siblings.append(two.bridge(back, name="t"))
        await pair.sea.until(lambda: all(in_sync(each) for each in siblings))
        if not alone_first:
            one.bridge(there)
        await pair.sea.until(lambda: in_sync(one.runner))
        await trio.sleep(10)
        assert len(sea.standing()) == 2
        shares = next(each for each in siblings if each.half.link.peer_half is not None)
        (stays,) = (each for each in siblings if each is not shares)
        shares.remove()
        await sea.until(lambda: len(sea.standing()) == 1, within_s=10)
        await sea.until(lambda: stays.half.link.peer_half is not None and in_sync(stays))
        assert in_sync(one.runner)
        first = pair.publish()
        await sea.until(lambda: pair.came(first))
        assert len(sea.standing()) == 1

    voyage(run, seed, 0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("who", ["ash", "birch"])
def test_what_is_on_its_way_over_a_shared_connection(voyage: Any, seed: int, who: str) -> None:
    """When one bridge moves to a new connection, messages on their way to the other over the old one still arrive."""

    async def run(sea: Any) -> None:
        pair = Pair(sea)
        pair.begin()
        await sea.until(lambda: in_sync(pair.ash.runner) and in_sync(pair.birch.runner))
        await sea.until(lambda: len(sea.standing()) == 1)
        await trio.sleep(4)
        mover = pair.ash if who == "ash" else pair.birch
        other = pair.birch if who == "ash" else pair.ash
        left: list[int] = []

        async def publish() -> None:
            while True:
                served = [
                    link
                    for link in mover.book.serving.values()
                    if not link.ended and link.client is not None and link.client.subscriptions
                ]
                number = pair.publish()
                if served:
                    left.append(number)
                await trio.sleep(0.005)

        sea.nursery.start_soon(publish)
        await trio.sleep(1)
        before = mover.runner.half
        mover.change(reconnect=True)
        await sea.until(lambda: mover.runner.half not in {None, before})
        await trio.sleep(1)
        await sea.until(lambda: in_sync(other.runner) and len(sea.standing()) == 1)
        end = pair.next
        await sea.until(lambda: end in other.numbers(mover.name))
        came = other.numbers(mover.name)
        assert len(came) == len(set(came)), "twice"
        missing = {number for number in left if number < end} - set(came)
        assert not missing, f"{len(missing)} of {end}, {min(missing)} first"

    voyage(run, seed, 0.3)


def in_sync(runner: Any) -> bool:
    """Whether a bridge says that it is."""
    return runner.record.inbound_state is Inbound.READY_IN_SYNC
