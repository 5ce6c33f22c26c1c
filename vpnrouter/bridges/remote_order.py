"""Which remote message VPN to try: by connect order, each its attempts, then the next; and when to dial again.

`connect_order` 1 is tried first; equal orders stand as configured. A host gets one attempt and
`retry_count` retries before the next has its turn; with the field's default of 0, each host is
tried once in a pass. After a loss the others come first, best first, and the one lost comes last:
it may be dead.

In the *first pass*, after a loss or at start, a remote that answers has to be found soon: one that says nothing
has a short time, and the next one is tried at once. Later passes take more time.

When to dial again.

Three stages, so that a link is back at once after a blink and a dead peer costs little:

1. *At once*: the first attempt after the loss of a link, or at start, has no delay.
2. *Quick*: for `quick_period_ns` after that, attempts follow each other by 20 to 80 ms. A peer that
   is reachable again within that time has its link back within 100 ms. The cost is bounded: some
   twenty connection attempts a second and bridge, for a few seconds.
3. *Slow*: decorrelated jitter. Each delay is drawn between `base_ns` (`retry_delay` of
   `remote_connection`) and three times the delay before, at most `cap_ns`, so that many
   bridges which lost the same peer do not come back in step.

Where a bridge has several remotes, each one's first try after a loss has a delay of the quick stage, even if the
tries before it took long.

A refusal ends the quick stage: the peer is there and has answered, and a wrong password is not to
be checked twenty times a second. Only a link that stayed up for `stable_ns` starts the stages anew;
one that comes and goes keeps its place, and so slows down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from vpnrouter.units import SECOND_NS


@final
@dataclass(slots=True)
class Remote:
    """A remote message VPN: its name, where it is as configured, its preference (1 the best).

    `router` is the name that the remote router must give, "" for any. A location is `host` and `port`, or the name of
    a router, `router_at`.
    """

    msg_vpn: str = ""
    location: str = ""
    connect_order: int = 4
    enabled: bool = True
    router: str = ""
    tls: bool = False
    host: str = ""
    port: int = 0
    router_at: str = ""

    def names_the_same_as(self, other: Remote) -> bool:
        """Whether both are one remote, whatever its preference."""
        return (self.msg_vpn, self.location) == (other.msg_vpn, other.location)


@final
class RemoteOrder:
    """The place in the list of one bridge's remotes; `retry_count` is retries per host."""

    __slots__ = ("_attempts", "_order", "_pass", "_place", "_retry_count", "_sorted", "_written")

    def __init__(self, remotes: Sequence[Remote], retry_count: int = 0) -> None:
        self._retry_count = retry_count
        self._written = remotes
        self._sorted = _by_order(remotes)
        self._order = list(self._sorted)
        self._place = 0
        self._attempts = 0
        self._pass = 0

    @property
    def hurries(self) -> bool:
        """True while other remotes have not been tried since the loss, or the start."""
        return self._pass == 0 and len(self._order) > 1

    @property
    def is_next(self) -> bool:
        """True when `current` has not been tried in this first pass, and another remote has."""
        return self.hurries and self._place > 0 and self._attempts == 0

    @property
    def current(self) -> Remote | None:
        """The remote to dial, or in use; None while none is enabled."""
        return self._order[self._place] if self._order else None

    def all(self) -> tuple[Remote, ...]:
        """The remotes that are enabled, best first."""
        return tuple(self._sorted)

    def written(self) -> tuple[Remote, ...]:
        """All remotes, best first, those that are disabled last."""
        return tuple(sorted(self._written, key=lambda r: (not r.enabled, r.connect_order)))

    def failed(self) -> Remote | None:
        """An attempt at `current` failed: the remote to try next, the same one or the next."""
        self._attempts += 1
        if self._attempts > self._retry_count:
            self._attempts = 0
            self._place += 1
            if self._place >= len(self._order):
                self._order = list(self._sorted)
                self._place = 0
                self._pass += 1
        return self.current

    def lost(self) -> Remote | None:
        """The link to `current` was up and broke: the remote to try next."""
        lost = self.current
        if lost is not None:
            rest = [remote for remote in self._sorted if remote != lost]
            self._order = [*rest, *(remote for remote in self._sorted if remote == lost)]
        self._place = 0
        self._attempts = 0
        self._pass = 0
        return self.current

    def better(self) -> tuple[Remote, ...]:
        """The remotes to fail back to: of a lower connect order than `current`, best first."""
        now = self.current
        if now is None:
            return ()
        return tuple(r for r in self._sorted if r.connect_order < now.connect_order)

    def choose(self, remote: Remote) -> None:
        """Go to `remote`, one of the list, for fail-back. Raises ValueError when it is not
        there.
        """
        self._place = self._order.index(remote)
        self._attempts = 0

    def replace(self, remotes: Sequence[Remote], retry_count: int) -> bool:
        """Take a changed list. Returns whether `current` is still in it and so may stay in use."""
        now = self.current
        self._retry_count = retry_count
        self._written = remotes
        self._sorted = _by_order(remotes)
        self._order = list(self._sorted)
        self._attempts = 0
        self._place = 0
        self._pass = 0
        for place, remote in enumerate(self._order):
            if now is not None and remote.names_the_same_as(now):
                self._place = place
                return True
        return False


