"""Finds the subscriptions of one message VPN by topic.

Filters without a wildcard are in one dict from text to entries: a topic finds them by one lookup. Filters with
wildcards are in a trie, walked level by level along the topic. A branch of the trie is one of three:

    entries   a single pattern goes this way, and it ends here
    Tail      a single pattern goes this way: what is left of it, and its entries
    Node      several patterns go this way

So most patterns cost no node of their own, and a walk touches few objects: with a million subscriptions each object
touched is a wait for memory, and those waits are most of its time.

The entries of a pattern are the entry itself when there is one, a list of a few, an `EntrySet` of more. An entry is any
hashable object but None and no list; the trie does not look into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from mypy_extensions import i64

from vpnrouter.topics.grammar import ALL, LITERAL, ONE, PREFIX, REST, Filter, hidden

if TYPE_CHECKING:
    from collections.abc import Iterator


# A pattern is a tuple of strings, one per level, or just the string when there is one level. No
# level holds NUL (TOPIC-2), so what begins with NUL is a wildcard: one object per level instead of
# two, and literals compare as they are.
Pattern: TypeAlias = str | tuple[str, ...]

ONE_CODE: Final = "\0+"
REST_CODE: Final = "\0>"
ALL_CODE: Final = "\0#"
PREFIX_CODE: Final = "\0*"


_FEW: Final = 8
"""Entries that are looked through one by one."""


@final
class EntrySet:
    """More than a few entries of one pattern, in order of insertion."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[object]) -> None:
        self.entries: dict[object, None] = dict.fromkeys(entries)


@final
class Tail:
    """The rest, at least one level, of the only pattern in a branch, and its entries."""

    __slots__ = ("entries", "pattern")

    def __init__(self, pattern: Pattern, entries: object) -> None:
        self.pattern = pattern
        self.entries = entries


@final
class Node:
    """What may follow one path of levels. Absent parts are None.

    `here`, `rest` and `all` are the entries of patterns that end at this node, by `>` below it,
    or by `#` below it. Bit n of `lengths` says that a prefix of length n is among `prefixes`, and
    `counts` how many are.
    """

    __slots__ = ("all", "counts", "here", "lengths", "literals", "one", "prefixes", "rest")

    def __init__(self) -> None:
        self.literals: dict[str, object] | None = None
        self.one: object | None = None
        self.prefixes: dict[str, object] | None = None
        self.lengths = 0
        self.here: object | None = None
        self.rest: object | None = None
        self.all: object | None = None
        self.counts: dict[int, int] | None = None

    def get(self, kind: int, level: str) -> object | None:
        """The branch behind a level of kind LITERAL, ONE or PREFIX."""
        if kind == LITERAL:
            return None if self.literals is None else self.literals.get(level)
        if kind == ONE:
            return self.one
        return None if self.prefixes is None else self.prefixes.get(level)

    def put(self, kind: int, level: str, branch: object) -> None:
        """Set the branch behind a level of kind LITERAL, ONE or PREFIX."""
        if kind == LITERAL:
            if self.literals is None:
                self.literals = {}
            self.literals[level] = branch
        elif kind == ONE:
            self.one = branch
        else:
            self._put_prefix(level, branch)

    def drop(self, kind: int, level: str) -> None:
        """Remove the branch behind a level of kind LITERAL, ONE or PREFIX, which is there."""
        if kind == LITERAL:
            if self.literals is not None:
                del self.literals[level]
                if not self.literals:
                    self.literals = None
        elif kind == ONE:
            self.one = None
        else:
            self._drop_prefix(level)

    def _put_prefix(self, prefix: str, branch: object) -> None:
        if self.prefixes is None or self.counts is None:
            self.prefixes = {}
            self.counts = {}
        if prefix not in self.prefixes:
            size = len(prefix)
            self.counts[size] = self.counts.get(size, 0) + 1
            self.lengths |= 1 << size
        self.prefixes[prefix] = branch

    def _drop_prefix(self, prefix: str) -> None:
        if self.prefixes is None or self.counts is None:
            return
        del self.prefixes[prefix]
        size = len(prefix)
        self.counts[size] -= 1
        if not self.counts[size]:
            del self.counts[size]
            self.lengths ^= 1 << size
            if not self.prefixes:
                self.prefixes = None
                self.counts = None

    def ending(self, kind: int) -> object | None:
        """The entries of patterns that end by REST, by ALL, or (any other kind) right here."""
        if kind == REST:
            return self.rest
        return self.all if kind == ALL else self.here

    def set_ending(self, kind: int, entries: object | None) -> None:
        """Set what `ending` returns."""
        if kind == REST:
            self.rest = entries
        elif kind == ALL:
            self.all = entries
        else:
            self.here = entries

    def adopt(self, branch: object) -> None:
        """Take in the single pattern of the branch (entries or Tail) that stood in this place."""
        if not isinstance(branch, Tail):
            self.here = branch
            return
        pattern = branch.pattern
        first = pattern if isinstance(pattern, str) else pattern[0]
        if first == REST_CODE:
            self.rest = branch.entries
        elif first == ALL_CODE:
            self.all = branch.entries
        else:
            left = single(_END if isinstance(pattern, str) else pattern[1:], branch.entries)
            if first == ONE_CODE:
                self.one = left
            elif first.startswith(PREFIX_CODE):
                self.put(PREFIX, first[len(PREFIX_CODE) :], left)
            else:
                self.put(LITERAL, first, left)

    def is_empty(self) -> bool:
        """True when no pattern goes through or ends here."""
        return (
            self.literals is None
            and self.one is None
            and self.prefixes is None
            and self.here is None
            and self.rest is None
            and self.all is None
        )


