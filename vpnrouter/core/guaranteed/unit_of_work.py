"""What is committed together: messages with their endpoints, and who waits for them.

One unit is being built while the one before it is synced. A transaction is a unit that its client ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.fault_barrier import FaultBarrier
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.message_record import MessageCache
    from vpnrouter.core.guaranteed.waiting_list import WaitingList
    from vpnrouter.core.message import Message
    from vpnrouter.spool.ledger import Ledger


SPOOLED: Final = 0
"""Every matching endpoint has the message in the synced spool (promise COMMIT)."""

DEMOTED: Final = 1
"""Only client subscriptions matched: the message went as Direct."""

UNMATCHED: Final = 2
"""Nothing matched; the message was discarded, and counted."""

REJECTED: Final = 3
"""Nobody keeps the message (promise ALLORNONE); the reason says why."""

SYNCED: Final = 4
"""What `Spool.when_synced` was asked for."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CompletionCallback:
    """Somebody who is told what became of what he gave to the spool."""

    __slots__ = ()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """The thing named by `token` came to `outcome`; `reason` is the field's string for REJECTED, else "".

        Called exactly once for each token, in the order in which they were given.
        """
        raise AssertionError(token)

    def owning_connection(self) -> Connection | None:
        """The connection to close when `settled` raises, None for none."""
        return None


@final
class UnitOfWork:
    """Columns: message `ids[i]` is `messages[i]` and goes to `takers[i]`; `receipts[j]` is told that
    `tokens[j]` came to `outcomes[j]`, with `reasons[j]`. `marks` are endpoints whose mark moves to
    `marked[k]`. The first `arrived` messages are in their endpoints, the next one in the first `placed` of its
    takers; the first `answered` receipts are told.
    """

    __slots__ = (
        "answered",
        "arrived",
        "callbacks",
        "destinations",
        "ids",
        "marked",
        "marks",
        "messages",
        "outcomes",
        "placed",
        "reasons",
        "tokens",
    )

    def __init__(self) -> None:
        self.arrived = 0
        self.placed = 0
        self.answered = 0
        self.ids: list[int] = []
        self.messages: list[Message] = []
        self.destinations: list[list[Endpoint]] = []
        self.callbacks: list[CompletionCallback] = []
        self.tokens: list[int] = []
        self.outcomes: list[int] = []
        self.reasons: list[str] = []
        self.marks: list[Endpoint] = []
        self.marked: list[int] = []

    @property
    def empty(self) -> bool:
        """True when the unit holds nothing and nobody waits for it."""
        return not self.ids and not self.callbacks and not self.marks

    def bytes_of(self, endpoint: Endpoint) -> int:
        """Bytes of the messages in it that go to `endpoint`."""
        size = 0
        for index, destinations in enumerate(self.destinations):
            if endpoint in destinations:
                size += self.messages[index].size
        return size

    def owes(self, callback: CompletionCallback, before: UnitOfWork | None) -> bool:
        """True when `callback` waits for this unit or the one before it. Looks at all receipts."""
        return callback in self.callbacks or (before is not None and callback in before.callbacks)

    def answer(self, barrier: FaultBarrier) -> None:
        """Tell all receipts. One that raises is given to the barrier, and the others are told all the same."""
        while self.answered < len(self.callbacks):
            index = self.answered
            self.answered = index + 1
            callback = self.callbacks[index]
            try:
                callback.on_outcome(self.tokens[index], self.outcomes[index], self.reasons[index])
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier.of(callback.owning_connection(), error)

    def answers_for(self, other: UnitOfWork) -> None:
        """Take over the receipts that `other` has not told; they are told first."""
        left = other.answered
        told = self.answered
        self.callbacks[told:told] = other.callbacks[left:]
        self.tokens[told:told] = other.tokens[left:]
        self.outcomes[told:told] = other.outcomes[left:]
        self.reasons[told:told] = other.reasons[left:]

    def cut(self, messages: int, callbacks: int) -> None:
        """Keep the first `messages` and `callbacks`, and forget those behind them."""
        del self.ids[messages:]
        del self.messages[messages:]
        del self.destinations[messages:]
        del self.callbacks[callbacks:]
        del self.tokens[callbacks:]
        del self.outcomes[callbacks:]
        del self.reasons[callbacks:]

    def tell(self, callback: CompletionCallback, token: int, outcome: int, reason: str) -> None:
        """Tell `callback` when the unit is synced."""
        self.callbacks.append(callback)
        self.tokens.append(token)
        self.outcomes.append(outcome)
        self.reasons.append(reason)


ROUND: Final = 20_000
"""Messages that leave the store in one round."""


@final
class PurgeQueue:
    """Ids that are to leave, by endpoint number, and those who are told when they have."""

    __slots__ = ("_callbacks", "_doomed", "_tokens")

    def __init__(self) -> None:
        self._doomed: list[tuple[int, WaitingList]] = []
        self._callbacks: list[CompletionCallback] = []
        self._tokens: list[int] = []

    @property
    def busy(self) -> bool:
        """True while there is something left to do."""
        return bool(self._doomed or self._callbacks)

    def add(self, number: int, waiting: WaitingList) -> None:
        """Let all of these go."""
        self._doomed.append((number, waiting))

    def tell(self, callback: CompletionCallback, token: int) -> None:
        """Tell `callback` when all that is here now has left."""
        self._callbacks.append(callback)
        self._tokens.append(token)

    def run(self, ledger: Ledger, bodies: MessageCache, unit: UnitOfWork) -> str:
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
            for index in range(len(self._callbacks)):
                unit.tell(self._callbacks[index], self._tokens[index], SYNCED, "")
            self._callbacks = []
            self._tokens = []
        return trouble
