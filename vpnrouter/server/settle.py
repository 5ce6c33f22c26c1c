"""Set the interpreter up for a data plane: thread switches, and garbage collection in small portions.

The garbage collector walks all container objects of a generation while everything else waits. With tens of
thousands of routes and subscriptions a collection of the oldest generation takes a second, so the interpreter must
not start one. Objects that survive the young generations are collected once more and then frozen: later collections
do not walk them. Reference counts still free them; a cycle of frozen objects waits until PORTIONS were frozen and
all objects are walked.
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
"""Collections of the middle generation before one of the oldest: never, since Collector starts those."""

PORTIONS: Final = 2_500
"""Portions that are frozen before all objects are walked once, which takes up to a second. A portion has at most some
12,000 objects, so this comes after some ten million objects that outlived two collections."""


@final
class Collector:
    """Collects objects that survived the young generations, in portions. The interpreter has one collector."""

    def __init__(self) -> None:
        self._portions = 0

    def tick(self) -> None:
        """Collect the objects that survived lately, and freeze those that survive again.

        Called between rounds: what one round makes is a small portion.
        """
        survived = gc.get_count()[2]
        if not survived:
            return
        self._portions += survived
        if self._portions >= PORTIONS:
            self._portions = 0
            gc.unfreeze()
        gc.collect()
        gc.freeze()


COLLECTOR: Final = Collector()


def settle() -> None:
    """Call once, when everything that stays for good exists."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    # What exists now lives as long as the process: no collection needs to walk it again.
    gc.freeze()
    gc.set_threshold(YOUNG, 1, NEVER)
