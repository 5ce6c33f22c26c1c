"""The replay log of a message VPN, and replays: its messages are added to an exclusive durable queue once more.

The log has every guaranteed message that was not refused, the oldest trimmed. It is an endpoint without consumers.
Sizes are kept beside its ids, so that trimming reads nothing back but what was there before a restart; its deliverable
mark in the store says up to which id it was trimmed.

What a replay brings is delivered ahead of everything that waits in the queue or comes meanwhile; that follows when
all is delivered. Messages that still wait in the queue and are in the replayed part of the log leave it, in
the unit in which their copy comes. A replay does not survive a restart: what it brought till then is there.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter import limits
from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.counters import MOVED
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.core.guaranteed.waiting_list import WaitingList
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import Refused, SpoolError, TopicError
from vpnrouter.spool import keys
from vpnrouter.text import printable
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.topics.trie import SubscriptionTrie

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.topics.grammar import Filter


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


@final
class Replay(TimerTarget):
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
        endpoint.ahead = WaitingList()
        self._selectors_start_over()
        endpoint.wake()

    def brought(self, message_id: int) -> bool:
        """Return whether the message came by this replay."""
        run = bisect_right(self._begins, message_id) - 1
        return run >= 0 and message_id <= self._ends[run]

    def cancel(self) -> None:
        """End the replay at the request of management."""
        self.fail(refusals.REPLAY_CANCELLED)

    def fail(self, reason: str) -> None:
        """End the replay; messages that it brought stay in the queue."""
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
                self._log.endpoint.report_unreadable(0, error)
                self.fail(refusals.REPLAY_MESSAGE)
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
        if not log.endpoint.settings.egress_enabled:
            return refusals.REPLAY_DISABLED
        if log.endpoint.deleted or self._changes != self._changes_now():
            return refusals.REPLAY_LOG_MODIFIED
        if log.trimmed > self._cursor and self._cursor < self._end:
            return refusals.REPLAY_MESSAGE
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
                self.fail(refusals.REPLAY_TIME)
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
        context = endpoint.vpn.context
        ids = self._log.endpoint.waiting[0].after(self._cursor, PORTION)
        for message_id in ids:
            if message_id > self._end:
                break
            try:
                message = spool.message(message_id)
            except SpoolError as error:
                self._log.endpoint.report_unreadable(message_id, error)
                self._cursor = message_id
                continue
            wanted = self._wanted(message)
            context.work += MEASURE.work()
            if wanted and not self._bring_one(message_id, message):
                context.timers.arm(context.now_ns + RETRY_NS, self, 0)
                return
            self._cursor = message_id
            if context.work > limits.TURN_WORK:
                spool.later.append(endpoint)
                return
        if not ids or self._cursor >= self._end or ids[-1] > self._end:
            self._go(PENDING_COMPLETE)
        else:
            spool.later.append(endpoint)

    def _bring_one(self, message_id: int, message: Message) -> bool:
        """Add a copy; False when there is no room for it now."""
        endpoint = self._endpoint
        spool = endpoint.spool
        size = message.size
        reason = spool.down or spool.obstacle(endpoint.vpn, size)
        reason = reason or endpoint.obstacle(message, size)
        if reason and reason != refusals.TOO_LARGE:
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
        if endpoint.take_out(message_id):
            endpoint.forget(message_id, size, MOVED)
        return True

    def _wanted(self, message: Message) -> bool:
        """True when a subscription of the queue matches the message, and the message has not expired."""
        endpoint = self._endpoint
        vpn = endpoint.vpn
        now_ns = vpn.context.now_ns
        if (
            endpoint.settings.respect_ttl_enabled
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
        for flow in endpoint.holders():
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
                endpoint.order.unsorted.append(endpoint.ahead)
            endpoint.ahead = None
            self._selectors_start_over()
        endpoint.wake()

    def _selectors_start_over(self) -> None:
        for flow in self._endpoint.flows:
            if flow.selector is not None:
                flow.start_over()


BEGINNING: Final = "beginning"
ID_PREFIX: Final = "id:"

MOST_ID: Final = (1 << 64) - 1

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_moment(text: str) -> int:
    """The nanoseconds since 1970 of an RFC 3339 date and time, or of a date: its midnight, UTC. At least 1.

    Raises ValueError for anything else.
    """
    upper = text.upper()
    if _MOMENT.fullmatch(upper) is None:
        raise ValueError(
            f"{printable(text, limits.REPEATED_CHARACTERS)} is no date and time of the form 2026-01-31T12:00:00Z"
        )
    moment = datetime.fromisoformat(upper)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(1, (moment - _EPOCH) // timedelta(microseconds=1) * 1_000)


def parse_start(text: str) -> tuple[int, int]:
    """Nanoseconds since 1970, and a message id, each 0 for none: `beginning`, a date, or `id:N` for behind N.

    Raises ValueError for anything else.
    """
    if text == BEGINNING:
        return 0, 0
    if text.startswith(ID_PREFIX):
        digits = text[len(ID_PREFIX) :]
        if digits.isascii() and digits.isdecimal() and len(digits) <= 20:
            number = int(digits)
            if 0 < number <= MOST_ID:
                return 0, number
        raise ValueError(f"{printable(digits, limits.REPEATED_CHARACTERS)} is no message id")
    return parse_moment(text), 0


TRIMMED: Final = "replay-log-over-quota"
"""Why a message leaves the log."""

TOO_LARGE: Final = "max-msg-spool-usage-exceeded"

PART: Final = 64
"""The log is trimmed by about this part of it, so that trimming is rare and cheap."""

FEW: Final = 4_096
"""Sizes of messages gone that are not worth a copy of the rest."""


@final
class ReplayLog:
    """The log that `endpoint` (of kind REPLAY_LOG) keeps; `replays` counts those that run.

    `filters` are the topics that it takes, exceptions among them; none means all.
    """

    __slots__ = ("_head", "_ids", "_known", "_sizes", "_trie", "endpoint", "replays")

    def __init__(self, endpoint: Endpoint, filters: list[Filter] | None = None) -> None:
        self.endpoint = endpoint
        self.replays = 0
        self._known: RememberedTopics[bool] = RememberedTopics()
        self._trie: SubscriptionTrie | None = None
        self._ids: array[int] = array("Q")
        self._sizes: array[int] = array("I")
        self._head = 0
        self.take_filters(filters or [])

    def take_filters(self, filters: list[Filter]) -> None:
        """Log from now on what matches one of `filters` and no exception among them; everything without filters."""
        self._known.clear()
        self._trie = None
        if filters:
            trie = SubscriptionTrie()
            for filter_ in filters:
                trie.insert(filter_, filter_)
            self._trie = trie

    @property
    def trimmed(self) -> int:
        """Up to which id messages have left the log, 0 when none has."""
        return self.endpoint.marked

    def takes(self, message: Message, size: int) -> bool:
        """True when the message is to be logged. Makes room for it; counts a message that can never have room."""
        endpoint = self.endpoint
        settings = endpoint.settings
        if not settings.ingress_enabled or endpoint.deleted or not settings.max_msg_spool_usage:
            return False
        if self._trie is not None and not self._wants(message.topic):
            return False
        if size > settings.max_msg_spool_usage:
            endpoint.counters.refused.add(TOO_LARGE)
            return False
        if endpoint.spooled_bytes + size > settings.max_msg_spool_usage:
            self.trim(size)
        return True

    def _wants(self, topic: bytes) -> bool:
        known = self._known.answers.get(topic)
        if known is None:
            known = self._matches(topic.decode())
            self._known.keep(topic, known)
        return known

    def _matches(self, topic: str) -> bool:
        if self._trie is None:
            return True
        wanted = False
        for found in self._trie.match(topic):
            if cast("Filter", found).exception:
                return False
            wanted = True
        return wanted

    def replay_to(self, endpoint: Endpoint, from_ns: int = 0, after_id: int = 0) -> Replay:
        """Replay to `endpoint`, from the beginning of the log, from a wall clock time or behind a message id.

        A replay that runs already is ended. Raises Refused with the field's reason.
        """
        if self.endpoint.deleted or not self.endpoint.settings.egress_enabled:
            raise Refused(refusals.REPLAY_DISABLED)
        if not endpoint.durable or endpoint.kind != QUEUE:
            raise Refused(refusals.REPLAY_TEMPORARY)
        if not endpoint.settings.exclusive:
            raise Refused(refusals.REPLAY_NON_EXCLUSIVE)
        if from_ns > endpoint.vpn.context.wall_ns:
            raise Refused(refusals.REPLAY_TIME)
        if after_id and after_id != self.trimmed and not self.endpoint.waits(after_id):
            raise Refused(refusals.REPLAY_MESSAGE)
        if endpoint.replay is None and self.replays >= limits.REPLAYS:
            raise Refused(refusals.REPLAY_RESOURCES)
        if endpoint.replay is not None:
            endpoint.replay.fail(refusals.REPLAY_STARTED)
        return Replay(self, endpoint, from_ns, after_id)

    def arrived(self, message_id: int, size: int) -> None:
        """Note one more message in the log."""
        self._ids.append(message_id)
        self._sizes.append(size)

    def _size(self, message_id: int) -> int:
        """Return the size of a message that leaves; ids are passed in rising order."""
        ids = self._ids
        head = self._head
        count = len(ids)
        while head < count and ids[head] < message_id:
            head += 1
        size = -1
        if head < count and ids[head] == message_id:
            size = self._sizes[head]
            head += 1
        if head > FEW and head * 2 > count:
            del ids[:head]
            del self._sizes[:head]
            head = 0
        self._head = head
        return size if size >= 0 else self.endpoint.size_in_store(message_id)

    def trim(self, room: int) -> None:
        """Delete the oldest messages until there is room for so many bytes, and for some more."""
        endpoint = self.endpoint
        quota = endpoint.settings.max_msg_spool_usage
        goal = max(0, quota - max(room, quota // PART))
        waiting = endpoint.waiting[0]
        trimmed = WaitingList()
        size = 0
        last = 0
        while waiting.count and endpoint.spooled_bytes - size > goal:
            last = waiting.pop()
            size += self._size(last)
            trimmed.add(last, 0)
        if not last:
            return
        endpoint.marked = last
        endpoint.counters.discarded.add(TRIMMED, trimmed.count)
        endpoint.spooled_count -= trimmed.count
        endpoint.spooled_bytes -= size
        spool = endpoint.spool
        spool.ledger.put(keys.mark(endpoint.number), keys.pack_id(last))
        spool.purge(endpoint, trimmed)
        spool.release(endpoint.vpn, size)
