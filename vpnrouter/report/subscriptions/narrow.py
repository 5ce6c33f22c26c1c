"""Proposes a narrower set of filters in place of one that attracts too much."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, final

from vpnrouter.errors import TopicError
from vpnrouter.report.subscriptions.held import DIALECTS
from vpnrouter.topics.algebra import covers, matches
from vpnrouter.topics.grammar import ALL, LITERAL, PREFIX, REST, SMF, Filter, parse_filter

MOST: Final = 8
"""Filters proposed in place of one: more than that nobody wants to look after."""

FEW: Final = 3
"""Values of a level that are written out one by one. More of them are taken to vary, as an id does, so that the
next one is to be matched too."""

Levels = tuple[str, ...]


def narrower(
    filter_: str, used: Iterable[str], wasted: Iterable[str], syntax: str, most: int = MOST
) -> list[str]:
    """Return at most `most` filters in the dialect `syntax` ("mqtt" or "smf") that match every topic of `used` that
    `filter_` matches, and as few of `wasted` as was found possible.

    Each is covered by `filter_` and keeps its prefixes (share name, `#noexport`). Empty when there is nothing
    used, when no set was found that matches fewer wasted topics, or when `filter_` is malformed or an exception.
    """
    dialect = DIALECTS[syntax]
    try:
        whole = parse_filter(filter_, dialect, exceptions=dialect == SMF)
    except TopicError:
        return []
    if whole.exception:
        return []
    topics = sorted({tuple(topic.split("/")) for topic in used if matches(whole, topic)})
    unwanted = sorted(
        {topic for topic in wasted if matches(whole, topic)} - {"/".join(one) for one in topics}
    )
    if not topics or not unwanted:
        return []
    first = _Part.of(whole, topics, unwanted)
    if first is None:
        return []
    parts = _spelled_out(whole, _split(whole, [first], most), unwanted, most)
    if len({topic for part in parts for topic in part.wasted}) == len(unwanted):
        return []
    prefix = filter_[: len(filter_) - len(whole.text)]
    return [prefix + part.filter.text for part in _without_covered(parts)]


@final
class _Part:
    """Some of the used topics, the filter for them, and the wasted topics that it matches too."""

    __slots__ = ("filter", "used", "wasted")

    def __init__(self, filter_: Filter, used: list[Levels], wasted: list[str]) -> None:
        self.filter = filter_
        self.used = used
        self.wasted = wasted

    @staticmethod
    def of(whole: Filter, used: list[Levels], wasted: list[str]) -> "_Part | None":
        """Return the part with the best filter found; None when the topics cannot be written down below `whole`."""
        best: _Part | None = None
        for filter_ in _filters_for(whole, used):
            left = [topic for topic in wasted if matches(filter_, topic)]
            if best is None or len(left) < len(best.wasted):
                best = _Part(filter_, used, left)
            if not left:
                break
        return best


def _filters_for(whole: Filter, used: list[Levels]) -> Iterator[Filter]:
    """Yield filters for exactly these topics: with plain wildcards, and with prefixes where values share one."""
    for prefixes in (False, True) if whole.dialect == SMF else (False,):
        for first_wild in (False, True):
            text = _written(whole, used, prefixes, first_wild)
            try:
                filter_ = parse_filter(text, whole.dialect, exceptions=whole.dialect == SMF)
            except TopicError:
                continue
            # A topic may begin with what is a prefix in a filter, or be hidden from wildcards.
            plain = filter_.text == text and not filter_.exception
            if plain and covers(whole, filter_) and _all_match(filter_, used):
                yield filter_
                break


def _all_match(filter_: Filter, used: list[Levels]) -> bool:
    return all(matches(filter_, "/".join(topic)) for topic in used)


def _written(whole: Filter, used: list[Levels], prefixes: bool, first_wild: bool) -> str:
    """Return the narrowest filter for topics, level by level; an open end where they differ in length."""
    shortest = min(map(len, used))
    open_end = any(len(topic) != shortest for topic in used)
    # `>` needs a level, `#` does not.
    fixed = shortest - 1 if open_end and whole.dialect == SMF else shortest
    parts = [
        _level(whole, index, {topic[index] for topic in used}, prefixes, first_wild)
        for index in range(fixed)
    ]
    if open_end:
        parts.append(">" if whole.dialect == SMF else "#")
    return "/".join(parts)


def _level(whole: Filter, index: int, values: set[str], prefixes: bool, first_wild: bool) -> str:
    """Return one level of a filter for these values."""
    smf = whole.dialect == SMF
    at = index if index < len(whole.kinds) else -1
    must = whole.levels[at] if whole.kinds[at] == PREFIX and index < len(whole.kinds) else ""
    is_literal = whole.kinds[at] == LITERAL and index < len(whole.kinds)
    if len(values) == 1 and not (first_wild and index == 0 and not is_literal):
        (value,) = values
        if smf and value and not value.endswith("*") and value != ">":
            return value
        if not smf and "+" not in value and "#" not in value:
            return value
    if not smf:
        return "+"
    common = _common(values) if prefixes else ""
    return (common if common.startswith(must) else must) + "*"


def _common(values: set[str]) -> str:
    """Return the common prefix."""
    low, high = min(values), max(values)
    size = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:size]


# -- parting topics ----------------------------------------------------------------------------------


def _split(whole: Filter, parts: list[_Part], most: int) -> list[_Part]:
    """Split the part that wastes most, as long as less is wasted then."""
    done: list[_Part] = []
    while parts:
        parts.sort(key=lambda part: len(part.wasted))
        worst = parts.pop()
        room = most - len(parts) - len(done)
        best: list[_Part] = []
        if worst.wasted and room > 1:
            best = _best(whole, worst, room)
        if best:
            parts.extend(best)
        else:
            done.append(worst)
    return done


def _best(whole: Filter, part: _Part, room: int) -> list[_Part]:
    """Return the split of `part` into at most `room` parts that wastes least; empty if none wastes less."""
    best: list[_Part] = []
    least = len(part.wasted)
    for groups in _partings(part.used, room):
        parts = [_Part.of(whole, group, part.wasted) for group in groups]
        sound = [one for one in parts if one is not None]
        if len(sound) < len(parts):
            continue
        cost = sum(len(one.wasted) for one in sound)
        if cost < least or (best and cost == least and len(sound) < len(best)):
            best, least = sound, cost
    return best


def _partings(used: list[Levels], room: int) -> Iterator[list[list[Levels]]]:
    """Yield ways to split topics: by their number of levels, and by the text of a level."""
    yield from _grouped(used, [str(len(topic)) for topic in used], room)
    for index in range(max(map(len, used))):
        # A topic that has no such level has a group of its own; no level holds a "/".
        yield from _grouped(
            used, [topic[index] if index < len(topic) else "/" for topic in used], room
        )


def _grouped(used: list[Levels], keys: list[str], room: int) -> Iterator[list[list[Levels]]]:
    """Yield one group for each key; of too many, the most frequent ones, and all others together."""
    counts = Counter(keys)
    if len(counts) < 2:
        return
    own = [key for key, _ in counts.most_common(room if len(counts) <= room else room - 1)]
    places = {key: place for place, key in enumerate(own)}
    groups: list[list[Levels]] = [[] for _ in range(len(own) + (len(counts) > len(own)))]
    for topic, key in zip(used, keys, strict=True):
        groups[places.get(key, len(own))].append(topic)
    yield groups


def _spelled_out(whole: Filter, parts: list[_Part], unwanted: list[str], most: int) -> list[_Part]:
    """Replace wildcards by their values where these are few: a wildcard would match more than is used.

    A value that no literal can say has a wildcard of its own, which may match more of `unwanted` than the part did:
    that part stays as it is.
    """
    todo = sorted(parts, key=lambda part: part.used)
    done: list[_Part] = []
    while todo:
        part = todo.pop(0)
        room = most - len(todo) - len(done)
        best: list[_Part] = []
        for index, kind in enumerate(part.filter.kinds):
            values = {topic[index] for topic in part.used if index < len(topic)}
            if kind in (LITERAL, REST, ALL) or not 1 < len(values) <= min(FEW, room):
                continue
            spelled_out = [
                _Part.of(whole, [topic for topic in part.used if topic[index] == value], unwanted)
                for value in sorted(values)
            ]
            best = [one for one in spelled_out if one is not None]
            more = {topic for each in best for topic in each.wasted} - set(part.wasted)
            if len(best) == len(spelled_out) and not more:
                break
            best = []
        if best:
            todo = [*best, *todo]
        else:
            done.append(part)
    return done


def _without_covered(parts: list[_Part]) -> list[_Part]:
    """Return the parts that no other part covers; of two equal ones the first."""
    needed: list[_Part] = []
    for at, part in enumerate(parts):
        if not any(
            covers(other.filter, part.filter)
            and (place < at or not covers(part.filter, other.filter))
            for place, other in enumerate(parts)
            if place != at
        ):
            needed.append(part)
    return needed
