"""Counts and rates of message VPNs: summed up about once a second, a portion at a time.

What counts is each connection. A message VPN may have ten thousand of them, and whoever looks asks for it
every second: so the sum is made on the side and kept, and costs nothing per message.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter.bridges.status import NO_RATES, BridgeRates, RateMeter
from vpnrouter.core.discard_reasons import (
    CLIENT_NOT_CONNECTED,
    NO_LOCAL_DELIVERY,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.vpn import TotalsSum, VpnTotals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn


PORTION: Final = 256
"""Connections that are added up before the router's other tasks have their turn: about a tenth of a
millisecond. As few are added up anew whenever somebody asks."""

SAMPLE_S: Final = 1.0
"""Seconds between samples."""


NOT_SENT: Final = (TRANSMIT_CONGESTION, CLIENT_NOT_CONNECTED, NO_LOCAL_DELIVERY)
"""Discards of messages that were on their way to a client; all others are counted as they come in."""


def by_direction(discards: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return discards of a message VPN by reason: of messages on their way to a client, and of all others."""
    sent = {reason: count for reason, count in discards.items() if reason in NOT_SENT}
    return sent, {reason: count for reason, count in discards.items() if reason not in sent}


@final
class _Meter:
    """One message VPN; `vpn` is the very object, since another one may come under its name."""

    def __init__(self, vpn: MessageVpn) -> None:
        self.vpn = vpn
        self.rates = RateMeter()
        self.last: VpnTotals | None = None
        self._most = [0, 0, 0, 0]

    def sample(self, now_ns: int, totals: VpnTotals) -> None:
        """Record a sum."""
        self.last = totals
        # What went down with a connection had been counted as sent: that is no rate.
        self._most = [max(pair) for pair in zip(self._most, totals[:4], strict=True)]
        rx_msgs, rx_bytes, tx_msgs, tx_bytes = self._most
        self.rates.sample(now_ns, rx_msgs, rx_bytes, tx_msgs, tx_bytes)


@final
class VpnMeters:
    """The meters of a router's message VPNs."""

    def __init__(self, router: Router, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._router = router
        self._clock_ns = clock_ns
        self._meters: dict[str, _Meter] = {}

    def totals(self, vpn: MessageVpn) -> VpnTotals:
        """Return the counts of a message VPN: of now where few are connected, else about a second old."""
        meter = self._meters.get(vpn.name)
        last = None if meter is None or meter.vpn is not vpn else meter.last
        return vpn.totals() if last is None or len(vpn.publishers) <= PORTION else last

    def rates(self, vpn: MessageVpn) -> BridgeRates:
        """Return the rates of messages in and out."""
        meter = self._meters.get(vpn.name)
        return NO_RATES if meter is None or meter.vpn is not vpn else meter.rates.bridge_rates()

    async def sample(self) -> None:
        """Add up all message VPNs once."""
        vpns = self._router.vpns
        for name in [name for name in self._meters if name not in vpns]:
            del self._meters[name]
        for name, vpn in list(vpns.items()):
            meter = self._meters.get(name)
            if meter is None or meter.vpn is not vpn:
                meter = _Meter(vpn)
                self._meters[name] = meter
            sums = TotalsSum(vpn)
            while not sums.step(PORTION):
                await trio.lowlevel.checkpoint()
            meter.sample(self._clock_ns(), sums.totals())
            await trio.lowlevel.checkpoint()

    async def keep(self) -> None:
        """Sample about once a second, for ever."""
        while True:
            await self.sample()
            await trio.sleep(SAMPLE_S)
