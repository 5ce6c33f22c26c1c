"""What is committed together: messages with their endpoints, and who waits for it.

One unit is being built while the one before it is synced. A transaction is a unit that its client ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.core.guaranteed.sizes import size_of

if TYPE_CHECKING:
    from vpnrouter.core.barrier import Barrier
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.receipt import Receipt
    from vpnrouter.core.message import Message


@final
class Unit:
    """Columns: message `ids[i]` is `messages[i]` and goes to `takers[i]`; `receipts[j]` is told that
    `tokens[j]` came to `outcomes[j]`, with `reasons[j]`. `marks` are endpoints whose mark moves to
    `marked[k]`. The first `arrived` messages are in their endpoints, the next one in the first `placed` of its
    takers; the first `answered` receipts are told.
    """

    __slots__ = (
        "answered",
        "arrived",
        "ids",
        "marked",
        "marks",
        "messages",
        "outcomes",
        "placed",
        "reasons",
        "receipts",
        "takers",
        "tokens",
    )

    def __init__(self) -> None:
        self.arrived = 0
        self.placed = 0
        self.answered = 0
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
        """True when `receipt` waits for this unit or the one before it. Looks at all receipts."""
        return receipt in self.receipts or (before is not None and receipt in before.receipts)

    def answer(self, barrier: Barrier) -> None:
        """Tell all receipts. One that raises is given to the barrier, and the others are told all the same."""
        while self.answered < len(self.receipts):
            index = self.answered
            self.answered = index + 1
            receipt = self.receipts[index]
            try:
                receipt.settled(self.tokens[index], self.outcomes[index], self.reasons[index])
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier.of(receipt.party(), error)

    def answers_for(self, other: Unit) -> None:
        """Take over the receipts that `other` has not told; they are told first."""
        left = other.answered
        told = self.answered
        self.receipts[told:told] = other.receipts[left:]
        self.tokens[told:told] = other.tokens[left:]
        self.outcomes[told:told] = other.outcomes[left:]
        self.reasons[told:told] = other.reasons[left:]

    def cut(self, messages: int, receipts: int) -> None:
        """Keep the first `messages` and `receipts`, and forget those behind them."""
        del self.ids[messages:]
        del self.messages[messages:]
        del self.takers[messages:]
        del self.receipts[receipts:]
        del self.tokens[receipts:]
        del self.outcomes[receipts:]
        del self.reasons[receipts:]

    def tell(self, receipt: Receipt, token: int, outcome: int, reason: str) -> None:
        """Tell `receipt` when the unit is synced."""
        self.receipts.append(receipt)
        self.tokens.append(token)
        self.outcomes.append(outcome)
        self.reasons.append(reason)
