"""Messages that were purged: no endpoint's any more, they leave the store some each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.bodies import Bodies
    from vpnrouter.core.guaranteed.receipt import Receipt
    from vpnrouter.core.guaranteed.unit import Unit
    from vpnrouter.core.guaranteed.waiting import Waiting
    from vpnrouter.spool.ledger import Ledger

ROUND: Final = 20_000
"""Messages that leave the store in one round."""

SYNCED: Final = 4
"""See receipt.py."""


@final
class Purging:
    """Ids that are to leave, by endpoint number, and those who are told when they have."""

    __slots__ = ("_doomed", "_receipts", "_tokens")

    def __init__(self) -> None:
        self._doomed: list[tuple[int, Waiting]] = []
        self._receipts: list[Receipt] = []
        self._tokens: list[int] = []

    @property
    def busy(self) -> bool:
        """True while there is something left to do."""
        return bool(self._doomed or self._receipts)

    def add(self, number: int, waiting: Waiting) -> None:
        """Let all of these go."""
        self._doomed.append((number, waiting))

    def tell(self, receipt: Receipt, token: int) -> None:
        """Tell `receipt` when all that is here now has left."""
        self._receipts.append(receipt)
        self._tokens.append(token)

    def run(self, ledger: Ledger, bodies: Bodies, unit: Unit) -> str:
        """Delete some messages, in the unit being built. Returns why one of them stays in the store, "" normally."""
        left = ROUND
        trouble = ""
        while self._doomed and left:
            number, waiting = self._doomed[-1]
            while waiting.count and left:
                left -= 1
                spool_id = waiting.pop()
                try:
                    ledger.settle(number, spool_id)
                except SpoolError as error:
                    trouble = str(error)
                bodies.drop(spool_id)
            if not waiting.count:
                self._doomed.pop()
        if not self._doomed:
            for index in range(len(self._receipts)):
                unit.tell(self._receipts[index], self._tokens[index], SYNCED, "")
            self._receipts = []
            self._tokens = []
        return trouble
