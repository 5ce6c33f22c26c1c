"""What monitoring shows of message VPNs, read from a look at one at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, final

from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import REPLAY_LOG, SESSION, SUBSCRIPTION
from vpnrouter.management.meters import by_direction
from vpnrouter.settings.schema import Value
from vpnrouter.settings.shown import counter, gauge, label, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.management.meters import VpnMeters


@final
class MsgVpnLook:
    """A message VPN at one moment; `bridge_count` is for the API alone."""

    def __init__(self, vpn: MessageVpn, meters: VpnMeters, bridge_count: int = 0) -> None:
        self.vpn = vpn
        self.bridge_count = bridge_count
        self.sums = meters.totals(vpn)
        self.tx_discards, self.rx_discards = by_direction(self.sums.discards)
        self._meters = meters
        self._held: dict[int, list[int]] | None = None
        self._rates: Mapping[str, int] | None = None

    @property
    def rates(self) -> Mapping[str, int]:
        """Rates by the names of their attributes."""
        if self._rates is None:
            self._rates = self._meters.rates(self.vpn).attributes()
        return self._rates

    def held(self, kind: int) -> list[int]:
        """How many endpoints of one of these kinds there are, and the messages and bytes in them."""
        if self._held is None:
            self._held = {kind: [0, 0, 0] for kind in (SESSION, SUBSCRIPTION, REPLAY_LOG)}
            for (own, _), endpoint in endpoints_of(self.vpn).items():
                sums = self._held.get(own)
                if sums is not None:
                    sums[0] += 1
                    sums[1] += endpoint.spooled_count
                    sums[2] += endpoint.spooled_bytes
        return self._held[kind]


_MESSAGES: Final = counter(
    "vpnrouter_msg_vpn_messages_total",
    "Messages from clients and bridges (rx), and to them (tx).",
    "direction",
    falls=True,
)
_BYTES: Final = counter(
    "vpnrouter_msg_vpn_bytes_total",
    "Bytes of these.",
    "direction",
    after="vpnrouter_msg_vpn_messages_total",
    falls=True,
)
"""Messages that were counted as sent and went down with their connection are taken off again."""


def _rate(name: str) -> Value:
    return read(lambda one: one.rates[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class MsgVpnStatus:
    """One message VPN as monitoring shows it, read from a MsgVpnLook. Counts are since the router started; those of
    many clients, and all rates, are about a second old.
    """

    msg_vpn_name: str = read(lambda one: one.vpn.name, "", label("msg_vpn"))
    enabled: bool = read(
        lambda one: one.vpn.enabled,
        True,
        metric=gauge("vpnrouter_msg_vpn_enabled", "1 while the message VPN is enabled."),
    )
    state: str = read(lambda one: "up" if one.vpn.enabled else "down", "")
    """`up` or `down`."""
    msg_vpn_connections: int = read(
        lambda one: len(one.vpn.publishers),
        metric=gauge(
            "vpnrouter_msg_vpn_connections", "Clients connected, bridges of others included."
        ),
    )
    """Clients that are connected, bridges of other routers included."""
    subscription_count: int = read(
        lambda one: one.vpn.subscription_count,
        metric=gauge(
            "vpnrouter_msg_vpn_subscriptions",
            "Subscriptions.",
            after="vpnrouter_msg_vpn_max_connections",
        ),
    )
    max_connection_count: int = read(
        lambda one: one.vpn.limits.max_connection_count,
        metric=gauge("vpnrouter_msg_vpn_max_connections", "Connections that it may have."),
    )
    max_subscription_count: int = read(
        lambda one: one.vpn.limits.max_subscription_count,
        metric=gauge(
            "vpnrouter_msg_vpn_max_subscriptions",
            "Subscriptions that it may have.",
            after="vpnrouter_msg_vpn_subscriptions",
        ),
    )
    bridge_count: int = read(lambda one: one.bridge_count)
    rx_msg_count: int = read(lambda one: one.sums.rx_msg_count, metric=_MESSAGES.rx)
    rx_byte_count: int = read(lambda one: one.sums.rx_byte_count, metric=_BYTES.rx)
    tx_msg_count: int = read(lambda one: one.sums.tx_msg_count, metric=_MESSAGES.tx)
    tx_byte_count: int = read(lambda one: one.sums.tx_byte_count, metric=_BYTES.tx)
    discarded_msg_count: int = read(lambda one: sum(one.sums.discards.values()))
    discarded: dict[str, int] = read(
        lambda one: one.sums.discards,
        {},
        metric=counter(
            "vpnrouter_msg_vpn_discarded_messages_total", "Messages discarded, by reason.", "reason"
        ),
    )
    """Messages by reason of core/discard_reasons.py."""
    rx_discarded_msg_count: int = read(lambda one: sum(one.rx_discards.values()))
    tx_discarded_msg_count: int = read(lambda one: sum(one.tx_discards.values()))
    """Those among them that were on their way to a client: it had no room, had gone, or had sent them itself."""
    rx_discarded: dict[str, int] = read(lambda one: one.rx_discards, {})
    tx_discarded: dict[str, int] = read(
        lambda one: one.tx_discards,
        {},
        metric=counter(
            "vpnrouter_msg_vpn_tx_discarded_messages_total",
            "Those among them that were on their way to a client, by reason.",
            "reason",
        ),
    )
    """Each of the two by reason."""
    rejected_msg_count: int = read(
        lambda one: one.vpn.rejected,
        metric=counter(
            "vpnrouter_msg_vpn_rejected_messages_total",
            "Guaranteed messages that were refused, which their publishers were told.",
        ),
    )
    """Guaranteed messages that were refused: their publishers know."""
    nack_disconnects: ClassVar = counter(
        "vpnrouter_msg_vpn_nack_disconnects_total",
        "MQTT 3.1.1 publishers disconnected because there is no other way to refuse a message.",
        reader=lambda one: one.vpn.nack_disconnects,
    )
    retained: ClassVar = gauge(
        "vpnrouter_msg_vpn_retained_messages",
        "Topics with a retained message.",
        reader=lambda one: len(one.vpn.retained),
    )
    retained_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_retained_bytes",
        "Memory that retained messages take.",
        reader=lambda one: one.vpn.retained.memory,
    )
    max_retained_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_max_retained_bytes",
        "What these may come to, -1 for no bound.",
        reader=lambda one: one.vpn.limits.max_retained_bytes,
    )
    retained_refused: ClassVar = counter(
        "vpnrouter_msg_vpn_retained_refused_messages_total",
        "Messages not retained for want of room.",
        reader=lambda one: one.vpn.retained.refused,
    )
    memory: ClassVar = gauge(
        "vpnrouter_msg_vpn_memory_bytes",
        "What the router keeps in memory for clients: unfinished and unsettled messages, what waits to be sent.",
        reader=lambda one: one.vpn.memory.held,
    )
    max_memory: ClassVar = gauge(
        "vpnrouter_msg_vpn_max_memory_bytes",
        "What this may come to.",
        reader=lambda one: one.vpn.memory.most,
    )
    memory_refused: ClassVar = counter(
        "vpnrouter_msg_vpn_memory_refused_total",
        "Times that a client was refused memory, or disconnected because it held most.",
        reader=lambda one: one.vpn.memory.refused,
    )
    msg_spool_usage: int = read(
        lambda one: one.vpn.spooled_bytes,
        metric=gauge(
            "vpnrouter_msg_vpn_spool_usage_bytes",
            "Messages of its endpoints, and what it retains, in the spool.",
            reader=lambda one: one.vpn.spool_taken,
        ),
    )
    """Bytes in its queues, topic endpoints and sessions."""
    max_spool_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_max_spool_usage_bytes",
        "What these may come to.",
        reader=lambda one: one.vpn.limits.max_msg_spool_usage,
    )
    egress_flows: ClassVar = gauge(
        "vpnrouter_msg_vpn_egress_flows",
        "Consumers bound to its endpoints.",
        reader=lambda one: one.vpn.egress_flows,
    )
    sessions: ClassVar = gauge(
        "vpnrouter_msg_vpn_session_endpoints",
        "Endpoints that belong to MQTT sessions.",
        reader=lambda one: one.held(SESSION)[0],
    )
    session_messages: ClassVar = gauge(
        "vpnrouter_msg_vpn_session_messages",
        "Messages in these, all together.",
        reader=lambda one: one.held(SESSION)[1],
    )
    session_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_session_bytes",
        "Bytes of these.",
        reader=lambda one: one.held(SESSION)[2],
    )
    amqp_subscriptions: ClassVar = gauge(
        "vpnrouter_msg_vpn_amqp_subscription_endpoints",
        "Endpoints that belong to AMQP subscriptions.",
        reader=lambda one: one.held(SUBSCRIPTION)[0],
    )
    amqp_subscription_messages: ClassVar = gauge(
        "vpnrouter_msg_vpn_amqp_subscription_messages",
        "Messages in these, all together.",
        reader=lambda one: one.held(SUBSCRIPTION)[1],
    )
    amqp_subscription_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_amqp_subscription_bytes",
        "Bytes of these.",
        reader=lambda one: one.held(SUBSCRIPTION)[2],
    )
    replay_log_messages: ClassVar = gauge(
        "vpnrouter_msg_vpn_replay_log_messages",
        "Messages in the replay log.",
        reader=lambda one: one.held(REPLAY_LOG)[1],
    )
    replay_log_size: ClassVar = gauge(
        "vpnrouter_msg_vpn_replay_log_bytes",
        "Bytes of these.",
        reader=lambda one: one.held(REPLAY_LOG)[2],
    )
    average_rx_byte_rate: int = _rate("average_rx_byte_rate")
    average_rx_msg_rate: int = _rate("average_rx_msg_rate")
    average_tx_byte_rate: int = _rate("average_tx_byte_rate")
    average_tx_msg_rate: int = _rate("average_tx_msg_rate")
    rx_byte_rate: int = _rate("rx_byte_rate")
    rx_msg_rate: int = _rate("rx_msg_rate")
    tx_byte_rate: int = _rate("tx_byte_rate")
    tx_msg_rate: int = _rate("tx_msg_rate")
