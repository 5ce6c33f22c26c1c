"""Holds all state of one router: its message VPNs, and the context that they share.

One task owns it; nothing in it takes a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.context import RouterContext
from vpnrouter.core.pre_login_limits import PreLoginLimits
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.scram import Derivation
    from vpnrouter.core.tracing import TraceSettings
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.trace.recorder import Recorder


@final
class Router:
    """All state of one router.

    `pre_login_limits` bounds connections before login; its `verifications` are logins whose password the edge verifies
    in a thread (scrypt is slow on purpose). `derivations` are salted passwords that the edge computes, also in a
    thread.
    """

    __slots__ = (
        "context",
        "derivations",
        "logins_refused",
        "name",
        "pre_login_limits",
        "protocol_errors",
        "verifications",
        "vpns",
    )

    def __init__(
        self,
        name: str,
        seed: int,
        recorder: Recorder,
        sample: float = 0.0,
        terms: TraceSettings | None = None,
    ) -> None:
        self.name = name
        self.context = RouterContext(name, seed, recorder, sample, terms)
        self.vpns: dict[str, MessageVpn] = {}
        self.pre_login_limits = PreLoginLimits(self.context)
        self.verifications = self.pre_login_limits.verifications
        self.derivations: list[Derivation] = []
        self.protocol_errors = 0
        self.logins_refused = 0

    def add(self, vpn: MessageVpn) -> None:
        """Host one more message VPN."""
        self.vpns[vpn.name] = vpn
        events = self.context.events
        if events is not None:
            state = "up" if vpn.enabled else "down"
            events.raise_event(table.VPN_STATE, vpn.name, "", f"VPN {vpn.name} added: {state}")

    def tick(self, now_ns: int, wall_ns: int) -> None:
        """Set the clocks of this round, fire the timers that are due, and finish all jobs."""
        context = self.context
        context.now_ns = now_ns
        context.wall_ns = wall_ns
        context.timers.run(now_ns)
        context.jobs.finish()
