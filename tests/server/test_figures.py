"""The numbers of a running router, by way of its own /metrics."""

import os
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.look import BridgeLook
from vpnrouter.bridges.status import Rate
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, QUEUE
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import TotalsSum
from vpnrouter.durations import BOUNDS_S, Durations
from vpnrouter.management import meters as vpn_meters
from vpnrouter.management.live_traces import LiveTraces
from vpnrouter.management.meters import VpnMeters
from vpnrouter.management.metrics import source as module
from vpnrouter.management.metrics.queues import (
    OTHER,
    QUEUES,
    IdTimes,
    QueueNumbers,
    by_reason,
    oldest_id,
)
from vpnrouter.management.metrics.source import (
    BRIDGES,
    Figures,
    process_figures,
)
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.server.run import serve
from vpnrouter.settings.shown import Row, Section
from vpnrouter.trace.recorder import Recorder

ONE = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues: {q: {subscriptions: ["spool/>"]}}
    bridges:
      from-far:
        enabled: false
        remote_authentication: {scheme: basic, basic: {client_username: b, password: p}}
        remote_msg_vpns: [{name: far, location: "127.0.0.1:1"}]
"""

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scrape(base: str) -> tuple[Samples, set[str]]:
    """All samples of a page, and the names of those that are counters."""
    async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=20) as client:
        text = (await client.get("/metrics")).text
    found = list(text_string_to_metric_families(text))
    samples = {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in found
        for one in family.samples
    }
    counting = {"counter", "histogram"}
    counters = {s.name for family in found if family.type in counting for s in family.samples}
    return samples, counters


def of(samples: Samples, name: str, **labels: str) -> float:
    """The one sample that has these labels."""
    [value] = [
        value
        for (known, pairs), value in samples.items()
        if known == name and labels.items() <= dict(pairs).items()
    ]
    return value


async def test_a_running_router(running: Any, client_of: Any, port: Any, until: Any) -> None:
    """Figures are those of the router, and no counter ever goes down."""
    async with running(ONE) as node:
        base = f"http://127.0.0.1:{port(node, 'http')}"
        pages = [(await scrape(base))[0]]
        client = await client_of(node)
        await client.connect("c")
        await client.subscribe("a/#")
        for _ in range(3):
            await client.publish("a/1", b"x")
            assert await client.payload() == b"x"
        await client.publish("nobody/wants/this")
        await client.publish("spool/1", b"y")
        await client.publish("a/1", b"last")
        assert await client.payload() == b"last"
        pages.append((await scrape(base))[0])
        await client.stream.aclose()
        await until(lambda: not node.router.vpns["blue"].publishers)
        page, counters = await scrape(base)
        pages.append(page)
    _, middle, last = pages
    rounds = [of(page, "vpnrouter_event_loop_turn_seconds_count", work="sockets") for page in pages]
    assert rounds[0] < rounds[1]
    assert of(middle, "vpnrouter_msg_vpn_messages_total", direction="rx") == 6
    assert of(middle, "vpnrouter_msg_vpn_messages_total", direction="tx") == 4
    assert of(middle, "vpnrouter_msg_vpn_connections") == 1
    assert of(last, "vpnrouter_msg_vpn_connections") == 0
    assert of(middle, "vpnrouter_listener_connections", protocol="mqtt") == 1
    assert of(middle, "vpnrouter_queue_messages", queue="q") == 1
    assert of(middle, "vpnrouter_spool_commit_seconds_count") >= 1
    assert of(middle, "vpnrouter_bridge_up", bridge="from-far") == 0
    assert of(middle, "vpnrouter_bridge_inbound_state", bridge="from-far", state="disabled") == 1
    reason = {"reason": "no-subscription-match"}
    assert of(middle, "vpnrouter_msg_vpn_discarded_messages_total", **reason) == 1
    assert not any(
        name == "vpnrouter_msg_vpn_tx_discarded_messages_total" for name, *_ in middle
    ), "what nobody wants was on its way to nobody"
    for before, after in pairwise(pages):
        for key, value in before.items():
            if key[0] in counters:
                assert after[key] >= value, key


async def test_turns_of_the_event_loop(configured: Any, interpreter: None, port: Any) -> None:
    """What a task does at a stretch is counted under its name, as are timers and requests."""

    async def takes_long() -> None:
        time.sleep(0.006)  # noqa: ASYNC251 - that is the point

    async with trio.open_nursery() as nursery:
        nodes: list[Any] = []
        nursery.start_soon(partial(serve, alone=True), configured(ONE, "here"), nodes.append)
        with trio.fail_after(20):
            while not nodes:  # noqa: ASYNC110 - the router is the only other thing
                await trio.sleep(0.001)
            base = f"http://127.0.0.1:{port(nodes[0], 'http')}"
            nursery.start_soon(takes_long, name="planted")
            await scrape(base)
            page, _ = await scrape(base)
        nursery.cancel_scope.cancel()
    turns = "vpnrouter_event_loop_turn_seconds"
    assert of(page, f"{turns}_bucket", work="planted", le="0.005") == 0
    assert of(page, f"{turns}_count", work="planted") == 1
    for work in ("sockets", "timers", "requests"):
        assert of(page, f"{turns}_count", work=work) >= 1


class OneBridge:
    """Bridges of which there is one, whose counts are what a test sets."""

    def __init__(self) -> None:
        self.record = Bridge(BridgeFacts("here", "blue", "b"), 0)
        self.source: Any = self

    def now(self) -> dict[tuple[str, str], Any]:
        return {("blue", "b"): self.source}

    def look(self, now_ns: int, *, whole: bool) -> BridgeLook:
        assert whole
        return BridgeLook(self.record, now_ns, sender=self.record)


def named(section: Section, row: Row) -> Any:
    """The values of a row by their names."""
    return SimpleNamespace(**dict(zip(section.names, row, strict=True)))


def test_counts_of_a_bridge_do_not_go_back() -> None:
    """What a shared connection counted stays while it is down; a bridge made anew begins anew."""
    bridges: Any = OneBridge()
    router = Router("here", 1, Recorder())
    numbers = Figures(router, bridges, VpnMeters(router), LiveTraces("r"), ServerHooks())
    seen = []
    for sent, lost in ((5, {"duplicate": 1}), (9, {}), (3, {}), (11, {"duplicate": 2})):
        counters = bridges.record.counters
        counters.data_tx_msg_count = sent
        counters.discarded_tx.counts = lost
        [row] = [named(BRIDGES, one) for one in numbers.bridges(lambda _: True)]
        seen.append((row.data_rx_msg_count[1], row.discarded_tx.get("duplicate", 0)))
    assert seen == [(5, 1), (9, 1), (9, 1), (11, 2)]
    other: Any = OneBridge()
    other.record.counters.data_tx_msg_count = 2
    bridges.source = other
    [row] = numbers.bridges(lambda _: True)
    assert named(BRIDGES, row).data_rx_msg_count == (0, 2)
    assert not list(numbers.bridges(lambda _: False))


def test_ages_of_a_bridge() -> None:
    """Never is no age."""
    bridge = OneBridge()
    row = BRIDGES.row(bridge.look(0, whole=True))
    assert named(BRIDGES, row).last_rx_age_ms == (None, None)
    bridge.record.counters.last_data_rx_ns = 1_000_000_000
    row = BRIDGES.row(bridge.look(2_500_000_000, whole=True))
    assert named(BRIDGES, row).last_rx_age_ms == (1.5, None)


# -- process figures -------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
def test_this_process() -> None:
    """Figures of this process, and of nothing else."""
    before = process_figures()
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    after = process_figures()
    for descriptor in opened:
        os.close(descriptor)
    assert after.open_descriptors - before.open_descriptors == 5
    assert 1_000_000 < before.resident_size < before.virtual_size
    assert before.threads >= 1
    assert after.cpu_seconds >= before.cpu_seconds > 0
    assert before.open_descriptors <= before.most_descriptors
    assert time.time() - 100_000 < before.start_time <= time.time()


def test_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no /proc, the rest is told."""
    monkeypatch.setattr(module, "_OURS", tmp_path / "missing")
    figures = process_figures()
    assert (figures.resident_size, figures.open_descriptors) == (0, 0)
    assert figures.cpu_seconds > 0


