"""Checks of what a bridge attracts and by which topics: remote subscriptions, their exceptions and
selectors, topic mappings.
"""

from typing import TYPE_CHECKING, Final

from vpnrouter.config.bridge import Bridge, RemoteSubscription
from vpnrouter.config.filters import (
    DIALECTS,
    FilterRules,
    check_exceptions,
    check_filters,
    clause_of,
)
from vpnrouter.config.findings import Findings
from vpnrouter.config.problem import Path
from vpnrouter.config.topic_mapping import TopicMapping
from vpnrouter.errors import SelectorError, TopicError
from vpnrouter.topics.grammar import Filter

if TYPE_CHECKING:
    from vpnrouter.topics.mapping import MappingRule

_ATTRACTING: Final = ("remote_subscriptions", "remote_msg_vpns")
_OTHER_DELIVERY: Final = "the other deliver_always_enabled"


def check_attraction(found: Findings, path: Path, bridge: Bridge, rules: FilterRules) -> None:
    """Check the subscriptions and topic mappings of the bridge at `path`."""
    _check_subscriptions(found, (*path, "remote_subscriptions"), bridge, rules)
    if bridge.topic_mapping:
        _check_mapping(found, (*path, "topic_mapping"), bridge)
    attracts = bridge.remote_subscriptions or any(
        remote.queue_binding for remote in bridge.remote_msg_vpns
    )
    whole = found.is_whole(path) and all(
        found.is_whole((*path, key)) for key in _ATTRACTING if found.document.has((*path, key))
    )
    if attracts or not whole:
        return
    found.key_warning(
        path, "attracts nothing: it has neither remote_subscriptions nor a queue_binding"
    )


def _is_exception(subscription: RemoteSubscription) -> bool:
    return subscription.topic.startswith("!")


def _check_subscriptions(found: Findings, place: Path, bridge: Bridge, rules: FilterRules) -> None:
    groups: dict[tuple[bool, str | None], list[tuple[Path, str]]] = {(False, None): []}
    for index, each in enumerate(bridge.remote_subscriptions):
        at = (*place, index)
        if _is_exception(each):
            _check_exception(found, at, each)
        elif each.selector is not None:
            _check_selector(found, (*at, "selector"), each.selector)
        # What one receiver gets is not covered by what all get, nor the other way round.
        key = (each.deliver_always_enabled, each.selector)
        groups.setdefault(key, []).append((_topic_path(found, at), each.topic))
    seen: dict[Filter, tuple[Path, bool]] = {}
    for (always, _), texts in sorted(groups.items(), key=lambda group: group[0][0]):
        parsed = {filter_: at for at, filter_ in check_filters(found, texts, rules)}
        for filter_, at in parsed.items():
            if filter_ not in seen:
                seen[filter_] = (at, always)
                continue
            other = found.document.value_at(seen[filter_][0])
            with_ = "another selector" if seen[filter_][1] is always else _OTHER_DELIVERY
            found.error(at, f"the filter stands at {other} with {with_}")
    check_exceptions(found, [(at, filter_) for filter_, (at, _) in seen.items()])
    if found.is_whole(place) and all(_is_exception(each) for each in bridge.remote_subscriptions):
        for index in range(len(bridge.remote_subscriptions)):
            at = _topic_path(found, (*place, index))
            found.error(at, "an exception needs a filter beside it that attracts")


def _topic_path(found: Findings, path: Path) -> Path:
    """Where the filter stands: in the short form the item is the filter."""
    return (*path, "topic") if found.document.has((*path, "topic")) else path


def _check_exception(found: Findings, place: Path, subscription: RemoteSubscription) -> None:
    if subscription.deliver_always_enabled:
        found.error((*place, "deliver_always_enabled"), "an exception (!) has no delivery")
    if subscription.selector is not None:
        found.error((*place, "selector"), "an exception (!) has no selector")


def _check_selector(found: Findings, place: Path, selector: str) -> None:
    # Imported late: most configurations hold no selector, and start-up time counts.
    from vpnrouter.selectors import parse_selector

    try:
        parse_selector(selector)
    except SelectorError as error:
        found.error(place, str(error))


def _check_mapping(found: Findings, place: Path, bridge: Bridge) -> None:
    # Imported late: most configurations hold no mapping, and start-up time counts.
    from vpnrouter.topics.mapping import directed

    dialect = DIALECTS[bridge.topic_syntax]
    rules: list[MappingRule] = []
    for index, written in enumerate(bridge.topic_mapping):
        try:
            rule = _rule(written, dialect)
            if written.direction == "both":
                rule.inverse()
        except TopicError as error:
            found.error((*place, index), f"{error}{clause_of(error)}")
            continue
        rules.append(rule)
    if len(rules) < len(bridge.topic_mapping):
        return
    try:
        directed(rules, [written.direction for written in bridge.topic_mapping])
    except TopicError as error:
        found.error(place, f"{error}{clause_of(error)}")


def _rule(written: TopicMapping, dialect: int) -> "MappingRule":
    from vpnrouter.topics.mapping import add_prefix, parse_rule, strip_prefix

    if written.add_prefix is not None:
        return add_prefix(written.add_prefix, dialect)
    if written.strip_prefix is not None:
        return strip_prefix(written.strip_prefix, dialect)
    return parse_rule(written.from_ or "", written.to or "", dialect)
