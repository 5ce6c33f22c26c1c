"""The replay log of a message VPN: every guaranteed message that was not refused, the oldest trimmed.

It is an endpoint without consumers. Sizes are kept beside its ids, so that trimming reads nothing back but
what was there before a restart; its deliverable mark in the store says up to which id it was trimmed.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, cast, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.unreadable import size_in_store
from vpnrouter.core.guaranteed.waiting import Waiting
from vpnrouter.spool import keys
from vpnrouter.topics.trie import SubscriptionTrie

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.topics.grammar import Filter

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
        self._known: dict[bytes, bool] = {}
        self._trie: SubscriptionTrie | None = None
        self._ids: array[int] = array("Q")
        self._sizes: array[int] = array("I")
        self._head = 0
        self.take_filters(filters or [])

    def take_filters(self, filters: list[Filter]) -> None:
        """Log what matches one of `filters` and no exception among them, from now on; all without any."""
        self._known = {}
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
        terms = endpoint.terms
        if not terms.ingress_enabled or endpoint.deleted or not terms.max_msg_spool_usage:
            return False
        if self._trie is not None and not self._wants(message.topic):
            return False
        if size > terms.max_msg_spool_usage:
            endpoint.counters.refused.add(TOO_LARGE)
            return False
        if endpoint.spooled_bytes + size > terms.max_msg_spool_usage:
            self.trim(size)
        return True

    def _wants(self, topic: bytes) -> bool:
        known = self._known.get(topic)
        if known is None:
            if len(self._known) >= limits.PERMITTED_TOPICS:
                self._known.clear()
            known = self._matches(topic.decode())
            self._known[topic] = known
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

    def arrived(self, message_id: int, size: int) -> None:
        """The log has one message more."""
        self._ids.append(message_id)
        self._sizes.append(size)

    def _size(self, message_id: int) -> int:
        """The size of a message that leaves; ids are asked for in rising order."""
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
        return size if size >= 0 else size_in_store(self.endpoint, message_id)

    def trim(self, room: int) -> None:
        """Let the oldest go until there is room for so many bytes, and for some more."""
        endpoint = self.endpoint
        quota = endpoint.terms.max_msg_spool_usage
        goal = max(0, quota - max(room, quota // PART))
        waiting = endpoint.waiting[0]
        trimmed = Waiting()
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
