"""Tell the interpreter that from now on it runs a data plane."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_S: Final = 0.0005
"""Longest time for which a helper thread keeps the interpreter lock from the data plane; 5 ms is usual."""

YOUNG: Final = 20_000
"""New container objects before the collector looks at them: connections come in thousands, cycles hardly."""


def settle() -> None:
    """Call once, when everything that stays for good exists."""
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    # What exists now lives as long as the process: no collection needs to walk it again.
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 100)
