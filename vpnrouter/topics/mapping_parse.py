"""Rules of a topic mapping from their text: from and to, add_prefix, strip_prefix."""

from __future__ import annotations

from typing import Final

from vpnrouter.errors import TopicError
from vpnrouter.limits import TOPIC_BYTES, TOPIC_LEVELS
from vpnrouter.topics.grammar import LITERAL, MQTT, PREFIX, SMF, hidden, parse_filter
from vpnrouter.topics.mapping_rule import MappingRule, forged, quoted
from vpnrouter.topics.mapping_template import WILDCARDS, escape, parse_template

_FROM_BYTES: Final = TOPIC_BYTES - TOPIC_LEVELS
"""Bytes of a rule's filter: in `*` `>` dialect an empty level is asked for by a `*`, which is one
byte more, and the text still fits."""


def parse_rule(source: str, to: str, dialect: int = SMF) -> MappingRule:
    """The rule that `from: source` and `to: to` describe, both in `dialect` (SMF or MQTT).

    Raises TopicError of one line that names the rule, what is wrong with it, and where.
    """
    label = f"topic mapping from {quoted(source)} to {quoted(to)}"
    return _rule(source, to, dialect, label)


def add_prefix(prefix: str, dialect: int = SMF) -> MappingRule:
    """The rule that puts the levels of `prefix` before a topic; a slash at its end says no more.

    Raises TopicError.
    """
    label = f"topic mapping add_prefix {quoted(prefix)}"
    levels = _prefix_levels(prefix, label)
    return _rule("#" if dialect == MQTT else ">", escape(levels) + "/{1}", dialect, label)


def strip_prefix(prefix: str, dialect: int = SMF) -> MappingRule:
    """The rule that takes the levels of `prefix` from the topics below it; the prefix itself stays.

    Raises TopicError.
    """
    label = f"topic mapping strip_prefix {quoted(prefix)}"
    levels = _prefix_levels(prefix, label)
    if dialect == MQTT:
        return _rule(levels + "/+/#", "{1}/{2}", dialect, label)
    return _rule(levels + "/>", "{1}", dialect, label)


def _rule(source: str, to: str, dialect: int, label: str) -> MappingRule:
    try:
        filter_ = parse_filter(source, dialect, max_bytes=_FROM_BYTES, exceptions=True)
    except TopicError as error:
        raise TopicError(f"{label}: from: {error}", error.clause) from None
    if filter_.exception or filter_.share or filter_.noexport:
        raise TopicError(f"{label}: from has no exception mark, share name or #noexport")
    first = filter_.levels[0]
    if filter_.kinds[0] == PREFIX and hidden(first):
        raise TopicError(f"{label}: from: {quoted(first + '*')} matches no topic", "TOPIC-23")
    if filter_.kinds[0] == LITERAL and hidden(first) and first.endswith("*"):
        raise TopicError(
            f"{label}: from: a first level {quoted(first)} cannot be asked for", "TOPIC-31"
        )
    count = len([kind for kind in filter_.kinds if kind != LITERAL])
    try:
        template = parse_template(to, dialect, count, _note(source, dialect))
    except TopicError as error:
        raise TopicError(f"{label}: {error}", error.clause) from None
    if forged(template[0].texts[0], first):
        raise TopicError(f"{label}: to begins with $ where from does not", "TOPIC-23")
    return MappingRule(filter_, template, label)


def _note(source: str, dialect: int) -> str:
    """What to say of a missing wildcard when `source` looks like the other dialect's."""
    for level in source.split("/"):
        if dialect == MQTT and (level.endswith("*") or level == ">"):
            return " (in mqtt syntax * and > are none)"
        if dialect == SMF and level in {"+", "#"}:
            return " (in smf syntax + and # are none)"
    return ""


def _prefix_levels(prefix: str, label: str) -> str:
    """The prefix without the slash at its end."""
    for wildcard in WILDCARDS:
        if wildcard in prefix:
            place = prefix.index(wildcard) + 1
            raise TopicError(
                f"{label}: a prefix has no wildcard character, this one {wildcard}"
                f" at character {place}"
            )
    levels = prefix.removesuffix("/")
    if not levels:
        raise TopicError(f"{label}: a prefix has a level that is not empty", "TOPIC-3")
    return levels
