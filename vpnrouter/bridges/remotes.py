"""Which remote message VPN to try: by connect order, each its attempts, then the next, for ever.

`connect_order` 1 is tried first; equal orders stand as configured. A host gets one attempt and
`retry_count` retries before the next has its turn; with the field's default of 0, each host is
tried once in a pass. After a loss the others come first, best first, and the one lost comes last:
it may be dead.

In the *first pass*, after a loss or at start, a remote that answers has to be found soon: one that says nothing
has a short time, and the next one is tried at once. Later passes take more time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote message VPN: its name, where it is as configured, its preference (1 the best)."""

    msg_vpn: str
    location: str
    connect_order: int = 4
    enabled: bool = True

    def names_the_same_as(self, other: "Remote") -> bool:
        """Whether both are one remote, whatever its preference."""
        return (self.msg_vpn, self.location) == (other.msg_vpn, other.location)


@final
class Remotes:
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
        """Those that are enabled, best first."""
        return tuple(self._sorted)

    def written(self) -> tuple[Remote, ...]:
        """All remotes, best first; those that are not enabled come last."""
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
