"""Work that is too much for one turn: it is done in slices, and other clients are served between them.

What a packet asks for may take a thousand times longer than the packet took to read. Its handler does
as much as one turn allows (`Plane.tired`), and leaves the rest as a job. The edge takes jobs from the front of the
queue between rounds (server/loop.py), one slice each, so that no client waits for another's long work.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.barrier import TASK
from vpnrouter.core.timers import Timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.plane import Plane


@mypyc_attr(allow_interpreted_subclasses=True)
class Job(Timed):
    """Work that goes on where it stopped. `queued` is for Jobs alone; when a step raises, `party` is closed."""

    __slots__ = ("queued",)

    def __init__(self) -> None:
        self.queued = False

    def step(self) -> bool:
        """Work until the plane is tired; True when all is done, or when the job waits to be added again."""
        raise AssertionError(self)


@final
class Jobs:
    """The queue of a router's jobs. `wake` is called when a job comes into the empty queue."""

    __slots__ = ("_plane", "_waiting", "wake")

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
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
        plane = self._plane
        plane.work = 0
        try:
            done = job.step()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            plane.barrier.of(job.party(), error, TASK)
            return
        if not done and not job.queued:
            job.queued = True
            self._waiting.append(job)

    def finish(self) -> None:
        """Finish all jobs at once, for callers that have no rounds."""
        while self._waiting:
            self.step()
