"""Sets of topics: what clients and bridges may publish and subscribe to.

What a chain of filters lets through is again what one filter matches, so a set stays small however
long the chain is. Filters are kept once and known by number; what two of them have in common is
computed once. Share names and selectors play no part here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.config.checks.message_vpns import DIALECTS
from vpnrouter.config.mesh.remotes import ConfiguredRemote
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.core.access import TopicRule
from vpnrouter.errors import TopicError
from vpnrouter.settings.acl_profile import PublishTopic
from vpnrouter.settings.bridge import RemoteMsgVpn
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.schema import Secret, TopicSyntax
from vpnrouter.topics import algebra
from vpnrouter.topics.grammar import (
    ALL,
    LITERAL,
    ONE,
    PREFIX,
    REST,
    SMF,
    Filter,
    parse_filter,
    to_smf,
)

NO_EXCEPTIONS: Final[frozenset[int]] = frozenset()
_NOTHING: Final = -1
_FRESH: Final = "xyzqwvkj"
"""What stands for "some text" in an example."""


class TopicSet(NamedTuple):
    """The topics that a filter matches and no exception does; all by number."""

    filter: int
    exceptions: frozenset[int] = NO_EXCEPTIONS


@final
class Topics:
    """The filters of a mesh. `steps` counts comparisons, so that a search can be bounded."""

    __slots__ = ("_common", "_covers", "_examples", "_filters", "_numbers", "steps")

    def __init__(self) -> None:
        self._filters: list[Filter] = []
        self._numbers: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
        self._common: dict[tuple[int, int], int] = {}
        self._covers: dict[tuple[int, int], bool] = {}
        self._examples: dict[TopicSet, str | None] = {}
        self.steps = 0

    def number(self, filter_: Filter) -> int:
        """Return the number of a filter: of its levels alone, whatever its dialect, prefixes and mark."""
        key = (tuple(filter_.levels), tuple(filter_.kinds))
        number = self._numbers.get(key)
        if number is None:
            number = len(self._filters)
            self._numbers[key] = number
            self._filters.append(filter_)
        return number

    def of(self, filter_: Filter, exceptions: Iterable[Filter] = ()) -> TopicSet | None:
        """Return what the filter matches less the exceptions; None when no client can publish any of it."""
        number = self.number(filter_)
        excepted = frozenset(self.number(exception) for exception in exceptions)
        return self._of(number, excepted)

    def _of(self, number: int, exceptions: frozenset[int]) -> TopicSet | None:
        if exceptions:
            exceptions = frozenset(
                exception for exception in exceptions if self._meet(number, exception) != _NOTHING
            )
        topics = TopicSet(number, exceptions)
        return topics if self.example(topics) is not None else None

    def common(self, a: TopicSet, b: TopicSet) -> TopicSet | None:
        """Return what is in both sets; None when that is nothing."""
        number = self._meet(a.filter, b.filter)
        if number == _NOTHING:
            return None
        if not a.exceptions and not b.exceptions:
            return TopicSet(number)
        return self._of(number, a.exceptions | b.exceptions)

    def less(self, topics: TopicSet, filters: Iterable[int]) -> TopicSet | None:
        """Return what is left of a set without what these filters match; None when that is nothing."""
        return self._of(topics.filter, topics.exceptions.union(filters))

    def holds_all(self, a: TopicSet, b: TopicSet) -> bool:
        """Return whether `a` is sure to hold all that `b` holds."""
        self.steps += 1
        if not a.exceptions <= b.exceptions:
            return False
        if a.filter == b.filter:
            return True
        key = (a.filter, b.filter)
        covers = self._covers.get(key)
        if covers is None:
            covers = algebra.covers(self._filters[a.filter], self._filters[b.filter])
            self._covers[key] = covers
        return covers

    def holds(self, topics: TopicSet, topic: str) -> bool:
        """Return whether `topic` is in the set."""
        return algebra.matches(self._filters[topics.filter], topic) and not any(
            algebra.matches(self._filters[exception], topic) for exception in topics.exceptions
        )

    def example(self, topics: TopicSet) -> str | None:
        """Return a topic of the set that an MQTT client can publish, a shortest one; None when there is none.

        Where the filter leaves text free, the example has text that no exception mentions: an
        exception that matches it nevertheless matches every topic of the same number of levels.
        """
        if topics not in self._examples:
            self._examples[topics] = self._find_example(topics)
        return self._examples[topics]

    def _find_example(self, topics: TopicSet) -> str | None:
        filter_ = self._filters[topics.filter]
        exceptions = [self._filters[exception] for exception in topics.exceptions]
        least = _least(filter_)
        most = least
        if exceptions and _is_open(filter_):
            most = max(least, *(len(exception.kinds) for exception in exceptions)) + 1
        fresh = _fresh(exceptions)
        for count in range(least, min(most, limits.TOPIC_LEVELS) + 1):
            topic = "/".join(
                _text(filter_, index, fresh, plain=not exceptions) for index in range(count)
            )
            if (
                "+" not in topic
                and "#" not in topic
                and len(topic.encode()) <= limits.TOPIC_BYTES
                and algebra.matches(filter_, topic)
                and not any(algebra.matches(exception, topic) for exception in exceptions)
            ):
                return topic
        return None

    def _meet(self, a: int, b: int) -> int:
        self.steps += 1
        if a == b:
            return a
        key = (a, b) if a < b else (b, a)
        common = self._common.get(key)
        if common is None:
            met = meet(self._filters[a], self._filters[b])
            common = _NOTHING
            if met is not None:
                common = self.number(met)
                # Its levels may spell something that no client can publish.
                if self.example(TopicSet(common)) is None:
                    common = _NOTHING
            self._common[key] = common
        return common


def meet(a: Filter, b: Filter) -> Filter | None:
    """Return the filter of what both match; None when that is nothing."""
    if algebra.witness(a, b) is None:
        return None
    least = max(_least(a), _least(b))
    if not _is_open(a) or not _is_open(b):
        fixed, end = least, []
    else:
        fixed = max(_fixed(a), _fixed(b))
        end = [ALL if least == fixed else REST]
    levels: list[str] = []
    kinds: list[int] = []
    for index in range(fixed):
        kind, level = _narrower(_at(a, index), _at(b, index))
        kinds.append(kind)
        levels.append(level)
    kinds += end
    levels += [""] * len(end)
    text = "/".join(levels)
    return Filter(text, SMF, levels, kinds, text)


def _narrower(a: tuple[int, str], b: tuple[int, str]) -> tuple[int, str]:
    """Return what two level patterns that have something in common both match."""
    for one in (a, b):
        if one[0] == LITERAL:
            return one
    # The prefix of a ONE is "".
    longer = a[1] if len(a[1]) >= len(b[1]) else b[1]
    return (PREFIX if longer else ONE, longer)


def _is_open(filter_: Filter) -> bool:
    return filter_.kinds[-1] in {REST, ALL}


def _fixed(filter_: Filter) -> int:
    return len(filter_.kinds) - _is_open(filter_)


def _least(filter_: Filter) -> int:
    """Return the levels of the shortest topics that it matches."""
    if filter_.levels == ["", ""] and filter_.kinds == [LITERAL, ALL]:
        return 2  # the parent would be the empty topic, which there is not (TOPIC-3)
    return max(1, _fixed(filter_) + (filter_.kinds[-1] == REST))


def _at(filter_: Filter, index: int) -> tuple[int, str]:
    """Return kind and text of a level; an open end is any number of ONE."""
    if index < _fixed(filter_):
        return filter_.kinds[index], filter_.levels[index]
    return ONE, ""


def _text(filter_: Filter, index: int, fresh: str, *, plain: bool) -> str:
    kind, text = _at(filter_, index)
    if kind == LITERAL or (kind == PREFIX and plain):
        return text
    return text + fresh


def _fresh(filters: list[Filter]) -> str:
    """Return a letter that is in no filter."""
    letters = {letter for each in filters for level in each.levels for letter in level}
    for letter in _FRESH:
        if letter not in letters:
            return letter
    code = ord("a")
    while chr(code) in letters or not chr(code).isalnum():
        code += 1
    return chr(code)


_USERNAME: Final = "$client-username"
_ID: Final = "$client-id"
_DEFAULT: Final = "default"
_ONE_LEVEL: Final = {"smf": "*", "mqtt": "+"}
_NO_PART_OF_A_LEVEL: Final = "/+#*>"
"""A client username that holds one of these is filled into no exception (core/access.py)."""


class _Rule(NamedTuple):
    """A default action and the numbers of the filters that invert it."""

    default_allow: bool
    filters: tuple[int, ...]


class Login(NamedTuple):
    """What a bridge logs in to a remote with, and where that stands. No name: by certificate."""

    path: Path
    client_username: str | None
    password: Secret | None


def scheme(configured: ConfiguredRemote) -> str:
    """Return how the bridge logs in: `basic` or `client-certificate`."""
    return configured.remote.authentication_scheme or configured.bridge.remote_authentication.scheme


def login(configured: ConfiguredRemote) -> Login:
    """Return what the bridge logs in with."""
    if scheme(configured) != "basic":
        return Login(configured.path, None, None)
    remote: RemoteMsgVpn = configured.remote
    if remote.client_username is not None:
        return Login((*configured.path, "client_username"), remote.client_username, remote.password)
    basic = configured.bridge.remote_authentication.basic
    path = (*configured.bridge_path, "remote_authentication", "basic", "client_username")
    return Login(path, basic.client_username, basic.password)


def account_of(vpn: MsgVpn, client_username: str) -> ClientUsername | None:
    """Return the client username that holds for a login by name; None where it is refused."""
    account = vpn.client_usernames.get(client_username)
    if account is None and not vpn.authentication.basic.enabled:
        return vpn.client_usernames[_DEFAULT]
    return account


@final
class Publishers:
    """What the clients of one message VPN may publish, whoever of them can log in."""

    __slots__ = ("_rules", "_topics")

    def __init__(self, topics: Topics, vpn: MsgVpn) -> None:
        self._topics = topics
        self._rules: list[_Rule] = []
        for name, account in vpn.client_usernames.items():
            if not _may_log_in(vpn, account):
                continue
            profile = vpn.acl_profiles.get(account.acl_profile)
            rule = (
                _Rule(default_allow=True, filters=())
                if profile is None
                else _rule(topics, profile.publish_topic, name)
            )
            if rule.default_allow and not rule.filters:
                self._rules = [rule]
                return
            if rule not in self._rules:
                self._rules.append(rule)

    def part_of(self, router_name: TopicSet) -> TopicSet | None:
        """Return topics of a set that some client may publish; None when there are none."""
        for rule in self._rules:
            if rule.default_allow:
                if not rule.filters:
                    return router_name
                part = self._topics.less(router_name, rule.filters)
                if part is not None:
                    return part
            else:
                for filter_ in rule.filters:
                    part = self._topics.common(router_name, TopicSet(filter_))
                    if part is not None:
                        return part
        return None


ALL_OF_IT: Final = 2
PART_OF_IT: Final = 1
NOTHING: Final = 0
"""How much of a filter a subscriber may be sent: all, part or nothing."""


def may_subscribe(vpn: MsgVpn, username: str, client_name: str, router_name: Filter) -> int:
    """Return how much of a filter a bridge gets over a link, by the ACL of its client username."""
    account = account_of(vpn, username)
    profile = vpn.acl_profiles.get(account.acl_profile) if account is not None else None
    if profile is None:
        return ALL_OF_IT
    configured = profile.subscribe_topic
    rule = TopicRule(
        configured.default_action == "allow",
        [(text, DIALECTS[configured.topic_syntax]) for text in configured.exceptions],
    )
    if rule.unrestricted:
        return ALL_OF_IT
    bound = rule.bind(username, client_name)
    filters = [parse_filter(text, SMF) for text in to_smf(router_name)]
    if all(bound.allows_all(filter_) for filter_ in filters):
        return ALL_OF_IT
    return PART_OF_IT if any(bound.allows_filter(filter_) for filter_ in filters) else NOTHING


def _may_log_in(vpn: MsgVpn, account: ClientUsername) -> bool:
    authentication = vpn.authentication
    return account.enabled and (
        not authentication.basic.enabled
        or authentication.client_cert.enabled
        or account.password is not None
    )


def _rule(topics: Topics, rule: PublishTopic, username: str) -> _Rule:
    """Return a rule for somebody with this client username and some client id."""
    allow = rule.default_action == "allow"
    filters = [
        # Where an exception to "allow" names the client id, a client with another id gets around it.
        _exception(text, rule.topic_syntax, username, widen=not allow)
        for text in rule.exceptions
    ]
    return _Rule(allow, tuple(topics.number(each) for each in filters if each is not None))


def _exception(text: str, syntax: TopicSyntax, username: str, *, widen: bool) -> Filter | None:
    """Return an exception with the names filled in.

    Those of clients that the configuration does not name are any one level (`widen`), or the
    exception is left out.
    """
    if username != _DEFAULT and _USERNAME in text:
        if username.startswith("$") or any(letter in username for letter in _NO_PART_OF_A_LEVEL):
            return None
        text = text.replace(_USERNAME, username)
    if _USERNAME in text or _ID in text:
        if not widen:
            return None
        text = "/".join(
            _ONE_LEVEL[syntax] if _USERNAME in level or _ID in level else level
            for level in text.split("/")
        )
    try:
        return parse_filter(text, DIALECTS[syntax])
    except TopicError:
        return None
