"""Holds back acknowledgements until a bridge has brought the message across (`end_to_end_bridge` of a profile).

A message in a queue from which that bridge consumes is acknowledged to its publisher when a consumer of the queue has
acknowledged it. A queue keeps the names of bridges that were ever bound to it, so that this also holds while the
bridge is away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import mypyc_attr

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED, SYNCED, CompletionCallback

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


@mypyc_attr(allow_interpreted_subclasses=True)
class EndToEndCallback(CompletionCallback):
    """Gets the final outcome of a publish."""

    __slots__ = ()

    def lost(self, token: int) -> None:
        """Note that the message of `token` never comes over.

        Changes made here are in the unit before `on_outcome` is called.
        """
        raise AssertionError(token)


@final
class SettlementWatchers:
    """Watchers of messages that are to leave an endpoint, by spool id."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[EndToEndAnswers, int]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def watch(self, spool_id: int, waiter: EndToEndAnswers, number: int) -> None:
        """Notify `waiter` of the outcome of a message, under the watcher's own `number`."""
        self._waiting.setdefault(spool_id, []).append((waiter, number))

    def drop(self, spool_id: int, waiter: EndToEndAnswers, number: int) -> bool:
        """Stop notifying it; False when it has been notified."""
        waiting = self._waiting.get(spool_id)
        if waiting is None or (waiter, number) not in waiting:
            return False
        waiting.remove((waiter, number))
        if not waiting:
            del self._waiting[spool_id]
        return True

    def accepted(self, spool_id: int) -> None:
        """A consumer has the message."""
        for waiter, number in self._waiting.pop(spool_id, ()):
            waiter.accepted(number)

    def lost(self, spool_id: int) -> None:
        """The message left the endpoint in another way, if it has not been accepted before."""
        for waiter, number in self._waiting.pop(spool_id, ()):
            waiter.lost(number)

    def purged(self, endpoint: Endpoint) -> None:
        """Notify the watchers of all messages in the endpoint that they are lost: it is being purged."""
        for spool_id in list(self._waiting):
            if endpoint.waits(spool_id):
                self.lost(spool_id)


@final
class _PendingAnswer:
    """The `outcome` of `token`. `left` counts what it waits for, `places` are endpoints among that."""

    __slots__ = ("left", "lost", "outcome", "places", "reason", "spool_id", "token")

    def __init__(self, token: int) -> None:
        self.token = token
        # The spool's own answer.
        self.left = 1
        self.outcome = SPOOLED
        self.reason = ""
        self.lost = False
        self.spool_id = 0
        self.places: list[Endpoint] = []


@final
class EndToEndAnswers(CompletionCallback):
    """Acknowledgements of one publishing connection that wait for `bridge`, at most RECEIVE_MAXIMUM.

    `answers` gets them in the order of the publishes (MQTT-4.6.0-2, MQTT-4.6.0-3). `held_id` is the spool id of the
    newest message, 0 where it waits for no bridge.
    """

    __slots__ = ("_answers", "_bridge", "_due", "_first", "_next", "_spool", "held_id")

    def __init__(self, spool: Spool, bridge: str, answers: EndToEndCallback) -> None:
        self._spool = spool
        self._bridge = bridge
        self._answers = answers
        self._due: dict[int, _PendingAnswer] = {}
        # Numbers of answers: the oldest one that is due, and the next one to be given.
        self._first = 0
        self._next = 0
        self.held_id = 0

    def on_delay(self, why: str) -> None:
        """Give the word to the publishing connection."""
        self._answers.on_delay(why)

    def owning_connection(self) -> Connection | None:
        """The publishing connection."""
        return self._answers.owning_connection()

    def publish(self, vpn: MessageVpn, message: Message, token: int) -> int:
        """Give a guaranteed message to the spool; `answers` gets the outcome of `token` later.

        Returns the spool's outcome. Raises TopicError for a bad topic.
        """
        spool = self._spool
        outcome = spool.publish(vpn, message, self, self._next)
        due = self._add(token)
        self.held_id = 0
        unit = spool.unit
        if outcome == SPOOLED and unit.messages and unit.messages[-1] is message:
            self._watch(due, unit.ids[-1], unit.destinations[-1])
            if due.places:
                self.held_id = unit.ids[-1]
        return outcome

    def answer(self, token: int, outcome: int, reason: str) -> None:
        """Answer after the answers before it, without waiting for a bridge."""
        self._spool.unit.call_when_synced(self, self._next, outcome, reason)
        self._add(token)

    def again(self, vpn: MessageVpn, spool_id: int, token: int) -> None:
        """Answer a message of an earlier connection when it is across; one that has left the queues counts as such."""
        self._spool.unit.call_when_synced(self, self._next, SPOOLED, "")
        due = self._add(token)
        places = self._spool.destinations_of(spool_id)
        if not places:
            places = [
                endpoint
                for endpoint in endpoints_of(vpn).values()
                if self._bridge in endpoint.bridges and endpoint.holds(spool_id)
            ]
        self._watch(due, spool_id, places)

    def _add(self, token: int) -> _PendingAnswer:
        due = _PendingAnswer(token)
        self._due[self._next] = due
        self._next += 1
        return due

    def _watch(self, due: _PendingAnswer, spool_id: int, endpoints: list[Endpoint]) -> None:
        """Wait for the newest answer's message; its number is the one before `_next`."""
        due.spool_id = spool_id
        for endpoint in endpoints:
            if self._bridge in endpoint.bridges:
                if endpoint.watched is None:
                    endpoint.watched = SettlementWatchers()
                endpoint.watched.watch(spool_id, self, self._next - 1)
                due.left += 1
                due.places.append(endpoint)

    def accepted(self, number: int) -> None:
        """Count a queue that has done with the message, once that is synced."""
        if number in self._due:
            self._spool.when_synced(self, number)

    def lost(self, number: int) -> None:
        """Refuse a message that one of its queues lost, whatever becomes of it in the others."""
        due = self._due.get(number)
        if due is None or due.lost:
            return
        due.lost = True
        self._answers.lost(due.token)
        due.left -= self._drop(number, due)
        self._spool.when_synced(self, number)

    def _drop(self, number: int, due: _PendingAnswer) -> int:
        """Wait no more for queues that still hold the message; how many those were."""
        count = 0
        for endpoint in due.places:
            watched = endpoint.watched
            if watched is not None and watched.drop(due.spool_id, self, number):
                count += 1
        return count

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        """Count one outcome of a message, and answer in order all messages that wait for nothing more.

        The outcome is the spool's, or SYNCED for the outcome in a queue.
        """
        due = self._due.get(token)
        if due is None:
            return
        due.left -= 1
        if outcome != SYNCED:
            due.outcome = outcome
            due.reason = reason
        while True:
            # The connection may end meanwhile, and take more in.
            due = self._due.get(self._first)
            if due is None or due.left:
                return
            del self._due[self._first]
            self._first += 1
            if due.lost:
                self._answers.on_outcome(due.token, REJECTED, refusals.PUBLISH_FAILURE)
            else:
                self._answers.on_outcome(due.token, due.outcome, due.reason)

    def close(self) -> None:
        """Drop all answers: the connection has ended."""
        for number, due in self._due.items():
            self._drop(number, due)
        self._due.clear()
        self._first = self._next