# -- queue figures ---------------------------------------------------------------------------------


TEXT = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>], max_msg_spool_usage: 3}}}}"
SECOND = 1_000_000_000


def endpoint_of(one: Any) -> Any:
    """The queue."""
    return one.router.vpns["blue"].endpoints[QUEUE, "q"]


def figures_of(numbers: QueueNumbers, endpoint: Any) -> Any:
    """What metrics have of an endpoint."""
    return named(QUEUES, numbers.of(endpoint))


def test_numbers(stored: Any) -> None:
    """What is in a queue, what was, and how long the oldest message has been waiting."""
    one = stored(TEXT)
    context = one.router.context
    numbers = QueueNumbers(one.spooling.spool)
    numbers.look()
    empty = figures_of(numbers, endpoint_of(one))
    assert (empty.msg_count, empty.oldest_msg_age_ms, empty.max_size) == (0, 0.0, 3_000_000)
    one.publish("a/1")
    context.now_ns += 5 * SECOND
    numbers.look()
    one.publish("a/2")
    context.now_ns += 5 * SECOND
    shown = figures_of(numbers, endpoint_of(one))
    assert (shown.msg_vpn, shown.queue) == ("blue", "q")
    assert (shown.msg_count, shown.spooled_msg_count, shown.acked_msg_count, shown.imbalance) == (
        2,
        2,
        0,
        0,
    )
    assert shown.msg_spool_usage > 0
    assert shown.spooled_byte_count == shown.msg_spool_usage
    assert shown.oldest_msg_age_ms == pytest.approx(10, abs=0.01)
    assert (shown.ingress_disabled, shown.egress_disabled, shown.bind_count) == (0, 0, 0)


