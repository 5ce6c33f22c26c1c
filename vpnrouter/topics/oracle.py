"""Matches topics slowly and obviously, for tests to compare everything else with."""

from __future__ import annotations

from vpnrouter.topics.grammar import MQTT


def oracle_matches(text: str, dialect: int, topic: str) -> bool:
    """Whether the filter `text`, written in `dialect` without prefixes, matches `topic`."""
    pattern, levels = text.split("/"), topic.split("/")
    if dialect == MQTT:
        wild_first = pattern[0] in ("+", "#")
    else:
        wild_first = pattern[0].endswith("*") or pattern == [">"]
    if wild_first and (topic.startswith(("$", "#P2P"))):
        return False
    return _mqtt(pattern, levels) if dialect == MQTT else _smf(pattern, levels)


def _mqtt(pattern: list[str], levels: list[str]) -> bool:
    if pattern == ["#"]:
        return True
    if not pattern or not levels:
        return pattern == levels
    return pattern[0] in ("+", levels[0]) and _mqtt(pattern[1:], levels[1:])


def _smf(pattern: list[str], levels: list[str]) -> bool:
    if pattern == [">"]:
        return len(levels) >= 1
    if not pattern or not levels:
        return pattern == levels
    first = pattern[0]
    fits = levels[0].startswith(first[:-1]) if first.endswith("*") else first == levels[0]
    return fits and _smf(pattern[1:], levels[1:])
