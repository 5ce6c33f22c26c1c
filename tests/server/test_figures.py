"""The numbers of a running router, by way of its own /metrics."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import httpx
import trio
from prometheus_client.parser import text_string_to_metric_families

from vpnrouter.bridges.bridge import Bridge, BridgeFacts
from vpnrouter.bridges.status import status_of
from vpnrouter.core.router import Router
from vpnrouter.management.live_traces import LiveTraces
from vpnrouter.management.meters import VpnMeters
from vpnrouter.management.metrics.families import BridgeFigures
from vpnrouter.management.metrics.source import (
    BEHIND,
    FIRST,
    Figures,
    bridge_figures,
    higher,
)
from vpnrouter.management.server_hooks import ServerHooks
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


async def test_a_running_router(running: Any, client_of: Any, port: Any) -> None:
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
        with trio.fail_after(20):
            while node.router.vpns["blue"].publishers:  # noqa: ASYNC110 - a router tells nobody
                await trio.sleep(0.01)
        page, counters = await scrape(base)
        pages.append(page)
    _, middle, last = pages
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


class OneBridge:
    """Bridges of which there is one, whose counts are what a test sets."""

    def __init__(self) -> None:
        record = Bridge(BridgeFacts("here", "blue", "b"), 0)
        self.shown = status_of(record, 0)
        self.source: Any = self

    def now(self) -> dict[tuple[str, str], Any]:
        return {("blue", "b"): self.source}

    def kept(self) -> tuple[Any, ...]:
        return ()

    def status(self, now_ns: int, *, whole: bool) -> Any:
        assert whole
        return self.shown


def test_counts_of_a_bridge_do_not_go_back() -> None:
    """What a shared connection counted stays while it is down; a bridge made anew begins anew."""
    bridges: Any = OneBridge()
    router = Router("here", 1, Recorder())
    numbers = Figures(router, bridges, VpnMeters(router), LiveTraces("r"), ServerHooks())
    seen = []
    for sent, lost in ((5, {"duplicate": 1}), (9, {}), (3, {}), (11, {"duplicate": 2})):
        bridges.shown = replace(bridges.shown, data_tx_msg_count=sent, discarded_tx=lost)
        [row] = numbers.bridges(lambda _: True)
        seen.append((row.messages[1], row.discarded_tx.get("duplicate", 0)))
    assert seen == [(5, 1), (9, 1), (9, 1), (11, 2)]
    other: Any = OneBridge()
    other.shown = replace(bridges.shown, data_tx_msg_count=2)
    bridges.source = other
    [row] = numbers.bridges(lambda _: True)
    assert row.messages == (0, 2)
    assert not list(numbers.bridges(lambda _: False))


def test_which_counts_do_not_go_back() -> None:
    """They stand together in a row."""
    assert BridgeFigures._fields[FIRST:BEHIND] == (
        *("failures", "messages", "size", "control_messages", "control_size"),
        *("delivered", "offered", "discarded_rx", "discarded_tx"),
    )
    assert higher((1, 5), (2, 4)) == (2, 5)
    assert higher({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_ages_of_a_bridge() -> None:
    """Never is no age."""
    status = OneBridge().shown
    assert bridge_figures(status).last_message_age == (None, None)
    older = replace(status, last_rx_age_ms=1_500, health="up")
    assert bridge_figures(older).last_message_age == (1.5, None)
    assert bridge_figures(older).up == 1
