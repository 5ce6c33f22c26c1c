"""The messages of the spool that are in memory, bounded: what was just synced, and what is read ahead."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.guaranteed.stored import from_record
from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.plane import Plane
    from vpnrouter.spool.ledger import Ledger

FEW: Final = 4_096
"""Ids of messages that have gone which are not worth a sweep."""


@final
class Bodies:
    """`kept`: message by spool id. Beyond SPOOL_BODY_BYTES the oldest go; they can be read again."""

    __slots__ = ("_order", "kept", "size")

    def __init__(self) -> None:
        self.kept: dict[int, Message] = {}
        self.size = 0
        # Ids in the order in which they came; those that have gone are found out when their turn comes. A
        # dict that loses its first items one by one is slow to say which is the first.
        self._order: deque[int] = deque()

    def keep(self, spool_id: int, message: Message) -> None:
        """Remember a message that will be wanted soon."""
        kept = self.kept
        order = self._order
        kept[spool_id] = message
        order.append(spool_id)
        self.size += size_of(message) + limits.SPOOL_BODY_COST
        while self.size > limits.SPOOL_BODY_BYTES and len(kept) > 1:
            self.drop(order.popleft())
        if len(order) > 2 * len(kept) + FEW:
            self._order = deque(kept)

    def drop(self, spool_id: int) -> None:
        """Forget a message, if it is here."""
        message = self.kept.pop(spool_id, None)
        if message is not None:
            self.size -= size_of(message) + limits.SPOOL_BODY_COST

    def read(self, ledger: Ledger, plane: Plane, spool_id: int) -> Message:
        """Read a message from the store, and those of its segment that come after it.

        Raises SpoolError when the store has lost it.
        """
        found: Message | None = None
        try:
            records = ledger.read(spool_id)
        except KeyError as error:
            raise SpoolError(f"the spool has lost message {spool_id}", "corrupt") from error
        for other, data in records:
            if other < spool_id or other in self.kept:
                continue
            message = from_record(data, plane.now_ns, plane.steady_ns)
            if other == spool_id:
                found = message
            elif self.size > limits.SPOOL_BODY_BYTES:
                break
            self.keep(other, message)
        if found is None:
            raise SpoolError(f"the spool has lost message {spool_id}", "corrupt")
        return found
