"""Runs work later: at a time, or in slices where it is too much for one turn.

Timers are a heap of deadlines in monotonic nanoseconds. Re-arming is lazy: a keep-alive that heard from its client
moves itself on when its old deadline comes, so traffic costs no heap operation.

A packet may ask for work that takes a thousand times longer than reading it. Its handler does as much as one turn
allows (`TurnContext.turn_spent`) and leaves the rest as a job. Between rounds the edge (server/net/loop.py) takes jobs
from the front of the queue, one slice each, so that no client waits for another's long work.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.fault_barrier import TASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.connection import Connection
    from vpnrouter.core.fault_barrier import FaultBarrier
    from vpnrouter.core.turn import TurnContext


FEW: Final = 64
"""Cancelled deadlines that are not worth a sweep."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerTarget:
    """An object with deadlines."""

    __slots__ = ()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Handle the deadline armed with `kind`.

        If this raises, `owning_connection` is closed; without one it is called again a second later.
        """
        raise AssertionError(kind)

    def owning_connection(self) -> Connection | None:
        """The connection to close when `on_timer` raises, None for none."""
        return None


@final
class Timer:
    """One armed deadline; `cancel()` makes it do nothing."""

    __slots__ = ("_timers", "kind", "target")

    def __init__(self, timers: Timers, target: TimerTarget, kind: int) -> None:
        self._timers = timers
        self.target: TimerTarget | None = target
        self.kind = kind

    def cancel(self) -> None:
        """Forget the target; the heap entry leaves at its time, or with the next sweep."""
        if self.target is not None:
            self.target = None
            self._timers.cancelled += 1


@final
class Timers:
    """All deadlines of a router.

    `cancelled` counts entries of the heap that do nothing. When most are such, they are swept out: clients that come
    and go with long keep-alives must not leave a growing heap behind. Exceptions go to the `barrier`; without one they
    are raised here.
    """

    __slots__ = ("_heap", "_serial", "barrier", "cancelled")

    def __init__(self, barrier: FaultBarrier | None = None) -> None:
        self.barrier = barrier
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = 0
        self.cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def arm(self, at_ns: int, target: TimerTarget, kind: int) -> Timer:
        """Call `target.on_timer(kind, now)` once, at or after `at_ns`."""
        if self.cancelled > FEW and self.cancelled * 2 > len(self._heap):
            self._sweep()
        timer = Timer(self, target, kind)
        self._serial += 1
        heapq.heappush(self._heap, (at_ns, self._serial, timer))
        return timer

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].target is not None]
        heapq.heapify(self._heap)
        self.cancelled = 0

    def next_ns(self) -> int:
        """When the earliest deadline is, or -1 when there is none."""
        return self._heap[0][0] if self._heap else -1

    def run(self, now_ns: int) -> int:
        """Fire everything due by `now_ns`; returns how many fired."""
        fired = 0
        while self._heap and self._heap[0][0] <= now_ns:
            _, _, timer = heapq.heappop(self._heap)
            target = timer.target
            if target is None:
                self.cancelled -= 1
            else:
                timer.target = None
                fired += 1
                try:
                    target.on_timer(timer.kind, now_ns)
                except Exception as error:
                    if self.barrier is None:
                        raise
                    self.barrier.timer(target, timer.kind, error)
        return fired


@mypyc_attr(allow_interpreted_subclasses=True)
class Job(TimerTarget):
    """Work in slices; `queued` is for Jobs alone. When a step raises, `owning_connection` is closed."""

    __slots__ = ("queued",)

    def __init__(self) -> None:
        self.queued = False

    def step(self) -> bool:
        """Work until this turn has done enough; True when all is done, or when the job waits to be added again."""
        raise AssertionError(self)


@final
class Jobs:
    """The queue of a router's jobs. `wake` is called when a job comes into the empty queue."""

    __slots__ = ("_context", "_waiting", "wake")

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._waiting: deque[Job] = deque()
        self.wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, job: Job) -> None:
        """Put `job` at the end of the queue, unless it is in the queue already."""
        if job.queued:
            return
        job.queued = True
        self._waiting.append(job)
        if self.wake is not None and len(self._waiting) == 1:
            self.wake()

    def step(self) -> None:
        """Run one slice of the first job, if there is one. A job that raises is over, and its party is closed."""
        if not self._waiting:
            return
        job = self._waiting.popleft()
        job.queued = False
        context = self._context
        context.work = 0
        try:
            done = job.step()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            context.barrier.of(job.owning_connection(), error, TASK)
            return
        if not done and not job.queued:
            job.queued = True
            self._waiting.append(job)

    def finish(self) -> None:
        """Finish all jobs at once, for callers that have no rounds."""
        while self._waiting:
            self.step()
