"""Which client username, profile and line of an ACL profile decided about a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from vpnrouter.core.access import TopicRule
from vpnrouter.core.login import DEFAULT
from vpnrouter.explain.rules import attribute, rule
from vpnrouter.topics.grammar import MQTT, SMF

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.access import PublishTopic, SubscribeTopic
    from vpnrouter.config.load import Loaded
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.login import ClientUsername
    from vpnrouter.explain.explanation import Rule
    from vpnrouter.topics.grammar import Filter

LEFT_OUT: Final = "its ACL profile leaves this topic out"
"""The reason why a subscriber whose filter matches is not sent a message."""

Group = Literal["publish_topic", "subscribe_topic"]


def username_rule(loaded: Loaded, vpn: str, username: ClientUsername) -> Rule:
    """The client username that a client logs in with, or `default`, which holds for names not listed."""
    listed = loaded.positions.has(("msg_vpns", vpn, "client_usernames", username.name))
    name = username.name if listed else DEFAULT
    text = f"client username {username.name}"
    return rule(loaded, ("msg_vpns", vpn, "client_usernames", name), text)


def profile_rule(loaded: Loaded, vpn: str, username: ClientUsername, key: str) -> Rule:
    """One attribute of the client's profile."""
    return attribute(loaded, ("msg_vpns", vpn, "client_profiles", username.client_profile, key))


def publish_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, topic: str
) -> Rule:
    """The line of the ACL profile that decides about publishing to `topic`."""
    return _topic_rule(loaded, vpn, username, client, "publish_topic", topic)


def delivery_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, topic: str
) -> Rule:
    """The line of the ACL profile that decides whether a subscriber is sent `topic`."""
    return _topic_rule(loaded, vpn, username, client, "subscribe_topic", topic)


def subscribe_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, wanted: Filter
) -> Rule:
    """The line of the ACL profile that decides about subscribing to `wanted`."""
    written = loaded.config.msg_vpns[vpn].acl_profiles[username.acl_profile].subscribe_topic
    allows = written.default_action == "allow"

    def decides(bound: BoundRule) -> bool:
        return bound.allows_filter(wanted) is not allows

    return _deciding(loaded, vpn, username, client, "subscribe_topic", decides)


def _topic_rule(
    loaded: Loaded, vpn: str, username: ClientUsername, client: str, group: Group, topic: str
) -> Rule:
    written = getattr(loaded.config.msg_vpns[vpn].acl_profiles[username.acl_profile], group)
    allows = written.default_action == "allow"

    def decides(bound: BoundRule) -> bool:
        return bound.allows_topic(topic) is not allows

    return _deciding(loaded, vpn, username, client, group, decides)


def _deciding(
    loaded: Loaded,
    vpn: str,
    username: ClientUsername,
    client: str,
    group: Group,
    decides: Callable[[BoundRule], bool],
) -> Rule:
    """The first exception that decides alone, else the default action.

    Each exception is asked as a rule of its own by the same code as the whole profile.
    """
    profile = username.acl_profile
    acl = loaded.config.msg_vpns[vpn].acl_profiles[profile]
    written: PublishTopic | SubscribeTopic = getattr(acl, group)
    dialect = MQTT if written.topic_syntax == "mqtt" else SMF
    path = ("msg_vpns", vpn, "acl_profiles", profile, group)
    allows = written.default_action == "allow"
    for index, text in enumerate(written.exceptions):
        if decides(TopicRule(allows, [(text, dialect)]).bind(username.name, client)):
            said = f"exception {text} of {group} of ACL profile {profile}"
            return rule(loaded, (*path, "exceptions", index), said)
    said = f"default_action: {written.default_action} of {group} of ACL profile {profile}"
    return rule(loaded, (*path, "default_action"), said)
