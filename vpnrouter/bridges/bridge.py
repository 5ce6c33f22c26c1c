"""The operational record of one bridge: what it is, how it stands, since when, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.bridges.counters import Counters
from vpnrouter.bridges.remotes import Remote
from vpnrouter.bridges.states import (
    UP,
    Inbound,
    Input,
    Outbound,
    Peer,
    next_inbound,
    next_outbound,
)

if TYPE_CHECKING:
    from vpnrouter.bridges.outbound import OutboundHalf

_FAILURES: Final = frozenset(
    {Input.FAILED, Input.LOST, Input.REFUSED, Input.VERSION_MISMATCH, Input.STALL}
)
"""Inputs whose reason is why the bridge is not in sync."""

_CLEARED_BY: Final = frozenset({Input.WELCOMED, Input.RELEASE, Input.DISABLE, Input.ENABLE})
"""Inputs after which the last reason is history."""


@dataclass(frozen=True, slots=True)
class BridgeFacts:
    """What the configuration says of a bridge in this VPN."""

    router: str
    msg_vpn: str
    name: str
    client_username: str = ""
    max_ttl: int = limits.HOPS
    deliver_to_one_priority: str = "p1"


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
    `sending` are the halves of the peer that count into this record: one, and for a moment a second
    one whose connection is being replaced.
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
        self.sending: list[OutboundHalf] = []
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
    def is_up(self) -> bool:
        """Whether the bridge is logged in and messages flow."""
        return self.inbound_state in UP

    def uptime_s(self, now_ns: int) -> int:
        """Whole seconds since the login, 0 while down; the field's `uptime`."""
        return 0 if self.up_since_ns < 0 else (now_ns - self.up_since_ns) // 1_000_000_000

    def peer_is(self, router: str, vpn: str, address: str, *, encrypted: bool) -> None:
        """Who is at the other end: its router, message VPN and address."""
        self.remote_router_name = router
        self.remote = Remote(vpn, address)
        self.remote_address = address
        self.encrypted = encrypted
