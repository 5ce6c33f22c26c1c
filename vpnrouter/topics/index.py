"""Finds the topics that a filter matches: the trie turned round, with topics by level.

The route cache uses it to find the routes that a new subscription changes, retained messages to find those for a new
subscriber.
"""

from __future__ import annotations

from typing import Final, final

from vpnrouter.limits import ROUTE_CACHE_INDEX_LEVELS
from vpnrouter.topics.grammar import ALL, LITERAL, PREFIX, REST, Filter, hidden, match_levels

EVERYTHING: Final = 1 << 62
"""More steps than a walk over any index takes."""


@final
class _IndexNode:
    """Topics that share their first levels: the one that ends here, and the others by level.

    A topic that shares no more levels with others is kept as its key, not as a node.
    """

    __slots__ = ("children", "key")

    def __init__(self) -> None:
        self.key: bytes | None = None
        self.children: dict[str, bytes | _IndexNode] = {}


def _pieces(topic: str) -> list[str]:
    """The levels by which a topic is indexed; the last piece may hold all further levels."""
    return topic.split("/", ROUTE_CACHE_INDEX_LEVELS)


@final
class TopicIndex:
    """Topics, by their bytes, that a filter can be matched against: `size` topics in `nodes` nodes."""

    __slots__ = ("nodes", "root", "size")

    def __init__(self) -> None:
        self.root = _IndexNode()
        self.size = 0
        self.nodes = 1

    def add(self, key: bytes, topic: str) -> None:
        """Add a key that is not there."""
        self.size += 1
        pieces = _pieces(topic)
        branch = self.root
        index = 0
        while index < len(pieces):
            child = branch.children.get(pieces[index])
            if child is None:
                branch.children[pieces[index]] = key
                return
            if isinstance(child, bytes):
                split = _IndexNode()
                self.nodes += 1
                other = _pieces(child.decode("utf-8"))
                if len(other) == index + 1:
                    split.key = child
                else:
                    split.children[other[index + 1]] = child
                branch.children[pieces[index]] = split
                branch = split
            else:
                branch = child
            index += 1
        branch.key = key

    def discard(self, key: bytes, topic: str) -> bool:
        """Remove a key; False when it is not there."""
        path: list[_IndexNode] = []
        pieces = _pieces(topic)
        branch = self.root
        index = 0
        while True:
            if index == len(pieces):
                if branch.key is None:
                    return False
                branch.key = None
                break
            child = branch.children.get(pieces[index])
            if child is None:
                return False
            if isinstance(child, bytes):
                if child != key:
                    return False
                del branch.children[pieces[index]]
                break
            path.append(branch)
            branch = child
            index += 1
        while path and branch.key is None and not branch.children:
            branch = path.pop()
            index -= 1
            del branch.children[pieces[index]]
            self.nodes -= 1
        self.size -= 1
        return True

    def find(self, filter_: Filter) -> list[bytes]:
        """The keys that `filter_` matches, in no order."""
        walk = IndexWalk(self, filter_)
        found: list[bytes] = []
        while not walk.done:
            found.extend(walk.go_on(EVERYTHING))
        return found


@final
class _WalkPosition:
    """The position of a walk in one node: the names of its children at the start, and the next one.

    `level` is the filter's level for these names, -1 where the filter matches everything below. `sure` says that keys
    below match without a look at the whole topic.
    """

    __slots__ = ("branch", "level", "names", "next", "sure")

    def __init__(self, branch: _IndexNode, level: int, sure: bool) -> None:
        self.branch = branch
        self.level = level
        self.sure = sure
        self.names = list(branch.children)
        self.next = 0


@final
class IndexWalk:
    """A walk over the keys of an index that a filter matches, some at a time; the index may change meanwhile.

    A key that stays in the index comes once. `steps` counts the children that were looked at, `done` says that the
    walk is over.
    """

    __slots__ = ("_ending", "_filter", "_first", "_places", "done", "steps")

    def __init__(self, index: TopicIndex, filter_: Filter) -> None:
        self._filter = filter_
        self._places: list[_WalkPosition] = []
        self._first: list[bytes] = []
        self.steps = 0
        # Most leaves fail by their end; that test needs no decoding.
        literal = filter_.kinds[-1] == LITERAL
        self._ending = filter_.levels[-1].encode("utf-8") if literal else b""
        self._enter(index.root, 0, self._first)
        self.done = not self._places and not self._first

    def go_on(self, most: int) -> list[bytes]:
        """Look at up to `most` more children. Returns the keys that were found."""
        found = self._first
        self._first = []
        places = self._places
        left = most
        while places and left > 0:
            place = places[-1]
            names = place.names
            if place.next == len(names):
                places.pop()
                continue
            left -= 1
            name = names[place.next]
            place.next += 1
            child = place.branch.children.get(name)
            if child is None:
                continue
            level = place.level
            if level < 0:
                if not isinstance(child, bytes):
                    self._collect(child, place.sure, found)
                elif place.sure or _matches(self._filter, child):
                    found.append(child)
                continue
            kind = self._filter.kinds[level]
            if level == 0 and hidden(name):
                continue
            if kind in (REST, ALL):
                if isinstance(child, bytes):
                    found.append(child)
                else:
                    self._collect(child, True, found)
            elif kind == PREFIX and not name.startswith(self._filter.levels[level]):
                continue
            elif not isinstance(child, bytes):
                self._enter(child, level + 1, found)
            elif child.endswith(self._ending) and _matches(self._filter, child):
                found.append(child)
        self.steps += most - left
        self.done = not places
        return found

    def _enter(self, branch: _IndexNode, level: int, found: list[bytes]) -> None:
        """Look at what is below `branch`, the filter's levels before `level` having matched."""
        kinds = self._filter.kinds
        while True:
            if level >= ROUTE_CACHE_INDEX_LEVELS:
                self._collect(branch, False, found)
                return
            if level == len(kinds):
                if branch.key is not None:
                    found.append(branch.key)
                return
            if kinds[level] != LITERAL:
                if kinds[level] == ALL and branch.key is not None:
                    found.append(branch.key)
                self._places.append(_WalkPosition(branch, level, True))
                return
            self.steps += 1
            child = branch.children.get(self._filter.levels[level])
            if child is None:
                return
            if isinstance(child, bytes):
                if child.endswith(self._ending) and _matches(self._filter, child):
                    found.append(child)
                return
            branch = child
            level += 1

    def _collect(self, branch: _IndexNode, sure: bool, found: list[bytes]) -> None:
        """Take the key of `branch`, and later all below it; unless `sure`, those that the filter matches."""
        if branch.key is not None and (sure or _matches(self._filter, branch.key)):
            found.append(branch.key)
        self._places.append(_WalkPosition(branch, -1, sure))


def _matches(filter_: Filter, key: bytes) -> bool:
    return match_levels(filter_.levels, filter_.kinds, key.decode("utf-8").split("/"))
