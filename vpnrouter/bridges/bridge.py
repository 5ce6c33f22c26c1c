"""The operational record of one bridge, and the tables of its states.

Inbound is what the bridge is for: its messages come in from the remote message VPN. Outbound says
whether the remote has a bridge of its own whose messages go out over the same connection. The state
names are those that the field's monitoring shows; docs/bridge-states.md draws these tables and is
generated from them. An input that a state does not list is a fault of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.counters import Counters
from vpnrouter.bridges.remote_order import Remote

if TYPE_CHECKING:
    from vpnrouter.bridges.link_end import LinkEnd


class Inbound(StrEnum):
    """State of the inbound half, `inboundState` in monitoring."""

    INIT = "init"
    """Just created; nothing has been decided."""
    DISABLED = "disabled"
    """Switched off by configuration or operator."""
    PREPARE_WAIT_TO_CONNECT = "prepare-wait-to-connect"
    """Waiting for what a connection needs: the VPN in service, a remote that is enabled."""
    PREPARE_FETCHING_DNS = "prepare-fetching-dns"
    """Looking the remote's host name up."""
    NOT_READY_CONNECTING = "not-ready-connecting"
    """TCP, and TLS where configured, under way."""
    NOT_READY_HANDSHAKING = "not-ready-handshaking"
    """HELLO sent, no answer yet."""
    NOT_READY_WAIT_NEXT = "not-ready-wait-next"
    """The attempt failed or the link was lost; waiting for the time of the next attempt."""
    NOT_READY_WAIT_REUSE = "not-ready-wait-reuse"
    """The remote's own bridge connects here; waiting to log in over that connection."""
    NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH = "not-ready-wait-bridge-version-mismatch"
    """The remote speaks another major version; waiting long before the next attempt."""
    NOT_READY_WAIT_CLEANUP = "not-ready-wait-cleanup"
    """The connection is being taken down; what waited for it is being discarded and counted."""
    READY_SUBSCRIBING = "ready-subscribing"
    """Logged in; messages flow for the subscriptions confirmed so far."""
    READY_IN_SYNC = "ready-in-sync"
    """Logged in, and every remote subscription is answered. A refused one shows in the bridge's health."""
    STALLED = "stalled"
    """In sync, but a guaranteed message is refused here and holds back those behind it."""
    PAUSED = "paused"
    """Logged in, and an operator lets nothing cross: guaranteed messages wait in the remote queue."""
    NOT_APPLICABLE = "not-applicable"
    """No bridge is configured on this side; the connection serves the remote's bridge alone."""


class Outbound(StrEnum):
    """State of the outbound half, `outboundState` in monitoring."""

    NOT_APPLICABLE = "not-applicable"
    """The remote has no bridge on this connection."""
    READY = "ready"
    """The remote's bridge is logged in here."""


class Input(StrEnum):
    """What happens to the inbound half."""

    ENABLE = "enable"
    DISABLE = "disable"
    ATTACH = "attach"
    """The remote's bridge logged in and there is none here to use the connection."""
    DETACH = "detach"
    """That bridge is gone again."""
    DIAL = "dial"
    """A remote is chosen and may be dialled."""
    RESOLVED = "resolved"
    CONNECTED = "connected"
    FAILED = "failed"
    """What the state waits for failed or took too long; nothing is left to take down."""
    WELCOMED = "welcomed"
    REFUSED = "refused"
    VERSION_MISMATCH = "version-mismatch"
    REUSE = "reuse"
    """A compatible incoming bridge exists, or the remote says that one does."""
    REUSED = "reused"
    """The login over the existing connection begins."""
    SUBSCRIBED = "subscribed"
    """The last outstanding remote subscription was confirmed."""
    SUBSCRIPTIONS_CHANGED = "subscriptions-changed"
    """Remote subscriptions were added while the link is up."""
    STALL = "stall"
    RELEASE = "release"
    """What was refused was accepted."""
    PAUSE = "pause"
    """An operator lets nothing cross, or has done so before the login."""
    RESUME = "resume"
    RECONNECT = "reconnect"
    """An operator, or a better remote that is healthy again, asks for a new connection."""
    LOST = "lost"
    """The connection broke, was closed by the peer, or is silent for too long."""
    CLEANED = "cleaned"
    """Nothing is left of the connection."""
    NEXT_REMOTE = "next-remote"
    """The delay is over; the remote to try, the same or another, is chosen."""


