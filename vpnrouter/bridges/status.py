"""One bridge as monitoring shows it: the field's attributes by their names, and rates.

Attribute names are those of the field's monitoring in snake_case; the management API writes them in
camelCase. What is ours: health, the reason of the outbound half, how long ago messages were forwarded,
discards by reason, and the balance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.bridges.bridge import UP, Bridge, Inbound
from vpnrouter.bridges.counters import Counters
from vpnrouter.bridges.flow_receiver import FlowReceiver
from vpnrouter.bridges.remote_order import Remote
from vpnrouter.units import MILLISECOND_NS, SECOND_NS

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

HEALTH_DISABLED: Final = "disabled"
HEALTH_VPN_DISABLED: Final = "msg-vpn-disabled"
"""The bridge is enabled, and its message VPN is not."""
HEALTH_DOWN: Final = "down"
HEALTH_STALLED: Final = "stalled"
"""Direct messages flow; this router refuses a guaranteed message, which holds those behind it."""
HEALTH_UNBOUND: Final = "unbound"
"""Direct messages flow; the bridge is not bound to the queue that it should take guaranteed ones from."""
HEALTH_INCOMPLETE: Final = "incomplete"
"""Messages flow, except those of a remote subscription that the remote refused."""
HEALTH_UP: Final = "up"

HEALTHS: Final = (
    HEALTH_DISABLED,
    HEALTH_VPN_DISABLED,
    HEALTH_DOWN,
    HEALTH_STALLED,
    HEALTH_UNBOUND,
    HEALTH_INCOMPLETE,
    HEALTH_UP,
)
"""All healths. Where several hold, the first of them is shown."""

LOGGED_IN: Final = frozenset({HEALTH_STALLED, HEALTH_UNBOUND, HEALTH_INCOMPLETE, HEALTH_UP})
"""The healths of a bridge over which Direct messages flow."""


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """One remote message VPN of a bridge."""

    remote_msg_vpn_name: str
    remote_msg_vpn_location: str
    connect_order: int
    enabled: bool
    up: bool
    """Whether the bridge is logged in there."""
    last_connection_failure_reason: str = ""
    """Why the last attempt to connect there failed; "" when it succeeded or none was made."""
    queue_binding: str = ""
    bound_to_queue: bool = False
    stands_by: bool = False
    """Whether the bridge is bound to its queue and another consumer gets what is in it."""
    queue_msg_count: int = -1
    """Messages in the queue as the remote last reported it, some seconds ago at most; -1 for no report."""
    last_queue_bind_failure_reason: str = ""
    queue_bound_uptime: int = 0
    remote_msg_vpn_interface: str = ""
    queue_window_closed_count: int = 0
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


@dataclass(frozen=True, slots=True)
class BridgeStatus:
    """Everything monitoring tells of one bridge. Rates are a second, `uptime` whole seconds.

    Ages are milliseconds, -1 for never. `discarded_rx` and `discarded_tx` are messages by reason of
    core/discard_reasons.py. For each direction the imbalance is what was received (offered) and is neither
    delivered (sent), nor discarded, nor in flight: anything but 0 is a fault of the router.
    """

    msg_vpn_name: str
    bridge_name: str
    bridge_virtual_router: str
    enabled: bool
    """As configured. If the message VPN is disabled, the health says so."""
    health: str
    """One of HEALTHS."""
    inbound_state: str
    rx_connection_failure_category: str
    """`local-operational-state-problem` while the bridge or its message VPN is disabled, `local-configuration-problem`
    while no remote message VPN is enabled, else `no-failure`. The field has words for no other reason."""
    reconnecting: bool
    """True while the bridge still uses a connection of its earlier configuration, which another one is to replace."""
    inbound_failure_reason: str
    """Why the inbound half is down, stalled, unbound or incomplete; "" while it is well."""
    outbound_state: str
    outbound_failure_reason: str
    outbound_bridge_name: str
    """The remote's bridge on the same connection, "" for none."""
    remote_msg_vpn_name: str
    remote_router_name: str
    remote_address: str
    """IP address and port of the peer; before there is a connection, the configured location. Of a connection that
    came in, the address alone."""
    local_interface: str
    """IP address of this end of the connection, "" for a connection that came in."""
    client_name: str
    establisher: str
    encrypted: bool
    compressed: bool
    max_ttl: int
    bound_to_queue: bool
    remote_queue_standby: bool
    """Whether the bridge is bound to a queue, and another consumer gets the messages of it."""
    remote_queue_msg_count: int
    """Messages in the remote queue that the bridge is bound to, at most some seconds old; -1 for unknown."""
    remote_queue_window_closed_count: int
    """How often a message there has waited for `egress_flow_window_size`, since the bridge is bound."""
    remote_subscription_refused_count: int
    """The number of remote subscriptions that the remote has refused."""
    local_queue_name: str
    ttl_exceeded_event_raised: bool
    uptime: int
    state_age_ms: int
    """How long the inbound half has been in its state."""
    failure_count: int
    """How often the inbound half failed since the router started."""
    last_failure_age_ms: int
    last_rx_age_ms: int
    last_tx_age_ms: int
    average_rx_byte_rate: int
    average_rx_msg_rate: int
    average_tx_byte_rate: int
    average_tx_msg_rate: int
    rx_byte_rate: int
    rx_msg_rate: int
    tx_byte_rate: int
    tx_msg_rate: int
    control_rx_byte_count: int
    control_rx_msg_count: int
    control_tx_byte_count: int
    control_tx_msg_count: int
    data_rx_byte_count: int
    data_rx_msg_count: int
    data_tx_byte_count: int
    data_tx_msg_count: int
    login_rx_msg_count: int
    login_tx_msg_count: int
    rx_byte_count: int
    rx_msg_count: int
    tx_byte_count: int
    tx_msg_count: int
    delivered_rx_msg_count: int
    offered_tx_msg_count: int
    discarded_rx_msg_count: int
    discarded_tx_msg_count: int
    discarded_rx: dict[str, int]
    discarded_tx: dict[str, int]
    rx_in_flight_msg_count: int
    tx_in_flight_msg_count: int
    rx_imbalance: int
    tx_imbalance: int
    guaranteed_rx_msg_count: int
    """Guaranteed messages that came, those among them that came again because a link was lost."""
    msg_spool_rx_msg_count: int
    """The value of `guaranteed_rx_msg_count`, under the field's name."""
    remote_tx_flow_id: int
    """Id that the remote gave the flow of guaranteed messages, 0 while none is bound."""
    last_tx_msg_id: int
    """Spool id of the guaranteed message that was sent last to the remote's bridge over this connection, 0 for none."""
    guaranteed_taken_msg_count: int
    """Those that were accepted."""
    guaranteed_refused_msg_count: int
    """How often the message VPN refused one; one that waits counts each time that it is tried."""
    guaranteed_duplicate_msg_count: int
    """Those received after they were accepted, and only acknowledged again."""
    guaranteed_unmatched_msg_count: int
    """Those that no queue and no client wanted here: they were discarded, and removed from the remote queue."""
    parked_msg_count: int
    """Those that are set aside now (`on_reject: park`)."""
    tx_unacked_msg_count: int
    """Guaranteed messages that were sent and that the peer has not acknowledged."""
    local_queue_msg_count: int
    """Messages in the local queues that the peer's bridge takes from."""
    local_queue_oldest_msg_age_ms: int
    """How long the oldest of those has been waiting, -1 for none."""
    backlog_msg_count: int
    """Messages known here to wait for the bridge: in flight, parked, in the local queues. What waits in a queue of
    the remote is known there."""
    backlog_oldest_msg_age_ms: int
    """How long the oldest of those that are kept in endpoints has been waiting, -1 for none."""
    remotes: tuple[RemoteStatus, ...]


