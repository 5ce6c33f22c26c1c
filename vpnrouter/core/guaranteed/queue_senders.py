"""Knows who sends to a queue by its name over a link that lasts, and tells them when the queue is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.timers import Job

if TYPE_CHECKING:
    from vpnrouter.core.turn import TurnContext

TELL_WORK: Final = 8
"""What it costs to tell a sender, in parts of a turn (TurnContext.work)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueSender:
    """One who sends to a queue by its name."""

    __slots__ = ()

    def removed(self, reason: str) -> None:
        """The queue has been removed: what is sent to it from now on is refused."""
        raise AssertionError(reason)


@final
class TellRemoved(Job):
    """Tells the senders of a queue that it has been removed, in slices where they are many."""

    __slots__ = ("_context", "_reason", "_senders")

    def __init__(self, context: TurnContext, senders: list[QueueSender], reason: str) -> None:
        super().__init__()
        self._context = context
        self._senders = senders
        self._reason = reason

    def step(self) -> bool:
        """Tell senders until this turn has done enough."""
        while self._senders:
            if self._context.turn_spent:
                return False
            self._context.work += TELL_WORK
            self._senders.pop().removed(self._reason)
        return True
