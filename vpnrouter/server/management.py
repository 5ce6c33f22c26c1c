"""The router as the management API sees it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from vpnrouter.core.discards import CLIENT_NOT_CONNECTED, NO_LOCAL_DELIVERY, TRANSMIT_CONGESTION
from vpnrouter.management.sources import MsgVpnStatus
from vpnrouter.server.monitor.meters import VpnMeters

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vpnrouter.bridges.status import (
        BridgeStatus,
        LocalSubscriptionStatus,
        RemoteSubscriptionStatus,
    )
    from vpnrouter.core.router import Router

PROTOCOLS: Final = frozenset({"http", "https"})
"""Protocols of listeners that are served here."""

WRITE_S: Final = 10.0
"""Seconds that a peer has to take what is written to it; the answer is lost then, and the connection."""

IDLE_S: Final = 10.0
"""Seconds that a connection may wait for its first or its next request."""

HANDSHAKE_S: Final = 10.0
"""Seconds for a TLS handshake; the same bound as for a silent client."""

LAST_S: Final = 1.0
"""Seconds to answer a peer that will send nothing more. Hypercorn would keep the connection until it
counts as idle, and most peers that said their last have gone."""

WAITED_S: Final = 1.0
"""Seconds that a connection may wait for a request before it can lose its place to a new one."""

REST_S: Final = 0.1
"""Pause of the accept loop when the system is out of descriptors."""

NOT_SENT: Final = (TRANSMIT_CONGESTION, CLIENT_NOT_CONNECTED, NO_LOCAL_DELIVERY)
"""Discards of messages that were on their way to a client; all others are counted as they come in."""

SAMPLE_S: Final = 1.0
"""Seconds between samples of the bridges' counts."""


class HasContext(Protocol):
    """The TLS of a listener; its context may be replaced while the listener serves."""

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context for a new connection."""


def by_direction(discards: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Discards of a message VPN by reason: of messages on their way to a client, and of all others."""
    sent = {reason: count for reason, count in discards.items() if reason in NOT_SENT}
    return sent, {reason: count for reason, count in discards.items() if reason not in sent}


class BridgeSource(Protocol):
    """A bridge that can be asked how it stands."""

    def status(self, now_ns: int) -> BridgeStatus:
        """How it stands at `now_ns`, monotonic; counts since they were cleared."""

    def remote_subscriptions(self) -> Sequence[RemoteSubscriptionStatus]:
        """The subscriptions that it asks its remote for."""

    def local_subscriptions(self) -> Sequence[LocalSubscriptionStatus]:
        """What its remote's bridge asks for here."""

    def disconnect(self) -> bool:
        """Drop its connection; False when it has none."""

    def clear_stats(self) -> None:
        """Begin its counts anew."""

    def clear_event(self, event: str) -> None:
        """Take an event for seen, such as `ttl-exceeded`."""

    def sample(self, now_ns: int) -> None:
        """Note the counts that rates are made from."""


@final
class RouterMonitor:
    """The router as the management API sees it; `bridges` by message VPN and name, and may change."""

    def __init__(
        self,
        router: Router,
        bridges: Mapping[tuple[str, str], BridgeSource],
        clock_ns: Callable[[], int] = time.monotonic_ns,
        meters: VpnMeters | None = None,
    ) -> None:
        self._router = router
        self._bridges = bridges
        self._clock_ns = clock_ns
        self.meters = meters or VpnMeters(router, clock_ns)
        self.stopping = False

    def router_name(self) -> str:
        """Name of the router."""
        return self._router.name

    def is_ready(self) -> bool:
        """True until the router stops: nothing is served before all listeners are bound."""
        return not self.stopping

    def msg_vpn_names(self) -> Sequence[str]:
        """Names of all message VPNs."""
        return list(self._router.vpns)

    def msg_vpn(self, msg_vpn: str) -> MsgVpnStatus | None:
        """The state, counts and rates of one message VPN; None where there is none of that name."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return None
        sums = self.meters.totals(vpn)
        rates = self.meters.rates(vpn)
        not_sent, not_taken = by_direction(sums.discards)
        tx_discarded, rx_discarded = sum(not_sent.values()), sum(not_taken.values())
        return MsgVpnStatus(
            msg_vpn_name=vpn.name,
            enabled=vpn.enabled,
            state="up" if vpn.enabled else "down",
            msg_vpn_connections=len(vpn.publishers),
            subscription_count=vpn.subscription_count,
            max_connection_count=vpn.limits.max_connection_count,
            max_subscription_count=vpn.limits.max_subscription_count,
            bridge_count=len(self.bridge_names(msg_vpn)),
            rx_msg_count=sums.rx_msg_count,
            rx_byte_count=sums.rx_byte_count,
            tx_msg_count=sums.tx_msg_count,
            tx_byte_count=sums.tx_byte_count,
            discarded_msg_count=rx_discarded + tx_discarded,
            discarded=sums.discards,
            rx_discarded_msg_count=rx_discarded,
            tx_discarded_msg_count=tx_discarded,
            rx_discarded=not_taken,
            tx_discarded=not_sent,
            rejected_msg_count=vpn.rejected,
            msg_spool_usage=vpn.spooled_bytes,
            average_rx_byte_rate=rates.rx_byte.average,
            average_rx_msg_rate=rates.rx_msg.average,
            average_tx_byte_rate=rates.tx_byte.average,
            average_tx_msg_rate=rates.tx_msg.average,
            rx_byte_rate=rates.rx_byte.current,
            rx_msg_rate=rates.rx_msg.current,
            tx_byte_rate=rates.tx_byte.current,
            tx_msg_rate=rates.tx_msg.current,
        )

    def bridge_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the bridges in a message VPN; none where it does not exist."""
        return [name for place, name in self._bridges if place == msg_vpn]

    def bridge(self, msg_vpn: str, bridge: str) -> BridgeStatus | None:
        """The state, counts and rates of one bridge; None where there is none of that name."""
        source = self._bridges.get((msg_vpn, bridge))
        return None if source is None else source.status(self._clock_ns())

    def remote_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[RemoteSubscriptionStatus]:
        """What the bridge of this name asks its remote for; nothing where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        return () if source is None else source.remote_subscriptions()

    def local_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[LocalSubscriptionStatus]:
        """What the remote's bridge asks for here; nothing where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        return () if source is None else source.local_subscriptions()

    def disconnect_bridge(self, msg_vpn: str, bridge: str) -> bool:
        """Drop the connection of a bridge; False where it has none or does not exist."""
        source = self._bridges.get((msg_vpn, bridge))
        return source is not None and source.disconnect()

    def clear_bridge_stats(self, msg_vpn: str, bridge: str) -> bool:
        """Begin the counts of a bridge anew; False where there is none of that name."""
        source = self._bridges.get((msg_vpn, bridge))
        if source is not None:
            source.clear_stats()
        return source is not None

    def clear_bridge_event(self, msg_vpn: str, bridge: str, event: str) -> bool:
        """Mark an event of a bridge as seen; False where there is no such bridge."""
        source = self._bridges.get((msg_vpn, bridge))
        if source is not None:
            source.clear_event(event)
        return source is not None


async def keep_rates(sources: Callable[[], Iterable[BridgeSource]]) -> None:
    """Sample the counts of all bridges about once a second, for ever."""
    while True:
        now_ns = time.monotonic_ns()
        for source in sources():
            source.sample(now_ns)
        await trio.sleep(SAMPLE_S)
