"""Retained messages of one message VPN (MQTT 5, 3.3.1.3): the last one of each topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.topics.index import TopicIndex, Walk

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.topics.grammar import Filter


@final
class Retained:
    """Topic → message, with an index by level so that a wildcard looks only where it can match.

    `most` bounds the topics; `refused` counts messages of new topics beyond it.
    """

    __slots__ = ("_index", "_late", "_messages", "_watchers", "last", "most", "refused")

    def __init__(self, most: int = limits.RETAINED_MESSAGES) -> None:
        self.most = most
        self._messages: dict[bytes, Message] = {}
        self._index = TopicIndex()
        self.refused = 0
        # How many were kept while somebody watched, and which of those a topic's last one is.
        self.last = 0
        self._late: dict[bytes, int] = {}
        self._watchers = 0

    def __len__(self) -> int:
        return len(self._messages)

    def has(self, topic: bytes) -> bool:
        """Is a message of this topic retained?"""
        return topic in self._messages

    def keep(self, message: Message) -> None:
        """Remember `message` as its topic's last; an empty payload forgets the topic (MQTT-3.3.1-6)."""
        topic = message.topic
        if not message.payload:
            self._forget(topic)
            return
        if topic not in self._messages:
            if len(self._messages) >= self.most:
                self.refused += 1
                return
            self._index.add(topic, topic.decode())
        self._messages[topic] = message.to_retain()
        if self._watchers:
            self.last += 1
            self._late[topic] = self.last

    def _forget(self, topic: bytes) -> None:
        if self._messages.pop(topic, None) is not None:
            self._index.discard(topic, topic.decode())

    def watch(self) -> None:
        """Somebody is about to be sent what is retained, over many rounds: keep in mind what comes meanwhile."""
        self._watchers += 1

    def unwatch(self) -> None:
        """It has it all."""
        self._watchers -= 1
        if not self._watchers:
            self._late.clear()

    def walk(self, filter_: Filter) -> Walk:
        """The topics that `filter_` matches, some at a time."""
        return Walk(self._index, filter_)

    def message(self, topic: bytes, since: int, now_ns: int) -> Message | None:
        """What is retained on a topic, unless it has expired or came after the message `since` (`last` then)."""
        message = self._messages.get(topic)
        if message is None or self._late.get(topic, 0) > since:
            return None
        if message.expires_ns and message.expires_ns <= now_ns:
            self._forget(topic)
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
                self._forget(topic)
                continue
            found.append(message)
        return found
