"""Retained messages of one message VPN (MQTT 5, 3.3.1.3): the last one of each topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.topics.index import TopicIndex

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.topics.grammar import Filter


@final
class Retained:
    """Topic → message, with an index by level so that a wildcard looks only where it can match.

    `most` bounds the topics; `refused` counts messages of new topics beyond it.
    """

    __slots__ = ("_index", "_messages", "most", "refused")

    def __init__(self, most: int = limits.RETAINED_MESSAGES) -> None:
        self.most = most
        self._messages: dict[bytes, Message] = {}
        self._index = TopicIndex()
        self.refused = 0

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

    def _forget(self, topic: bytes) -> None:
        if self._messages.pop(topic, None) is not None:
            self._index.discard(topic, topic.decode())

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
