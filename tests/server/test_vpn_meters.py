"""vpnrouter.management.meters: rates of what is summed up, and sums that are right whoever comes and goes."""

from types import ModuleType
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.bridges.status import Rate
from vpnrouter.core.vpn import TotalsSum
from vpnrouter.management import meters as vpn_meters
from vpnrouter.management.meters import VpnMeters

SECOND = 1_000_000_000


async def test_rates(kit: ModuleType) -> None:
    """Messages and bytes a second, in and out; those of the other message VPN are its own."""
    world = kit.MemoryRouter("blue", "red")
    meters = VpnMeters(world.router, lambda: world.now_ns)
    publisher, subscriber = world.connect("p", level=4), world.connect("s", level=4)
    subscriber.subscribe("a")
    await meters.sample()
    for _ in range(6):
        publisher.publish("a", b"123")
    publisher.publish("nobody")
    world.advance(2)
    await meters.sample()
    rates = meters.rates(world.vpn())
    assert (rates.rx_msg, rates.tx_msg) == (Rate(4, 4), Rate(3, 3))
    assert rates.tx_byte == Rate(24, 24)
    assert meters.rates(world.vpn("red")).rx_msg == Rate()
    world.advance(2)
    await meters.sample()
    assert meters.rates(world.vpn()).tx_msg == Rate(0, 2)
    # What had been counted as sent goes down with the connection: that is no rate.
    subscriber.lose()
    assert world.vpn().totals().tx_msg_count == 0
    world.advance(2)
    await meters.sample()
    assert meters.rates(world.vpn()).tx_msg == Rate(0, 1)
    assert meters.totals(world.vpn()).tx_msg_count == 0
    assert world.add_vpn("blue") is world.vpn()
    assert meters.rates(world.vpn()).rx_msg == Rate()
    del world.router.vpns["red"]
    await meters.sample()


async def test_many_are_summed_up_on_the_side(
    kit: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of few is of now; that of many is as old as the last sample, and the first one is not waited for."""
    monkeypatch.setattr(vpn_meters, "PORTION", 2)
    world = kit.MemoryRouter()
    meters = VpnMeters(world.router, lambda: world.now_ns)
    clients = [world.connect(f"c{number}") for number in range(5)]
    clients[0].publish("a")
    assert meters.totals(world.vpn()).rx_msg_count == 1
    await meters.sample()
    clients[0].publish("a")
    assert meters.totals(world.vpn()).rx_msg_count == 1
    await meters.sample()
    assert meters.totals(world.vpn()).rx_msg_count == 2
    for client in clients[:3]:
        client.lose()
    clients[4].publish("a")
    assert meters.totals(world.vpn()).rx_msg_count == 3


def test_a_sum_in_portions(kit: ModuleType) -> None:
    """Who goes in the middle of a sum, or whose session is taken over, is counted once; who comes is not yet."""
    world = kit.MemoryRouter()
    clients = [world.connect(f"c{number}", level=4, clean_start=False) for number in range(4)]
    for client in clients:
        client.subscribe("a")
        client.publish("a")
    for client in clients:
        client.drain()
    before = world.vpn().totals()
    sums = TotalsSum(world.vpn())
    assert not sums.step(2)
    clients[0].lose()
    clients[3].lose()
    again = world.connect("c2", level=4, clean_start=False)
    again.publish("a")
    again.drain()
    assert not sums.step(1)
    assert sums.step(1)
    assert sums.step(1)
    found = sums.totals()
    # The last one published while c1 and c2 were there, and c1 had been added up before.
    assert found.rx_msg_count == before.rx_msg_count == 4
    assert before.tx_msg_count <= found.tx_msg_count <= world.vpn().totals().tx_msg_count
    assert world.vpn().totals().rx_msg_count == 5


async def test_for_ever(kit: ModuleType, autojump_clock: trio.testing.MockClock) -> None:
    """Once a second, also message VPNs that come later."""
    world = kit.MemoryRouter()
    meters = VpnMeters(world.router, lambda: int(trio.current_time() * SECOND))
    client: Any = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(meters.keep)
        await trio.sleep(0.5)
        world.add_vpn("late")
        client = world.connect("c", vpn="late")
        await trio.sleep(1)
        for _ in range(50):
            client.publish("a")
        await trio.sleep(1)
        assert meters.rates(world.vpn("late")).rx_msg == Rate(50, 50)
        nursery.cancel_scope.cancel()
