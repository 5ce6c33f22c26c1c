"""Checks once a second what has thresholds, so that it costs nothing per message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, final

import trio

from vpnrouter import limits
from vpnrouter.config.settings_models import ClientProfile
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.events import table
from vpnrouter.events.thresholds import ThresholdEvents, Thresholds, ThresholdValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.log import EventLog
    from vpnrouter.management.meters import VpnMeters
    from vpnrouter.management.status.bridges import OwnBridge, PeerBridge
    from vpnrouter.settings.event import EndpointEvent, PercentThreshold, RateThreshold, VpnEvent


LOOK_S: Final = 1.0
"""Seconds between two looks."""

SELDOM: Final = 5
"""The bridges, whose counters are many, are checked at every so many looks."""

BRIDGES_AT_ONCE: Final = 16
"""Bridges that are looked at before other tasks have their turn."""

SYSTEM_MARKS: Final = ThresholdValues(80, 60)
"""Of the spool of the whole router, the field's defaults."""

DEFAULT: Final = "default"
"""The client profile of client usernames that are not configured."""

UNSAID: Final = ClientProfile()
"""A client profile with all its defaults."""

OVER_QUOTA: Final = refusals.DISCARD_NAMES[refusals.SPOOL_OVER_QUOTA]

CONNECTIONS: Final = ThresholdEvents(
    table.CONNECTIONS_HIGH, table.CONNECTIONS_HIGH_CLEAR, "connections"
)
USERNAME: Final = ThresholdEvents(
    table.USERNAME_CONNECTIONS_HIGH,
    table.USERNAME_CONNECTIONS_HIGH_CLEAR,
    "connections of the client username",
)
SUBSCRIPTIONS: Final = ThresholdEvents(
    table.SUBSCRIPTIONS_HIGH, table.SUBSCRIPTIONS_HIGH_CLEAR, "subscriptions"
)
ENDPOINTS: Final = ThresholdEvents(table.ENDPOINTS_HIGH, table.ENDPOINTS_HIGH_CLEAR, "endpoints")
INGRESS_FLOWS: Final = ThresholdEvents(
    table.INGRESS_FLOWS_HIGH, table.INGRESS_FLOWS_HIGH_CLEAR, "ingress flows"
)
EGRESS_FLOWS: Final = ThresholdEvents(
    table.EGRESS_FLOWS_HIGH, table.EGRESS_FLOWS_HIGH_CLEAR, "egress flows"
)
SPOOL: Final = ThresholdEvents(
    table.SPOOL_HIGH, table.SPOOL_HIGH_CLEAR, "message spool usage in bytes"
)
BINDS: Final = ThresholdEvents(table.BINDS_HIGH, table.BINDS_HIGH_CLEAR, "bind count")
LOW_PRIORITY: Final = ThresholdEvents(
    table.LOW_PRIORITY_HIGH, table.LOW_PRIORITY_HIGH_CLEAR, "messages of the low priority limit"
)
INGRESS_RATE: Final = ThresholdEvents(
    table.INGRESS_RATE_HIGH, table.INGRESS_RATE_HIGH_CLEAR, "messages received a second"
)
EGRESS_RATE: Final = ThresholdEvents(
    table.EGRESS_RATE_HIGH, table.EGRESS_RATE_HIGH_CLEAR, "messages sent a second"
)
SYSTEM_SPOOL: Final = ThresholdEvents(
    table.SYSTEM_SPOOL_HIGH, table.SYSTEM_SPOOL_HIGH_CLEAR, "spool usage of the router in bytes"
)


