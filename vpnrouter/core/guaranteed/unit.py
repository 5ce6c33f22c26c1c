"""What is committed together: messages with their endpoints, and who waits for it.

One unit is being built while the one before it is synced. A transaction is a unit that its client ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.guaranteed.sizes import size_of

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.receipt import Receipt
    from vpnrouter.core.message import Message


@final
class Unit:
    """Columns: message `ids[i]` is `messages[i]` and goes to `takers[i]`; `receipts[j]` is told that
    `tokens[j]` came to `outcomes[j]`, with `reasons[j]`. `marks` are endpoints whose mark moves to
    `marked[k]`.
    """

    __slots__ = (
        "ids",
        "marked",
        "marks",
        "messages",
        "outcomes",
        "reasons",
        "receipts",
        "takers",
        "tokens",
    )

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.messages: list[Message] = []
        self.takers: list[list[Endpoint]] = []
        self.receipts: list[Receipt] = []
        self.tokens: list[int] = []
        self.outcomes: list[int] = []
        self.reasons: list[str] = []
        self.marks: list[Endpoint] = []
        self.marked: list[int] = []

    @property
    def empty(self) -> bool:
        """Nothing in it and nobody waits."""
        return not self.ids and not self.receipts and not self.marks

    def bytes_of(self, endpoint: Endpoint) -> int:
        """Bytes of the messages in it that go to `endpoint`."""
        size = 0
        for index, takers in enumerate(self.takers):
            if endpoint in takers:
                size += size_of(self.messages[index])
        return size

    def owes(self, receipt: Receipt, before: Unit | None) -> bool:
        """Does `receipt` wait for this unit or the one before it? Looks at all."""
        return receipt in self.receipts or (before is not None and receipt in before.receipts)

    def answer(self) -> None:
        """Tell all that wait."""
        for index in range(len(self.receipts)):
            self.receipts[index].settled(
                self.tokens[index], self.outcomes[index], self.reasons[index]
            )

    def tell(self, receipt: Receipt, token: int, outcome: int, reason: str) -> None:
        """Tell `receipt` when the unit is synced."""
        self.receipts.append(receipt)
        self.tokens.append(token)
        self.outcomes.append(outcome)
        self.reasons.append(reason)
