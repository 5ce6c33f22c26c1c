"""The router: its message VPNs, and what they share: identity, time of the round, timers, traces.

One task owns it; nothing in it takes a lock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from mypy_extensions import i64, mypyc_attr

from vpnrouter import limits
from vpnrouter.core.barrier import Barrier
from vpnrouter.core.entrance import Entrance, Holdings, Quota
from vpnrouter.core.losses import Losses
from vpnrouter.core.retained import Account
from vpnrouter.core.timers import Jobs, Timers
from vpnrouter.core.tracing import TraceTerms
from vpnrouter.events import table
from vpnrouter.ids import IdSource
from vpnrouter.trace.recorder import Recorder
from vpnrouter.trace.sampler import Sampler

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.scram import Derivation
    from vpnrouter.core.tracing import Picking
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.log import EventLog


@mypyc_attr(allow_interpreted_subclasses=True)
class Committing:
    """The edge's half of the spool: how units reach the store. Subclassed in `server`."""

    __slots__ = ("spent_ns",)

    def __init__(self) -> None:
        # Nanoseconds of the router's thread that the spool has had, for who shares the time out.
        self.spent_ns = 0

    def step(self) -> None:
        """A round ends: deliver what can be delivered, and begin to commit what came."""
        raise AssertionError(self)


@final
class Plane:
    """Shared state of the data plane; one per router, written by one task only.

    `now_ns` is monotonic and drives timers; `wall_ns` is UTC since the epoch and goes into traces;
    `steady_ns` is what the spool keeps: UTC as the clock had it at first, and monotonic from there on.
    `streams` counts connections that are served by tasks of their own. The edge sets the times once per
    round: nothing in the core reads a clock. `seed` is 64 random bits. `spool` is None where guaranteed
    messaging is off. `troubles` are lines for the operator, which the edge tells and removes. `events` is
    the event log, None where there is none. `work` counts what this turn has done, in parts of about a
    microsecond, `allowance` is how much one turn may do; the rest is left to `jobs`. `losses` is None
    where traces tell nothing of untraced messages; `filters`, `honours`, `emits` are of `terms` (tracing.py),
    `pickings` those that were needed, by the indices of their filters. `barrier` is given unexpected exceptions.
    `partials` counts bytes of unfinished packets, `outboxes` bytes that wait for peers that do not read, `wills`
    bytes of wills, `retained` bytes of retained messages in the spool; each of all message VPNs.
    """

    __slots__ = (
        "_offset_ns",
        "allowance",
        "barrier",
        "committing",
        "emits",
        "events",
        "filters",
        "honours",
        "ids",
        "jobs",
        "large",
        "losses",
        "now_ns",
        "outboxes",
        "partials",
        "pickings",
        "ready",
        "recorder",
        "retained",
        "router_name",
        "sampler",
        "spool",
        "streams",
        "timers",
        "tracing",
        "troubles",
        "wall_ns",
        "wills",
        "work",
    )

    def __init__(
        self,
        router_name: str,
        seed: int,
        recorder: Recorder,
        sample: float,
        terms: TraceTerms | None = None,
    ) -> None:
        self.router_name = router_name
        self.ids = IdSource(seed)
        self.recorder = recorder
        self.sampler = Sampler(sample, seed)
        # Rows about links and subscriptions are written where anything is traced at all.
        self.tracing = sample > 0.0 or terms is not None
        self.barrier = Barrier(self)
        self.timers = Timers(self.barrier)
        self.work: i64 = 0
        self.allowance: i64 = limits.TURN_WORK
        self.jobs = Jobs(self)
        wanted = terms or TraceTerms()
        self.filters = wanted.filters
        self.pickings: dict[bytes, Picking] = {}
        self.honours = wanted.honours
        self.emits = wanted.emits
        self.losses: Losses | None = None
        if wanted.discards or wanted.rejects:
            self.losses = Losses(self, wanted.discards, wanted.rejects)
        self.partials = Holdings(limits.PARTIAL_BYTES_ALL)
        self.retained = Account()
        self.outboxes = Holdings(limits.UNREAD_BYTES, unread=True)
        self.wills = Quota(limits.WILL_BYTES_ALL)
        self.ready: list[Outbox] = []
        # Outboxes that hold much; the edge flushes them last.
        self.large: deque[Outbox] = deque()
        self.streams = 0
        self.troubles: list[str] = []
        self.events: EventLog | None = None
        self.spool: Spool | None = None
        self.committing: Committing | None = None
        self.now_ns = 0
        self.wall_ns = 0
        self._offset_ns = 0

    @property
    def tired(self) -> bool:
        """True when this turn has done as much as it may."""
        return self.work > self.allowance

    @property
    def steady_ns(self) -> int:
        """UTC since the epoch, unmoved by steps of the wall clock: no life time ends early by them, or late."""
        if self._offset_ns == 0:
            self._offset_ns = self.wall_ns - self.now_ns
        return self.now_ns + self._offset_ns


@final
class Router:
    """All state of one router.

    `entrance` bounds what strangers may hold. `verifications`, a part of it, are logins whose password the
    edge must verify (in a thread: scrypt is slow on purpose); it takes them and settles each. `derivations` are
    salted passwords that the edge must compute, also in a thread.
    """

    __slots__ = (
        "derivations",
        "entrance",
        "logins_refused",
        "name",
        "plane",
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
        terms: TraceTerms | None = None,
    ) -> None:
        self.name = name
        self.plane = Plane(name, seed, recorder, sample, terms)
        self.vpns: dict[str, MessageVpn] = {}
        self.entrance = Entrance(self.plane)
        self.verifications = self.entrance.verifications
        self.derivations: list[Derivation] = []
        self.protocol_errors = 0
        self.logins_refused = 0

    def add(self, vpn: MessageVpn) -> None:
        """Host one more message VPN."""
        self.vpns[vpn.name] = vpn
        events = self.plane.events
        if events is not None:
            state = "up" if vpn.enabled else "down"
            events.raise_event(table.VPN_STATE, vpn.name, "", f"VPN {vpn.name} added: {state}")

    def tick(self, now_ns: int, wall_ns: int) -> None:
        """Set the clocks of this round, fire the timers that are due, and finish all jobs."""
        plane = self.plane
        plane.now_ns = now_ns
        plane.wall_ns = wall_ns
        plane.timers.run(now_ns)
        plane.jobs.finish()
