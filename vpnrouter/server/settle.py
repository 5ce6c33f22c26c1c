"""Tell the interpreter that from now on it runs a data plane, and collect its garbage in small portions.

The collector of cycles walks all container objects of a generation while everything else waits: with tens of
thousands of routes and subscriptions a collection of the oldest one takes a second. So it is not left to the
interpreter. What survives the young generations is looked at once more and then frozen: no later collection
walks it. Reference counts free it all the same; a cycle among what is frozen waits until very many objects have been,
and all are walked.
"""

from __future__ import annotations

import gc
import sys
from typing import Final, final

SWITCH_S: Final = 0.0005
"""Longest time for which a helper thread keeps the interpreter lock from the data plane; 5 ms is usual."""

YOUNG: Final = 20_000
"""New container objects before the collector looks at them, some 2 ms: connections come in thousands, cycles hardly."""

NEVER: Final = 1 << 30
"""Collections of the middle generation before one of the oldest: those are ours to begin."""

PORTIONS: Final = 500
"""Portions frozen, of some 40,000 objects at most, until all are walked again: up to a second, after some ten million
objects that outlived two collections."""


@final
class Collector:
    """Collects a portion ten times a second."""

    def __init__(self) -> None:
        self._portions = 0

    def tick(self) -> None:
        """Look at what has survived lately, and let later collections pass it over."""
        survived = gc.get_count()[2]
        if not survived:
            return
        self._portions += survived
        if self._portions >= PORTIONS:
            self._portions = 0
            gc.unfreeze()
        gc.collect()
        gc.freeze()


def settle() -> None:
    """Call once, when everything that stays for good exists."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    # What exists now lives as long as the process: no collection needs to walk it again.
    gc.freeze()
    gc.set_threshold(YOUNG, 1, NEVER)
