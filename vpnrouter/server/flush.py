"""The end of a round: what was spooled goes to be committed, and every dirty outbox is flushed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.barrier import SPOOL

if TYPE_CHECKING:
    from vpnrouter.core.plane import Plane


def flush_ready(plane: Plane) -> None:
    """Hand each outbox that got something in this round to its channel.

    A flush can find a peer gone, whose will then makes others dirty: so until nobody is. That ends,
    because each connection is lost once.
    """
    committing = plane.committing
    if committing is not None:
        try:
            committing.step()
        except Exception as error:  # noqa: BLE001 - the barrier's
            plane.barrier.caught(error, SPOOL, "", "", "goes on with the next round")
    ready = plane.ready
    while ready:
        batch = ready[:]
        ready.clear()
        for outbox in batch:
            outbox.dirty = False
            channel = outbox.channel
            if channel is not None:
                channel.flush()