def test_oldest_of_what_consumers_have(stored: Any, hand: Any) -> None:
    """A message that a consumer keeps is still the oldest."""
    one = stored(TEXT)
    for number in range(3):
        one.publish(f"a/{number}")
    endpoint = endpoint_of(one)
    first = oldest_id(endpoint)
    assert first == endpoint.browse(0, 1)[0].msg_id
    flow = hand(endpoint, "c", 2)
    endpoint.bind(flow, CONSUME, CONSUME)
    one.commit()
    assert len(flow.unacked) == 2
    assert oldest_id(endpoint) == first
    shown = figures_of(QueueNumbers(one.spooling.spool), endpoint)
    assert (shown.tx_unacked_msg_count, shown.bind_count, shown.msg_count) == (2, 1, 3)
    endpoint.settle(flow, first, 0)
    one.commit()
    assert oldest_id(endpoint) == first + 1


def test_age_of_what_was_there_before(stored: Any) -> None:
    """After a start messages are read for their age, once each and few at a time."""
    stored(TEXT).publish("a/1")
    one = stored(TEXT)
    context = one.router.context
    assert context.steady_ns
    context.now_ns += 100 * SECOND
    numbers = QueueNumbers(one.spooling.spool)
    numbers.look()
    endpoint = endpoint_of(one)
    numbers._left = 0
    assert figures_of(numbers, endpoint).oldest_msg_age_ms == 0.0
    numbers.look()
    assert figures_of(numbers, endpoint).oldest_msg_age_ms == pytest.approx(100, abs=20)
    numbers._left = 0
    context.now_ns += 50 * SECOND
    assert figures_of(numbers, endpoint).oldest_msg_age_ms == pytest.approx(150, abs=20)


def test_reasons_are_a_closed_set() -> None:
    """What nobody knows is added up."""
    assert by_reason({}) == {}
    assert by_reason({"max-ttl-expired": 2}) == {"max-ttl-expired": 2}
    assert by_reason({"max-ttl-expired": 2, "topic a/b": 3, "c": 4}) == {
        "max-ttl-expired": 2,
        OTHER: 7,
    }


# -- durations -------------------------------------------------------------------------------------


def test_counts() -> None:
    """A duration counts under the first bound that it does not exceed, and beyond all in the end."""
    durations = Durations()
    for milliseconds in (-1, 0, 1, 2, 10_000):
        durations.add(milliseconds * 1_000_000)
    shown = durations.histogram()
    assert shown.bounds == BOUNDS_S
    assert shown.counts[:2] == (3, 1)
    assert shown.counts[-1] == 1
    assert sum(shown.counts) == 5
    assert shown.total == 10.003


# -- vpn meters ------------------------------------------------------------------------------------


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


# -- id times --------------------------------------------------------------------------------------


def test_age() -> None:
    """A message is as old as the last look that did not know it."""
    times = IdTimes()
    assert times.age_ns(3, 50) == 0
    times.note(10, 100)
    times.note(10, 200)
    times.note(12, 300)
    assert [times.age_ns(number, 1_000) for number in (3, 10, 11, 12, 99)] == [
        *(900, 800, 800, 700, 700),
    ]
    assert [times.knows(number) for number in (9, 10, 99)] == [False, True, True]


def test_nothing_comes() -> None:
    """While nothing comes, what comes next is young, and what was there before grows old."""
    times = IdTimes()
    for now in range(100, 10_000, 100):
        times.note(5, now)
    assert times.age_ns(5, 10_000) == 100
    assert times.age_ns(4, 10_000) == 9_900


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=60))
def test_never_younger_than_it_is(steps: list[tuple[int, int]]) -> None:
    """With few moments remembered, no message since the first look is told younger than it is."""
    times = IdTimes(6)
    following, now = 1, 0
    born: dict[int, int] = {}
    times.note(following, now)
    for count, passed in steps:
        for _ in range(count):
            born[following] = now
            following += 1
        now += passed
        times.note(following, now)
    ages = [times.age_ns(number, now) for number in born]
    assert all(age >= now - born[number] for number, age in zip(born, ages, strict=True))
    assert ages == sorted(ages, reverse=True)
