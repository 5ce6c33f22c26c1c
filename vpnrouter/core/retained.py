"""Keeps the retained messages of one message VPN (MQTT 5, 3.3.1.3), in memory and in the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed.message_record import to_record
from vpnrouter.events import table
from vpnrouter.spool import keys
from vpnrouter.topics.index import IndexWalk, TopicIndex

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter


NODE_COST: Final = 300
"""Bytes of memory that a node of the index takes."""


@final
class RetainedBytes:
    """Bytes of all retained messages of a router that a spool keeps."""

    __slots__ = ("bytes_",)

    def __init__(self) -> None:
        self.bytes_ = 0


@final
class Retained:
    """Topic → message, with an index by level for wildcards.

    `most` bounds the topics, `most_bytes` the `memory` that they take (-1: unbounded); `bytes_` is the sum of their
    sizes. `refused` counts messages that were not retained for want of room. `expired` are topics that are forgotten
    here and not in the spool yet. `account` counts the bytes in the spool, None without a spool.
    """

    __slots__ = (
        "_index",
        "_late",
        "_messages",
        "_watchers",
        "account",
        "bytes_",
        "expired",
        "last",
        "most",
        "most_bytes",
        "refused",
    )

    def __init__(
        self,
        most: int = limits.RETAINED_MESSAGES,
        most_bytes: int = limits.RETAINED_MEGABYTES * 1_000_000,
        account: RetainedBytes | None = None,
    ) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.account = account
        self.bytes_ = 0
        self._messages: dict[bytes, Message] = {}
        self._index = TopicIndex()
        self.refused = 0
        self.expired: list[bytes] = []
        # Messages kept since `watch`, counted, and the count at which each topic's last one came.
        self.last = 0
        self._late: dict[bytes, int] = {}
        self._watchers = 0

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def memory(self) -> int:
        """Bytes of memory that they take, about."""
        return (
            self.bytes_
            + limits.RETAINED_MESSAGE_COST * len(self._messages)
            + NODE_COST * self._index.nodes
        )

    @property
    def roomy(self) -> bool:
        """Return whether a tenth of what is allowed is free."""
        free = self.most_bytes < 0 or self.memory * 10 <= self.most_bytes * 9
        return free and len(self._messages) * 10 <= self.most * 9

    def has(self, topic: bytes) -> bool:
        """True when a message of this topic is retained."""
        return topic in self._messages

    def size_of(self, topic: bytes) -> int:
        """Bytes that the message of a topic takes, 0 where there is none."""
        message = self._messages.get(topic)
        return 0 if message is None else message.size

    def has_room(self, message: Message) -> bool:
        """True when there is room for `message` in the place of the message that its topic has."""
        more = message.size - self.size_of(message.topic)
        if more == message.size:
            if len(self._messages) >= self.most:
                return False
            more += limits.RETAINED_MESSAGE_COST
        return self.most_bytes < 0 or self.memory + more <= self.most_bytes

    def keep(self, message: Message) -> bool:
        """Remember `message` as its topic's last; an empty payload forgets the topic (MQTT-3.3.1-6).

        False where there is no room. Then nothing is retained on its topic: the older message is not the last one.
        """
        topic = message.topic
        if not message.payload:
            self._forget(topic)
            return True
        if not self.has_room(message):
            self.refuse(topic)
            return False
        before = self.size_of(topic)
        if not before:
            self._index.add(topic, topic.decode())
        self._messages[topic] = message.to_retain()
        self._grow(message.size - before)
        if self._watchers:
            self.last += 1
            self._late[topic] = self.last
        return True

    def refuse(self, topic: bytes) -> None:
        """Count a message that has no room, and forget its topic."""
        self.refused += 1
        self._forget(topic)

    def _grow(self, size: int) -> None:
        self.bytes_ += size
        if self.account is not None:
            self.account.bytes_ += size

    def _forget(self, topic: bytes) -> None:
        message = self._messages.pop(topic, None)
        if message is not None:
            self._index.discard(topic, topic.decode())
            self._grow(-message.size)

    def _expire(self, topic: bytes) -> None:
        self._forget(topic)
        if self.account is not None:
            self.expired.append(topic)

    def keep_nowhere(self) -> None:
        """Take the retained messages out of the account: the spool no longer keeps them."""
        if self.account is not None:
            self.account.bytes_ -= self.bytes_
            self.account = None

    def keep_in(self, account: RetainedBytes) -> None:
        """Count the retained bytes in `account`: the spool keeps them from now on."""
        if self.account is None:
            self.account = account
            account.bytes_ += self.bytes_

    def watch(self) -> None:
        """Remember which messages come from now on, for a subscriber that is sent the older ones over many rounds."""
        self._watchers += 1

    def unwatch(self) -> None:
        """Note that a subscriber that called `watch` has been sent everything."""
        self._watchers -= 1
        if not self._watchers:
            self._late.clear()

    def walk(self, filter_: Filter) -> IndexWalk:
        """A walk over the topics that `filter_` matches, some at a time."""
        return IndexWalk(self._index, filter_)

    def message(self, topic: bytes, since: int, now_ns: int) -> Message | None:
        """Return the retained message of a topic, unless it has expired or came after `last` was `since`."""
        message = self._messages.get(topic)
        if message is None or self._late.get(topic, 0) > since:
            return None
        if message.expires_ns and message.expires_ns <= now_ns:
            self._expire(topic)
            return None
        return message

    def matching(self, filter_: Filter, now_ns: int) -> list[Message]:
        """Retained messages that `filter_` matches; expired ones are forgotten on the way."""
        if filter_.literal:
            topics = [filter_.text.encode()]
        else:
            topics = self._index.find(filter_)
        found: list[Message] = []
        for topic in topics:
            message = self._messages.get(topic)
            if message is None:
                continue
            if message.expires_ns and message.expires_ns <= now_ns:
                self._expire(topic)
                continue
            found.append(message)
        return found


def retain(vpn: MessageVpn, message: Message) -> None:
    """Retain `message` on its topic; the topic is forgotten where the message is empty or has no room.

    In the spool it counts towards the quotas of the message VPN and the router. A message VPN that may not use the
    spool retains in memory alone.
    """
    retained = vpn.retained
    spool = vpn.context.spool
    topic = message.topic
    before = retained.size_of(topic)
    kept = spool is not None and vpn.limits.max_msg_spool_usage > 0
    if spool is not None and kept and message.payload:
        more = message.size - before
        if more > 0 and spool.obstacle(vpn, more):
            retained.refuse(topic)
            _report_full(vpn)
            spool.ledger.delete(keys.retained(vpn.name, topic))
            return
    if not retained.keep(message):
        _report_full(vpn)
    if spool is None:
        return
    if retained.expired:
        forget_expired(vpn)
    key = keys.retained(vpn.name, topic)
    if kept and message.payload and retained.has(topic):
        context = vpn.context
        spool.ledger.put(key, to_record(message, context.now_ns, context.steady_ns))
    elif before:
        spool.ledger.delete(key)


def _report_full(vpn: MessageVpn) -> None:
    """Raise the event of a message that was not retained: the message VPN or the spool is full."""
    retained = vpn.retained
    text = (
        f"no room for more retained messages ({len(retained):,} in {retained.memory:,} bytes);"
        " others are delivered and not retained"
    )
    vpn.report_once(table.RETAINED_EXCEEDED, text)


def forget_expired(vpn: MessageVpn) -> None:
    """Delete expired retained messages from the spool."""
    spool = vpn.context.spool
    expired = vpn.retained.expired
    while expired:
        topic = expired.pop()
        if spool is not None and not vpn.retained.has(topic):
            spool.ledger.delete(keys.retained(vpn.name, topic))