_END: Final[tuple[str, ...]] = ()


def single(pattern: Pattern, entries: object) -> object:
    """A branch with one pattern in it."""
    if isinstance(pattern, str):
        return Tail(pattern, entries)
    if not pattern:
        return entries
    return Tail(pattern[0] if len(pattern) == 1 else pattern, entries)


def pattern_from(filter_: Filter, start: int) -> Pattern:
    """The pattern from level `start` on."""
    kinds = filter_.kinds
    left = len(kinds) - start
    if left == 0:
        return _END
    if left == 1:
        return _code(filter_, start)
    return tuple([_code(filter_, index) for index in range(start, len(kinds))])


def _code(filter_: Filter, index: int) -> str:
    kind = filter_.kinds[index]
    if kind == LITERAL:
        return filter_.levels[index]
    if kind == ONE:
        return ONE_CODE
    if kind == PREFIX:
        return PREFIX_CODE + filter_.levels[index]
    return REST_CODE if kind == REST else ALL_CODE


def tail_matches(pattern: Pattern, levels: list[str], index: int) -> bool:
    """Whether a tail's pattern matches the levels from `index` on."""
    count = len(levels)
    if isinstance(pattern, str):
        if pattern == ALL_CODE:
            return True
        if index == count or not (pattern == REST_CODE or _fits(pattern, levels[index])):
            return False
        return pattern == REST_CODE or index + 1 == count
    for code in pattern:
        if code == ALL_CODE:
            return True
        if index == count:
            return False
        if code == REST_CODE:
            return True
        if not _fits(code, levels[index]):
            return False
        index += 1
    return index == count


def _fits(code: str, level: str) -> bool:
    """Whether a code other than REST_CODE and ALL_CODE matches one level."""
    if code in (level, ONE_CODE):
        return True
    return code.startswith(PREFIX_CODE) and level.startswith(code[len(PREFIX_CODE) :])


# -- entries of one pattern ------------------------------------------------------------------------


def added_to(entries: object | None, entry: object) -> object | None:
    """The entries with `entry` among them; None when it is there already."""
    if entries is None:
        return entry
    if isinstance(entries, EntrySet):
        if entry in entries.entries:
            return None
        entries.entries[entry] = None
        return entries
    if not isinstance(entries, list):
        return None if entries == entry else [entries, entry]
    if entry in entries:
        return None
    entries.append(entry)
    return entries if len(entries) <= _FEW else EntrySet(entries)


def holds(entries: object, entry: object) -> bool:
    """Whether `entry` is among the entries."""
    if isinstance(entries, EntrySet):
        return entry in entries.entries
    return entry in entries if isinstance(entries, list) else entries == entry


def without(entries: object, entry: object) -> object | None:
    """The entries that are left without `entry`, which is among them; None when none is."""
    if isinstance(entries, EntrySet):
        del entries.entries[entry]
        # Half as many as made it, so that one entry that comes and goes does not rebuild it.
        return entries if len(entries.entries) > _FEW // 2 else list(entries.entries)
    if not isinstance(entries, list):
        return None
    entries.remove(entry)
    return entries if len(entries) > 1 else entries[0]


def gather(found: list[object], entries: object) -> None:
    """Append the entries to `found`."""
    if isinstance(entries, EntrySet):
        found.extend(entries.entries)
    elif isinstance(entries, list):
        found.extend(entries)
    else:
        found.append(entries)


def each(entries: object) -> list[object]:
    """The entries as a list of their own."""
    found: list[object] = []
    gather(found, entries)
    return found


# -- for people ------------------------------------------------------------------------------------


def branches_of(node: Node) -> list[tuple[str, object]]:
    """The branches of a node with the codes of their levels."""
    found: list[tuple[str, object]] = []
    if node.literals is not None:
        found.extend(node.literals.items())
    if node.one is not None:
        found.append((ONE_CODE, node.one))
    if node.prefixes is not None:
        for prefix, branch in node.prefixes.items():
            found.append((PREFIX_CODE + prefix, branch))
    return found


def pattern_text(pattern: tuple[str, ...]) -> str:
    """A pattern as a filter: in SMF unless that would read differently."""
    last = len(pattern) - 1
    smf = pattern[last] != ALL_CODE
    for index, code in enumerate(pattern):
        if not code.startswith("\0") and (
            not code or code.endswith("*") or (code == ">" and index == last)
        ):
            smf = False
    parts: list[str] = []
    for code in pattern:
        if code == ONE_CODE:
            parts.append("*" if smf else "+")
        elif code.startswith(PREFIX_CODE):
            parts.append(code[len(PREFIX_CODE) :] + "*")
        elif code in (REST_CODE, ALL_CODE):
            parts.append(code[1:])
        else:
            parts.append(code)
    return "/".join(parts)


@final
class SubscriptionTrie:
    """A multimap from filters to entries that is asked by topic. `steps` counts the nodes that were looked at.

    Filters count as equal here when they match the same topics level by level; share name,
    #noexport and exception mark do not matter: the caller puts what it needs into the entry.
    """

    __slots__ = ("_count", "_literals", "_root", "steps")

    def __init__(self) -> None:
        self._literals: dict[str, object] = {}
        self._root = Node()
        self._count = 0
        self.steps: i64 = 0

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
        """Whether any filter matches `topic`."""
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
            self.steps += 1
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
    """Whether `entry` is under `pattern` in a branch with one pattern."""
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
