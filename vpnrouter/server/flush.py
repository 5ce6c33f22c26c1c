"""The end of a round: what was spooled goes to be committed, and every dirty outbox is flushed once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from vpnrouter.core.barrier import SPOOL

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.router import Plane


LARGE_BYTES: Final = 262_144
"""Outboxes with so many bytes are flushed after those with fewer."""

LARGE_NS: Final = 3_000_000
"""Nanoseconds of one round that are spent on outboxes with more."""


def flush_ready(plane: Plane) -> None:
    """Hand each outbox that got something in this round to its channel; large ones come last.

    Copying a long message for many receivers takes long: outboxes beyond this round's time wait in `plane.large`.

    A flush can find a peer gone, whose will then makes others dirty: so until nobody is. That ends,
    because each connection is lost once.
    """
    committing = plane.committing
    if committing is not None:
        try:
            committing.step()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            plane.barrier.caught(error, SPOOL, "", "", "goes on with the next round")
    ready = plane.ready
    large = plane.large
    until_ns = 0
    while ready or large:
        batch = ready[:]
        ready.clear()
        for outbox in batch:
            if outbox.size > LARGE_BYTES:
                large.append(outbox)
            else:
                _flush(outbox)
        if large and not ready:
            now_ns = time.monotonic_ns()
            if not until_ns:
                until_ns = now_ns + LARGE_NS
            elif now_ns > until_ns:
                return
            _flush(large.popleft())


def _flush(outbox: Outbox) -> None:
    outbox.dirty = False
    channel = outbox.channel
    if channel is not None:
        channel.flush()
