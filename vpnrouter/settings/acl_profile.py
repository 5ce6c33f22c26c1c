"""ACL profiles: from where clients may connect, and what they may publish and subscribe to."""

from __future__ import annotations

from typing import Literal

from vpnrouter.settings.schema import (
    BESIDE,
    CHILDREN,
    Effect,
    Settings,
    Text,
    TopicSyntax,
    attribute,
    group,
    like,
)

Action = Literal["allow", "disallow"]


class ClientConnect(Settings, effect=Effect.DISCONNECT):
    """From which addresses clients may connect."""

    default_action: Action = attribute("disallow")
    """For addresses that no exception names. In the profile `default`: allow."""

    exceptions: tuple[str, ...] = attribute(
        (), text=Text(0, 43), examples=("192.0.2.0/24",), child=CHILDREN
    )
    """IPv4 or IPv6 networks (CIDR) that the other action holds for."""


class PublishTopic(Settings, effect=Effect.IN_PLACE):
    """Which topics clients may publish to."""

    default_action: Action = attribute("disallow")
    """For topics that no exception matches. In the profile `default`: allow."""

    exceptions: tuple[str, ...] = attribute((), examples=("public/>",), child=CHILDREN)
    """Topic filters that the other action holds for; $client-username and $client-id stand for the
    client's own."""

    topic_syntax: TopicSyntax = attribute("smf", child=BESIDE)
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class SubscribeTopic(Settings, effect=Effect.IN_PLACE):
    """Which topics clients may subscribe to."""

    default_action: Action = like(PublishTopic, "default_action")
    """For filters that no exception covers. In the profile `default`: allow."""

    exceptions: tuple[str, ...] = like(PublishTopic, "exceptions")

    topic_syntax: TopicSyntax = like(PublishTopic, "topic_syntax")


class SubscribeShareName(Settings, effect=Effect.IN_PLACE):
    """Which groups of shared subscriptions clients may join."""

    default_action: Action = like(PublishTopic, "default_action", default="allow")
    """For group names that no exception matches."""

    exceptions: tuple[str, ...] = like(PublishTopic, "exceptions", examples=("batch/*",))
    """Filters over group names that the other action holds for."""

    topic_syntax: TopicSyntax = like(PublishTopic, "topic_syntax")


class AclProfile(Settings):
    """From where clients may connect, and what they may publish and subscribe to.

    A profile that is written down starts at disallow, as in the field; the built-in `default`
    allows all.
    """

    client_connect: ClientConnect = group(ClientConnect, held=None)
    """From which addresses clients may connect."""

    publish_topic: PublishTopic = group(PublishTopic, held=None)
    """Which topics clients may publish to."""

    subscribe_topic: SubscribeTopic = group(SubscribeTopic, held=None)
    """Which topics clients may subscribe to."""

    subscribe_share_name: SubscribeShareName = group(SubscribeShareName, held=None)
    """Which groups of shared subscriptions clients may join."""

    @staticmethod
    def complete_built_in(written: object) -> object:
        """Return what is written for the profile `default`, with `allow` wherever no action is written."""
        written = {} if written is None else written
        if not isinstance(written, dict):
            return written
        opened = dict(written)
        for name in AclProfile.declared:
            inner = opened.get(name) or {}
            if isinstance(inner, dict):
                opened[name] = {"default_action": "allow", **inner}
        return opened
