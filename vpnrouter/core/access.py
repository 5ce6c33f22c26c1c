"""Judges by ACL profiles who may connect from where, and publish or subscribe to what.

An exception inverts the default action. Connect exceptions are CIDR blocks in a Patricia trie per address family;
publish and subscribe exceptions are topic filters, in which `$client-username` and `$client-id` are filled in.

A denying exception with a wildcard in its first level also matches topics that begin with `$`: to deny everything
denies `$queue/…` and `$SYS/…`. An allowing exception has to name such topics, as a subscription has (TOPIC-23).
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, final

from pytricia import PyTricia

from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import covers, intersects, matches
from vpnrouter.topics.grammar import ALL, LITERAL, REST, Filter, parse_filter

if TYPE_CHECKING:
    from collections.abc import Iterable

_VARIABLES: Final = ("$client-username", "$client-id")


@final
class TopicRule:
    """A default action and the filters that invert it; `templates` are (text, dialect) as configured."""

    def __init__(self, default_allow: bool, templates: Iterable[tuple[str, int]] = ()) -> None:
        self.default_allow = default_allow
        self._templates: list[tuple[str, int]] = []
        self._fixed: list[Filter] = []
        for text, dialect in templates:
            if any(variable in text for variable in _VARIABLES):
                self._templates.append((text, dialect))
            else:
                self._fixed.append(parse_filter(text, dialect))
        # One object for all clients whose names do not matter: routes remember it (publisher.py).
        self._same_for_all = BoundRule(default_allow, self._fixed, self)

    @property
    def unrestricted(self) -> bool:
        """True when everything is allowed to everybody."""
        return self.default_allow and not self._fixed and not self._templates

    def bind(self, client_username: str, client_id: str) -> BoundRule:
        """Return the rule with the names of one client filled in."""
        if not self._templates:
            return self._same_for_all
        return BoundRule(self.default_allow, [], self, (client_username, client_id))

    def bound(self, client_username: str, client_id: str) -> BoundRule | None:
        """Return the rule with the names of one client filled in, None where everything is allowed to everybody."""
        return None if self.unrestricted else self.bind(client_username, client_id)

    def filled(self, client_username: str, client_id: str) -> list[Filter]:
        """The exceptions with the names of one client; see `bind`."""
        filters = list(self._fixed)
        for text, dialect in self._templates:
            if ("$client-username" in text and not _substitutable(client_username)) or (
                "$client-id" in text and not _substitutable(client_id)
            ):
                continue
            filled = text.replace("$client-username", client_username).replace(
                "$client-id", client_id
            )
            try:
                filters.append(parse_filter(filled, dialect))
            except TopicError:
                continue
        return filters


def alike(one: BoundRule | None, other: BoundRule | None) -> bool:
    """Return whether two rules decide alike, as far as that is known without a look at their filters."""
    if one is None or other is None:
        return one is other
    # An ACL profile that did not change keeps its rule objects (server/apply/message_vpn_change.py).
    return one is other or (one.source is other.source and one.source is not None)


def _substitutable(name: str) -> bool:
    if not name or name.startswith("$") or "$client-id" in name:
        return False
    return not any(character in "/+#*>\0" for character in name)


class BoundRule:
    """A topic rule with the names of one client filled in. A subclass may decide in another way.

    `source` is the rule it was made of, or None. The names are filled in at the first decision, so that a change of an
    ACL profile with many clients is cheap.
    """

    def __init__(
        self,
        default_allow: bool,
        filters: list[Filter],
        source: TopicRule | None = None,
        names: tuple[str, str] | None = None,
    ) -> None:
        self.default_allow = default_allow
        self.source = source
        self._filters = filters
        self._names = names

    @property
    def filters(self) -> list[Filter]:
        """The filters of the exceptions."""
        names = self._names
        if names is not None and self.source is not None:
            self._names = None
            self._filters = self.source.filled(names[0], names[1])
        return self._filters

    def allows_topic(self, topic: str) -> bool:
        """True when this client may publish to `topic`, or be sent what is published there."""
        # First-level wildcards of exceptions that allow do not match `$…` topics; those that deny do.
        guarded = not self.default_allow
        for filter_ in self.filters:
            if matches(filter_, topic, guarded):
                return not self.default_allow
        return self.default_allow

    def allows_filter(self, wanted: Filter) -> bool:
        """True when this client may subscribe to `wanted`: there is a topic that it could be sent.

        Where the default is to allow, it may unless one exception covers all of `wanted`; `a/>` counts as
        covering `a/#`, though that matches `a` as well. Where the default is to disallow, it may when an exception
        shares a topic with `wanted`. Denied topics are left out one by one when a message is routed (route.py).
        """
        if self.default_allow:
            below = _below(wanted)
            return not any(covers(filter_, below, guarded=False) for filter_ in self.filters)
        return any(intersects(filter_, wanted) for filter_ in self.filters)

    def allows_all(self, wanted: Filter) -> bool:
        """True when a subscriber to `wanted` is sent all topics that it matches."""
        if self.default_allow:
            return self.allows_filter(wanted) and not any(
                intersects(filter_, wanted) for filter_ in self.filters
            )
        return any(covers(filter_, wanted) for filter_ in self.filters)

    def names(self, topic: str) -> bool:
        """True when an exception that allows, and has no wildcard in its first level, matches `topic`."""
        if self.default_allow:
            return False
        named = [filter_ for filter_ in self.filters if filter_.kinds[0] == LITERAL]
        return any(matches(filter_, topic) for filter_ in named)


@final
class WithoutTopics(BoundRule):
    """A rule that leaves out further topics, which the client gets on another way. It may still subscribe to them.

    `rule` is its rule without that, None where it may be sent everything.
    """

    def __init__(self, rule: BoundRule | None, topics: list[Filter]) -> None:
        super().__init__(True, topics)
        self._rule = rule

    def allows_topic(self, topic: str) -> bool:
        """True when this client may be sent `topic`, and does not get it on the other way."""
        rule = self._rule
        if rule is not None and not rule.allows_topic(topic):
            return False
        return not covered(self._filters, topic)

    def allows_filter(self, wanted: Filter) -> bool:
        """True when this client may subscribe to `wanted`."""
        return self._rule is None or self._rule.allows_filter(wanted)

    def allows_all(self, wanted: Filter) -> bool:
        """True when a subscriber to `wanted` is sent all topics that it matches."""
        rule = self._rule
        return (rule is None or rule.allows_all(wanted)) and not any(
            intersects(filter_, wanted) for filter_ in self._filters
        )


def covered(filters: list[Filter], topic: str) -> bool:
    """Return whether one of the filters matches a topic."""
    for filter_ in filters:  # noqa: SIM110 (compiled: no generator expressions)
        if matches(filter_, topic):
            return True
    return False


@final
class ProviderClient:
    """A client that belongs to the provider of a connector, which carries the same messages.

    `local_name` is the connector's client name. The connector brings what is published there to topics that `incoming`
    match, and takes out what `outgoing` match: so the client's part of that is left out.
    """

    def __init__(self, local_name: str, incoming: list[Filter], outgoing: list[Filter]) -> None:
        self.local_name = local_name
        self.incoming = incoming
        self.outgoing = outgoing
        self._alone = WithoutTopics(None, outgoing)

    def rule_without(self, rule: BoundRule | None) -> BoundRule | None:
        """Return what the client may be sent, of what `rule` allows: the same object for each where that is all."""
        if not self.outgoing:
            return rule
        return self._alone if rule is None else WithoutTopics(rule, self.outgoing)


def _below(wanted: Filter) -> Filter:
    """A filter without the topic above its open end: `a/>` for `a/#`."""
    if wanted.kinds[-1] != ALL or len(wanted.kinds) == 1:
        return wanted
    kinds = [*wanted.kinds[:-1], REST]
    return Filter(wanted.text, wanted.dialect, wanted.levels, kinds, wanted.original)


@final
class AclProfile:
    """One ACL profile. The built-in `default` allows everything: `AclProfile("default")`."""

    def __init__(
        self,
        name: str,
        connect_default_allow: bool = True,
        connect_exceptions: Iterable[str] = (),
        publish: TopicRule | None = None,
        subscribe: TopicRule | None = None,
        share_name: TopicRule | None = None,
    ) -> None:
        self.name = name
        self.connect_default_allow = connect_default_allow
        self._v4 = PyTricia(32)
        self._v6 = PyTricia(128)
        for block in connect_exceptions:
            (self._v6 if ":" in block else self._v4)[block] = True
        self.publish = publish or TopicRule(True)
        self.subscribe = subscribe or TopicRule(True)
        self.share_name = share_name or TopicRule(True)

    def allows_connect(self, address: str) -> bool:
        """True when a client may connect from `address` (IPv4 or IPv6 text). IPv4-mapped IPv6 counts as IPv4.

        Something that is no address (a local socket) is judged by the default action alone.
        """
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return self.connect_default_allow
        mapped = getattr(parsed, "ipv4_mapped", None)
        if mapped is not None:
            parsed = mapped
        table = self._v4 if parsed.version == 4 else self._v6
        return self.connect_default_allow != (str(parsed) in table)
