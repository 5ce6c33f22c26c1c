"""One bridge as monitoring shows it: the field's attributes by their names, its metrics, and rates.

Each attribute says how it is read from a look at the bridge (look.py), and which metric it is. Attribute names are
those of the field's monitoring in snake_case; the management API writes them in camelCase. What is ours: health, the
reason of the outbound half, how long ago messages were forwarded, discards by reason, and the balance.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.bridges.look import LOGGED_IN, BridgeLook, age_ms
from vpnrouter.settings.schema import Value
from vpnrouter.settings.shown import counter, fill, gauge, known, label, read, seconds
from vpnrouter.units import SECOND_NS

WINDOW_NS: Final = 60 * SECOND_NS
"""What an average covers, as the field's `average…Rate` attributes do."""

LEAST_GAP_NS: Final = WINDOW_NS // (limits.RATE_SAMPLES - 1)
"""Samples that follow closer are left out, so that those kept always reach back over the window."""


class Rate(NamedTuple):
    """Growth a second, rounded: over the last interval between samples, and over the window."""

    current: int = 0
    average: int = 0


class BridgeRates(NamedTuple):
    """The rates of one bridge, as its monitoring shows them."""

    rx_msg: Rate = Rate()
    rx_byte: Rate = Rate()
    tx_msg: Rate = Rate()
    tx_byte: Rate = Rate()

    def attributes(self) -> dict[str, int]:
        """The rates by the names of their attributes: `average_rx_byte_rate`, `rx_byte_rate`, ..."""
        found = {}
        for (average, current), rate in zip(_RATE_NAMES, self, strict=True):
            found[average] = rate.average
            found[current] = rate.current
        return found


_RATE_NAMES: Final = [(f"average_{name}_rate", f"{name}_rate") for name in BridgeRates._fields]


@final
class RateMeter:
    """Rates of one or several counts that only grow, from samples taken about once a second.

    Times are nanoseconds of a clock that never goes back. Before the second sample all rates are 0;
    until a minute has passed, the average is over what there is. Counts that stay the same take two samples, so that
    a bridge that is gone or idle costs little.
    """

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[int, tuple[int, ...]]] = deque(maxlen=limits.RATE_SAMPLES)

    def sample(self, now_ns: int, *counts: int) -> None:
        """Take a sample. A count lower than before resets the meter."""
        samples = self._samples
        if samples:
            last_ns, last = samples[-1]
            if len(last) != len(counts) or any(
                new < old for new, old in zip(counts, last, strict=True)
            ):
                samples.clear()
            elif now_ns - last_ns < LEAST_GAP_NS:
                return
            elif len(samples) > 1 and counts == last == samples[-2][1]:
                samples.pop()
                counts = last
        samples.append((now_ns, counts))
        begin_ns = now_ns - WINDOW_NS
        # The one sample at or before the begin of the window is what the average starts from.
        while len(samples) > 2 and samples[1][0] <= begin_ns:
            samples.popleft()
        if len(samples) > 1 and samples[0][0] < begin_ns and samples[0][1] == samples[1][1]:
            # Nothing was counted between the two.
            samples[0] = (min(begin_ns, samples[1][0]), samples[0][1])

    def rates(self) -> tuple[Rate, ...]:
        """The rate of each count, in the order of `sample`; none before the first sample."""
        samples = self._samples
        if not samples:
            return ()
        now_ns, now = samples[-1]
        if len(samples) == 1:
            return tuple(Rate() for _ in now)
        before_ns, before = samples[-2]
        first_ns, first = samples[0]
        return tuple(
            Rate(
                _a_second(count - before[index], now_ns - before_ns),
                _a_second(count - first[index], now_ns - first_ns),
            )
            for index, count in enumerate(now)
        )

    def bridge_rates(self) -> BridgeRates:
        """The rates of `sample(now_ns, rx_msgs, rx_bytes, tx_msgs, tx_bytes)`."""
        return BridgeRates(*self.rates())


