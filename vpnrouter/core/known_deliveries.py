"""Remembers which deliveries of a link were taken, so that one that comes again is not taken twice (docs/amqp.md).

A client that asks for it gives the same tag to a message each time that it sends it, over whatever connection, and no
other message gets that tag. The tags of the last deliveries of the link are stored, each in one unit with its message,
and give way to others in turn. A link is known by its client username, its container and its name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.core.unsettled_deliveries import LinkKey
    from vpnrouter.spool.ledger import Ledger
    from vpnrouter.spool.store import Store

KNOWS: Final = "vpnrouter:known-deliveries"
"""Capability of a connection and of a link, and the property of a link that says how many deliveries are known."""

_TURN_BYTES: Final = 8


@final
class KnownDeliveries:
    """The last `most` deliveries of one link, `number` in the store; `users` are links attached under its key."""

    __slots__ = ("_ledger", "_slots", "_tags", "_turn", "gone", "most", "number", "users")

    def __init__(self, ledger: Ledger, number: int, most: int) -> None:
        self._ledger = ledger
        self.number = number
        self.most = most
        self.users = 0
        self.gone = False
        self._tags: dict[bytes, None] = {}
        # The tag in each slot; those behind the last one were not used yet.
        self._slots: list[bytes] = []
        self._turn = 0

    def __contains__(self, tag: object) -> bool:
        return tag in self._tags

    def remember(self, tag: bytes) -> None:
        """Know a delivery from now on, in the unit being built, and forget the oldest where there are too many."""
        if self.gone or tag in self._tags:
            return
        slot = self._turn % self.most
        self._put(slot, tag)
        value = self._turn.to_bytes(_TURN_BYTES, "big") + tag
        self._ledger.put(keys.inbound(self.number, slot), value)
        self._turn += 1

    def _put(self, slot: int, tag: bytes) -> None:
        slots = self._slots
        while len(slots) <= slot:
            slots.append(b"")
        self._tags.pop(slots[slot], None)
        slots[slot] = tag
        self._tags[tag] = None

    def restore(self, store: Store) -> None:
        """Take what the store has of it."""
        for key, value in store.scan(keys.inbound(self.number, 0)[:-2]):
            slot = keys.second_of(key)
            if slot < self.most:
                self._put(slot, value[_TURN_BYTES:])
                self._turn = max(self._turn, int.from_bytes(value[:_TURN_BYTES], "big") + 1)

    def erase(self) -> None:
        """Forget all: another link needs the place."""
        self.gone = True
        for slot in range(len(self._slots)):
            self._ledger.delete(keys.inbound(self.number, slot))
        self._tags.clear()


@final
class KnownLinks:
    """The links of one message VPN whose deliveries are known again; the one that was not attached longest is first.

    There are `most`, `of_username` of one client username, with so many `deliveries` each.
    """

    __slots__ = ("_links", "_vpn", "deliveries", "most", "of_username")

    def __init__(self, vpn: str) -> None:
        self._vpn = vpn
        self.most = limits.AMQP_KNOWN_LINKS
        self.of_username = limits.AMQP_KNOWN_LINKS_OF_USERNAME
        self.deliveries = limits.AMQP_KNOWN_DELIVERIES
        self._links: dict[LinkKey, KnownDeliveries] = {}

    def __len__(self) -> int:
        return len(self._links)

    def attach(
        self, ledger: Ledger, number: Callable[[], int], key: LinkKey
    ) -> KnownDeliveries | None:
        """Return what is known of a link, which is attached until `detach`; None where there is no place for it.

        `number` returns the number of one that is new.
        """
        links = self._links
        known = links.pop(key, None)
        if known is None:
            if not self._makes_room(ledger, key[0]):
                return None
            known = KnownDeliveries(ledger, number(), self.deliveries)
            ledger.put(keys.known_link(self._vpn, known.number), json.dumps(key).encode())
        links[key] = known
        known.users += 1
        return known

    def detach(self, known: KnownDeliveries) -> None:
        """A link has gone. What is known of it stays."""
        known.users -= 1

    def _makes_room(self, ledger: Ledger, username: str) -> bool:
        """Forget the link that was not attached longest, where there are too many; False where none is away."""
        own = [key for key in self._links if key[0] == username]
        if len(own) >= self.of_username:
            return self._forget_one(ledger, own)
        if len(self._links) >= self.most:
            return self._forget_one(ledger, list(self._links))
        return True

    def _forget_one(self, ledger: Ledger, among: list[LinkKey]) -> bool:
        for key in among:
            known = self._links[key]
            if not known.users:
                del self._links[key]
                known.erase()
                ledger.delete(keys.known_link(self._vpn, known.number))
                return True
        return False

    def restore(self, ledger: Ledger, store: Store) -> None:
        """Take what the store has of the message VPN. Raises SpoolError for what cannot be read."""
        for key, value in store.scan(keys.of_vpn(keys.KNOWN_LINK, self._vpn)):
            try:
                username, container, name = json.loads(value)
            except ValueError as error:
                text = "a link in the spool whose deliveries are known is damaged"
                raise SpoolError(text, "corrupt") from error
            known = KnownDeliveries(ledger, keys.number_of_link(key), self.deliveries)
            known.restore(store)
            self._links[str(username), str(container), str(name)] = known
