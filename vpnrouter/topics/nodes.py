"""What the subscription trie is made of: nodes, tails, and the entries of one pattern.

A branch of the trie, behind one level of a pattern, is one of three:

    entries   a single pattern goes this way, and it ends here
    Tail      a single pattern goes this way: what is left of it, and its entries
    Node      several patterns go this way

so that most patterns cost no node of their own, and a walk touches few objects: with a million
subscriptions each object touched is a wait for memory, and those waits are most of its time.

The entries of a pattern are the entry itself when there is one, a list of a few, a `Many` of more.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

from vpnrouter.topics.grammar import ALL, LITERAL, ONE, PREFIX, REST, Filter

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
class Many:
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
    """Does a tail's pattern match the levels from `index` on?"""
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
    """Does a code other than REST_CODE and ALL_CODE match one level?"""
    if code in (level, ONE_CODE):
        return True
    return code.startswith(PREFIX_CODE) and level.startswith(code[len(PREFIX_CODE) :])


# -- entries of one pattern ------------------------------------------------------------------------


def added_to(entries: object | None, entry: object) -> object | None:
    """The entries with `entry` among them; None when it is there already."""
    if entries is None:
        return entry
    if isinstance(entries, Many):
        if entry in entries.entries:
            return None
        entries.entries[entry] = None
        return entries
    if not isinstance(entries, list):
        return None if entries == entry else [entries, entry]
    if entry in entries:
        return None
    entries.append(entry)
    return entries if len(entries) <= _FEW else Many(entries)


def holds(entries: object, entry: object) -> bool:
    """Is `entry` among the entries?"""
    if isinstance(entries, Many):
        return entry in entries.entries
    return entry in entries if isinstance(entries, list) else entries == entry


def without(entries: object, entry: object) -> object | None:
    """The entries that are left without `entry`, which is among them; None when none is."""
    if isinstance(entries, Many):
        del entries.entries[entry]
        # Half as many as made it, so that one entry that comes and goes does not rebuild it.
        return entries if len(entries.entries) > _FEW // 2 else list(entries.entries)
    if not isinstance(entries, list):
        return None
    entries.remove(entry)
    return entries if len(entries) > 1 else entries[0]


def gather(found: list[object], entries: object) -> None:
    """Append the entries to `found`."""
    if isinstance(entries, Many):
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
