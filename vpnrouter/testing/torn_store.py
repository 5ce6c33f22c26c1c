"""A store that loses what was not synced, fails where it is told to, and waits where it is told to.

A commit passes three points: "before" (nothing was written), "during" (written, not synced) and "after"
(synced, but whoever committed was not told). What is written and not synced is there after a crash, or not.
"""

from __future__ import annotations

from threading import Condition
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import SpoolError
from vpnrouter.spool.store import Batch, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEFORE: Final = "before"
DURING: Final = "during"
AFTER: Final = "after"
POINTS: Final = (BEFORE, DURING, AFTER)


@final
class TornStore(Store):
    """Rows in memory. `store_id` is 16 bytes; `rows` is what a start finds.

    `commits` counts commits that returned, `reached` has the points that commits came to, in order.
    `failed_survives` says what becomes of a batch whose commit failed "during" when another one follows
    instead of the same again: it is there, or (the default) cut off.
    Everything may be called from any thread.
    """

    def __init__(self, store_id: bytes, rows: dict[bytes, bytes] | None = None) -> None:
        super().__init__()
        self.store_id = store_id
        self.commits = 0
        self.failed_survives = False
        self.reached: list[str] = []
        self._rows = dict(rows or {})
        self._unsynced: list[Batch] = []
        self._failures: dict[str, list[str]] = {point: [] for point in POINTS}
        self._space: int | None = None
        self._stalled = ""
        self._waiting = ""
        self._gone = ""
        self._turn = Condition()

    # -- faults ----------------------------------------------------------------------------------

    def fail_at(self, point: str, reason: str = "broken", times: int = 1) -> None:
        """Let the next commits fail when they come to `point`, with a SpoolError of this reason."""
        self._failures[point] += [reason] * times

    def space(self, size: int | None) -> None:
        """Room for so many bytes of batches from now on, then commits fail: "full". None: no bound."""
        self._space = size

    def stall_at(self, point: str) -> None:
        """Let commits wait at `point` until `go_on`."""
        with self._turn:
            self._stalled = point

    def wait_for_stall(self, timeout_s: float = 10.0) -> None:
        """Return when a commit waits where `stall_at` said. Raises TimeoutError if none comes."""
        with self._turn:
            if not self._turn.wait_for(lambda: self._waiting != "", timeout_s):
                raise TimeoutError(f"no commit came to {self._stalled!r}")

    def go_on(self) -> None:
        """Let waiting commits, and those to come, go on."""
        with self._turn:
            self._stalled = ""
            self._turn.notify_all()

    def crash(self, kept: int = 0) -> TornStore:
        """Lose power: returns the store that the next start finds; this one refuses everything.

        `kept` of the batches that are written and not synced are there, the oldest first. A commit that
        waits fails.
        """
        with self._turn:
            rows = dict(self._rows)
            for batch in self._unsynced[:kept]:
                _apply(rows, batch)
            self._gone = "the power is out"
            self._turn.notify_all()
        return TornStore(self.store_id, rows)

    @property
    def unsynced(self) -> int:
        """Batches that are there after a crash or not."""
        return len(self._unsynced)

    # -- the store -------------------------------------------------------------------------------

    def commit(self, batch: Batch) -> None:
        """Write the batch and sync it, with the faults that were asked for."""
        with self._turn:
            self._reach(BEFORE)
            if self._space is not None:
                if batch.size > self._space:
                    raise SpoolError("no space is left", "full")
                self._space -= batch.size
            if self.failed_survives:
                for failed in self._unsynced:
                    _apply(self._rows, failed)
            self._unsynced = [batch]
            self._reach(DURING)
            _apply(self._rows, batch)
            self._unsynced = []
            self._reach(AFTER)
            self.commits += 1

    def get(self, key: bytes) -> bytes | None:
        """The value of `key` as last synced, or None."""
        self._check()
        return self._rows.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys that begin with `prefix`, ascending, with their values, as last synced."""
        self._check()
        rows = list(self._rows.items())
        return iter(sorted(row for row in rows if row[0].startswith(prefix)))

    def backup(self, directory: Path) -> None:
        """Refused: it has no files."""
        raise SpoolError(f"{directory}: a store in memory cannot be backed up")

    def close(self) -> None:
        """Refuse everything from now on."""
        self._gone = "the spool is closed"

    def _reach(self, point: str) -> None:
        """A commit comes to a point."""
        self._check()
        self.reached.append(point)
        if self._stalled == point:
            self._waiting = point
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._stalled != point or bool(self._gone))
            self._waiting = ""
            self._check()
        if self._failures[point]:
            reason = self._failures[point].pop(0)
            raise SpoolError(f"told to fail {point} the sync", reason)

    def _check(self) -> None:
        if self._gone:
            raise SpoolError(self._gone, "closed")


def _apply(rows: dict[bytes, bytes], batch: Batch) -> None:
    rows.update(batch.puts)
    for key in batch.deletes:
        rows.pop(key, None)