class Peer(StrEnum):
    """What happens to the outbound half."""

    LOGGED_IN = "logged-in"
    LOGGED_OUT = "logged-out"


_LIVE: Final = (
    Inbound.READY_SUBSCRIBING,
    Inbound.READY_IN_SYNC,
    Inbound.STALLED,
    Inbound.PAUSED,
)
_ENABLED: Final = tuple(
    state
    for state in Inbound
    if state not in {Inbound.INIT, Inbound.DISABLED, Inbound.NOT_APPLICABLE}
)

INBOUND: Final[dict[tuple[Inbound, Input], Inbound]] = {
    (Inbound.INIT, Input.ENABLE): Inbound.PREPARE_WAIT_TO_CONNECT,
    (Inbound.INIT, Input.DISABLE): Inbound.DISABLED,
    (Inbound.INIT, Input.ATTACH): Inbound.NOT_APPLICABLE,
    (Inbound.DISABLED, Input.ENABLE): Inbound.PREPARE_WAIT_TO_CONNECT,
    # A connection may end after the switch is off.
    (Inbound.DISABLED, Input.LOST): Inbound.DISABLED,
    (Inbound.DISABLED, Input.CLEANED): Inbound.DISABLED,
    (Inbound.NOT_APPLICABLE, Input.ENABLE): Inbound.PREPARE_WAIT_TO_CONNECT,
    (Inbound.NOT_APPLICABLE, Input.DETACH): Inbound.INIT,
    (Inbound.PREPARE_WAIT_TO_CONNECT, Input.DIAL): Inbound.PREPARE_FETCHING_DNS,
    (Inbound.PREPARE_WAIT_TO_CONNECT, Input.REUSE): Inbound.NOT_READY_WAIT_REUSE,
    (Inbound.PREPARE_FETCHING_DNS, Input.RESOLVED): Inbound.NOT_READY_CONNECTING,
    (Inbound.PREPARE_FETCHING_DNS, Input.FAILED): Inbound.NOT_READY_WAIT_NEXT,
    (Inbound.NOT_READY_CONNECTING, Input.CONNECTED): Inbound.NOT_READY_HANDSHAKING,
    (Inbound.NOT_READY_CONNECTING, Input.FAILED): Inbound.NOT_READY_WAIT_NEXT,
    (Inbound.NOT_READY_HANDSHAKING, Input.WELCOMED): Inbound.READY_SUBSCRIBING,
    (Inbound.NOT_READY_HANDSHAKING, Input.REFUSED): Inbound.NOT_READY_WAIT_CLEANUP,
    (Inbound.NOT_READY_HANDSHAKING, Input.LOST): Inbound.NOT_READY_WAIT_CLEANUP,
    (
        Inbound.NOT_READY_HANDSHAKING,
        Input.VERSION_MISMATCH,
    ): Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH,
    (Inbound.NOT_READY_HANDSHAKING, Input.REUSE): Inbound.NOT_READY_WAIT_REUSE,
    (Inbound.NOT_READY_WAIT_REUSE, Input.REUSED): Inbound.NOT_READY_HANDSHAKING,
    (Inbound.NOT_READY_WAIT_REUSE, Input.LOST): Inbound.NOT_READY_WAIT_NEXT,
    (Inbound.NOT_READY_WAIT_REUSE, Input.FAILED): Inbound.NOT_READY_WAIT_NEXT,
    (
        Inbound.NOT_READY_WAIT_BRIDGE_VERSION_MISMATCH,
        Input.NEXT_REMOTE,
    ): Inbound.PREPARE_WAIT_TO_CONNECT,
    (Inbound.NOT_READY_WAIT_NEXT, Input.NEXT_REMOTE): Inbound.PREPARE_WAIT_TO_CONNECT,
    (Inbound.NOT_READY_WAIT_NEXT, Input.REUSE): Inbound.NOT_READY_WAIT_REUSE,
    (Inbound.NOT_READY_WAIT_CLEANUP, Input.CLEANED): Inbound.NOT_READY_WAIT_NEXT,
    # The peer may be quicker to close what is being taken down.
    (Inbound.NOT_READY_WAIT_CLEANUP, Input.LOST): Inbound.NOT_READY_WAIT_CLEANUP,
    (Inbound.READY_SUBSCRIBING, Input.SUBSCRIBED): Inbound.READY_IN_SYNC,
    (Inbound.READY_SUBSCRIBING, Input.SUBSCRIPTIONS_CHANGED): Inbound.READY_SUBSCRIBING,
    (Inbound.READY_IN_SYNC, Input.SUBSCRIPTIONS_CHANGED): Inbound.READY_SUBSCRIBING,
    (Inbound.READY_IN_SYNC, Input.STALL): Inbound.STALLED,
    (Inbound.READY_SUBSCRIBING, Input.STALL): Inbound.STALLED,
    # Direct subscriptions go on while guaranteed messages stand.
    (Inbound.STALLED, Input.SUBSCRIPTIONS_CHANGED): Inbound.STALLED,
    (Inbound.STALLED, Input.SUBSCRIBED): Inbound.STALLED,
    # Through subscribing: what was confirmed meanwhile is looked at again.
    (Inbound.STALLED, Input.RELEASE): Inbound.READY_SUBSCRIBING,
    **{(state, Input.PAUSE): Inbound.PAUSED for state in _LIVE if state is not Inbound.PAUSED},
    # Its subscriptions are given up, and asked for again.
    (Inbound.PAUSED, Input.SUBSCRIPTIONS_CHANGED): Inbound.PAUSED,
    (Inbound.PAUSED, Input.SUBSCRIBED): Inbound.PAUSED,
    (Inbound.PAUSED, Input.RESUME): Inbound.READY_SUBSCRIBING,
    **{(state, Input.LOST): Inbound.NOT_READY_WAIT_CLEANUP for state in _LIVE},
    **{(state, Input.RECONNECT): Inbound.NOT_READY_WAIT_CLEANUP for state in _LIVE},
    **{(state, Input.DISABLE): Inbound.DISABLED for state in _ENABLED},
}
"""(state, input) → state of the inbound half."""

