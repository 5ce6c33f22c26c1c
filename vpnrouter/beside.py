"""Long work in Python beside the data plane: in a thread that rests again and again.

A thread gives the interpreter up when another one asks for it. Where both share one core, the other one asks only
when the operating system next lets it run, which takes 4 to 10 ms, and one message crosses the interpreter's lock
several times. A thread that sleeps gives up both at once.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_R = TypeVar("_R")

_RUN_NS: Final = 1_000_000
"""Nanoseconds of work between two rests."""

_REST_S: Final = 0.001
"""Seconds of a rest: some messages cross meanwhile."""


async def beside(work: Callable[[], _R], limiter: trio.CapacityLimiter | None = None) -> _R:
    """What `work` returns or raises, done in a thread that rests for half of the time.

    It takes five times as long as it would alone. When the caller is cancelled, the work ends at its next rest: a
    thread that went on while the process ends could abort it.
    """
    return await trio.to_thread.run_sync(partial(_resting, work), limiter=limiter)


def _resting(work: Callable[[], _R]) -> _R:
    due_ns = time.monotonic_ns() + _RUN_NS

    def look(_frame: FrameType, _event: str, _argument: object) -> None:
        nonlocal due_ns
        if time.monotonic_ns() >= due_ns:
            time.sleep(_REST_S)
            trio.from_thread.check_cancelled()
            due_ns = time.monotonic_ns() + _RUN_NS

    # The interpreter calls this at each call and return in this thread.
    sys.setprofile(look)
    try:
        return work()
    finally:
        sys.setprofile(None)
