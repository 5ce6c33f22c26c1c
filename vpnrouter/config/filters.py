"""Checks of lists of topic filters."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.config.findings import Findings
from vpnrouter.config.problem import Path
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers, intersects
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter

DIALECTS: Final = {"smf": SMF, "mqtt": MQTT}


class FilterRules(NamedTuple):
    """What filters of one list may be; `exceptions` says that a leading `!` marks an exception
    here.
    """

    syntax: str
    max_levels: int = limits.TOPIC_LEVELS
    max_bytes: int = limits.TOPIC_BYTES
    exceptions: bool = False


def check_filters(
    found: Findings, texts: Sequence[tuple[Path, str]], rules: FilterRules
) -> list[tuple[Path, Filter]]:
    """Parse each filter; tell what does not parse, what stands twice and what adds nothing.

    Returns the filters that parse, each with its path.
    """
    parsed: list[tuple[Path, Filter]] = []
    for path, text in texts:
        try:
            parsed.append(
                (
                    path,
                    parse_filter(
                        text,
                        DIALECTS[rules.syntax],
                        max_levels=rules.max_levels,
                        max_bytes=rules.max_bytes,
                        exceptions=rules.exceptions,
                    ),
                )
            )
        except TopicError as error:
            found.error(path, f"{error}{clause_of(error)}{_other_dialect(text, rules)}")
            continue
        if text.startswith("!") and not rules.exceptions:
            found.warning(
                path, "a leading ! is literal here; it marks an exception on queues and bridges"
            )
    _tell_overlaps(found, parsed)
    return parsed


def check_exceptions(found: Findings, parsed: Sequence[tuple[Path, Filter]]) -> None:
    """Tell exceptions that except nothing, and filters of which an exception leaves nothing."""
    exceptions = [(path, filter_) for path, filter_ in parsed if filter_.exception]
    others = [(path, filter_) for path, filter_ in parsed if not filter_.exception]
    found.filter_pairs -= len(exceptions) * len(others)
    if found.filter_pairs < 0 or not others:
        return
    for path, exception in exceptions:
        if not any(intersects(exception, filter_) for _, filter_ in others):
            found.warning(path, "excepts nothing: no filter beside it attracts such topics")
        for place, filter_ in others:
            if covers(exception, filter_):
                at = found.document.value_at(path)
                found.warning(place, f"attracts nothing: {exception.original} at {at} excepts it")


def clause_of(error: TopicError) -> str:
    """The rule of docs/topics.md that is broken, as it stands behind a message."""
    return f" ({error.clause})" if error.clause else ""


def _other_dialect(text: str, rules: FilterRules) -> str:
    """A hint where the other dialect takes the filter."""
    other = "mqtt" if rules.syntax == "smf" else "smf"
    try:
        parse_filter(text, DIALECTS[other], exceptions=rules.exceptions)
    except TopicError:
        return ""
    return f"; with topic_syntax: {other} it would be a filter"


def _tell_overlaps(found: Findings, parsed: Sequence[tuple[Path, Filter]]) -> None:
    first: dict[Filter, Path] = {}
    for path, filter_ in parsed:
        if filter_ in first:
            found.warning(
                path, f"the same filter stands at {found.document.value_at(first[filter_])}"
            )
        else:
            first[filter_] = path
    found.filter_pairs -= len(first) * len(first)
    if found.filter_pairs < 0:
        return
    for filter_, path in first.items():
        for other, place in first.items():
            if other is not filter_ and _same_purpose(other, filter_) and covers(other, filter_):
                at = found.document.value_at(place)
                found.warning(path, f"adds nothing: {other.original} at {at} covers it")
                break


def _same_purpose(a: Filter, b: Filter) -> bool:
    return a.share == b.share and a.noexport == b.noexport and a.exception == b.exception
