"""Leaves publishers unread for a moment while a receiver of their Direct messages has little room left.

A receiver that reads as fast as it can then loses nothing to a publisher that is faster, also where other processes
keep it from the processor now and then: what comes meanwhile has room in its outbox. One that reads slowly, or not at
all, must hold nobody up (promise DIRECT): an outbox stops its publishers for PUBLISHER_HELD_NS at most. Then each of
them is read once, and they are stopped again at once only where the receiver has taken PAUSE_AFTER_BYTES meanwhile.
Where it has not, it must take twice as many before the next time, or read on as fast as if it had. Many receivers
that were not tried before share a quarter of a publisher's time (PUBLISHER_SPARED_NS).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.outbox import Outbox


@final
class _Hold:
    """One publisher that is left unread, for outboxes that had no room; `vain`: one of them did not read."""

    __slots__ = ("connection", "outboxes", "since_ns", "vain")

    def __init__(self, connection: Connection, outboxes: list[Outbox], since_ns: int) -> None:
        self.connection = connection
        self.outboxes = outboxes
        self.since_ns = since_ns
        self.vain = False


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
        self._holds: list[_Hold] = []

    def outboxes(self) -> list[Outbox] | None:
        """Return the list for new outboxes, None where publishers are never held."""
        return self.crowded if self.active else None

    def hold(self, connection: Connection, now_ns: int) -> None:
        """Leave `connection`, which has published, unread until the outboxes of `crowded` have room."""
        spared = now_ns < connection.spared_ns
        outboxes: list[Outbox] = []
        # Where it is paused, it is not read in any case.
        idle = connection.paused or connection.closing
        for outbox in self.crowded:
            outbox.listed = False
            if idle or (spared and not outbox.tried):
                continue
            if not outbox.holds_up(now_ns):
                outbox.press(now_ns + limits.PUBLISHER_HELD_NS)
            if outbox.pressed:
                outboxes.append(outbox)
        self.crowded.clear()
        if not outboxes:
            return
        connection.hold()
        self.holds += 1
        self._holds.append(_Hold(connection, outboxes, now_ns))

    def next_ns(self) -> int:
        """When the first hold ends at the latest, 0 where there is none."""
        return self._holds[0].since_ns + limits.PUBLISHER_HELD_NS if self._holds else 0

    def step(self, now_ns: int) -> bool:
        """End the holds that are over; return whether there were any. Called when a round has sent what it could.

        A hold looks at one outbox as long as that has no room, and at each of them once.
        """
        if not self._holds:
            return False
        holds = self._holds
        self._holds = []
        over: list[_Hold] = []
        for hold in holds:
            late = now_ns - hold.since_ns >= limits.PUBLISHER_HELD_NS
            outboxes = hold.outboxes
            while outboxes and (not outboxes[-1].holds_up(now_ns) or late):
                if not outboxes.pop().reads:
                    hold.vain = True
            if outboxes:
                self._holds.append(hold)
            else:
                over.append(hold)
        for hold in over:
            self._end(hold, now_ns)
        return bool(over)

    def _end(self, hold: _Hold, now_ns: int) -> None:
        self.held_ns += now_ns - hold.since_ns
        connection = hold.connection
        if hold.vain:
            connection.spared_ns = now_ns + limits.PUBLISHER_SPARED_NS
        try:
            connection.release()
        except Exception as error:  # noqa: BLE001 - given to the barrier
            connection.context.barrier.end(connection, error)
