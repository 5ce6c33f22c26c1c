"""Subscriptions of one message VPN, found by topic.

Filters without a wildcard stand in one dict from text to entries: a topic finds them by one lookup,
and they cost no nodes. Filters with wildcards stand in a trie (nodes.py), walked level by level
along the topic.

An entry is any hashable object but None and no list; the trie does not look into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.topics.grammar import ALL, LITERAL, REST, Filter, hidden
from vpnrouter.topics.nodes import (
    ALL_CODE,
    REST_CODE,
    Node,
    Pattern,
    Tail,
    added_to,
    branches_of,
    each,
    gather,
    holds,
    pattern_from,
    pattern_text,
    single,
    tail_matches,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@final
class SubscriptionTrie:
    """A multimap from filters to entries that is asked by topic.

    Filters count as equal here when they match the same topics level by level; share name,
    #noexport and exception mark do not matter: the caller puts what it needs into the entry.
    """

    __slots__ = ("_count", "_literals", "_root")

    def __init__(self) -> None:
        self._literals: dict[str, object] = {}
        self._root = Node()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def insert(self, filter_: Filter, entry: object) -> bool:
        """Add `entry` under `filter_`; False when an equal entry is there under an equal filter."""
        if filter_.literal:
            added = added_to(self._literals.get(filter_.text), entry)
            if added is None:
                return False
            self._literals[filter_.text] = added
            self._count += 1
            return True
        kinds = filter_.kinds
        node = self._root
        index = 0
        while True:
            kind = LITERAL if index == len(kinds) else kinds[index]
            if index == len(kinds) or kind in (REST, ALL):
                added = added_to(node.ending(kind), entry)
                if added is None:
                    return False
                node.set_ending(kind, added)
                break
            level = filter_.levels[index]
            branch = node.get(kind, level)
            index += 1
            if branch is None:
                node.put(kind, level, single(pattern_from(filter_, index), entry))
                break
            if isinstance(branch, Node):
                node = branch
                continue
            if isinstance(branch, Tail):
                if branch.pattern == pattern_from(filter_, index):
                    added = added_to(branch.entries, entry)
                    if added is None:
                        return False
                    branch.entries = added
                    break
            elif index == len(kinds):
                added = added_to(branch, entry)
                if added is None:
                    return False
                node.put(kind, level, added)
                break
            split = Node()
            split.adopt(branch)
            node.put(kind, level, split)
            node = split
        self._count += 1
        return True

    def remove(self, filter_: Filter, entry: object) -> bool:
        """Take `entry` away from under `filter_`; False when it is not there. Empty branches go."""
        if filter_.literal:
            entries = self._literals.get(filter_.text)
            if entries is None or not holds(entries, entry):
                return False
            left = without(entries, entry)
            if left is None:
                del self._literals[filter_.text]
            else:
                self._literals[filter_.text] = left
            self._count -= 1
            return True
        kinds = filter_.kinds
        above: list[Node] = []
        node = self._root
        index = 0
        while True:
            kind = LITERAL if index == len(kinds) else kinds[index]
            if index == len(kinds) or kind in (REST, ALL):
                entries = node.ending(kind)
                if entries is None or not holds(entries, entry):
                    return False
                node.set_ending(kind, without(entries, entry))
                break
            level = filter_.levels[index]
            branch = node.get(kind, level)
            if branch is None:
                return False
            if not isinstance(branch, Node):
                if not _leaf_holds(branch, pattern_from(filter_, index + 1), entry):
                    return False
                _drop_from_leaf(node, kind, level, branch, entry)
                break
            above.append(node)
            node = branch
            index += 1
        while above and node.is_empty():
            node = above.pop()
            index -= 1
            node.drop(kinds[index], filter_.levels[index])
        self._count -= 1
        return True

    def match(self, topic: str) -> list[object]:
        """The entries of all filters that match a published topic (text from `parse_topic`).

        An entry under several matching filters is there once for each. No order is promised.
        """
        found: list[object] = []
        entries = self._literals.get(topic)
        if entries is not None:
            gather(found, entries)
        self._walk(topic, found, False)
        return found

    def has_match(self, topic: str) -> bool:
        """Does any filter match `topic`?"""
        if topic in self._literals:
            return True
        return self._walk(topic, [], True)

    def _walk(self, topic: str, found: list[object], first_only: bool) -> bool:
        """Add what the wildcard filters find; with `first_only` stop at the first."""
        levels = topic.split("/")
        count = len(levels)
        node = self._root
        index = 0
        guarded = hidden(levels[0])
        # Branches still to walk. The literal branch is walked at once: most walks never push.
        later: list[tuple[Node, int]] | None = None
        while True:
            if not guarded:
                if node.all is not None:
                    gather(found, node.all)
                if index == count:
                    if node.here is not None:
                        gather(found, node.here)
                elif node.rest is not None:
                    gather(found, node.rest)
            if first_only and found:
                return True
            following: Node | None = None
            if index < count:
                level = levels[index]
                index += 1
                literals = node.literals
                if literals is not None:
                    branch = literals.get(level)
                    if branch is not None:
                        if isinstance(branch, Node):
                            following = branch
                        else:
                            _try_leaf(found, branch, levels, index)
                if not guarded:
                    branch = node.one
                    if branch is not None:
                        if not isinstance(branch, Node):
                            _try_leaf(found, branch, levels, index)
                        elif following is None:
                            following = branch
                        else:
                            if later is None:
                                later = []
                            later.append((branch, index))
                    prefixes = node.prefixes
                    if prefixes is not None:
                        lengths = node.lengths
                        size = len(level)
                        length = 0
                        while lengths and length <= size:
                            if lengths & 1:
                                branch = prefixes.get(level[:length])
                                if branch is None:
                                    pass
                                elif not isinstance(branch, Node):
                                    _try_leaf(found, branch, levels, index)
                                elif following is None:
                                    following = branch
                                else:
                                    if later is None:
                                        later = []
                                    later.append((branch, index))
                            lengths >>= 1
                            length += 1
            guarded = False
            if following is not None:
                node = following
            elif later:
                node, index = later.pop()
            else:
                return bool(found)

    def entries(self) -> Iterator[tuple[str, object]]:
        """Every filter (as text) with each of its entries, for show commands; in no order.

        A pattern that only one dialect can express is written in that one, others in SMF. The trie
        must not change meanwhile.
        """
        for text, entries in self._literals.items():
            for entry in each(entries):
                yield text, entry
        nodes = [self._root]
        paths: list[tuple[str, ...]] = [()]
        while nodes:
            node = nodes.pop()
            path = paths.pop()
            endings: list[tuple[tuple[str, ...], object | None]] = [
                (path, node.here),
                ((*path, REST_CODE), node.rest),
                ((*path, ALL_CODE), node.all),
            ]
            for code, branch in branches_of(node):
                if isinstance(branch, Tail):
                    left = branch.pattern
                    tail = (left,) if isinstance(left, str) else left
                    endings.append(((*path, code, *tail), branch.entries))
                elif isinstance(branch, Node):
                    nodes.append(branch)
                    paths.append((*path, code))
                else:
                    endings.append(((*path, code), branch))
            for pattern, entries_here in endings:
                if entries_here is not None:
                    text = pattern_text(pattern)
                    for entry in each(entries_here):
                        yield text, entry


def _try_leaf(found: list[object], branch: object, levels: list[str], index: int) -> None:
    """Gather the entries of a branch with one pattern if it matches the levels from `index` on."""
    if isinstance(branch, Tail):
        if tail_matches(branch.pattern, levels, index):
            gather(found, branch.entries)
    elif index == len(levels):
        gather(found, branch)


def _leaf_holds(branch: object, pattern: Pattern, entry: object) -> bool:
    """Is `entry` under `pattern` in a branch with one pattern?"""
    if isinstance(branch, Tail):
        return branch.pattern == pattern and holds(branch.entries, entry)
    return pattern == () and holds(branch, entry)


def _drop_from_leaf(node: Node, kind: int, level: str, branch: object, entry: object) -> None:
    """Remove an entry that a branch with one pattern holds, and the branch when it was the last."""
    left = without(branch.entries if isinstance(branch, Tail) else branch, entry)
    if left is None:
        node.drop(kind, level)
    elif isinstance(branch, Tail):
        branch.entries = left
    else:
        node.put(kind, level, left)