@dataclass(frozen=True, slots=True)
class GuaranteedCounts:
    """The guaranteed messages of a bridge since the router started; `parked` is how many are set aside now."""

    received: int = 0
    taken: int = 0
    refusals: int = 0
    duplicates: int = 0
    parked: int = 0
    unmatched: int = 0

    def since(self, base: GuaranteedCounts) -> GuaranteedCounts:
        """Return what was counted since `base`."""
        return GuaranteedCounts(
            self.received - base.received,
            self.taken - base.taken,
            self.refusals - base.refusals,
            self.duplicates - base.duplicates,
            self.parked,
            self.unmatched - base.unmatched,
        )


def counts_of(taker: FlowReceiver) -> GuaranteedCounts:
    """What the receiver of a bridge's guaranteed messages has counted."""
    lot = taker.lot
    return GuaranteedCounts(
        taker.received,
        taker.taken,
        taker.refusals,
        taker.duplicates,
        0 if lot is None else lot.endpoint.spooled_count,
        taker.unmatched,
    )


@dataclass(slots=True)
class StatusContext:
    """What monitoring shows of a bridge and its own record does not hold."""

    counters: Counters | None = None
    """Used instead of the record's, where those of the living connection are added on top."""
    rates: BridgeRates = NO_RATES
    rx_in_flight: int = 0
    tx_in_flight: int = 0
    outbound_bridge_name: str = ""
    compressed: bool = False
    enabled: bool = True
    msg_vpn_enabled: bool = True
    reconnecting: bool = False
    bound_to_queue: bool = False
    unbound: str = ""
    """Why the bridge is not bound to the queue that it wants, "" where it is or wants none."""
    refused: Sequence[str] = ()
    """A line for each remote subscription that was refused."""
    local_queue_name: str = ""
    ttl_exceeded_event_raised: bool = False
    guaranteed: GuaranteedCounts = GuaranteedCounts()
    has_remote: bool = True
    """True when a remote message VPN is enabled."""
    remote_tx_flow_id: int = 0
    last_tx_msg_id: int = 0
    tx_unacked: int = 0
    local_queue_msgs: int = 0
    local_queue_oldest_age_ms: int = -1
    parked_oldest_age_ms: int = -1
    failures_cleared: int = 0
    """Failures that are not shown."""
    remotes: tuple[RemoteStatus, ...] = ()

    @property
    def backlog_msgs(self) -> int:
        """Messages that wait for the bridge, or that it sent and nobody has acknowledged."""
        # A guaranteed message that waits for the connection is in its queue as well.
        in_flight = self.rx_in_flight + max(0, self.tx_in_flight - self.tx_unacked)
        return in_flight + self.guaranteed.parked + self.local_queue_msgs

    @property
    def remote_queue_msgs(self) -> int:
        """Messages in the queue at the remote, -1 without a report."""
        return max((one.queue_msg_count for one in self.remotes), default=-1)

    @property
    def window_closed(self) -> int:
        """How often a message in the queue at the remote has waited for the window."""
        return sum(one.queue_window_closed_count for one in self.remotes)

    @property
    def stands_by(self) -> bool:
        """Whether another consumer gets what is in the queue at the remote."""
        return any(one.stands_by for one in self.remotes)