OUTBOUND: Final[dict[tuple[Outbound, Peer], Outbound]] = {
    (Outbound.NOT_APPLICABLE, Peer.LOGGED_IN): Outbound.READY,
    # The same bridge over a newer connection takes over (LINK-20).
    (Outbound.READY, Peer.LOGGED_IN): Outbound.READY,
    (Outbound.READY, Peer.LOGGED_OUT): Outbound.NOT_APPLICABLE,
}
"""(state, input) → state of the outbound half."""

UP: Final = frozenset(_LIVE)
"""States in which the bridge is logged in, and messages flow unless it is paused."""


def next_inbound(state: Inbound, given: Input) -> Inbound:
    """Return the state after `given`. Raises LookupError for an input that the state does not take."""
    after = INBOUND.get((state, given))
    if after is None:
        raise LookupError(f"a bridge in state {state} does not take {given}")
    return after


def next_outbound(state: Outbound, given: Peer) -> Outbound:
    """Return the state after `given`. Raises LookupError for an input that the state does not take."""
    after = OUTBOUND.get((state, given))
    if after is None:
        raise LookupError(f"the outbound half in state {state} does not take {given}")
    return after


_FAILURES: Final = frozenset(
    {Input.FAILED, Input.LOST, Input.REFUSED, Input.VERSION_MISMATCH, Input.STALL}
)
"""Inputs whose reason explains why the bridge is not in sync."""

_CLEARED_BY: Final = frozenset(
    {Input.WELCOMED, Input.RELEASE, Input.PAUSE, Input.DISABLE, Input.ENABLE}
)
"""Inputs after which the last reason is history."""


