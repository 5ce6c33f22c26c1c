"""A look at one bridge at one moment: where its status and its metrics are read (status.py)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter.bridges.bridge import UP, Inbound
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.errors import SpoolError
from vpnrouter.units import MILLISECOND_NS, SECOND_NS
from vpnrouter.wire.link.frames import ZSTD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from vpnrouter.bridges.bridge import Bridge
    from vpnrouter.bridges.counters import Counters
    from vpnrouter.bridges.driver import BridgeDriver
    from vpnrouter.bridges.flow_receiver import FlowReceiver
    from vpnrouter.bridges.link import Link
    from vpnrouter.bridges.own_flow import OwnFlow
    from vpnrouter.bridges.remote_order import Remote
    from vpnrouter.core.guaranteed.endpoint import Endpoint

HEALTH_DISABLED: Final = "disabled"
HEALTH_VPN_DISABLED: Final = "msg-vpn-disabled"
"""The bridge is enabled, and its message VPN is not."""
HEALTH_DOWN: Final = "down"
HEALTH_PAUSED: Final = "paused"
"""The bridge is logged in, and an operator lets nothing cross."""
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
    HEALTH_PAUSED,
    HEALTH_STALLED,
    HEALTH_UNBOUND,
    HEALTH_INCOMPLETE,
    HEALTH_UP,
)
"""All healths. Where several hold, the first of them is shown."""

LOGGED_IN: Final = frozenset(
    {HEALTH_PAUSED, HEALTH_STALLED, HEALTH_UNBOUND, HEALTH_INCOMPLETE, HEALTH_UP}
)
"""The healths of a bridge that is logged in. Direct messages flow, unless it is paused."""

KEEPS_NONE: Final = "this router keeps no guaranteed messages"

GUARANTEED: Final = ("received", "taken", "refusals", "duplicates", "unmatched")
"""What a FlowReceiver counts and an operator can clear."""


def age_ms(since_ns: int, now_ns: int) -> int:
    """Return the milliseconds since a moment, -1 where it never was."""
    return -1 if since_ns < 0 else (now_ns - since_ns) // MILLISECOND_NS


class Backlog(NamedTuple):
    """The queues here that a peer's bridge takes from: their names, the messages in them, and how many of those
    the peer was sent and has not acknowledged.
    """

    endpoints: tuple[Endpoint, ...] = ()
    messages: int = 0
    unacked: int = 0

    @property
    def names(self) -> str:
        """The names of the endpoints, separated by commas."""
        return ", ".join(endpoint.name for endpoint in self.endpoints)


NONE: Final = Backlog()


def backlog_of(link: Link | None) -> Backlog:
    """The queues here that the peer's bridge, which is logged in over `link`, takes messages from."""
    if (
        link is None
        or link.peer_half is None
        or link.peer_half.flows is None
        or link.client is None
    ):
        return NONE
    name = link.client.client_name
    endpoints = [
        endpoints_of(link.client.vpn).get((QUEUE, queue)) for queue in link.peer_half.flows.queues()
    ]
    # Two flows may stand to one queue.
    found = tuple({endpoint: None for endpoint in endpoints if endpoint is not None})
    return Backlog(
        found,
        sum(endpoint.spooled_count for endpoint in found),
        sum(
            len(flow.unacked)
            for endpoint in found
            for flow in endpoint.flows
            if flow.client_name == name
        ),
    )


