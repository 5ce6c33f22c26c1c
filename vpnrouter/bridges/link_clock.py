"""The times of a link: a handshake that takes too long, heartbeats, a peer that is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.timers import Timed
from vpnrouter.wire.link import codes, encode, frames

if TYPE_CHECKING:
    from vpnrouter.bridges.link import Link
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.timers import Timer

HANDSHAKE_TIMER: Final = 0
HEARTBEAT_TIMER: Final = 1
PARTED_TIMER: Final = 2

MILLISECOND_NS: Final = 1_000_000

MISSED: Final = 3
"""Heartbeat intervals of silence after which the peer counts as dead (LINK-22)."""


PART_NS: Final = 1_000_000_000
"""After so long a silence nothing more is expected over a connection that another one has taken over."""

PART_MOST_NS: Final = 10_000_000_000
"""Messages that were on the way may come over such a connection for this long."""


@final
class LinkClock(Timed):
    """Waits for the handshake of `link` from the start, and asks for signs of life after `beat`."""

    __slots__ = ("_interval_ns", "_link", "_parted_ns", "_parting", "_said", "_timer")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._interval_ns = 0
        self._said = -1
        self._parted_ns = 0
        self._parting = ""
        plane = link.plane
        self._timer: Timer | None = plane.timers.arm(
            plane.now_ns + limits.CONNECT_TIMEOUT_S * 1000 * MILLISECOND_NS, self, HANDSHAKE_TIMER
        )

    def stop(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def beat(self, interval_ms: int) -> None:
        """Ask for a sign of life after `interval_ms` of silence; 0 never."""
        self.stop()
        if interval_ms:
            self._interval_ns = interval_ms * MILLISECOND_NS
            plane = self._link.plane
            self._timer = plane.timers.arm(plane.now_ns + self._interval_ns, self, HEARTBEAT_TIMER)

    def party(self) -> Connection | None:
        """The link that is timed."""
        return self._link

    def part(self, why: str) -> None:
        """End the link, for `why`, when its peer falls silent."""
        self.stop()
        plane = self._link.plane
        self._parting = why
        self._parted_ns = plane.now_ns
        self._timer = plane.timers.arm(plane.now_ns + PART_NS, self, PARTED_TIMER)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """No handshake in time, or a heartbeat is due."""
        link = self._link
        self._timer = None
        if link.ended:
            return
        if kind == HANDSHAKE_TIMER:
            _close(link, codes.HANDSHAKE_TIMEOUT)
            return
        if link.outbound is not None and link.outbound.flows is not None:
            link.outbound.flows.tell()
        silent_ns = now_ns - link.heard_ns
        if kind == PARTED_TIMER:
            if silent_ns >= PART_NS or now_ns - self._parted_ns >= PART_MOST_NS:
                link.end(self._parting)
            else:
                self._timer = link.plane.timers.arm(now_ns + PART_NS, self, PARTED_TIMER)
            return
        # A link that is not read on purpose says nothing of its peer.
        if silent_ns >= MISSED * self._interval_ns and not link.paused:
            _close(link, codes.HEARTBEAT_TIMEOUT)
            return
        # A peer with more to send than the way takes asks behind all that: it has to hear of us before.
        mute = self._said == link.control_tx_msgs + link.outbox.messages
        if silent_ns >= self._interval_ns or mute:
            link.say(encode.heartbeat(frames.Heartbeat(now_ns & 0xFFFF_FFFF, answer=False)))
        self._said = link.control_tx_msgs + link.outbox.messages
        # A dead peer is to be missed after three intervals, not at the beat after.
        at_ns = now_ns + self._interval_ns
        dead_ns = link.heard_ns + MISSED * self._interval_ns
        if now_ns < dead_ns < at_ns:
            at_ns = dead_ns
        self._timer = link.plane.timers.arm(at_ns, self, HEARTBEAT_TIMER)


def _close(link: Link, code: int) -> None:
    link.goodbye(code, codes.REASONS[code])
