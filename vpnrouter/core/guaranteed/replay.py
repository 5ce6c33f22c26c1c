"""A replay: messages of the replay log are added to an exclusive durable queue once more, in their order.

What it brings is delivered ahead of everything that waits in the queue or comes meanwhile; that follows when
all is delivered. Messages that still wait in the queue and are in the replayed part of the log leave it, in
the unit in which their copy comes. A replay does not survive a restart: what it brought till then is there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.counters import MOVED
from vpnrouter.core.guaranteed.kinds import QUEUE
from vpnrouter.core.guaranteed.pools import take_out, waits
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.guaranteed.unreadable import tell
from vpnrouter.core.guaranteed.waiting import Waiting
from vpnrouter.core.timers import Timed
from vpnrouter.errors import Refused, SpoolError, TopicError

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.replay_log import ReplayLog
    from vpnrouter.core.message import Message

INITIALIZING: Final = "initializing"
"""Looking for the first message."""
ACTIVE: Final = "active"
"""Adding messages."""
PENDING_COMPLETE: Final = "pending-complete"
"""All are added, not all are acknowledged."""
COMPLETE: Final = "complete"
FAILED: Final = "failed"

PORTION: Final = 500
"""Messages of the log that are looked at in one round."""

STEPS: Final = 4
"""Messages of the log that are looked at in one round to find a time."""

RETRY_NS: Final = 1_000_000_000
"""Nanoseconds until a replay without room looks again, where nobody takes anything from its queue."""


def start_replay(
    log: ReplayLog | None, endpoint: Endpoint, from_ns: int = 0, after_id: int = 0
) -> Replay:
    """Replay to `endpoint`, from the beginning of the log, from a wall clock time or behind a message id.

    A replay that runs already is ended. Raises Refused with the field's reason.
    """
    if log is None or log.endpoint.deleted or not log.endpoint.terms.egress_enabled:
        raise Refused(reasons.REPLAY_DISABLED)
    if not endpoint.durable or endpoint.kind != QUEUE:
        raise Refused(reasons.REPLAY_TEMPORARY)
    if not endpoint.terms.exclusive:
        raise Refused(reasons.REPLAY_NON_EXCLUSIVE)
    if from_ns > endpoint.vpn.plane.wall_ns:
        raise Refused(reasons.REPLAY_TIME)
    if after_id and after_id != log.trimmed and not waits(log.endpoint, after_id):
        raise Refused(reasons.REPLAY_MESSAGE)
    if endpoint.replay is None and log.replays >= limits.REPLAYS:
        raise Refused(reasons.REPLAY_RESOURCES)
    if endpoint.replay is not None:
        endpoint.replay.fail(reasons.REPLAY_STARTED)
    return Replay(log, endpoint, from_ns, after_id)


@final
class Replay(Timed):
    """One replay, which begins with its making; `state` as the field has it, `failure` why it failed.

    `brought_count` is how many messages it added.
    """

    __slots__ = (
        "_begins",
        "_changes",
        "_cursor",
        "_end",
        "_endpoint",
        "_ends",
        "_from_ns",
        "_high",
        "_log",
        "brought_count",
        "failure",
        "state",
    )

    def __init__(self, log: ReplayLog, endpoint: Endpoint, from_ns: int, after_id: int) -> None:
        self._log = log
        self._endpoint = endpoint
        self._from_ns = from_ns
        self._cursor = max(after_id, log.trimmed)
        self._end = log.endpoint.waiting[0].last()
        self._high = self._end + 1
        self._changes = self._changes_now()
        # Ids of what it brought, in runs.
        self._begins: list[int] = []
        self._ends: list[int] = []
        self.brought_count = 0
        self.failure = ""
        self.state = INITIALIZING if from_ns else ACTIVE
        log.replays += 1
        counters = endpoint.counters
        counters.replay_start_count += 1
        counters.replay_state = self.state
        endpoint.replay = self
        endpoint.ahead = Waiting()
        self._selectors_start_over()
        endpoint.wake()

    def brought(self, message_id: int) -> bool:
        """True when the message came by this replay."""
        run = bisect_right(self._begins, message_id) - 1
        return run >= 0 and message_id <= self._ends[run]

    def cancel(self) -> None:
        """Management wants no more of it."""
        self.fail(reasons.REPLAY_CANCELLED)

    def fail(self, reason: str) -> None:
        """End it; what it brought stays, among the other messages of the queue."""
        self.failure = reason
        counters = self._endpoint.counters
        counters.replay_failure_count += 1
        counters.last_replay_failure_reason = reason
        self._finish(FAILED)

    def advance(self) -> None:
        """Do a bounded part of the work; called in each round in which something happened to the queue."""
        if self.state in {INITIALIZING, ACTIVE}:
            reason = self._broken()
            if reason:
                self.fail(reason)
                return
        if self.state == INITIALIZING:
            try:
                self._find_begin()
            except SpoolError as error:
                # It begins by the time of each message, so it has to read the time of each.
                tell(self._log.endpoint, error)
                self.fail(reasons.REPLAY_MESSAGE)
                return
        elif self.state == ACTIVE:
            self._bring()
        if self.state == PENDING_COMPLETE:
            self._look_for_end()

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Perhaps there is room now."""
        self._endpoint.wake()

    def _broken(self) -> str:
        """Why the log can serve no longer, "" while it can."""
        log = self._log
        if not log.endpoint.terms.egress_enabled:
            return reasons.REPLAY_DISABLED
        if log.endpoint.deleted or self._changes != self._changes_now():
            return reasons.REPLAY_LOG_MODIFIED
        if log.trimmed > self._cursor and self._cursor < self._end:
            return reasons.REPLAY_MESSAGE
        return ""

    def _changes_now(self) -> int:
        counters = self._log.endpoint.counters
        return counters.deleted + counters.moved

    def _find_begin(self) -> None:
        """Halve the part of the log in which the first message of the time is; a few times each round.

        Those up to `_cursor` are older than it, those from `_high` on are not.
        """
        ids = self._log.endpoint.waiting[0]
        if self._cursor == self._log.trimmed > 0:
            oldest = ids.after(self._cursor, 1)
            if not oldest or self._time(oldest[0]) > self._from_ns:
                self.fail(reasons.REPLAY_TIME)
                return
        for _ in range(STEPS):
            if self._high - self._cursor <= 1:
                self._go(ACTIVE)
                break
            middle = (self._cursor + self._high) // 2
            found = ids.after(middle - 1, 1)
            if not found or found[0] >= self._high or self._time(found[0]) >= self._from_ns:
                self._high = middle
            else:
                self._cursor = found[0]
        self._endpoint.spool.later.append(self._endpoint)

    def _time(self, message_id: int) -> int:
        return self._endpoint.spool.message(message_id).ingress_ns

    def _bring(self) -> None:
        endpoint = self._endpoint
        spool = endpoint.spool
        ids = self._log.endpoint.waiting[0].after(self._cursor, PORTION)
        for message_id in ids:
            if message_id > self._end:
                break
            try:
                message = spool.message(message_id)
            except SpoolError as error:
                tell(self._log.endpoint, error)
                self._cursor = message_id
                continue
            if self._wanted(message) and not self._bring_one(message_id, message):
                plane = endpoint.vpn.plane
                plane.timers.arm(plane.now_ns + RETRY_NS, self, 0)
                return
            self._cursor = message_id
        if not ids or self._cursor >= self._end or ids[-1] > self._end:
            self._go(PENDING_COMPLETE)
        else:
            spool.later.append(endpoint)

    def _bring_one(self, message_id: int, message: Message) -> bool:
        """Add a copy; False when there is no room for it now."""
        endpoint = self._endpoint
        spool = endpoint.spool
        size = size_of(message)
        reason = spool.down or spool.obstacle(endpoint.vpn, size)
        reason = reason or endpoint.obstacle(message, size)
        if reason and reason != reasons.TOO_LARGE:
            return False
        copy = message.copy()
        copy.ingress_ns = 0
        begin = spool.ledger.next_id
        # What is too large by now is counted there, and left out.
        if not spool.place(endpoint, copy):
            if self._ends and self._ends[-1] == begin - 1:
                self._ends[-1] = begin
            else:
                self._begins.append(begin)
                self._ends.append(begin)
            self.brought_count += 1
        if take_out(endpoint, message_id):
            endpoint.forget(message_id, size, MOVED)
        return True

    def _wanted(self, message: Message) -> bool:
        """True when a subscription of the queue matches the message, and the message has not expired."""
        endpoint = self._endpoint
        vpn = endpoint.vpn
        now_ns = vpn.plane.now_ns
        if (
            endpoint.terms.respect_ttl_enabled
            and message.expires_ns
            and message.expires_ns <= now_ns
        ):
            return False
        try:
            route = vpn.route(message.topic)
        except TopicError:
            # The limits of the message VPN are others by now.
            return False
        for target in route.endpoints:
            if target.subscriber is endpoint:
                return not target.selective or bool(target.wanting(message))
        return False

    def _look_for_end(self) -> None:
        endpoint = self._endpoint
        last = self._ends[-1] if self._ends else 0
        if last >= endpoint.spool.first_in_flight():
            return
        ahead = endpoint.ahead
        if ahead is not None and not ahead.count:
            endpoint.ahead = None
            self._selectors_start_over()
            endpoint.wake()
        if endpoint.ahead is not None:
            return
        for flow in endpoint.flows:
            for message_id in flow.unacked:
                if self.brought(message_id):
                    return
        endpoint.counters.replay_success_count += 1
        self._finish(COMPLETE)

    def _go(self, state: str) -> None:
        self.state = state
        self._endpoint.counters.replay_state = state

    def _finish(self, state: str) -> None:
        endpoint = self._endpoint
        self._go(state)
        self._log.replays -= 1
        endpoint.replay = None
        if endpoint.ahead is not None:
            if endpoint.ahead.count:
                endpoint.unsorted.append(endpoint.ahead)
            endpoint.ahead = None
            self._selectors_start_over()
        endpoint.wake()

    def _selectors_start_over(self) -> None:
        for flow in self._endpoint.flows:
            if flow.selector is not None:
                flow.start_over()
