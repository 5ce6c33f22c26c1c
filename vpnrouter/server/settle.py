"""Set the interpreter up for a data plane: thread switches, and garbage collection in small portions.

The garbage collector walks all container objects of a generation while everything else waits. With tens of
thousands of routes and subscriptions a collection of the oldest generation takes a second, so the interpreter must
not start one. Young objects are collected once; those that survive are frozen, and later collections do not walk
them. Reference counts still free them. A cycle of frozen objects waits until memory has grown by so much that a walk
of all objects is due.
"""

from __future__ import annotations

import gc
import sys
from typing import Final, final

SWITCH_S: Final = 0.0005
"""Longest time for which a helper thread keeps the interpreter lock from the data plane; 5 ms is usual."""

YOUNG: Final = 4_000
"""New container objects before a young collection: at most 5 ms, even where they refer to many others."""

NEVER: Final = 1 << 30
"""Young collections before one of the middle generation, and so on: never, since Collector freezes before."""

PORTIONS: Final = 256
"""Portions that are frozen between two looks at the memory in use."""

GROWTH: Final = 500_000
"""Blocks of memory, some 40 MB, by which the interpreter may grow before all objects are walked, which takes up to a
second. A larger one may grow by a quarter."""


@final
class Collector:
    """Freezes objects that survived a young collection, in portions. The interpreter has one collector."""

    def __init__(self) -> None:
        self._portions = 0
        self._blocks = 0

    def tick(self) -> None:
        """Freeze what survived, where there was a young collection since the last call.

        Called between rounds: what one round makes is a small portion.
        """
        if not gc.get_count()[1]:
            return
        self._portions += 1
        if self._portions >= PORTIONS:
            self._portions = 0
            self._look()
        gc.collect(0)
        gc.freeze()

    def settle(self) -> None:
        """Walk all objects and freeze those that are left."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._blocks = sys.getallocatedblocks()

    def _look(self) -> None:
        grown = sys.getallocatedblocks() - self._blocks
        if grown > max(GROWTH, self._blocks // 4):
            self.settle()


COLLECTOR: Final = Collector()


def settle() -> None:
    """Call once, when everything that stays for good exists."""
    sys.setswitchinterval(SWITCH_S)
    COLLECTOR.settle()
    gc.set_threshold(YOUNG, NEVER, NEVER)
