"""Keep trace files while the router runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import trio

from vpnrouter.trace.writer import Writer, WriterThread

if TYPE_CHECKING:
    from vpnrouter.config.trace import Trace
    from vpnrouter.core.router import Router

HAND_OVERS: Final = 4
"""Times in the life of a file that what was recorded is handed to the writer's thread.

Each costs some milliseconds of the interpreter lock however little there is, so not every second.
"""

DISK_S: Final = 5.0
"""Seconds that the disk has for the last file when the router stops."""

SECOND_NS: Final = 1_000_000_000


async def keep_traces(written: Trace, router: Router) -> None:
    """Run the writer's thread until cancelled; then write the rest."""
    recorder = router.plane.recorder
    writer = Writer(
        written.directory,
        router.name,
        recorder,
        sample=written.sample,
        flush_ns=written.rotation.max_seconds * SECOND_NS,
        file_rows=written.rotation.max_rows,
    )
    thread = WriterThread(writer, recorder, time.monotonic_ns)
    thread.start()
    try:
        while True:
            await trio.sleep(written.rotation.max_seconds / HAND_OVERS)
            thread.tick()
    finally:
        # In this thread: only the router's own may touch the block being filled.
        thread.finish()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.stop, DISK_S)