@final
@dataclass(slots=True)
class BridgeFacts:
    """What the configuration says of a bridge in this VPN."""

    router: str
    msg_vpn: str
    name: str
    client_username: str = ""
    max_ttl: int = limits.HOPS


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of the inbound state, for the event log and the traces. `now_ns` as handed in."""

    before: Inbound
    given: Input
    after: Inbound
    reason: str
    now_ns: int

    @property
    def went_up(self) -> bool:
        """Whether the link is up from here on."""
        return self.after in UP and self.before not in UP

    @property
    def went_down(self) -> bool:
        """Whether the link was up until here."""
        return self.before in UP and self.after not in UP


@final
class Bridge:
    """One bridge. `handle` and `handle_peer` are the only ways its states change.

    `remote_address` is the remote that was dialled, as it is configured, `peer_address` its IP address and port.
    `sending` are the links whose outboxes count into this record as the peer's bridge: one, and for a moment a second
    one that is being replaced.
    """

    __slots__ = (
        "client_name",
        "counters",
        "encrypted",
        "establisher",
        "facts",
        "failures",
        "inbound_failure_reason",
        "inbound_state",
        "last_failure_ns",
        "local_interface",
        "outbound_failure_reason",
        "outbound_state",
        "peer_address",
        "remote",
        "remote_address",
        "remote_router_name",
        "sending",
        "state_since_ns",
        "up_since_ns",
    )

    def __init__(self, facts: BridgeFacts, now_ns: int) -> None:
        self.facts = facts
        self.counters = Counters()
        self.inbound_state = Inbound.INIT
        self.outbound_state = Outbound.NOT_APPLICABLE
        self.inbound_failure_reason = ""
        self.outbound_failure_reason = ""
        self.state_since_ns = now_ns
        self.up_since_ns = -1
        self.last_failure_ns = -1
        self.failures = 0
        self.remote: Remote | None = None
        self.remote_address = ""
        self.peer_address = ""
        self.local_interface = ""
        self.remote_router_name = ""
        self.client_name = ""
        self.sending: list[LinkEnd] = []
        self.establisher = "local"
        self.encrypted = False

    def handle(self, given: Input, now_ns: int, reason: str = "") -> Transition:
        """Move the inbound half. `reason` says why, for inputs that mean trouble.

        Raises LookupError for an input that the state does not take; nothing has changed then.
        """
        before = self.inbound_state
        after = next_inbound(before, given)
        self.inbound_state = after
        if after is not before:
            self.state_since_ns = now_ns
        if given in _FAILURES and after is not Inbound.DISABLED:
            self.inbound_failure_reason = reason or given.value
            self.last_failure_ns = now_ns
            self.failures += 1
        elif given in _CLEARED_BY:
            self.inbound_failure_reason = ""
        if after in UP and before not in UP:
            self.up_since_ns = now_ns
        elif after not in UP:
            self.up_since_ns = -1
        return Transition(before, given, after, reason, now_ns)

    def handle_peer(self, given: Peer, reason: str = "") -> Outbound:
        """Move the outbound half; returns its new state.

        Raises LookupError for an input that the state does not take.
        """
        self.outbound_state = next_outbound(self.outbound_state, given)
        self.outbound_failure_reason = reason if given is Peer.LOGGED_OUT else ""
        return self.outbound_state

    @property
    def tx_in_flight(self) -> int:
        """Messages offered to the peer's bridge that wait for its connection to take them."""
        return sum(link.outbox.waiting() for link in self.sending)

    @property
    def is_up(self) -> bool:
        """Whether the bridge is logged in."""
        return self.inbound_state in UP

    @property
    def address(self) -> str:
        """The peer's IP address and port, or the remote that was dialled where these are not known."""
        return self.peer_address or self.remote_address

    def uptime_s(self, now_ns: int) -> int:
        """Whole seconds since the login, 0 while down; the field's `uptime`."""
        return 0 if self.up_since_ns < 0 else (now_ns - self.up_since_ns) // 1_000_000_000

    def peer_is(self, router: str, vpn: str, address: str, *, encrypted: bool) -> None:
        """Who is at the other end: its router, message VPN and address."""
        self.remote_router_name = router
        self.remote = Remote(vpn, address)
        self.remote_address = address
        self.encrypted = encrypted
