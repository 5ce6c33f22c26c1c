"""Collects what is committed together: messages with their endpoints, and callbacks.

One unit is being built while the one before it is synced. A transaction is a unit that its client ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.timers import Job
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


EVERYTHING: Final = 1 << 60
"""More than a unit can have."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CompletionCallback:
    """Gets the outcome of requests to the spool."""

    __slots__ = ()

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Take the outcome of `token`; `reason` is the field's string for REJECTED, else "".

        Called exactly once for each token, in the order of the requests.
        """
        raise AssertionError(token)

    def on_delay(self, why: str) -> None:
        """Note that the outcome stays open, for `why`: the spool has not been written for a while. May come again."""

    def owning_connection(self) -> Connection | None:
        """Return the connection to close when `on_outcome` or `on_delay` raises, or None."""
        return None


@final
class UnitOfWork:
    """A unit of work as columns.

    Message `ids[i]` is `messages[i]` and goes to `destinations[i]`; `callbacks[j]` gets `outcomes[j]` and `reasons[j]`
    for `tokens[j]`. The mark of endpoint `marks[k]` moves to `marked[k]`. The first `arrived` messages are in their
    endpoints, the next one in the first `placed` of its own; the first `answered` callbacks were called.
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
        """Return whether the unit holds no message, callback or mark."""
        return not self.ids and not self.callbacks and not self.marks

    def bytes_of(self, endpoint: Endpoint) -> int:
        """Bytes of the messages in it that go to `endpoint`."""
        size = 0
        for index, destinations in enumerate(self.destinations):
            if endpoint in destinations:
                size += self.messages[index].size
        return size

    def has_callback(self, callback: CompletionCallback, before: UnitOfWork | None) -> bool:
        """Return whether `callback` waits for this unit or the one before it. Looks at all callbacks."""
        return callback in self.callbacks or (before is not None and callback in before.callbacks)

    def run_callbacks(self, barrier: FaultBarrier, until: int = EVERYTHING) -> None:
        """Call the first `until` callbacks, whatever one of them raises: that is given to the barrier."""
        end = min(until, len(self.callbacks))
        while self.answered < end:
            index = self.answered
            self.answered = index + 1
            callback = self.callbacks[index]
            try:
                callback.on_outcome(self.tokens[index], self.outcomes[index], self.reasons[index])
            except Exception as error:  # noqa: BLE001 - given to the barrier
                barrier.of(callback.owning_connection(), error)

    def take_callbacks(self, other: UnitOfWork) -> None:
        """Take over the callbacks that `other` has not called; they are called first."""
        left = other.answered
        told = self.answered
        self.callbacks[told:told] = other.callbacks[left:]
        self.tokens[told:told] = other.tokens[left:]
        self.outcomes[told:told] = other.outcomes[left:]
        self.reasons[told:told] = other.reasons[left:]

    def mark(self) -> tuple[int, int]:
        """Return how many messages and callbacks it has, for `Spool.take_back`."""
        return len(self.ids), len(self.callbacks)

    def cut(self, messages: int, callbacks: int) -> None:
        """Keep the first `messages` and `callbacks`, and forget the rest."""
        del self.ids[messages:]
        del self.messages[messages:]
        del self.destinations[messages:]
        del self.callbacks[callbacks:]
        del self.tokens[callbacks:]
        del self.outcomes[callbacks:]
        del self.reasons[callbacks:]

    def call_when_synced(
        self, callback: CompletionCallback, token: int, outcome: int, reason: str
    ) -> None:
        """Call `callback` when the unit is synced."""
        self.callbacks.append(callback)
        self.tokens.append(token)
        self.outcomes.append(outcome)
        self.reasons.append(reason)


@final
class DelayNotice(Job):
    """Notes with a callback that its outcome stays open, for `why`: a job each, since a connection may end by it."""

    __slots__ = ("_callback", "_why")

    def __init__(self, callback: CompletionCallback, why: str) -> None:
        super().__init__()
        self._callback = callback
        self._why = why

    def step(self) -> bool:
        """Tell the callback."""
        self._callback.on_delay(self._why)
        return True

    def owning_connection(self) -> Connection | None:
        """The connection that waits for the outcome."""
        return self._callback.owning_connection()


ROUND: Final = 20_000
"""Messages that leave the store in one round."""


@final
class PurgeQueue:
    """Ids to delete from the store, by endpoint number, and callbacks for when they have left."""

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
        """Delete all of these."""
        self._doomed.append((number, waiting))

    def call_when_done(self, callback: CompletionCallback, token: int) -> None:
        """Call `callback` when all ids that are here now have left."""
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
                unit.call_when_synced(self._callbacks[index], self._tokens[index], SYNCED, "")
            self._callbacks = []
            self._tokens = []
        return trouble