NOTHING_AROUND: Final = StatusContext()


def health_of(inbound: Inbound, around: StatusContext = NOTHING_AROUND) -> str:
    """One of HEALTHS. The outbound half has no health between up and down."""
    if not around.enabled:
        return HEALTH_DISABLED
    if not around.msg_vpn_enabled:
        return HEALTH_VPN_DISABLED
    if inbound is Inbound.DISABLED:
        return HEALTH_DISABLED
    if inbound is Inbound.STALLED:
        return HEALTH_STALLED
    if inbound not in UP and inbound is not Inbound.NOT_APPLICABLE:
        return HEALTH_DOWN
    if around.unbound:
        return HEALTH_UNBOUND
    return HEALTH_INCOMPLETE if around.refused else HEALTH_UP


def _category(around: StatusContext) -> str:
    if not (around.enabled and around.msg_vpn_enabled):
        return "local-operational-state-problem"
    return "no-failure" if around.has_remote else "local-configuration-problem"


def _why(bridge: Bridge, around: StatusContext) -> str:
    """Why the inbound half is not well."""
    if bridge.inbound_failure_reason or not bridge.is_up:
        return bridge.inbound_failure_reason
    if around.unbound:
        return f"not bound to its queue: {around.unbound}"
    if around.refused:
        more = f", and {len(around.refused) - 1:,} more" if len(around.refused) > 1 else ""
        return f"remote subscription refused: {around.refused[0]}{more}"
    return ""


class RemoteQueueStatus(NamedTuple):
    """The queue at the remote in use, as `RemoteStatus` shows it."""

    bound_to_queue: bool = False
    stands_by: bool = False
    queue_msg_count: int = -1
    last_queue_bind_failure_reason: str = ""
    queue_bound_uptime: int = 0
    queue_window_closed_count: int = 0


NO_QUEUE: Final = RemoteQueueStatus()


def remotes_of(
    bridge: Bridge,
    remotes: Sequence[Remote],
    failures: Mapping[tuple[str, str], str],
    bindings: Mapping[tuple[str, str], str],
    queue: RemoteQueueStatus = NO_QUEUE,
) -> tuple[RemoteStatus, ...]:
    """The remotes of a bridge in their order; `failures` and the names of queues, `bindings`, by (message VPN,
    location). `queue` is that of the remote in use.
    """
    used = bridge.remote if bridge.is_up else None
    found = []
    for remote in remotes:
        key = (remote.msg_vpn, remote.location)
        up = used is not None and remote.names_the_same_as(used)
        own = queue if up else NO_QUEUE
        found.append(
            RemoteStatus(
                remote.msg_vpn,
                remote.location,
                remote.connect_order,
                remote.enabled,
                up,
                failures.get(key, ""),
                bindings.get(key, ""),
                own.bound_to_queue,
                own.stands_by,
                own.queue_msg_count,
                own.last_queue_bind_failure_reason,
                own.queue_bound_uptime,
                queue_window_closed_count=own.queue_window_closed_count,
            )
        )
    return tuple(found)


