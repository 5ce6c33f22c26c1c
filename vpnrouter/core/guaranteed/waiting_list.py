"""Holds the ids that wait in an endpoint: by priority, or for a time."""

from __future__ import annotations

import heapq
from array import array
from typing import Final, final

from vpnrouter.spool.ledger import IdQueue
from vpnrouter.units import SECOND_NS

FEW: Final = 64
"""Entries of a heap that are not worth a sweep."""


@final
class WaitingList:
    """Ids ready for delivery: highest priority (9) first, by arrival within one."""

    __slots__ = ("_levels", "count")

    def __init__(self) -> None:
        # Priorities cost a queue each once they are used; without them there is one.
        self._levels: list[IdQueue] = []
        self.count = 0

    def add(self, message_id: int, priority: int) -> None:
        """Put an id where its age belongs."""
        levels = self._levels
        while len(levels) <= priority:
            levels.append(IdQueue())
        level = levels[priority]
        before = len(level)
        level.add(message_id)
        self.count += len(level) - before

    def extend(self, ids: array[int], priority: int) -> None:
        """Put rising ids; it is cheap where all are newer than those there."""
        if not ids:
            return
        levels = self._levels
        while len(levels) <= priority:
            levels.append(IdQueue())
        level = levels[priority]
        if not len(level) or ids[0] > level.last():
            level.extend(ids)
            self.count += len(ids)
            return
        for message_id in ids:
            self.add(message_id, priority)

    def first(self) -> int:
        """The id that is due, 0 when there is none."""
        if self.count:
            index = len(self._levels) - 1
            while index >= 0:
                level = self._levels[index]
                if len(level):
                    return level.first()
                index -= 1
        return 0

    def last(self) -> int:
        """The newest id of all priorities, 0 when there is none."""
        newest = 0
        for level in self._levels:
            if len(level):
                newest = max(newest, level.last())
        return newest

    def pop(self) -> int:
        """Take the id that is due. IndexError when there is none."""
        index = len(self._levels) - 1
        while index >= 0:
            level = self._levels[index]
            if len(level):
                self.count -= 1
                return level.popleft()
            index -= 1
        raise IndexError("nothing waits")

    def recount(self) -> None:
        """Count again after a change that raised half-way."""
        count = 0
        for level in self._levels:
            count += len(level)
        self.count = count

    def remove(self, message_id: int) -> bool:
        """Take one id out of the middle; False when it is not here."""
        for level in self._levels:
            if level.remove(message_id):
                self.count -= 1
                return True
        return False

    def has(self, message_id: int) -> bool:
        """True when this id waits here."""
        return any(message_id in level for level in self._levels)

    def after(self, message_id: int, most: int) -> list[int]:
        """At most `most` ids beyond this one, rising, of all priorities."""
        if len(self._levels) == 1:
            return list(self._levels[0].after(message_id, most))
        found: list[int] = []
        for level in self._levels:
            found.extend(level.after(message_id, most))
        found.sort()
        return found[:most]

    def of_priority(self, priority: int, message_id: int, most: int) -> array[int]:
        """At most `most` ids of one priority beyond this id, rising."""
        if priority < len(self._levels):
            return self._levels[priority].after(message_id, most)
        return array("Q")

    def oldest(self) -> list[int]:
        """The oldest id of each priority."""
        return [level.first() for level in self._levels if len(level)]


@final
class DelayedIds:
    """Ids that wait for a time of their own, in nanoseconds: those that were delivered before."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._due)

    def add(self, message_id: int, due_ns: int) -> None:
        """Remember an id until `due_ns` (monotonic)."""
        self._due[message_id] = due_ns
        heapq.heappush(self._heap, (due_ns, message_id))

    def remove(self, message_id: int) -> bool:
        """Take one id out; False when it is not here."""
        if self._due.pop(message_id, -1) < 0:
            return False
        if len(self._heap) > FEW + 2 * len(self._due):
            self._heap = [(due_ns, number) for number, due_ns in self._due.items()]
            heapq.heapify(self._heap)
        return True

    def has(self, message_id: int) -> bool:
        """True when this id waits here."""
        return message_id in self._due

    def ids(self) -> list[int]:
        """The ids of all that wait, rising."""
        return sorted(self._due)

    def clear(self) -> None:
        """Take all out."""
        self._due = {}
        self._heap = []

    def next_ns(self) -> int:
        """When the first is due or was before it was taken out, -1 when none waits."""
        return self._heap[0][0] if self._due else -1

    def due(self, now_ns: int, most: int) -> list[int]:
        """Take out at most `most` ids whose time has come."""
        found: list[int] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ns and len(found) < most:
            due_ns, message_id = heapq.heappop(heap)
            if self._due.get(message_id, -1) == due_ns:
                del self._due[message_id]
                found.append(message_id)
        return found


@final
class ExpiryBuckets:
    """Ids by the second in which they expire: eight bytes an id, however many there are.

    Nobody takes ids out that are settled before: `count` counts them until a sweep.
    """

    __slots__ = ("_buckets", "_order", "count")

    def __init__(self) -> None:
        self._buckets: dict[int, array[int]] = {}
        self._order: list[int] = []
        self.count = 0

    def add(self, message_id: int, due_ns: int) -> None:
        """Remember an id until `due_ns` (monotonic), rounded up to a second."""
        second = -(-due_ns // SECOND_NS)
        bucket = self._buckets.get(second)
        if bucket is None:
            bucket = array("Q")
            self._buckets[second] = bucket
            heapq.heappush(self._order, second)
        bucket.append(message_id)
        self.count += 1

    def next_ns(self) -> int:
        """When the first are due, -1 when none waits."""
        return self._order[0] * SECOND_NS if self._order else -1

    def due(self, now_ns: int, most: int) -> list[int]:
        """Take out at most `most` ids whose time has come."""
        found: list[int] = []
        while self._order and self._order[0] * SECOND_NS <= now_ns and len(found) < most:
            bucket = self._buckets[self._order[0]]
            room = most - len(found)
            if len(bucket) <= room:
                found.extend(bucket)
                del self._buckets[heapq.heappop(self._order)]
            else:
                found.extend(bucket[-room:])
                del bucket[-room:]
        self.count -= len(found)
        return found

    def take_all(self) -> dict[int, array[int]]:
        """Take everything out: ids by the second."""
        buckets = self._buckets
        self._buckets = {}
        self._order = []
        self.count = 0
        return buckets