def _a_second(growth: int, elapsed_ns: int) -> int:
    return (growth * SECOND_NS + elapsed_ns // 2) // elapsed_ns


VIRTUAL_ROUTER: Final = "auto"
"""The field's bridges belong to one router of a redundant pair; ours to the router they are on."""

NO_RATES: Final = BridgeRates()


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """One remote message VPN of a bridge, of a RemoteLook."""

    remote_msg_vpn_name: str = read(lambda one: one.remote.msg_vpn, "")
    remote_msg_vpn_location: str = read(lambda one: one.remote.location, "")
    connect_order: int = read(lambda one: one.remote.connect_order)
    enabled: bool = read(lambda one: one.remote.enabled, True)
    up: bool = read(lambda one: one.up, False)
    """Whether the bridge is logged in there."""
    last_connection_failure_reason: str = read(lambda one: one.failure, "")
    """Why the last attempt to connect there failed; "" when it succeeded or none was made."""
    queue_binding: str = read(lambda one: one.binding, "")
    bound_to_queue: bool = read(lambda one: one.bound is not None, False)
    stands_by: bool = read(lambda one: one.stands_by, False)
    """Whether the bridge is bound to its queue and another consumer gets what is in it."""
    queue_msg_count: int = read(lambda one: one.queue_msg_count, -1)
    """Messages in the queue as the remote last reported it, some seconds ago at most; -1 for no report."""
    last_queue_bind_failure_reason: str = read(
        lambda one: "" if one.flow is None else one.flow.reason, ""
    )
    queue_bound_uptime: int = read(lambda one: one.bound_s)
    remote_msg_vpn_interface: str = ""
    queue_window_closed_count: int = read(lambda one: one.window_closed)
    """How often a message in the queue has waited for the flow's window, since the bridge is bound."""


@dataclass(frozen=True, slots=True)
class RemoteSubscriptionStatus:
    """One topic that a bridge subscribes to at its remote, in the `*` `>` dialect."""

    msg_vpn_name: str
    bridge_name: str
    bridge_virtual_router: str
    remote_subscription_topic: str
    deliver_always_enabled: bool
    up: bool = False
    """Whether the remote in use has granted it."""
    refused_reason: str = ""
    """Why the remote has refused it, in its words."""


@dataclass(frozen=True, slots=True)
class LocalSubscriptionStatus:
    """One topic that the remote's bridge subscribes to here, over the same connection."""

    msg_vpn_name: str
    bridge_name: str
    bridge_virtual_router: str
    local_subscription_topic: str
    dto_priority: str
    """`p1` to `p4`, or `da` for a topic that is always delivered."""


_MESSAGES: Final = counter(
    "vpnrouter_bridge_messages_total",
    "Messages that crossed.",
    "direction",
    after="vpnrouter_bridge_failures_total",
    falls=True,
)
_BYTES: Final = counter(
    "vpnrouter_bridge_bytes_total",
    "Bytes of these.",
    "direction",
    after="vpnrouter_bridge_messages_total",
    falls=True,
)
_CONTROL_MESSAGES: Final = counter(
    "vpnrouter_bridge_control_messages_total",
    "All other frames.",
    "direction",
    after="vpnrouter_bridge_bytes_total",
    falls=True,
)
_CONTROL_BYTES: Final = counter(
    "vpnrouter_bridge_control_bytes_total",
    "Bytes of these.",
    "direction",
    after="vpnrouter_bridge_control_messages_total",
    falls=True,
)
_IN_FLIGHT: Final = gauge(
    "vpnrouter_bridge_in_flight_messages",
    "Depth: messages that wait here to be delivered (rx) or sent (tx).",
    "direction",
)
_IMBALANCE: Final = gauge(
    "vpnrouter_bridge_imbalance_messages",
    "Messages not accounted for; anything but 0 is a fault of the router.",
    "direction",
    after="vpnrouter_bridge_backlog_oldest_message_age_seconds",
)
_LAST_AGE: Final = gauge(
    "vpnrouter_bridge_last_message_age_seconds",
    "Time since a message last crossed; no sample when none has.",
    "direction",
    convert=seconds,
    after="vpnrouter_bridge_imbalance_messages",
)


def _rate(name: str) -> Value:
    """One of the rates of a bridge, 0 where none are known."""
    return read(lambda one: one.rates.get(name, 0))


def _info(one: BridgeLook) -> dict[str, str]:
    record = one.record
    return {
        "remote_router": record.remote_router_name,
        "remote_msg_vpn": one.remote_msg_vpn,
        "remote_address": record.address,
        "establisher": record.establisher,
        "encrypted": "true" if record.encrypted else "false",
        "queue": next((remote.binding for remote in one.remotes if remote.up), ""),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeStatus:
    """Everything monitoring tells of one bridge, of a BridgeLook. Rates are a second, `uptime` whole seconds.

    Ages are milliseconds, -1 for never. `discarded_rx` and `discarded_tx` are messages by reason of
    core/discard_reasons.py. For each direction the imbalance is what was received (offered) and is neither
    delivered (sent), nor discarded, nor in flight: anything but 0 is a fault of the router.
    """

    info: ClassVar = gauge(
        "vpnrouter_bridge_info",
        "The other end of a bridge, always 1.",
        "info",
        ("remote_router", "remote_msg_vpn", "remote_address", "establisher", "encrypted", "queue"),
        reader=_info,
    )
    up: ClassVar = gauge(
        "vpnrouter_bridge_up",
        "1 while the bridge is logged in, stalled or paused or not.",
        reader=lambda one: int(one.health in LOGGED_IN),
    )
    msg_vpn_name: str = read(lambda one: one.record.facts.msg_vpn, "", label("msg_vpn"))
    bridge_name: str = read(lambda one: one.record.facts.name, "", label("bridge"))
    bridge_virtual_router: str = VIRTUAL_ROUTER
    enabled: bool = read(
        lambda one: one.enabled,
        True,
        metric=gauge(
            "vpnrouter_bridge_enabled",
            "1 while the bridge is enabled, whatever its message VPN is.",
            after="vpnrouter_bridge_health",
        ),
    )
    """As configured. If the message VPN is disabled, the health says so."""
    paused: bool = read(lambda one: one.paused, False)
    """As configured: nothing crosses, though the bridge is logged in."""
    health: str = read(
        lambda one: one.health,
        "",
        metric=gauge(
            "vpnrouter_bridge_health",
            "How the bridge fares, 1: up, incomplete, unbound, stalled, paused, down, msg-vpn-disabled, disabled.",
            "state",
        ),
    )
    """One of HEALTHS."""
    inbound_state: str = read(
        lambda one: one.record.inbound_state.value,
        "",
        metric=gauge(
            "vpnrouter_bridge_inbound_state", "The state of the inbound half, 1.", "state"
        ),
    )
    rx_connection_failure_category: str = read(lambda one: one.category, "")
    """`local-operational-state-problem` while the bridge or its message VPN is disabled, `local-configuration-problem`
    while no remote message VPN is enabled, else `no-failure`. The field has words for no other reason."""
    reconnecting: bool = read(
        lambda one: one.driver is not None and one.driver.machine.reconnecting, False
    )
    """True while the bridge still uses a connection of its earlier configuration, which another one is to replace."""
    inbound_failure_reason: str = read(lambda one: one.why, "")
    """Why the inbound half is down, stalled, unbound or incomplete; "" while it is well."""
    outbound_state: str = read(
        lambda one: one.record.outbound_state.value,
        "",
        metric=gauge(
            "vpnrouter_bridge_outbound_state", "The state of the outbound half, 1.", "state"
        ),
    )
    outbound_failure_reason: str = read(lambda one: one.record.outbound_failure_reason, "")
    outbound_bridge_name: str = read(lambda one: one.peer_bridge, "")
    """The remote's bridge on the same connection, "" for none."""
    remote_msg_vpn_name: str = read(lambda one: one.remote_msg_vpn, "")
    remote_router_name: str = read(lambda one: one.record.remote_router_name, "")
    remote_address: str = read(lambda one: one.record.address, "")
    """IP address and port of the peer; before there is a connection, the configured location. Of a connection that
    came in, the address alone."""
    local_interface: str = read(lambda one: one.record.local_interface, "")
    """IP address of this end of the connection, "" for a connection that came in."""
    client_name: str = read(lambda one: one.record.client_name, "")
    establisher: str = read(lambda one: one.record.establisher, "")
    encrypted: bool = read(lambda one: one.record.encrypted, False)
    compressed: bool = read(lambda one: one.compressed, False)
    max_ttl: int = read(lambda one: one.record.facts.max_ttl)
    bound_to_queue: bool = read(lambda one: one.bound is not None, False)
    remote_queue_standby: bool = read(
        lambda one: any(each.stands_by for each in one.remotes),
        False,
        metric=gauge(
            "vpnrouter_bridge_remote_queue_standby",
            "1 while another consumer gets what is in the remote queue.",
            sparse=True,
            after="vpnrouter_bridge_remote_queue_window_closed_total",
        ),
    )
    """Whether the bridge is bound to a queue, and another consumer gets the messages of it."""
    remote_queue_msg_count: int = read(
        lambda one: one.remote_queue_msgs,
        -1,
        metric=gauge(
            "vpnrouter_bridge_remote_queue_messages",
            "Messages in the remote queue that the bridge takes from, as the remote told last.",
            convert=known,
            after="vpnrouter_bridge_parked_messages",
        ),
    )
    """Messages in the remote queue that the bridge is bound to, at most some seconds old; -1 for unknown."""
    remote_queue_window_closed_count: int = read(
        lambda one: sum(each.window_closed for each in one.remotes),
        metric=counter(
            "vpnrouter_bridge_remote_queue_window_closed_total",
            "How often a message in the remote queue has waited for the window of the bridge's flow.",
            sparse=True,
            after="vpnrouter_bridge_remote_queue_messages",
        ),
    )
    """How often a message there has waited for `egress_flow_window_size`, since the bridge is bound."""
    remote_subscription_refused_count: int = read(lambda one: len(one.refused))
    """The number of remote subscriptions that the remote has refused."""
    local_queue_name: str = read(lambda one: one.waits.names, "")
    ttl_exceeded_event_raised: bool = read(lambda one: one.ttl_exceeded, False)
    uptime: int = read(
        lambda one: one.record.uptime_s(one.now_ns),
        metric=gauge(
            "vpnrouter_bridge_uptime_seconds",
            "Time that it has been up.",
            after="vpnrouter_bridge_state_age_seconds",
        ),
    )
    state_age_ms: int = read(
        lambda one: age_ms(one.record.state_since_ns, one.now_ns),
        metric=gauge(
            "vpnrouter_bridge_state_age_seconds",
            "Time in the inbound half's state.",
            convert=seconds,
        ),
    )
    """How long the inbound half has been in its state."""
    failure_count: int = read(
        lambda one: one.failures,
        metric=counter(
            "vpnrouter_bridge_failures_total",
            "How often the inbound half has failed.",
            falls=True,
        ),
    )
    """How often the inbound half failed since the router started."""
    last_failure_age_ms: int = read(lambda one: age_ms(one.record.last_failure_ns, one.now_ns), -1)
    last_rx_age_ms: int = read(
        lambda one: age_ms(one.counters.last_data_rx_ns, one.now_ns), -1, metric=_LAST_AGE.rx
    )
    last_tx_age_ms: int = read(
        lambda one: age_ms(one.counters.last_data_tx_ns, one.now_ns), -1, metric=_LAST_AGE.tx
    )
    average_rx_byte_rate: int = _rate("average_rx_byte_rate")
    average_rx_msg_rate: int = _rate("average_rx_msg_rate")
    average_tx_byte_rate: int = _rate("average_tx_byte_rate")
    average_tx_msg_rate: int = _rate("average_tx_msg_rate")
    rx_byte_rate: int = _rate("rx_byte_rate")
    rx_msg_rate: int = _rate("rx_msg_rate")
    tx_byte_rate: int = _rate("tx_byte_rate")
    tx_msg_rate: int = _rate("tx_msg_rate")
    control_rx_byte_count: int = read(
        lambda one: one.counters.control_rx_byte_count, metric=_CONTROL_BYTES.rx
    )
    control_rx_msg_count: int = read(
        lambda one: one.counters.control_rx_msg_count, metric=_CONTROL_MESSAGES.rx
    )
    control_tx_byte_count: int = read(
        lambda one: one.counters.control_tx_byte_count, metric=_CONTROL_BYTES.tx
    )
    control_tx_msg_count: int = read(
        lambda one: one.counters.control_tx_msg_count, metric=_CONTROL_MESSAGES.tx
    )
    data_rx_byte_count: int = read(lambda one: one.counters.data_rx_byte_count, metric=_BYTES.rx)
    data_rx_msg_count: int = read(lambda one: one.counters.data_rx_msg_count, metric=_MESSAGES.rx)
    data_tx_byte_count: int = read(lambda one: one.counters.data_tx_byte_count, metric=_BYTES.tx)
    data_tx_msg_count: int = read(lambda one: one.counters.data_tx_msg_count, metric=_MESSAGES.tx)
    login_rx_msg_count: int = read(lambda one: one.counters.login_rx_msg_count)
    login_tx_msg_count: int = read(lambda one: one.counters.login_tx_msg_count)
    rx_byte_count: int = read(lambda one: one.counters.rx_byte_count)
    rx_msg_count: int = read(lambda one: one.counters.rx_msg_count)
    tx_byte_count: int = read(lambda one: one.counters.tx_byte_count)
    tx_msg_count: int = read(lambda one: one.counters.tx_msg_count)
    delivered_rx_msg_count: int = read(
        lambda one: one.counters.delivered_rx_msg_count,
        metric=counter(
            "vpnrouter_bridge_delivered_messages_total",
            "Messages that came and were handed to the message VPN.",
            falls=True,
            after="vpnrouter_bridge_control_bytes_total",
        ),
    )
    offered_tx_msg_count: int = read(
        lambda one: one.counters.offered_tx_msg_count,
        metric=counter(
            "vpnrouter_bridge_offered_messages_total",
            "Messages that the message VPN had for the other end.",
            falls=True,
            after="vpnrouter_bridge_delivered_messages_total",
        ),
    )
    discarded_rx_msg_count: int = read(lambda one: one.counters.discarded_rx_msg_count)
    discarded_tx_msg_count: int = read(lambda one: one.counters.discarded_tx_msg_count)
    discarded_rx: dict[str, int] = read(
        lambda one: dict(one.counters.discarded_rx.counts),
        {},
        metric=counter(
            "vpnrouter_bridge_rx_discarded_messages_total",
            "Messages that came and were discarded, by reason.",
            "reason",
            falls=True,
        ),
    )
    discarded_tx: dict[str, int] = read(
        lambda one: dict(one.counters.discarded_tx.counts),
        {},
        metric=counter(
            "vpnrouter_bridge_tx_discarded_messages_total",
            "Messages offered and discarded, by reason.",
            "reason",
            falls=True,
        ),
    )
    rx_in_flight_msg_count: int = read(lambda one: one.rx_in_flight, metric=_IN_FLIGHT.rx)
    tx_in_flight_msg_count: int = read(lambda one: one.tx_in_flight, metric=_IN_FLIGHT.tx)
    rx_imbalance: int = read(
        lambda one: one.counters.rx_imbalance(one.rx_in_flight), metric=_IMBALANCE.rx
    )
    tx_imbalance: int = read(
        lambda one: one.counters.tx_imbalance(one.tx_in_flight), metric=_IMBALANCE.tx
    )
    guaranteed_rx_msg_count: int = read(
        lambda one: one.guaranteed("received"),
        metric=counter(
            "vpnrouter_bridge_guaranteed_messages_total",
            "Guaranteed messages that came, repeated ones among them.",
            sparse=True,
        ),
    )
    """Guaranteed messages that came, those among them that came again because a link was lost."""
    msg_spool_rx_msg_count: int = read(lambda one: one.guaranteed("received"))
    """The value of `guaranteed_rx_msg_count`, under the field's name."""
    remote_tx_flow_id: int = read(lambda one: 0 if one.bound is None else one.bound.taker.flow_id)
    """Id that the remote gave the flow of guaranteed messages, 0 while none is bound."""
    last_tx_msg_id: int = read(lambda one: one.last_tx_msg_id)
    """Spool id of the guaranteed message that was sent last to the remote's bridge over this connection, 0 for none."""
    guaranteed_taken_msg_count: int = read(
        lambda one: one.guaranteed("taken"),
        metric=counter(
            "vpnrouter_bridge_guaranteed_taken_messages_total",
            "Guaranteed messages that were accepted.",
            sparse=True,
        ),
    )
    """Those that were accepted."""
    guaranteed_refused_msg_count: int = read(
        lambda one: one.guaranteed("refusals"),
        metric=counter(
            "vpnrouter_bridge_guaranteed_refused_messages_total",
            "How often the message VPN refused one, each try counted.",
            sparse=True,
        ),
    )
    """How often the message VPN refused one; one that waits counts each time that it is tried."""
    guaranteed_duplicate_msg_count: int = read(
        lambda one: one.guaranteed("duplicates"),
        metric=counter(
            "vpnrouter_bridge_guaranteed_duplicate_messages_total",
            "Guaranteed messages that had been accepted before.",
            sparse=True,
        ),
    )
    """Those received after they were accepted, and only acknowledged again."""
    guaranteed_unmatched_msg_count: int = read(lambda one: one.guaranteed("unmatched"))
    """Those that no queue and no client wanted here: they were discarded, and removed from the remote queue."""
    parked_msg_count: int = read(
        lambda one: one.parked,
        metric=gauge(
            "vpnrouter_bridge_parked_messages",
            "Messages set aside in the parking lot.",
            sparse=True,
        ),
    )
    """Those that are set aside now (`on_reject: park`)."""
    tx_unacked_msg_count: int = read(lambda one: one.waits.unacked)
    """Guaranteed messages that were sent and that the peer has not acknowledged."""
    local_queue_msg_count: int = read(lambda one: one.waits.messages)
    """Messages in the local queues that the peer's bridge takes from."""
    local_queue_oldest_msg_age_ms: int = read(lambda one: one.waits_age_ms, -1)
    """How long the oldest of those has been waiting, -1 for none."""
    backlog_msg_count: int = read(
        lambda one: one.backlog,
        metric=gauge(
            "vpnrouter_bridge_backlog_messages",
            "All messages known here to wait for the bridge: in flight, parked, in queues here.",
            after="vpnrouter_bridge_in_flight_messages",
        ),
    )
    """Messages known here to wait for the bridge: in flight, parked, in the local queues. What waits in a queue of
    the remote is known there."""
    backlog_oldest_msg_age_ms: int = read(
        lambda one: max(one.waits_age_ms, one.parked_age_ms),
        -1,
        metric=gauge(
            "vpnrouter_bridge_backlog_oldest_message_age_seconds",
            "How long the oldest of those in queues here has been waiting; no sample for none.",
            reader=lambda one: one.backlog_age_s,
            after="vpnrouter_bridge_backlog_messages",
        ),
    )
    """How long the oldest of those that are kept in endpoints has been waiting, -1 for none."""
    remotes: tuple[RemoteStatus, ...] = read(
        lambda one: tuple([fill(RemoteStatus, each) for each in one.remotes]),
        (),
        metric=gauge(
            "vpnrouter_bridge_remotes",
            "Remote message VPNs configured.",
            reader=lambda one: len(one.remotes),
        ),
    )
    remotes_up: ClassVar = gauge(
        "vpnrouter_bridge_remotes_up",
        "Remote message VPNs that it is logged in to.",
        reader=lambda one: sum(each.up for each in one.remotes),
    )
