"""Computes relations between filters: which topics they share, and whether one covers another.

Share names, #noexport and exception marks play no part: a filter is the set of topics that its levels match. `covers`
ignores the bounds on levels and bytes; a witness respects them.
"""

from __future__ import annotations

from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import (
    ALL,
    LITERAL,
    ONE,
    PREFIX,
    REST,
    Filter,
    hidden,
    match_levels,
)


def matches(filter_: Filter, topic: str, guarded: bool = True) -> bool:
    """True when `filter_` matches a published topic (text from `parse_topic`). For `guarded` see match_levels."""
    return match_levels(filter_.levels, filter_.kinds, topic.split("/"), guarded)


def covers(a: Filter, b: Filter, guarded: bool = True) -> bool:
    """True when `a` matches every topic that `b` matches. `guarded` is for `a`, see match_levels."""
    if b.kinds[0] == PREFIX and hidden(b.levels[0]):
        return True  # b matches nothing (TOPIC-23, TOPIC-24)
    if not _lengths_cover(a, b):
        return False
    if guarded and a.kinds[0] != LITERAL and b.kinds[0] == LITERAL and hidden(b.levels[0]):
        return False
    for index in range(_fixed(a)):
        kind, level = a.kinds[index], a.levels[index]
        other_kind, other = _at(b, index)
        if kind == LITERAL:
            if other_kind != LITERAL or level != other:
                return False
        elif kind == PREFIX and not other.startswith(level):
            return False  # the text of a ONE is "", which no prefix begins
    return True


def intersects(a: Filter, b: Filter) -> bool:
    """True when there is a topic that both match."""
    return witness(a, b) is not None


def witness(a: Filter, b: Filter) -> str | None:
    """A valid topic that both match, None when there is none. It is as short as can be in levels.

    It is publishable by MQTT unless a literal of `a` or `b` holds `+` or `#`.
    """
    count = max(_least(a), _least(b))
    if (not _open(a) and _least(a) != count) or (not _open(b) and _least(b) != count):
        return None
    if count > TOPIC_LEVELS:
        return None
    levels: list[str] = []
    for index in range(count):
        level = _common(_at(a, index), _at(b, index))
        if level is None:
            return None
        levels.append(level)
    if hidden(levels[0]) and (a.kinds[0] != LITERAL or b.kinds[0] != LITERAL):
        return None
    topic = "/".join(levels)
    if len(topic.encode("utf-8")) <= TOPIC_BYTES:
        return topic
    # Levels that may hold anything are empty then: no topic in the intersection is shorter.
    for index in range(count):
        if _at(a, index)[0] == ONE and _at(b, index)[0] == ONE:
            levels[index] = ""
    topic = "/".join(levels)
    return topic if len(topic.encode("utf-8")) <= TOPIC_BYTES else None


def _common(a: tuple[int, str], b: tuple[int, str]) -> str | None:
    """A level that two level patterns both match; None when there is none."""
    if a[0] == LITERAL or b[0] == LITERAL:
        literal, other = (a[1], b) if a[0] == LITERAL else (b[1], a)
        if other[0] == LITERAL:
            return literal if literal == other[1] else None
        return literal if literal.startswith(other[1]) else None
    # The prefix of a ONE is "".
    longer, shorter = (a[1], b[1]) if len(a[1]) >= len(b[1]) else (b[1], a[1])
    return (longer or "x") if longer.startswith(shorter) else None


def _open(filter_: Filter) -> bool:
    """True when it matches topics of any greater length."""
    return filter_.kinds[-1] in (REST, ALL)


def _fixed(filter_: Filter) -> int:
    """Levels before an open end."""
    return len(filter_.kinds) - _open(filter_)


def _least(filter_: Filter) -> int:
    """Levels of the shortest topics it matches."""
    if filter_.text == "/#":
        return 2  # its parent would be the empty topic, which there is not (TOPIC-3)
    return max(1, _fixed(filter_) + (filter_.kinds[-1] == REST))


def _at(filter_: Filter, index: int) -> tuple[int, str]:
    """Kind and text of the level at `index`; an open end is any number of ONE."""
    return (filter_.kinds[index], filter_.levels[index]) if index < _fixed(filter_) else (ONE, "")


def _lengths_cover(a: Filter, b: Filter) -> bool:
    if _open(a):
        return _least(b) >= _least(a)
    return not _open(b) and _least(a) == _least(b)
