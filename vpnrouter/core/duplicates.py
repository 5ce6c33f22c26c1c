"""Detects copies of a message that reach a message VPN by several ways.

Links carry a message id where it matters (`IdSource.message_id`); the receiving end of a link calls `SeenIds.look`
before a message enters.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter import limits

FIRST: Final = 0
"""The message has not been here: it enters."""

SHORTER: Final = 1
"""It has been here, over more links: it goes on to links only."""

DUPLICATE: Final = 2
"""It has been here, over as many links or fewer: it is discarded."""


@final
class SeenIds:
    """The ids of the messages that entered one message VPN, each with the fewest links it came over.

    Each message VPN gets a message once: two copies parted ways at some message VPN that gave both one id, or the
    message had its id already. No later VPN changes it. So all copies that can meet have the same id.

    No VPN is left out: the hop limit is checked before `look`, so only messages that may enter are remembered. The
    first copy to arrive may have come the long way, without hops left for VPNs further on. A later copy over fewer
    links therefore goes on to links (SHORTER), but not to VPNs that the first copy has visited.

    Bounded: two generations of SEEN_IDS ids; when the young one is full, the old one is forgotten. A copy more than
    SEEN_IDS ids later may count as new, one more than twice as many later always does.
    """

    __slots__ = ("_old", "_young", "most")

    def __init__(self, most: int = limits.SEEN_IDS) -> None:
        self.most = most
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def look(self, message_id: int, hops: int) -> int:
        """Remember a message that may enter after `hops` links: FIRST, SHORTER or DUPLICATE."""
        young = self._young
        fewest = young.get(message_id)
        if fewest is not None:
            if hops >= fewest:
                return DUPLICATE
            young[message_id] = hops
            return SHORTER
        fewest = self._old.get(message_id)
        if fewest is not None:
            if hops >= fewest:
                return DUPLICATE
            self._old[message_id] = hops
            return SHORTER
        if len(young) >= self.most:
            self._old = young
            young = {}
            self._young = young
        young[message_id] = hops
        return FIRST
