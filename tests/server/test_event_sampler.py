"""Thresholds of message VPNs and endpoints, looked at in a router without sockets."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.events import table
from vpnrouter.events.log import EventLog
from vpnrouter.management.meters import VpnMeters
from vpnrouter.server.events.sampler import SELDOM, EventSampler

TEXT = """
msg_vpns:
  blue:
    max_endpoint_count: 4
    event: {ingress_msg_rate_threshold: {set_value: 10, clear_value: 5}}
    queues:
      q: {subscriptions: [t], max_msg_spool_usage: 1, event: {msg_spool_usage_threshold: {set_percent: 50}}}
      r: {}
      s: {}
"""


class Rates:
    """Meters that show what they are told."""

    def __init__(self) -> None:
        self.rx = 0.0

    def rates(self, vpn: object) -> Any:
        return SimpleNamespace(
            rx_msg=SimpleNamespace(current=self.rx), tx_msg=SimpleNamespace(current=0)
        )


class Rig:
    """A stored router with a log and its sampler; `bridge` is what a bridge shows."""

    def __init__(self, store: Any, config: Any) -> None:
        self.store = store
        self.log = EventLog("here", lambda: 1)
        self.meters = Rates()
        self.bridge = SimpleNamespace(ttl_exceeded_event_raised=False, max_ttl=8)
        source = SimpleNamespace(
            status=lambda now_ns: self.bridge,
            ttl_exceeded=lambda: self.bridge.ttl_exceeded_event_raised,
        )
        bridges: Any = [(("blue", "b"), source)]
        meters: Any = self.meters
        self.sampler = EventSampler(self.log, store.router, lambda: config, lambda: bridges, meters)
        self._seen = 0

    async def look(self) -> list[tuple[str, str]]:
        """What one look raised: names and what they are about."""
        await self.sampler.look()
        found = self.log.after(self._seen, 1_000)
        self._seen = self.log.last_event_id
        return [(event.kind.name, event.name) for event in found]


@pytest.fixture
def rig(stored: Callable[..., Any], configured: Callable[..., Any]) -> Rig:
    """A rig of the configuration above."""
    return Rig(stored(TEXT), configured(TEXT))


async def test_endpoints_of_a_message_vpn(rig: Rig) -> None:
    """3 of 4 are 75 %, 4 of 4 are high, and half of them are not."""
    assert await rig.look() == []
    blue = rig.store.router.vpns["blue"]
    blue.limits.max_endpoint_count = 3
    assert await rig.look() == [("VPN_AD_ENDPOINTS_HIGH", "")]
    assert await rig.look() == []
    blue.limits.max_endpoint_count = 6
    assert await rig.look() == [("VPN_AD_ENDPOINTS_HIGH_CLEAR", "")]


async def test_a_queue_fills_up_and_is_emptied(rig: Rig) -> None:
    """High at half of a megabyte, over quota once however many are refused, and clear when it is empty."""
    big = bytes(300_000)
    rig.store.publish("t", big)
    assert await rig.look() == []
    rig.store.publish("t", big)
    assert await rig.look() == [("VPN_AD_MSG_SPOOL_HIGH", "q")]
    for _ in range(5):
        rig.store.publish("t", big)
    assert await rig.look() == [("VPN_AD_MSG_SPOOL_QUOTA_EXCEED", "q")]
    rig.store.publish("t", big)
    assert await rig.look() == []
    queue = rig.store.router.vpns["blue"].endpoints[QUEUE, "q"]
    queue.delete("over")
    rig.store.commit()
    assert await rig.look() == []


async def test_rates(rig: Rig) -> None:
    """Values, not percent."""
    rig.meters.rx = 11.0
    assert await rig.look() == [("VPN_VPN_ING_MSG_RATE_HIGH", "")]
    rig.meters.rx = 6.0
    assert await rig.look() == []
    rig.meters.rx = 5.0
    assert await rig.look() == [("VPN_VPN_ING_MSG_RATE_HIGH_CLEAR", "")]


async def test_max_ttl_of_a_bridge(rig: Rig) -> None:
    """Told once until somebody clears it."""
    rig.bridge.ttl_exceeded_event_raised = True
    found = [name for _ in range(2 * SELDOM) for name, _ in await rig.look()]
    assert found == ["VPN_BRIDGING_TTL_EXCEEDED"]
    rig.bridge.ttl_exceeded_event_raised = False
    for _ in range(SELDOM):
        assert await rig.look() == []
    rig.bridge.ttl_exceeded_event_raised = True
    found = [name for _ in range(SELDOM) for name, _ in await rig.look()]
    assert found == ["VPN_BRIDGING_TTL_EXCEEDED"]


async def test_refusals_are_cleared_when_there_is_room(rig: Rig) -> None:
    """The next one is told again."""
    rig.log.raise_once(table.SUBSCRIPTIONS_EXCEEDED, "blue", "", "full")
    await rig.look()
    assert not rig.log.stands(table.SUBSCRIPTIONS_EXCEEDED, "blue", "")


def test_the_meters_have_what_is_asked_for(rig: Rig) -> None:
    """The stand-in above answers as the real one does."""
    router = rig.store.router
    rates = VpnMeters(router).rates(router.vpns["blue"])
    assert (rates.rx_msg.current, rates.tx_msg.current) == (0, 0)
