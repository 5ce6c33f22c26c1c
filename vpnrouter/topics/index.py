"""Topics by level: the trie turned round, for "which of these topics does this filter match?".

The route cache asks it which routes a new subscription changes, retained messages which of them a new
subscriber gets.
"""

from __future__ import annotations

from typing import final

from vpnrouter.limits import ROUTE_CACHE_INDEX_LEVELS
from vpnrouter.topics.grammar import ALL, LITERAL, PREFIX, REST, Filter, hidden, match_levels


@final
class _Branch:
    """Cached topics that share their first levels: the one that ends here, and the others by level.

    A topic that shares no more levels with others stands there as its key, not as a branch.
    """

    __slots__ = ("children", "key")

    def __init__(self) -> None:
        self.key: bytes | None = None
        self.children: dict[str, bytes | _Branch] = {}


def _pieces(topic: str) -> list[str]:
    """The levels by which a topic is indexed; the last piece may hold all further levels."""
    return topic.split("/", ROUTE_CACHE_INDEX_LEVELS)


@final
class TopicIndex:
    """Topics, by their bytes, that a filter can be matched against."""

    __slots__ = ("root", "size")

    def __init__(self) -> None:
        self.root = _Branch()
        self.size = 0

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
                split = _Branch()
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
        path: list[_Branch] = []
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
        self.size -= 1
        return True

    def find(self, filter_: Filter) -> list[bytes]:
        """The keys that `filter_` matches, in no order."""
        found: list[bytes] = []
        levels = filter_.levels
        kinds = filter_.kinds
        guarded = kinds[0] != LITERAL
        branches = [self.root]
        index = 0
        # Most leaves fail by their end; that test needs no decoding.
        ending = levels[-1].encode("utf-8") if kinds[-1] == LITERAL else b""
        while branches and index < ROUTE_CACHE_INDEX_LEVELS:
            if index == len(kinds):
                found.extend([branch.key for branch in branches if branch.key is not None])
                return found
            kind = kinds[index]
            level = levels[index]
            following: list[_Branch] = []
            for branch in branches:
                if kind == LITERAL:
                    child = branch.children.get(level)
                    if child is None:
                        continue
                    if not isinstance(child, bytes):
                        following.append(child)
                    elif child.endswith(ending) and _matches(filter_, child):
                        found.append(child)
                    continue
                if kind == ALL and branch.key is not None:
                    found.append(branch.key)
                for name, child in branch.children.items():
                    if guarded and hidden(name):
                        continue
                    if kind in (REST, ALL):
                        if isinstance(child, bytes):
                            found.append(child)
                        else:
                            _collect(child, found)
                    elif kind == PREFIX and not name.startswith(level):
                        continue
                    elif not isinstance(child, bytes):
                        following.append(child)
                    elif child.endswith(ending) and _matches(filter_, child):
                        found.append(child)
            guarded = False
            branches = following
            index += 1
        for branch in branches:
            below: list[bytes] = []
            _collect(branch, below)
            found.extend([key for key in below if _matches(filter_, key)])
        return found


def _matches(filter_: Filter, key: bytes) -> bool:
    return match_levels(filter_.levels, filter_.kinds, key.decode("utf-8").split("/"))


def _collect(branch: _Branch, found: list[bytes]) -> None:
    """Append all keys at and below `branch`."""
    branches = [branch]
    while branches:
        here = branches.pop()
        if here.key is not None:
            found.append(here.key)
        for child in here.children.values():
            if isinstance(child, bytes):
                found.append(child)
            else:
                branches.append(child)
