"""Stores that lose what was not synced: one that fails at a chosen point, and one whose power is cut.

Takes from the files of a process all bytes that it never synced: what a power cut may leave.

A process that is killed leaves its files whole, since the system has all that was written. To know what a
power cut would leave, a small library is loaded before all others into the process. It writes down each file
that is synced and the size that the file had before. Needs a C compiler and Linux.

    synced = SyncedFiles(folder)
    process = subprocess.Popen(command, env={**os.environ, **synced.environment})
    ...
    process.kill()
    synced.cut(data_folder)

A store that loses what was not synced, fails where it is told to, and waits where it is told to.

A commit passes three points: "before" (nothing was written), "during" (written, not synced) and "after"
(synced, but whoever committed was not told). What is written and not synced is there after a crash, or not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from threading import Condition
from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, Store
from vpnrouter.spool.write_ahead_log import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


VARIABLE: Final = "VPNROUTER_SYNCED_FILES"

SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int noted(const char *name, int fd)
{
    int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat about;
    /* What is written while the sync runs may be left out of it. */
    int known = fstat(fd, &about);
    int result = call(fd);
    const char *path = getenv("VPNROUTER_SYNCED_FILES");
    if (result == 0 && known == 0 && path) {
        int into = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (into >= 0) {
            char line[64];
            int size = snprintf(line, sizeof line, "%llu %lld\n",
                                (unsigned long long)about.st_ino, (long long)about.st_size);
            if (write(into, line, size) != size)
                abort();
            close(into);
        }
    }
    return result;
}

int fsync(int fd) { return noted("fsync", fd); }
int fdatasync(int fd) { return noted("fdatasync", fd); }
"""


@final
class SyncedFiles:
    """What processes with this `environment` have synced. All their files are on one file system."""

    def __init__(self, folder: Path) -> None:
        """Build the library in `folder`. Raises OperationError where there is no C compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise OperationError("there is no C compiler")
        source, library = folder / "synced.c", folder / "synced.so"
        source.write_text(SOURCE, encoding="ascii")
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise OperationError(f"the C compiler fails: {made.stderr.strip()}")
        self._told = folder / "synced.txt"
        self.environment = {"LD_PRELOAD": str(library), VARIABLE: str(self._told)}

    def sizes(self) -> dict[int, int]:
        """By inode the size up to which a file was synced last."""
        found: dict[int, int] = {}
        for line in self._told.read_text(encoding="ascii").splitlines():
            inode, size = line.split()
            found[int(inode)] = int(size)
        return found

    def cut(self, directory: Path, unsynced: str = "") -> int:
        """Cut all files below `directory` off where they were synced last. Returns how many bytes that removes.

        Files whose names end with `unsynced` count as never synced. No process may have them open.
        """
        sizes = self.sizes()
        lost = 0
        for path in directory.rglob("*"):
            if not path.is_file():
                continue
            about = path.stat()
            kept = min(about.st_size, sizes.get(about.st_ino, 0))
            if unsynced and path.name.endswith(unsynced):
                kept = 0
            lost += about.st_size - kept
            os.truncate(path, kept)
        return lost


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
        super().__init__(store_id)
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
        """Let the next commits fail at `point`, with a SpoolError of this reason."""
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
        """Let waiting and later commits go on."""
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
        """Write the batch and sync it, with the chosen faults."""
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
        """Stall, or fail with SpoolError, at a point that a commit has reached, where chosen."""
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


@final
class PowerCutRocks:
    """Commits to a real store and knows which bytes of its log the last commit wrote.

    All commits but the last count as acknowledged. Of the last, `cut` leaves as much as it is told to.
    `store` is the store; only `commit` of this class may change it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.store = RocksStore(directory)
        self._log = self._newest(directory)
        self._before = self._log.stat().st_size
        self._after = self._before
        self._mark = self._marked()

    @property
    def last_bytes(self) -> int:
        """Bytes of the log that the last commit wrote."""
        return self._after - self._before

    def commit(self, batch: Batch) -> None:
        """Commit a batch; the one before is acknowledged from now on."""
        log = self._newest(self.directory)
        before = log.stat().st_size
        self._mark = self._marked()
        self.store.commit(batch)
        self._log = self._newest(self.directory)
        # A full write buffer begins a new log, and the batch stands at the start of it.
        self._before = before if self._log == log else 0
        self._after = self._log.stat().st_size

    def cut(self, into: Path, kept: int, lost: tuple[int, int] = (0, 0)) -> Path:
        """Copy the store to the new directory `into` as a power cut leaves it; returns `into`.

        Of the bytes of the last commit, `kept` are there, except those from `lost[0]` to `lost[1]`,
        which read as zeros: pages reach the disk in any order. The mark of what is synced has the commit before: the
        last one was not told to be synced.
        """
        while not self._copied(into):
            shutil.rmtree(into)
        log = into / self._log.name
        data = bytearray(log.read_bytes()[: self._before + kept])
        for place in range(lost[0], min(lost[1], kept)):
            data[self._before + place] = 0
        log.write_bytes(data)
        (into / MARK).write_bytes(self._mark)
        return into

    def _marked(self) -> bytes:
        return (self.directory / MARK).read_bytes()

    def _copied(self, into: Path) -> bool:
        """Copy the store; False when RocksDB wrote out a buffer or deleted a log meanwhile."""
        before = sorted(self.directory.iterdir())
        try:
            shutil.copytree(self.directory, into)
        except shutil.Error:
            return False
        return sorted(self.directory.iterdir()) == before

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    @staticmethod
    def _newest(directory: Path) -> Path:
        return max(directory.glob("*.log"), key=lambda path: int(path.stem))
