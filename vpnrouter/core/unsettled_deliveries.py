"""Remembers what became of deliveries that the sender has not settled, also while its link is away (AMQP 1.0, 2.6.13).

A sender that lost its connection asks by the tags of its deliveries what became of them, when it attaches the link
again. What is known is not sent, and not published, a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Container


LinkKey = tuple[str, str, str]
"""Client username, container and name of a link."""


@final
class UnsettledDeliveries:
    """The deliveries of one link that came and that its sender has not settled.

    `outcomes` has by tag the outcome and the reason that `CompletionCallback.on_outcome` got, None before. The one who
    holds it on `until_ns`, -1 for ever, may forget it.
    """

    __slots__ = ("_resumed", "outcomes", "until_ns")

    def __init__(self) -> None:
        self.outcomes: dict[bytes, tuple[int, str] | None] = {}
        self.until_ns = -1
        # Who is to be told, and under which token, of those that were resumed before their outcome was known.
        self._resumed: dict[bytes, tuple[Callable[[int, int, str], None], int]] = {}

    def came(self, tag: bytes) -> None:
        """Remember a new delivery."""
        self.outcomes[tag] = None

    def answered(self, tag: bytes, outcome: int, reason: str) -> None:
        """Remember what became of a delivery that is not settled, and tell the one who has resumed it."""
        if tag not in self.outcomes:
            return
        self.outcomes[tag] = (outcome, reason)
        waiting = self._resumed.pop(tag, None)
        if waiting is not None:
            tell, token = waiting
            tell(token, outcome, reason)

    def resume(self, tag: bytes, tell: Callable[[int, int, str], None], token: int) -> None:
        """Call `tell` with what became of a delivery, under `token`, now or when it is known."""
        known = self.outcomes[tag]
        if known is None:
            self._resumed[tag] = (tell, token)
        else:
            tell(token, known[0], known[1])

    def settle(self, tag: bytes) -> None:
        """Forget a delivery: the sender has settled it."""
        self.outcomes.pop(tag, None)
        self._resumed.pop(tag, None)

    def keep(self, now_ns: int, seconds: int) -> None:
        """Set until when it is kept: for this time, but AMQP_AWAY_S at least; -1 for ever."""
        lasts_s = max(seconds, limits.AMQP_AWAY_S)
        self.until_ns = -1 if seconds < 0 else now_ns + lasts_s * SECOND_NS

    def keep_only(self, tags: Container[object]) -> None:
        """Forget all others: the sender knows no more of them."""
        for tag in [tag for tag in self.outcomes if tag not in tags]:
            self.settle(tag)


LINK_WEIGHT: Final = 10
"""Deliveries that a link counts for, with its names."""


@final
class LinksAway:
    """What is known of links of one message VPN that are not attached: of each client username the newest."""

    __slots__ = ("_count", "_counts", "_links")

    def __init__(self) -> None:
        self._links: dict[str, dict[LinkKey, UnsettledDeliveries]] = {}
        self._counts: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return sum([len(links) for links in self._links.values()])

    def keep(self, key: LinkKey, deliveries: UnsettledDeliveries) -> None:
        """Remember a link that has gone."""
        self._take(key)
        username = key[0]
        self._links.setdefault(username, {})[key] = deliveries
        self._add(username, LINK_WEIGHT + len(deliveries.outcomes))
        while self._counts.get(username, 0) > limits.AMQP_DELIVERIES_AWAY_OF_USERNAME:
            self._take(next(iter(self._links[username])))
        while self._count > limits.AMQP_DELIVERIES_AWAY:
            most = ""
            for name, count in self._counts.items():
                if not most or count > self._counts[most]:
                    most = name
            self._take(next(iter(self._links[most])))

    def _add(self, username: str, count: int) -> None:
        self._count += count
        self._counts[username] = self._counts.get(username, 0) + count

    def _take(self, key: LinkKey) -> UnsettledDeliveries | None:
        username = key[0]
        links = self._links.get(username)
        found = None if links is None else links.pop(key, None)
        if found is not None:
            self._add(username, -LINK_WEIGHT - len(found.outcomes))
            if not links:
                del self._links[username]
                del self._counts[username]
        return found

    def take(self, key: LinkKey, now_ns: int) -> UnsettledDeliveries | None:
        """Return what is remembered of a link that is back; None where there is nothing, or its time is over."""
        found = self._take(key)
        if found is None or 0 <= found.until_ns <= now_ns:
            return None
        return found