def status_of(bridge: Bridge, now_ns: int, around: StatusContext = NOTHING_AROUND) -> BridgeStatus:
    """Return the status of the bridge at `now_ns`, of the clock of its record."""
    counters = around.counters or bridge.counters
    rates = around.rates
    return BridgeStatus(
        msg_vpn_name=bridge.facts.msg_vpn,
        bridge_name=bridge.facts.name,
        bridge_virtual_router=VIRTUAL_ROUTER,
        enabled=around.enabled,
        health=health_of(bridge.inbound_state, around),
        inbound_state=bridge.inbound_state.value,
        rx_connection_failure_category=_category(around),
        reconnecting=around.reconnecting,
        inbound_failure_reason=_why(bridge, around),
        outbound_state=bridge.outbound_state.value,
        outbound_failure_reason=bridge.outbound_failure_reason,
        outbound_bridge_name=around.outbound_bridge_name,
        remote_msg_vpn_name="" if bridge.remote is None else bridge.remote.msg_vpn,
        remote_router_name=bridge.remote_router_name,
        remote_address=bridge.address,
        local_interface=bridge.local_interface,
        client_name=bridge.client_name,
        establisher=bridge.establisher,
        encrypted=bridge.encrypted,
        compressed=around.compressed,
        max_ttl=bridge.facts.max_ttl,
        bound_to_queue=around.bound_to_queue,
        remote_queue_standby=around.stands_by,
        remote_queue_msg_count=around.remote_queue_msgs,
        remote_queue_window_closed_count=around.window_closed,
        remote_subscription_refused_count=len(around.refused),
        local_queue_name=around.local_queue_name,
        ttl_exceeded_event_raised=around.ttl_exceeded_event_raised,
        uptime=bridge.uptime_s(now_ns),
        state_age_ms=age_ms(bridge.state_since_ns, now_ns),
        failure_count=bridge.failures - around.failures_cleared,
        last_failure_age_ms=age_ms(bridge.last_failure_ns, now_ns),
        last_rx_age_ms=age_ms(counters.last_data_rx_ns, now_ns),
        last_tx_age_ms=age_ms(counters.last_data_tx_ns, now_ns),
        **rates.attributes(),
        control_rx_byte_count=counters.control_rx_byte_count,
        control_rx_msg_count=counters.control_rx_msg_count,
        control_tx_byte_count=counters.control_tx_byte_count,
        control_tx_msg_count=counters.control_tx_msg_count,
        data_rx_byte_count=counters.data_rx_byte_count,
        data_rx_msg_count=counters.data_rx_msg_count,
        data_tx_byte_count=counters.data_tx_byte_count,
        data_tx_msg_count=counters.data_tx_msg_count,
        login_rx_msg_count=counters.login_rx_msg_count,
        login_tx_msg_count=counters.login_tx_msg_count,
        rx_byte_count=counters.rx_byte_count,
        rx_msg_count=counters.rx_msg_count,
        tx_byte_count=counters.tx_byte_count,
        tx_msg_count=counters.tx_msg_count,
        delivered_rx_msg_count=counters.delivered_rx_msg_count,
        offered_tx_msg_count=counters.offered_tx_msg_count,
        discarded_rx_msg_count=counters.discarded_rx_msg_count,
        discarded_tx_msg_count=counters.discarded_tx_msg_count,
        discarded_rx=dict(counters.discarded_rx.counts),
        discarded_tx=dict(counters.discarded_tx.counts),
        rx_in_flight_msg_count=around.rx_in_flight,
        tx_in_flight_msg_count=around.tx_in_flight,
        rx_imbalance=counters.rx_imbalance(around.rx_in_flight),
        tx_imbalance=counters.tx_imbalance(around.tx_in_flight),
        guaranteed_rx_msg_count=around.guaranteed.received,
        msg_spool_rx_msg_count=around.guaranteed.received,
        remote_tx_flow_id=around.remote_tx_flow_id,
        last_tx_msg_id=around.last_tx_msg_id,
        guaranteed_taken_msg_count=around.guaranteed.taken,
        guaranteed_refused_msg_count=around.guaranteed.refusals,
        guaranteed_duplicate_msg_count=around.guaranteed.duplicates,
        guaranteed_unmatched_msg_count=around.guaranteed.unmatched,
        parked_msg_count=around.guaranteed.parked,
        tx_unacked_msg_count=around.tx_unacked,
        local_queue_msg_count=around.local_queue_msgs,
        local_queue_oldest_msg_age_ms=around.local_queue_oldest_age_ms,
        backlog_msg_count=around.backlog_msgs,
        backlog_oldest_msg_age_ms=max(
            around.local_queue_oldest_age_ms, around.parked_oldest_age_ms
        ),
        remotes=around.remotes,
    )


def age_ms(since_ns: int, now_ns: int) -> int:
    """Return the milliseconds since a moment, -1 where it never was."""
    return -1 if since_ns < 0 else (now_ns - since_ns) // MILLISECOND_NS