def _by_order(remotes: Sequence[Remote]) -> list[Remote]:
    return sorted((r for r in remotes if r.enabled), key=lambda r: r.connect_order)


QUICK_LEAST_NS: Final = 20_000_000
"""Shortest delay of the quick stage."""

QUICK_MOST_NS: Final = 80_000_000
"""Longest delay of the quick stage; leaves 20 ms of the 100 for connecting."""


@final
class Backoff:
    """The delays of one bridge. Times are nanoseconds of a clock that never goes back.

    A `base_ns` below 20 ms (a configured delay of 0 s) counts as 20 ms. Raises ValueError when
    `cap_ns` is below the base.
    """

    __slots__ = (
        "_attempts",
        "_base_ns",
        "_cap_ns",
        "_previous_ns",
        "_quick_end_ns",
        "_quick_period_ns",
        "_stable_ns",
        "_up_since_ns",
    )

    def __init__(
        self,
        base_ns: int = 3 * SECOND_NS,
        cap_ns: int = 30 * SECOND_NS,
        quick_period_ns: int = 5 * SECOND_NS,
        stable_ns: int = 10 * SECOND_NS,
    ) -> None:
        self._base_ns = max(base_ns, QUICK_LEAST_NS)
        self._cap_ns = cap_ns
        if cap_ns < self._base_ns:
            raise ValueError(f"cap of {cap_ns} ns below base of {self._base_ns} ns")
        self._quick_period_ns = quick_period_ns
        self._stable_ns = stable_ns
        self._up_since_ns = -1
        self._start_over()

    def _start_over(self) -> None:
        self._attempts = 0
        self._quick_end_ns = -1
        self._previous_ns = self._base_ns

    def up(self, now_ns: int) -> None:
        """Note that the link came up at `now_ns`."""
        self._up_since_ns = now_ns

    def down(self, now_ns: int) -> None:
        """The link is lost, or the attempt failed without an answer."""
        if self._up_since_ns >= 0:
            if now_ns - self._up_since_ns >= self._stable_ns:
                self._start_over()
            self._up_since_ns = -1
        if self._quick_end_ns < 0:
            self._quick_end_ns = now_ns + self._quick_period_ns

    def refused(self, now_ns: int) -> None:
        """The peer answered and refused: the next delay is a slow one."""
        self.down(now_ns)
        self._quick_end_ns = now_ns
        self._attempts += 1

    def next_remote_ns(self, draw: float) -> int:
        """Nanoseconds until a remote is tried that was not tried since the loss: a delay of the quick stage."""
        self._attempts += 1
        return QUICK_LEAST_NS + int(draw * (QUICK_MOST_NS - QUICK_LEAST_NS))

    def delay_ns(self, now_ns: int, draw: float, at_least_ns: int = 0) -> int:
        """Nanoseconds from now until the next attempt.

        `draw` is random in [0, 1). `at_least_ns` is the peer's wish (`retry after`), which counts
        up to the cap.
        """
        first = self._attempts == 0
        self._attempts += 1
        if first:
            delay_ns = 0
        elif now_ns < self._quick_end_ns:
            delay_ns = QUICK_LEAST_NS + int(draw * (QUICK_MOST_NS - QUICK_LEAST_NS))
        else:
            # The bound is capped and not the draw: at the cap, too, bridges must not come back in step.
            most_ns = min(self._cap_ns, max(self._base_ns, 3 * self._previous_ns))
            delay_ns = self._base_ns + int(draw * (most_ns - self._base_ns))
            self._previous_ns = delay_ns
        return max(delay_ns, min(at_least_ns, self._cap_ns))
