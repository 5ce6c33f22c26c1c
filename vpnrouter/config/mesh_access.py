"""What clients of a message VPN may publish, and what a bridge may subscribe to there."""

from typing import Final, NamedTuple, final

from vpnrouter.config.acl_profile import PublishTopic, TopicSyntax
from vpnrouter.config.bridge import RemoteMsgVpn
from vpnrouter.config.client_username import ClientUsername
from vpnrouter.config.filters import DIALECTS
from vpnrouter.config.mesh_remotes import Place
from vpnrouter.config.mesh_topics import Topics, TopicSet
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.secret import Secret
from vpnrouter.core.access import TopicRule
from vpnrouter.errors import TopicError
from vpnrouter.topics.grammar import SMF, Filter, parse_filter, to_smf

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


def scheme(place: Place) -> str:
    """How the bridge logs in: `basic` or `client-certificate`."""
    return place.remote.authentication_scheme or place.bridge.remote_authentication.scheme


def login(place: Place) -> Login:
    """What the bridge logs in with."""
    if scheme(place) != "basic":
        return Login(place.path, None, None)
    remote: RemoteMsgVpn = place.remote
    if remote.client_username is not None:
        return Login((*place.path, "client_username"), remote.client_username, remote.password)
    basic = place.bridge.remote_authentication.basic
    path = (*place.bridge_path, "remote_authentication", "basic", "client_username")
    return Login(path, basic.client_username, basic.password)


def account_of(vpn: MsgVpn, client_username: str) -> ClientUsername | None:
    """The client username that holds for a login by name; None where it is refused."""
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

    def part_of(self, wanted: TopicSet) -> TopicSet | None:
        """Topics of a set that some client may publish; None when there are none."""
        for rule in self._rules:
            if rule.default_allow:
                if not rule.filters:
                    return wanted
                part = self._topics.less(wanted, rule.filters)
                if part is not None:
                    return part
            else:
                for filter_ in rule.filters:
                    part = self._topics.common(wanted, TopicSet(filter_))
                    if part is not None:
                        return part
        return None


ALL_OF_IT: Final = 2
PART_OF_IT: Final = 1
NOTHING: Final = 0
"""How much of a filter a subscriber may be sent: all, part or nothing."""


def may_subscribe(vpn: MsgVpn, username: str, client_name: str, wanted: Filter) -> int:
    """How much of a filter the ACL of a client username lets a bridge have that subscribes to it over a link."""
    account = account_of(vpn, username)
    profile = vpn.acl_profiles.get(account.acl_profile) if account is not None else None
    if profile is None:
        return ALL_OF_IT
    written = profile.subscribe_topic
    rule = TopicRule(
        written.default_action == "allow",
        [(text, DIALECTS[written.topic_syntax]) for text in written.exceptions],
    )
    if rule.unrestricted:
        return ALL_OF_IT
    bound = rule.bind(username, client_name)
    filters = [parse_filter(text, SMF) for text in to_smf(wanted)]
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
    """A rule for somebody with this client username and some client id."""
    allow = rule.default_action == "allow"
    filters = [
        # Where an exception to "allow" names the client id, a client with another id gets around it.
        _exception(text, rule.topic_syntax, username, widen=not allow)
        for text in rule.exceptions
    ]
    return _Rule(allow, tuple(topics.number(each) for each in filters if each is not None))


def _exception(text: str, syntax: TopicSyntax, username: str, *, widen: bool) -> Filter | None:
    """An exception with the names filled in.

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
