"""Gives a turn of the router's thread its clocks, timers, jobs, fault barrier, and outboxes to flush."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mypy_extensions import i64, mypyc_attr

from vpnrouter import limits
from vpnrouter.core.backpressure import Backpressure
from vpnrouter.core.fault_barrier import FaultBarrier
from vpnrouter.core.memory_account import MemoryAccount
from vpnrouter.core.timers import Jobs, Timers
from vpnrouter.ids import IdSource

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.events.log import EventLog
    from vpnrouter.trace.recorder import Recorder


@mypyc_attr(allow_interpreted_subclasses=True)
class CommitPort:
    """The interface of the edge's committer, which brings units to the store. Subclassed in `server`."""

    __slots__ = ("spent_ns",)

    def __init__(self) -> None:
        # Nanoseconds of the router's thread that the spool has had, for who shares the time out.
        self.spent_ns = 0

    def step(self) -> None:
        """End a round: deliver what can be delivered, and begin to commit."""
        raise AssertionError(self)


class TurnContext:
    """The part of a `RouterContext` that knows no message VPN: connections, timers and logins work with it.

    The edge sets the times once per round. `now_ns` is monotonic and drives timers; `wall_ns` is UTC since the epoch
    and goes into traces; `steady_ns` starts as UTC, goes on monotonically, and is what the spool keeps.
    `streams` counts connections that are served by tasks of their own. `seed` is 64 random bits.
    The edge logs the lines of `operator_warnings` and removes them. `events` is the event log or None.
    `work` counts the work of this turn in units of about a microsecond; beyond `allowance` it is left to `jobs`.
    `barrier` gets unexpected exceptions. `memory` counts what clients of all message VPNs hold.
    """

    __slots__ = (
        "_offset_ns",
        "allowance",
        "backpressure",
        "barrier",
        "committing",
        "events",
        "ids",
        "jobs",
        "large",
        "memory",
        "now_ns",
        "operator_warnings",
        "ready",
        "recorder",
        "router_name",
        "streams",
        "timers",
        "tracing",
        "wall_ns",
        "work",
    )

    def __init__(self, router_name: str, seed: int, recorder: Recorder, tracing: bool) -> None:
        self.router_name = router_name
        self.ids = IdSource(seed)
        self.recorder = recorder
        # Rows about links and subscriptions are written where anything is traced at all.
        self.tracing = tracing
        self.barrier = FaultBarrier(self)
        self.timers = Timers(self.barrier)
        self.work: i64 = 0
        self.allowance: i64 = limits.TURN_WORK
        self.jobs = Jobs(self)
        self.memory = MemoryAccount("", limits.MEMORY)
        self.ready: list[Outbox] = []
        self.backpressure = Backpressure()
        # Outboxes that hold much; the edge flushes them last.
        self.large: deque[Outbox] = deque()
        self.streams = 0
        self.operator_warnings: list[str] = []
        self.events: EventLog | None = None
        self.committing: CommitPort | None = None
        self.now_ns = 0
        self.wall_ns = 0
        self._offset_ns = 0

    @property
    def turn_spent(self) -> bool:
        """Return whether this turn has used up its allowance."""
        return self.work > self.allowance

    @property
    def steady_ns(self) -> int:
        """UTC since the epoch, unmoved by steps of the wall clock: no life time ends early by them, or late."""
        if self._offset_ns == 0:
            self._offset_ns = self.wall_ns - self.now_ns
        return self.now_ns + self._offset_ns
