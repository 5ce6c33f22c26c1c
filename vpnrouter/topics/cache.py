"""Caches the routes of published topics, exact while subscriptions come and go.

The message path looks a topic up in `RouteCache.entries` and nothing else. For a new or removed subscription,
`invalidate` drops the keys it matches, so the cache always agrees with the trie.

A filter that would have to be compared with very many keys drops all of them instead, which takes no time; their
memory is freed bit by bit, when new routes are cached. Keys are kept in up to four generations by age, each with an
index by level, so that a wildcard filter visits only possible matches and the oldest quarter leaves as a whole.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, Generic, TypeVar, final

from vpnrouter.limits import (
    REMEMBERED_TOPIC_BYTES,
    ROUTE_CACHE_BYTES,
    ROUTE_CACHE_ENTRIES,
    ROUTE_CACHE_INVALIDATION_STEPS,
    ROUTE_CACHE_TOPIC_BYTES,
)
from vpnrouter.topics.grammar import Filter
from vpnrouter.topics.index import IndexWalk, TopicIndex

_GENERATIONS: Final = 4

_FREED: Final = 8
"""Dropped routes that are freed for each new one."""

_ANSWER_BYTES: Final = 70
"""Memory of one remembered topic beside its bytes."""


@final
class RouteCache:
    """At most `capacity` routes by topic, and `most_bytes` bytes of them; beyond, the oldest quarter goes in one go.

    `entries` is public for the message path: it is always the same dict, and only this class
    changes it. `evicted` and `invalidated` count keys since the beginning, `steps` counts comparisons with filters.
    """

    __slots__ = (
        "_generations",
        "_old_indexes",
        "_old_values",
        "_quarter",
        "_quarter_bytes",
        "_room",
        "_sizes",
        "capacity",
        "entries",
        "evicted",
        "invalidated",
        "steps",
    )

    def __init__(
        self, capacity: int = ROUTE_CACHE_ENTRIES, most_bytes: int = ROUTE_CACHE_BYTES
    ) -> None:
        self.capacity = max(1, capacity)
        self.entries: dict[bytes, object] = {}
        self.evicted = 0
        self.invalidated = 0
        self.steps = 0
        self._old_values: list[object] = []
        self._old_indexes: list[TopicIndex] = []
        self._room = min(_GENERATIONS, self.capacity)
        self._quarter = self.capacity // self._room
        self._quarter_bytes = most_bytes // self._room
        self._generations = [TopicIndex()]
        # Bytes that were added to each generation: what is invalidated counts until its generation goes.
        self._sizes = [0]

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, topic: bytes) -> object | None:
        """The cached value for a topic's bytes, None when there is none."""
        return self.entries.get(topic)

    def put(self, topic: bytes, text: str, value: object, size: int = 0) -> None:
        """Cache `value` of `size` bytes for a topic; `text` is what `parse_topic` made of `topic`.

        A topic longer than ROUTE_CACHE_TOPIC_BYTES is not cached.
        """
        if self._old_values or self._old_indexes:
            self._give_back()
        if len(topic) > ROUTE_CACHE_TOPIC_BYTES:
            return
        if topic in self.entries:
            self.entries[topic] = value
            return
        generation = self._generations[-1]
        if generation.size >= self._quarter or self._sizes[-1] >= self._quarter_bytes:
            if len(self._generations) == self._room:
                self._drop_oldest()
            generation = TopicIndex()
            self._generations.append(generation)
            self._sizes.append(0)
        self._sizes[-1] += size
        generation.add(topic, text)
        self.entries[topic] = value

    def invalidate(self, filter_: Filter) -> int:
        """Drop the keys that `filter_` matches; returns how many.

        Where that takes more than ROUTE_CACHE_INVALIDATION_STEPS, all keys are dropped.
        """
        if filter_.literal:
            return self.drop(filter_.text)
        dropped = 0
        if self.entries:
            left = ROUTE_CACHE_INVALIDATION_STEPS
            for generation in self._generations:
                walk = IndexWalk(generation, filter_)
                keys = walk.go_on(left)
                left -= walk.steps + len(keys)
                self.steps += walk.steps + len(keys)
                if not walk.done or left <= 0:
                    dropped = len(self.entries)
                    self.clear()
                    break
                for key in keys:
                    del self.entries[key]
                    generation.discard(key, key.decode("utf-8"))
                dropped += len(keys)
        self.invalidated += dropped
        return dropped

    def drop(self, text: str) -> int:
        """Drop one topic; returns how many were there: 0 or 1."""
        key = text.encode("utf-8")
        if key not in self.entries:
            return 0
        del self.entries[key]
        self._unindex(key, text)
        self.invalidated += 1
        return 1

    def clear(self) -> None:
        """Drop everything."""
        # To free tens of thousands of routes at once takes longer than a turn.
        self._old_values.extend(self.entries.values())
        self._old_indexes.extend(self._generations)
        self.entries.clear()
        self._generations = [TopicIndex()]
        self._sizes = [0]

    def _give_back(self) -> None:
        """Free some dropped routes, more than are cached meanwhile."""
        old = self._old_values
        if old:
            del old[-_FREED:]
        else:
            self._old_indexes.pop()

    def _unindex(self, key: bytes, text: str) -> None:
        for generation in reversed(self._generations):
            if generation.discard(key, text):
                return

    def _drop_oldest(self) -> None:
        # A dict keeps the order of insertion, so the oldest generation's keys are the first ones.
        oldest = self._generations.pop(0)
        del self._sizes[0]
        self._old_indexes.append(oldest)
        keys = list(islice(self.entries, oldest.size))
        for key in keys:
            self._old_values.append(self.entries.pop(key))
        self.evicted += len(keys)


_T = TypeVar("_T")


@final
class RememberedTopics(Generic[_T]):
    """Answers by topic, of one holder: at most `most` bytes of them, and none for a long topic.

    `answers` is public for the message path, which looks topics up and does nothing else.
    """

    __slots__ = ("_most", "_size", "answers")

    def __init__(self, most: int = REMEMBERED_TOPIC_BYTES) -> None:
        self._most = most
        self.answers: dict[bytes, _T] = {}
        self._size = 0

    def keep(self, topic: bytes, answer: _T, size: int = 0) -> None:
        """Remember `answer`, which takes `size` bytes of its own, for a topic that has none.

        A topic longer than ROUTE_CACHE_TOPIC_BYTES is not remembered. Where there is no room, all others are forgotten.
        """
        if len(topic) > ROUTE_CACHE_TOPIC_BYTES or size > ROUTE_CACHE_TOPIC_BYTES:
            return
        size += len(topic) + _ANSWER_BYTES
        if self._size + size > self._most:
            self.clear()
        self._size += size
        self.answers[topic] = answer

    def clear(self) -> None:
        """Forget all."""
        self.answers.clear()
        self._size = 0
