"""What all message VPNs of one router share: identity, time of the round, traces, timers, the flush list."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.timers import Timers
from vpnrouter.ids import IdSource
from vpnrouter.trace.recorder import Recorder
from vpnrouter.trace.sampler import Sampler

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Outbox


@final
class Plane:
    """Shared state of the data plane; one per router, written by one task only.

    `now_ns` is monotonic and drives timers; `wall_ns` is UTC since the epoch and goes into traces.
    `streams` counts connections that are served by tasks of their own. The edge sets the times once per
    round: nothing in the core reads a clock. `seed` is 64 random bits.
    """

    __slots__ = (
        "ids",
        "now_ns",
        "ready",
        "recorder",
        "router_name",
        "sampler",
        "streams",
        "timers",
        "tracing",
        "wall_ns",
    )

    def __init__(self, router_name: str, seed: int, recorder: Recorder, sample: float) -> None:
        self.router_name = router_name
        self.ids = IdSource(seed)
        self.recorder = recorder
        self.sampler = Sampler(sample, seed)
        self.tracing = sample > 0.0
        self.timers = Timers()
        self.ready: list[Outbox] = []
        self.streams = 0
        self.now_ns = 0
        self.wall_ns = 0
