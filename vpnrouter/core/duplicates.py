"""Which messages have been in a message VPN: in a mesh one message may come by several ways.

Links carry a message id where it matters (`IdSource.message_id`), and the receiving end of a link asks
`SeenIds.look` before a message enters.
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

    Why each VPN gets a message once: two copies of it parted ways first at some VPN. That VPN sent it
    over two links and gave both copies one id, or the message had its id already; no later VPN changes
    it. So all copies that can meet anywhere have the same id, and the second to come is known.

    Why none is left out: the hop limit is checked before `look`, so that only what may enter is
    remembered. Which copy comes first is chance, and it may be one that came the long way and has no
    hops left for VPNs further on. A later copy over fewer links therefore goes on to links (SHORTER):
    the shortest way to each VPN is never cut off behind a longer one. VPNs that the first copy has
    visited are not sent the message again, but those have it.

    Bounded: ids stand in two generations of SEEN_IDS each, and when the young one is full, the old one
    is forgotten. A copy that is more than SEEN_IDS messages with ids later than the first may count as
    new, one that is more than twice as many later always does.
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
