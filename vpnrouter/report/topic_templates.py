"""Folds topics into templates: levels that hold ids become parameters, `order/17/status` is one of `order/*/status`.

A level is looked at together with what stands beside it. All topics with the same levels on the left, parameters being
equal to each other, are one **place**; the values there are told apart by their look and by what follows on the right.

* Numbers, UUIDs, hexadecimal digits and codes (`x7k2p9`, `2026-03-01`) are ids where a place has `MACHINE_VALUES` of
  them. Words with numbers are where it has as many of one pattern: `sensor-1`, `sensor-2`.
* Abbreviations of one length (`OSL`, `IAH`) are where it has `ABBREVIATIONS` of them.
* Any other values are ids where a place has `TEXT_VALUES` of them that are followed by the same level. At the end of
  topics, these have few messages each as well: what is sent over and over on forty topics has forty names.
* `MANY_VALUES` followed by equally many levels are ids, whatever they are. A word that has far more topics than the
  others is none (`OUTSTANDING`).

What has fewer values stays. So do empty levels, and a first level that wildcards do not match (`$SYS`, `#P2P`).

The order of the topics does not matter. Time is in proportion to the levels of all topics, and memory to the topics.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, NamedTuple

MACHINE_VALUES: Final = 10
"""So many numbers, UUIDs or the like at one place are ids."""

ABBREVIATIONS: Final = 20
"""So many abbreviations of one length at one place are ids."""

TEXT_VALUES: Final = 40
"""So many words at one place, before the same level, are ids."""

MANY_VALUES: Final = 200
"""So many values at one place are ids, whatever follows."""

FEW_MESSAGES: Final = 100
"""Messages a value, on average, up to which words at the end of topics are taken for ids."""

OUTSTANDING: Final = 100
"""A word with so many times the topics of the average one at its place is the name of something, and no id."""

EXAMPLES: Final = 3
"""Values that a parameter names, those of the most messages."""

Levels = tuple[str | None, ...]
"""The levels of a template; None is a parameter."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A level of a template that varies.

    `level` is its number, from 1. `values` is how many the topics have there, `examples` are some of them; `looks`
    what they look like: number, uuid, hex, code, word with a number, abbreviation, word.
    """

    level: int
    values: int
    examples: tuple[str, ...]
    looks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Template:
    """Topics that differ in their parameters alone: how many `topics` and `messages` they are."""

    levels: Levels
    topics: int
    messages: int
    parameters: tuple[Parameter, ...] = ()


class Folded(NamedTuple):
    """Templates in order of their levels, and for each topic, in the order given, the number of its template."""

    templates: tuple[Template, ...]
    numbers: array[int]


_SEPARATOR: Final = "/"
_GUARDED: Final = ("$", "#P2P")
NUMBER: Final = "number"
UUID: Final = "uuid"
HEX: Final = "hex"
CODE: Final = "code"
PATTERN: Final = "word with a number"
ABBREVIATION: Final = "abbreviation"
WORD: Final = "word"
"""What values look like."""

_NUMBER: Final = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX: Final = re.compile(
    r"(?:0[xX])?(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{8,}|[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5,}"
)
_DIGITS: Final = re.compile(r"\d+")
_ABBREVIATED: Final = 5
"""Letters of an abbreviation at most."""

_CODE_RUNS: Final = 3
"""Runs of digits from which on letters and digits are mixed at random, or are a date."""


def look(value: str) -> tuple[str, str]:
    """Return what a value looks like, and for a word with a number or an abbreviation its pattern, else ""."""
    runs = len(_DIGITS.findall(value))
    if not runs:
        if 1 < len(value) <= _ABBREVIATED and value.isupper() and value.isalpha():
            return ABBREVIATION, "A" * len(value)
        return WORD, ""
    if _NUMBER.fullmatch(value):
        return NUMBER, ""
    if _UUID.fullmatch(value):
        return UUID, ""
    if _HEX.fullmatch(value):
        return HEX, ""
    if runs >= _CODE_RUNS:
        return CODE, ""
    return PATTERN, _DIGITS.sub("0", value)


def fold(topics: Mapping[str, int]) -> Folded:
    """Fold topics, with how many messages each has, into templates."""
    return _Folding(topics).run()


_Members = list[int]
_WORDS: Final = (WORD, ABBREVIATION)
_Next = tuple[str, ...]
"""What follows a value: nothing (), a literal level (LEVEL,), or how one looks."""


class _Folding:
    """Sorts topics into places, one level after the other; each topic is in one place at a time.

    Of each topic, `begin` and `end` are where its level at that place stands in it; `end` is -1 for the last level.
    """

    def __init__(self, topics: Mapping[str, int]) -> None:
        self._topics = list(topics)
        self._messages = array("q", topics.values())
        self._begin = array("q", bytes(8 * len(self._topics)))
        self._end = array("q", bytes(8 * len(self._topics)))
        self._numbers = array("L", bytes(array("L").itemsize * len(self._topics)))
        self._found: list[Template] = []

    def run(self) -> Folded:
        """Fold them."""
        places: list[tuple[Levels, _Members]] = [((), list(range(len(self._topics))))]
        while places:
            levels, members = places.pop()
            if len(members) < MACHINE_VALUES:
                self._add_as_they_are(levels, members)
                continue
            for value, some in self._parted(levels, members):
                ended: _Members = []
                further: _Members = []
                for one in some:
                    (ended if self._end[one] < 0 else further).append(one)
                if ended:
                    self._add((*levels, value), ended)
                for one in further:
                    self._begin[one] = self._end[one] + 1
                if further:
                    places.append(((*levels, value), further))
        return self._in_order()

    def _in_order(self) -> Folded:
        order = sorted(range(len(self._found)), key=lambda at: sort_key(self._found[at].levels))
        place = {number: at for at, number in enumerate(order)}
        for one, number in enumerate(self._numbers):
            self._numbers[one] = place[number]
        return Folded(tuple(self._found[at] for at in order), self._numbers)

    def _parted(self, levels: Levels, members: _Members) -> list[tuple[str | None, _Members]]:
        """Return the topics of a place by their level there, those with ids under None."""
        by_value: dict[str, _Members] = {}
        for one in members:
            topic = self._topics[one]
            begin = self._begin[one]
            end = self._end[one] = topic.find(_SEPARATOR, begin)
            value = topic[begin:] if end < 0 else topic[begin:end]
            by_value.setdefault(value, []).append(one)
        ids: _Members = []
        if len(by_value) >= MACHINE_VALUES:
            open_values = [value for value in by_value if value and (levels or not _guarded(value))]
            for value in _machine_made(open_values):
                ids += by_value.pop(value)
            words = [value for value in open_values if value in by_value]
            if len(words) >= TEXT_VALUES:
                ids += self._words(by_value, words)
        parted: list[tuple[str | None, _Members]] = [*by_value.items()]
        if ids:
            parted.append((None, ids))
        return parted

    def _words(self, by_value: dict[str, _Members], words: Iterable[str]) -> _Members:
        """Take the topics out of `by_value` that have ids among `words`, and return them."""
        taken: _Members = []
        after: dict[_Next, dict[str, _Members]] = {}
        for value in words:
            for one in by_value.pop(value):
                after.setdefault(self._next(one), {}).setdefault(value, []).append(one)
        unlike: dict[int, dict[str, _Members]] = {}
        for following, every in after.items():
            values, outstanding = _ordinary(every)
            for value, some in outstanding.items():
                by_value.setdefault(value, []).extend(some)
            if self._are_ids(following, values):
                taken += (one for some in values.values() for one in some)
                continue
            for value, some in values.items():
                for one in some:
                    more = self._topics[one].count(_SEPARATOR, self._begin[one])
                    unlike.setdefault(more, {}).setdefault(value, []).append(one)
        for every in unlike.values():
            values, rest = _ordinary(every)
            if len(values) >= MANY_VALUES:
                taken += (one for some in values.values() for one in some)
            else:
                rest = every
            for value, some in rest.items():
                by_value.setdefault(value, []).extend(some)
        return taken

    def _next(self, one: int) -> _Next:
        if self._end[one] < 0:
            return ()
        topic, begin = self._topics[one], self._end[one] + 1
        end = topic.find(_SEPARATOR, begin)
        value = topic[begin:] if end < 0 else topic[begin:end]
        alike, pattern = look(value)
        return (WORD, value) if alike in _WORDS else (alike, pattern)

    def _are_ids(self, following: _Next, values: Mapping[str, _Members]) -> bool:
        if len(values) < TEXT_VALUES or len(values) >= MANY_VALUES:
            return len(values) >= MANY_VALUES
        messages = sum(self._messages[one] for some in values.values() for one in some)
        return bool(following) or messages <= FEW_MESSAGES * len(values)

    def _add_as_they_are(self, levels: Levels, members: _Members) -> None:
        """Add what is left of so few topics that nothing in it can be an id."""
        by_rest: dict[str, _Members] = {}
        for one in members:
            by_rest.setdefault(self._topics[one][self._begin[one] :], []).append(one)
        for rest, some in by_rest.items():
            self._add((*levels, *rest.split(_SEPARATOR)), some)

    def _add(self, levels: Levels, members: _Members) -> None:
        """Add the template of these topics."""
        open_levels = [at for at, level in enumerate(levels) if level is None]
        values: list[Counter[str]] = [Counter() for _ in open_levels]
        messages = 0
        for one in members:
            self._numbers[one] = len(self._found)
            messages += self._messages[one]
            if open_levels:
                parts = self._topics[one].split(_SEPARATOR)
                for at, counts in zip(open_levels, values, strict=True):
                    counts[parts[at]] += self._messages[one]
        parameters = tuple(
            _parameter(at + 1, counts) for at, counts in zip(open_levels, values, strict=True)
        )
        self._found.append(
            Template(levels=levels, topics=len(members), messages=messages, parameters=parameters)
        )


def _guarded(value: str) -> bool:
    return value.startswith(_GUARDED)


def _ordinary(
    values: dict[str, _Members],
) -> tuple[dict[str, _Members], dict[str, _Members]]:
    """Return the values without those that have far more topics than others, and these."""
    topics = sum(map(len, values.values()))
    most = OUTSTANDING * topics
    outstanding = {value: some for value, some in values.items() if len(some) * len(values) > most}
    if not outstanding:
        return values, outstanding
    return {value: some for value, some in values.items() if value not in outstanding}, outstanding


def _machine_made(values: Sequence[str]) -> list[str]:
    """Return the values that are ids by their look."""
    ids: list[str] = []
    patterns: dict[tuple[str, str], list[str]] = {}
    for value in values:
        alike, pattern = look(value)
        if pattern:
            patterns.setdefault((alike, pattern), []).append(value)
        elif alike != WORD:
            ids.append(value)
    taken = [*ids] if len(ids) >= MACHINE_VALUES else []
    for (alike, _), some in patterns.items():
        if len(some) >= (ABBREVIATIONS if alike == ABBREVIATION else MACHINE_VALUES):
            taken += some
    return taken


def _parameter(level: int, counts: Mapping[str, int]) -> Parameter:
    busiest = nsmallest(EXAMPLES, counts.items(), key=lambda item: (-item[1], item[0]))
    return Parameter(
        level=level,
        values=len(counts),
        examples=tuple(value for value, _ in busiest),
        looks=tuple(sorted({look(value)[0] for value in counts})),
    )


def sort_key(levels: Levels) -> tuple[tuple[bool, str], ...]:
    """Return what orders templates: level by level, a parameter behind all values."""
    return tuple((level is None, level or "") for level in levels)
