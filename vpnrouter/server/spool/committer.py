"""Commits units in a thread of its own: one is synced while the next one is built (group commit)."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.fault_barrier import SPOOL, THREAD, fault_id
from vpnrouter.core.turn import CommitPort
from vpnrouter.durations import Durations, Histogram
from vpnrouter.errors import SpoolError
from vpnrouter.events.table import SPOOL_DOWN, SPOOL_TROUBLE, SPOOL_UP
from vpnrouter.server.events.event_context import raise_event_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.spool.store import Batch, Store


RETRY_S: Final = 1.0
"""Seconds until a commit that failed is tried again: a full disk stays full for a while."""


@final
class Committer(CommitPort):
    """Commits the units of `spool` to `store`. `fd` is readable when `finished` is to be called.

    A commit that fails is tried again until it succeeds: until then publishers that wait go on waiting,
    and new ones are refused. So whatever was told to anybody is true. `commits` says how long those took
    that succeeded, `failed` how many did not.
    """

    def __init__(self, spool: Spool, store: Store) -> None:
        super().__init__()
        self._spool = spool
        self._store = store
        self._troubles = spool.context.operator_warnings
        self._flying = False
        self._inbox: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._done: list[str] = []
        # The unit that is on disk has more to do in later turns.
        self._finishing = False
        self._faults: list[Exception] = []
        self._retry_now = threading.Event()
        self._closing = False
        self._wake_up: Callable[[], None] = self._write
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if hasattr(os, "eventfd") else -1
        self._fault = spool.fault
        self.commits = Durations()
        self.failed = 0
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def wake_with(self, wake_up: Callable[[], None]) -> None:
        """Where no one looks at `fd`: have `wake_up` called, from any thread, which calls `finished`."""
        self._wake_up = wake_up

    def _write(self) -> None:
        os.eventfd_write(self.fd, 1)

    # -- the router's thread ---------------------------------------------------------------------

    def step(self) -> None:
        """End the spool's round, and give what is to be committed to the committing thread."""
        spool = self._spool
        if self._troubles:
            self._tell()
        if not spool.busy:
            return
        began = time.monotonic_ns()
        try:
            batch = spool.end_round()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            spool.context.barrier.caught(error, SPOOL, "", "", "goes on with the next round")
            # A unit that is sealed must not be lost.
            batch = None if self._flying else spool.sealed
        self.spent_ns += time.monotonic_ns() - began
        if self._troubles:
            self._tell()
        if batch is not None:
            self._flying = True
            if self._fault is not None:
                self._fault("commit-before-write")
            self._inbox.put(batch)
        elif not self._flying and spool.busy:
            self._wake_up()

    def _tell(self) -> None:
        for line in self._troubles:
            raise_event_in(self._spool.context, SPOOL_TROUBLE, line)
        self._troubles.clear()

    def finished(self) -> None:
        """The commit thread has something to tell, or a round was asked for."""
        if self.fd >= 0:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.fd)
        began = time.monotonic_ns()
        while self._faults:
            cost = "the commit is tried again"
            self._spool.context.barrier.caught(self._faults.pop(0), THREAD, "spool", "", cost)
        while self._store.warnings:
            self._spool.trouble(self._store.warnings.pop(0))
        while self._done:
            reason = self._done.pop(0)
            if reason:
                self._failed(reason)
            else:
                if self._fault is not None:
                    self._fault("commit-after-sync")
                if self._spool.down:
                    raise_event_in(self._spool.context, SPOOL_UP, "the message spool works again")
                self._finishing = True
        if self._finishing:
            self._committed()
        self.spent_ns += time.monotonic_ns() - began

    def _committed(self) -> None:
        """Let the spool finish the unit that is on disk, a part in each turn; a step that raised is not repeated."""
        spool = self._spool
        try:
            spool.committed(limits.COMMITTED_AT_ONCE)
        except Exception as error:  # noqa: BLE001 - given to the barrier
            spool.context.barrier.caught(error, SPOOL, "", "", "the rest of the unit goes on")
        if spool.syncing is not None or spool.unfinished:
            self._wake_up()
            return
        self._finishing = self._flying = False
        if self._fault is not None:
            self._fault("answered")

    def figures(self) -> tuple[Histogram, int]:
        """How long commits took that succeeded, and how many did not."""
        return self.commits.histogram(), self.failed

    def _failed(self, reason: str) -> None:
        if not self._spool.down:
            raise_event_in(
                self._spool.context,
                SPOOL_DOWN,
                f"the message spool cannot be written: {reason}; guaranteed messages are refused until it"
                " can",
            )
        self._spool.failed(reason)

    def close(self) -> None:
        """Commit what is left and end the thread; a store that cannot be written any more is left as it is."""
        # What the last consumers held goes back now: there are no later turns.
        self._spool.context.jobs.finish()
        while True:
            while self._finishing:
                self.finished()
            self.step()
            if not self._flying:
                break
            self._closing = True
            self._retry_now.set()
            while not self._done:
                self._thread.join(0.001)
                if not self._thread.is_alive():
                    break
            if not self._done or self._done[-1]:
                break
            self.finished()
        self._closing = True
        self._retry_now.set()
        self._inbox.put(None)
        self._thread.join()
        self._store.close()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    # -- the commit thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            batch = self._inbox.get()
            if batch is None:
                return
            while not self._commit(batch):
                if self._closing:
                    return
                self._retry_now.wait(RETRY_S)

    def _commit(self, batch: Batch) -> bool:
        began_ns = time.monotonic_ns()
        try:
            self._store.commit(batch)
        except SpoolError as error:
            self.failed += 1
            self._done.append(str(error))
            self._wake_up()
            return False
        except Exception as error:  # noqa: BLE001 - after any error nothing may count as stored
            self.failed += 1
            self._faults.append(error)
            self._done.append(f"fault {fault_id(error)}: {type(error).__name__}: {error}")
            self._wake_up()
            return False
        self.commits.add(time.monotonic_ns() - began_ns)
        self._done.append("")
        self._wake_up()
        return True
