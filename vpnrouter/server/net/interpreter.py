"""Sets the interpreter up for a data plane: thread switches, garbage collection, and memory that goes back.

The garbage collector walks all container objects of a generation while everything else waits. With tens of
thousands of routes and subscriptions that takes a second for the oldest generation, so the interpreter must not start
it by itself. It collects young objects, which are few; reference counts free all others. A cycle that survived waits
until the process has grown by more than the router can explain, which is looked at with the timers. What exists when
the router begins to serve stays for good, and is never walked again.

The allocator keeps what is free for the next large message, as long as that is not much, or is used again at once.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.durations import Durations

SWITCH_S: Final = 0.0005
"""Longest time for which a helper thread keeps the interpreter lock from the data plane; 5 ms is usual."""

PAGE_BYTES: Final = resource.getpagesize()

YOUNG: Final = 4_000
"""New container objects before a young collection: at most 5 ms, even where they refer to many others."""

NEVER: Final = 1 << 30
"""Young collections before one of the middle generation, and so on."""

GROWTH_BYTES: Final = 67_108_864
"""Resident memory beyond what is counted by which the process may grow before all objects are walked. A larger process
may grow by a quarter."""

TRIM_BYTES: Final = 25_165_824
"""Memory beyond what is counted by which it may grow before the allocator is asked to give back what is free."""

TRIM_AT_ONCE_BYTES: Final = 100_663_296
"""Memory beyond what is counted by which it may grow before that is done at the first look: it takes 0.1 to 0.5 ms for
each megabyte that is given back, and everything else waits."""

LOOKS: Final = 10
"""Looks in a row, a tenth of a second apart, at which it must be so: what is used again at once is not given back."""

HEAP_BLOCK_BYTES: Final = 33_554_432
"""Blocks up to this size, the most that glibc takes, come from the heap: those with pages of their own cost five times
as much, because the system clears the pages each time."""

_KEPT_TOP_BYTES: Final = 1 << 30
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Names of settings of glibc's allocator (mallopt(3))."""


def resident_bytes() -> int:
    """Bytes of resident memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as told:  # noqa: PTH123 - many times a second
            return int(told.read().split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def _glibc() -> ctypes.CDLL | None:
    """Return the allocator that can be told what to do; None where the system has another one."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


@final
class MemoryWatch:
    """Looks whether memory has grown that nobody counts: gives back what is free, and walks the objects for the rest.

    The interpreter has one. `counted` returns the bytes that the router knows of.
    """

    def __init__(self) -> None:
        self.counted: Callable[[], int] = int
        self._allocator = _glibc()
        # Looks in a row at which there was more than these.
        self._looks = 0
        self._grown = 0
        # What is not counted may come to so much before free memory is given back, and before objects are walked.
        self._spare_from = 0
        self._walk_from = 0

    def _uncounted(self) -> int:
        return resident_bytes() - self.counted()

    def look(self, durations: Durations | None = None) -> None:
        """Do what is due; count how long that took. Called every tenth of a second."""
        uncounted = self._uncounted()
        excess = uncounted - self._spare_from
        self._looks = self._looks + 1 if excess > 0 else 0
        self._grown = self._grown + 1 if uncounted > self._walk_from else 0
        trims = self._looks >= LOOKS or excess >= TRIM_AT_ONCE_BYTES - TRIM_BYTES
        if not trims and self._grown < LOOKS:
            return
        began_ns = time.monotonic_ns()
        if trims:
            self._trim()
        if self._grown >= LOOKS and self._uncounted() > self._walk_from:
            self._walk()
            self._trim()
        if durations is not None:
            durations.add(time.monotonic_ns() - began_ns)

    def settle(self) -> None:
        """Have what is there now walked once, and never again."""
        if self._allocator is not None:
            self._allocator.mallopt(_MMAP_THRESHOLD, HEAP_BLOCK_BYTES)
            self._allocator.mallopt(_TRIM_THRESHOLD, _KEPT_TOP_BYTES)
        gc.unfreeze()
        self._walk()
        self._trim()
        gc.freeze()

    def _trim(self) -> None:
        if self._allocator is not None:
            self._allocator.malloc_trim(0)
        # The same growth is looked at once.
        self._spare_from = self._uncounted() + TRIM_BYTES
        self._looks = 0

    def _walk(self) -> None:
        gc.collect()
        self._grown = 0
        self._walk_from = self._uncounted() + max(GROWTH_BYTES, resident_bytes() // 4)


MEMORY: Final = MemoryWatch()


def settle(counted: Callable[[], int] = int) -> None:
    """Call once, when everything that stays for good exists. `counted` returns the bytes that the router counts."""
    MEMORY.counted = counted
    sys.setswitchinterval(SWITCH_S)
    MEMORY.settle()
    gc.set_threshold(YOUNG, NEVER, NEVER)