def oldest_age_ms(endpoints: Iterable[Endpoint]) -> int:
    """How long the oldest message of these has been in the spool, -1 where they hold none or it cannot be read."""
    found = -1
    for endpoint in endpoints:
        try:
            rows = endpoint.browse(0, 1) if endpoint.spooled_count else []
        except SpoolError:
            continue
        for row in rows:
            age_ns = endpoint.vpn.context.steady_ns - row.spooled_time_ns
            found = max(found, age_ns // 1_000_000)
    return found


@final
class RemoteLook:
    """One remote of a bridge: whether it is `up`, why it last failed, the name of the queue there (each "" for none),
    and the flow from that while it is up.
    """

    __slots__ = ("binding", "failure", "flow", "remote", "up")

    def __init__(
        self, remote: Remote, failure: str, binding: str, flow: OwnFlow | None, *, up: bool
    ) -> None:
        self.remote = remote
        self.failure = failure
        self.binding = binding
        self.flow = flow
        self.up = up

    @property
    def bound(self) -> OwnFlow | None:
        """The flow, if it is bound to the queue."""
        flow = self.flow
        return flow if flow is not None and flow.bound_since_ns >= 0 else None

    @property
    def queue_msg_count(self) -> int:
        """Messages in the queue, -1 without a report."""
        return -1 if self.bound is None else self.bound.queue_msgs

    @property
    def stands_by(self) -> bool:
        """Whether another consumer gets what is in the queue."""
        return self.bound is not None and self.bound.stands_by

    @property
    def window_closed(self) -> int:
        """How often a message in the queue has waited for the window."""
        return 0 if self.bound is None else self.bound.window_closed

    @property
    def bound_s(self) -> int:
        """Whole seconds since it is bound, 0 while it is not."""
        flow = self.bound
        return 0 if flow is None else (flow.now_ns - flow.bound_since_ns) // SECOND_NS


def remotes_of(
    bridge: Bridge,
    remotes: Iterable[Remote],
    failures: Mapping[tuple[str, str], str],
    bindings: Mapping[tuple[str, str], str],
    flow: OwnFlow | None = None,
) -> list[RemoteLook]:
    """The remotes of a bridge in their order; `failures` and the names of queues, `bindings`, by (message VPN,
    location). `flow` is from the remote in use.
    """
    used = bridge.remote if bridge.is_up else None
    found = []
    for remote in remotes:
        key = (remote.msg_vpn, remote.location)
        up = used is not None and remote.names_the_same_as(used)
        own = flow if up else None
        found.append(RemoteLook(remote, failures.get(key, ""), bindings.get(key, ""), own, up=up))
    return found


@final
class BridgeLook:
    """A bridge at `now_ns` (of the clock of its record). Used at once, and once.

    `counters` are those to show, with what the peer's bridge counted on the same connection; `guaranteed_base` and
    `failures_cleared` are taken off the other counts. `driver` runs an own bridge, `link` is the connection, `sender`
    the record of what is sent. `enabled` and `paused` are as configured, `bindings` the queues of its `remotes`, which
    are in their order. `oldest_s` says for metrics how long the oldest message of some endpoints has been waiting,
    without reading one.
    """

    def __init__(
        self,
        record: Bridge,
        now_ns: int,
        *,
        counters: Counters | None = None,
        driver: BridgeDriver | None = None,
        link: Link | None = None,
        sender: Bridge | None = None,
        enabled: bool = True,
        paused: bool = False,
        bindings: Mapping[tuple[str, str], str] | None = None,
        guaranteed_base: Mapping[str, int] | None = None,
        failures_cleared: int = 0,
        rates: Mapping[str, int] | None = None,
        ttl_exceeded: bool = False,
    ) -> None:
        self.record = record
        self.now_ns = now_ns
        self.counters = record.counters if counters is None else counters
        self.driver = driver
        self.link = link
        self.sender = sender
        self.enabled = enabled
        self.paused = paused
        self.failures = record.failures - failures_cleared
        self.rates = {} if rates is None else rates
        self.ttl_exceeded = ttl_exceeded
        self.half = None if driver is None else driver.half
        self.flow = None if self.half is None or link is None else self.half.flow
        self.taker: FlowReceiver | None = None if driver is None else driver.taker
        self.lot = None if self.taker is None else self.taker.lot
        self.waits = backlog_of(link)
        self.oldest_s: Callable[[Iterable[Endpoint]], float | None] | None = None
        self.remotes: list[RemoteLook] = []
        if driver is not None:
            machine = driver.machine
            written = machine.remotes.written()
            self.remotes = remotes_of(record, written, machine.failures, bindings or {}, self.flow)
        self._guaranteed_base = {} if guaranteed_base is None else guaranteed_base

    # -- how it fares ----------------------------------------------------------------------------

    @property
    def msg_vpn_enabled(self) -> bool:
        """Whether the message VPN is enabled."""
        return self.driver is None or self.driver.links.vpn.enabled

    @property
    def health(self) -> str:
        """One of HEALTHS. The outbound half has no health between up and down."""
        inbound = self.record.inbound_state
        if not self.enabled:
            return HEALTH_DISABLED
        if not self.msg_vpn_enabled:
            return HEALTH_VPN_DISABLED
        if inbound is Inbound.DISABLED:
            stopped = self.driver is not None and self.driver.machine.stopped
            return HEALTH_DOWN if stopped else HEALTH_DISABLED
        if inbound is Inbound.PAUSED:
            return HEALTH_PAUSED
        if inbound is Inbound.STALLED:
            return HEALTH_STALLED
        if inbound not in UP and inbound is not Inbound.NOT_APPLICABLE:
            return HEALTH_DOWN
        if self.unbound:
            return HEALTH_UNBOUND
        return HEALTH_INCOMPLETE if self.refused else HEALTH_UP

    @property
    def category(self) -> str:
        """The field's word for why it is down."""
        if not (self.enabled and self.msg_vpn_enabled):
            return "local-operational-state-problem"
        has_remote = self.driver is None or self.driver.machine.remotes.current is not None
        return "no-failure" if has_remote else "local-configuration-problem"

    @property
    def why(self) -> str:
        """Why the inbound half is not well."""
        record = self.record
        if record.inbound_failure_reason or not record.is_up:
            return record.inbound_failure_reason
        if self.unbound:
            return f"not bound to its queue: {self.unbound}"
        if self.refused:
            first, *others = self.refused
            more = f", and {len(others):,} more" if others else ""
            return f"remote subscription refused: {first}{more}"
        return ""

    @property
    def unbound(self) -> str:
        """Why the bridge's queue is not bound; "" where it is bound or being asked for, or there is none."""
        if self.link is None:
            return ""
        if self.flow is not None:
            return self.flow.reason
        half = self.half
        wants = half is not None and half.welcomed and half.terms.queue
        return KEEPS_NONE if wants else ""

    @property
    def refused(self) -> tuple[str, ...]:
        """A line for each remote subscription that was refused."""
        return () if self.link is None or self.half is None else tuple(self.half.refused.values())

    # -- the connection --------------------------------------------------------------------------

    @property
    def peer_bridge(self) -> str:
        """The remote's bridge on the same connection, "" for none."""
        link = self.link
        return "" if link is None or link.client is None else link.client.peer_bridge

    @property
    def compressed(self) -> bool:
        """Whether frames are compressed."""
        return self.link is not None and self.link.features & ZSTD != 0

    @property
    def remote_msg_vpn(self) -> str:
        """The remote message VPN, "" before there is one."""
        return "" if self.record.remote is None else self.record.remote.msg_vpn

    # -- messages --------------------------------------------------------------------------------

    @property
    def rx_in_flight(self) -> int:
        """Messages that were received and wait to be accepted."""
        return 0 if self.half is None else self.half.in_flight

    @property
    def tx_in_flight(self) -> int:
        """Messages that wait to be sent."""
        return 0 if self.sender is None else self.sender.tx_in_flight

    def guaranteed(self, name: str) -> int:
        """One of GUARANTEED, since it was cleared."""
        base = self._guaranteed_base.get(name, 0)
        return 0 if self.taker is None else int(getattr(self.taker, name)) - base

    @property
    def bound(self) -> OwnFlow | None:
        """The flow of guaranteed messages, while it is bound to its queue."""
        flow = self.flow
        return flow if flow is not None and flow.bound_since_ns >= 0 else None

    @property
    def last_tx_msg_id(self) -> int:
        """Spool id of the guaranteed message that was sent last over this connection, 0 for none."""
        peer = None if self.link is None else self.link.peer_half
        return 0 if peer is None or peer.flows is None else peer.flows.last_id()

    @property
    def remote_queue_msgs(self) -> int:
        """Messages in the queue at the remote, -1 without a report."""
        return max((one.queue_msg_count for one in self.remotes), default=-1)

    @property
    def parked(self) -> int:
        """Messages that are set aside now."""
        return 0 if self.lot is None else self.lot.endpoint.spooled_count

    @property
    def backlog(self) -> int:
        """Messages that wait for the bridge, or that it sent and nobody has acknowledged."""
        # A guaranteed message that waits for the connection is in its queue as well.
        in_flight = self.rx_in_flight + max(0, self.tx_in_flight - self.waits.unacked)
        return in_flight + self.parked + self.waits.messages

    @property
    def kept(self) -> tuple[Endpoint, ...]:
        """The endpoints here whose messages wait for the bridge."""
        here = self.waits.endpoints
        return here if self.lot is None else (*here, self.lot.endpoint)

    @property
    def backlog_age_s(self) -> float | None:
        """How long the oldest message in endpoints has been waiting, None for none; it reads no message."""
        return None if self.oldest_s is None else self.oldest_s(self.kept)

    @cached_property
    def waits_age_ms(self) -> int:
        """How long the oldest message for the peer's bridge has been waiting, -1 for none; it is read."""
        return oldest_age_ms(self.waits.endpoints)

    @property
    def parked_age_ms(self) -> int:
        """How long the oldest message that was set aside has been waiting, -1 for none; it is read."""
        return -1 if self.lot is None else oldest_age_ms([self.lot.endpoint])
