"""Leaves publishers unread for a moment while a receiver of their Direct messages has little room left.

A receiver that reads as fast as it can then loses nothing to a publisher that is faster. One that reads slowly, or not
at all, must hold nobody up (promise DIRECT): an outbox stops its publishers for PUBLISHER_HELD_NS at most, and not
again until its receiver has taken some more.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

from vpnrouter import limits

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.outbox import Outbox


@final
class _Hold:
    __slots__ = ("connection", "outboxes", "until_ns")

    def __init__(self, connection: Connection, outboxes: list[Outbox], until_ns: int) -> None:
        self.connection = connection
        self.outboxes = outboxes
        self.until_ns = until_ns


@final
class Backpressure:
    """Publishers that are left unread. `holds` counts them, `held_ns` is the time that they were unread, summed up.

    `active`, set before connections are made, where somebody calls `step` in time. Outboxes put themselves on
    `crowded` when much waits in them; the connection that publishes at that moment is held for them.
    """

    __slots__ = ("_holds", "active", "crowded", "held_ns", "holds")

    def __init__(self) -> None:
        self.active = False
        self.crowded: list[Outbox] = []
        self.holds = 0
        self.held_ns = 0
        self._holds: deque[_Hold] = deque()

    def outboxes(self) -> list[Outbox] | None:
        """Return the list for new outboxes, None where publishers are never held."""
        return self.crowded if self.active else None

    def hold(self, connection: Connection, now_ns: int) -> None:
        """Leave `connection`, which has published, unread until the outboxes of `crowded` have room."""
        outboxes = self.crowded.copy()
        self.crowded.clear()
        if connection.paused or connection.closing:
            # It is not read in any case.
            for outbox in outboxes:
                outbox.pressed = False
            return
        connection.hold()
        self.holds += 1
        self._holds.append(_Hold(connection, outboxes, now_ns + limits.PUBLISHER_HELD_NS))

    def next_ns(self) -> int:
        """When the first hold ends at the latest, 0 where there is none."""
        return self._holds[0].until_ns if self._holds else 0

    def step(self, now_ns: int) -> bool:
        """End the holds that are over; return whether there were any. Called when a round has sent what it could."""
        if not self._holds:
            return False
        ended = False
        for _ in range(len(self._holds)):
            hold = self._holds.popleft()
            waits = [outbox for outbox in hold.outboxes if outbox.pressed and not outbox.closed]
            if waits and now_ns < hold.until_ns:
                self._holds.append(hold)
                continue
            for outbox in waits:
                outbox.pressed = False
            self.held_ns += now_ns - (hold.until_ns - limits.PUBLISHER_HELD_NS)
            ended = True
            connection = hold.connection
            try:
                connection.release()
            except Exception as error:  # noqa: BLE001 - given to the barrier
                connection.context.barrier.end(connection, error)
        return ended