@final
class EventSampler:
    """Raises the events of thresholds, and clears one-shot ones whose cause is over.

    `config` gives the configuration in force, `bridges` the bridges of the router.
    """

    def __init__(
        self,
        log: EventLog,
        router: Router,
        config: Callable[[], RouterConfig],
        bridges: Callable[[], Iterable[tuple[tuple[str, str], OwnBridge | PeerBridge]]],
        meters: VpnMeters,
    ) -> None:
        self._log = log
        self._router = router
        self._config = config
        self._bridges = bridges
        self._meters = meters
        self._thresholds = Thresholds()
        self._looks = 0
        self._refused: dict[tuple[str, str], int] = {}
        self._crowded: dict[str, set[str]] = {}

    async def look(self) -> None:
        """Look once at everything; other tasks have their turns meanwhile."""
        configured = self._config().msg_vpns
        for name, vpn in list(self._router.vpns.items()):
            if name in configured:
                self._vpn(vpn, configured[name].event)
                self._rates(vpn, configured[name].event)
                await self._endpoints(vpn, configured[name])
                await self._usernames(vpn, configured[name])
        self._spool()
        self._thresholds.done()
        if self._looks % SELDOM == 0:
            await self._look_at_bridges()
        self._looks += 1

    # -- message VPNs ----------------------------------------------------------------------------

    def _vpn(self, vpn: MessageVpn, event: VpnEvent) -> None:
        name = vpn.name
        bounds = vpn.limits
        watched = (
            (CONNECTIONS, len(vpn.publishers), bounds.max_connection_count, event.connection_count_threshold),
            (SUBSCRIPTIONS, vpn.subscription_count, bounds.max_subscription_count, event.subscription_count_threshold),
            (ENDPOINTS, len(vpn.endpoints), bounds.max_endpoint_count, event.endpoint_count_threshold),
            (INGRESS_FLOWS, vpn.ingress_flows, bounds.max_ingress_flow_count, event.ingress_flow_count_threshold),
            (EGRESS_FLOWS, vpn.egress_flows, bounds.max_egress_flow_count, event.egress_flow_count_threshold),
            (SPOOL, vpn.spool_taken, bounds.max_msg_spool_usage, event.msg_spool_usage_threshold),
        )  # fmt: skip
        for pair, value, bound, configured in watched:
            self._look(pair, name, "", value, bound, _percent(configured))
        log = self._log
        if not bounds.max_connection_count or len(vpn.publishers) < bounds.max_connection_count:
            log.clear(table.CONNECTIONS_EXCEEDED, name, "")
        if vpn.subscription_count < bounds.max_subscription_count:
            log.clear(table.SUBSCRIPTIONS_EXCEEDED, name, "")
        if vpn.retained.roomy:
            log.clear(table.RETAINED_EXCEEDED, name, "")

    def _rates(self, vpn: MessageVpn, event: VpnEvent) -> None:
        rates = self._meters.rates(vpn)
        for pair, rate, configured in (
            (INGRESS_RATE, rates.rx_msg.current, event.ingress_msg_rate_threshold),
            (EGRESS_RATE, rates.tx_msg.current, event.egress_msg_rate_threshold),
        ):
            self._look(pair, vpn.name, "", round(rate), 0, _rate(configured))

    async def _usernames(self, vpn: MessageVpn, configured: MsgVpn) -> None:
        """Compare the number of clients of each client username with the bound of its client profile."""
        known = vpn.credentials.usernames
        counts = list(vpn.connections_of.items())
        # Client usernames whose last client has gone are missing there, and are compared once more.
        before = self._crowded.pop(vpn.name, set())
        counts += [(name, 0) for name in before if name not in vpn.connections_of]
        for number, (name, count) in enumerate(counts):
            if number % limits.EVENT_CHUNK == limits.EVENT_CHUNK - 1:
                await trio.lowlevel.checkpoint()
            profile = known[name].client_profile if name in known else DEFAULT
            said = configured.client_profiles.get(profile, UNSAID)
            marks = _percent(said.event.connection_count_per_client_username_threshold)
            most = said.max_connection_count_per_client_username
            self._look(USERNAME, vpn.name, name, count, most, marks)
            if self._thresholds.is_high(USERNAME, vpn.name, name):
                self._crowded.setdefault(vpn.name, set()).add(name)

    # -- endpoints -------------------------------------------------------------------------------

    async def _endpoints(self, vpn: MessageVpn, configured: MsgVpn) -> None:
        for number, endpoint in enumerate(list(endpoints_of(vpn).values())):
            if number % limits.EVENT_CHUNK == limits.EVENT_CHUNK - 1:
                await trio.lowlevel.checkpoint()
            if endpoint.kind == QUEUE and endpoint.name in configured.queues:
                event = configured.queues[endpoint.name].event
                self._endpoint(endpoint, event, event.msg_spool_usage_threshold)
            elif endpoint.kind == TOPIC_ENDPOINT and endpoint.name in configured.topic_endpoints:
                other = configured.topic_endpoints[endpoint.name].event
                self._endpoint(endpoint, other, other.spool_usage_threshold)

    def _endpoint(self, endpoint: Endpoint, event: EndpointEvent, usage: PercentThreshold) -> None:
        binds = _percent(event.bind_count_threshold)
        terms = endpoint.settings
        vpn, name = endpoint.vpn.name, endpoint.name
        look = self._look
        look(BINDS, vpn, name, len(endpoint.flows), terms.max_bind_count, binds)
        held = endpoint.spooled_bytes
        look(SPOOL, vpn, name, held, terms.max_msg_spool_usage, _percent(usage))
        if terms.reject_low_priority_msg_enabled:
            low = event.reject_low_priority_msg_limit_threshold
            most = terms.reject_low_priority_msg_limit
            count = endpoint.spooled_count
            look(LOW_PRIORITY, vpn, name, count, most, _percent(low))
        refused = endpoint.counters.refused.counts.get(OVER_QUOTA, 0)
        if refused:
            self._quota(vpn, name, refused, held < terms.max_msg_spool_usage)

    def _quota(self, vpn: str, name: str, refused: int, room: bool) -> None:
        before = self._refused.get((vpn, name), 0)
        self._refused[vpn, name] = refused
        if refused > before:
            text = f"VPN {vpn} {name}: no room for guaranteed messages, which are refused"
            self._log.raise_once(table.SPOOL_QUOTA, vpn, name, text)
        elif room:
            self._log.clear(table.SPOOL_QUOTA, vpn, name)

    def _spool(self) -> None:
        spool = spool_of(self._router.context)
        if spool is None or not spool.max_usage:
            return
        self._look(SYSTEM_SPOOL, "", "", spool.taken, spool.max_usage, SYSTEM_MARKS)
        if spool.taken >= spool.max_usage:
            text = f"the spool of the router is full: {spool.max_usage:,} bytes"
            self._log.raise_once(table.SYSTEM_SPOOL_QUOTA, "", "", text)
        else:
            self._log.clear(table.SYSTEM_SPOOL_QUOTA, "", "")

    # -- bridges ---------------------------------------------------------------------------------

    async def _look_at_bridges(self) -> None:
        for number, ((vpn, name), source) in enumerate(list(self._bridges())):
            if number % BRIDGES_AT_ONCE == BRIDGES_AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
            if source.ttl_exceeded():
                most = source.status(time.monotonic_ns()).max_ttl
                text = f"VPN {vpn} bridge {name}: messages were discarded at max_ttl {most}"
                self._log.raise_once(table.BRIDGE_TTL, vpn, name, text)
            else:
                self._log.clear(table.BRIDGE_TTL, vpn, name)

    def _look(
        self,
        pair: ThresholdEvents,
        vpn: str,
        name: str,
        value: int,
        bound: int,
        marks: ThresholdValues,
    ) -> None:
        crossing = self._thresholds.look(pair, vpn, name, value, bound, marks)
        if crossing is not None:
            place = f"VPN {vpn}: " if vpn and not name else f"VPN {vpn} {name}: " if vpn else ""
            self._log.raise_event(crossing.kind, vpn, name, place + crossing.text)


def _percent(configured: PercentThreshold) -> ThresholdValues:
    return ThresholdValues(configured.set_percent, configured.clear_percent)


def _rate(configured: RateThreshold) -> ThresholdValues:
    return ThresholdValues(configured.set_value, configured.clear_value, absolute=True)
