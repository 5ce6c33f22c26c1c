"""ACL profiles: from where clients may connect, and what they may publish and subscribe to."""

from typing import Annotated, Final, Literal

from pydantic import Field

from vpnrouter.config.model import Many, Model

Action = Literal["allow", "disallow"]
TopicSyntax = Literal["smf", "mqtt"]

GROUPS: Final = ("client_connect", "publish_topic", "subscribe_topic", "subscribe_share_name")


class ClientConnect(Model):
    """From which addresses clients may connect."""

    default_action: Action = "disallow"
    """For addresses that no exception names. In the profile `default`: allow."""

    exceptions: Many[Annotated[str, Field(max_length=43)]] = Field(
        default=(), examples=["192.0.2.0/24"]
    )
    """IPv4 or IPv6 networks (CIDR) that the other action holds for."""


class PublishTopic(Model):
    """Which topics clients may publish to."""

    default_action: Action = "disallow"
    """For topics that no exception matches. In the profile `default`: allow."""

    exceptions: Many[str] = Field(default=(), examples=["public/>"])
    """Topic filters that the other action holds for; $client-username and $client-id stand for the
    client's own."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class SubscribeTopic(Model):
    """Which topics clients may subscribe to."""

    default_action: Action = "disallow"
    """For filters that no exception covers. In the profile `default`: allow."""

    exceptions: Many[str] = Field(default=(), examples=["public/>"])
    """Topic filters that the other action holds for; $client-username and $client-id stand for the
    client's own."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class SubscribeShareName(Model):
    """Which groups of shared subscriptions clients may join."""

    default_action: Action = "allow"
    """For group names that no exception matches."""

    exceptions: Many[str] = Field(default=(), examples=["batch/*"])
    """Filters over group names that the other action holds for."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the exceptions: smf has * and >, mqtt has + and #."""


class AclProfile(Model):
    """From where clients may connect, and what they may publish and subscribe to.

    A profile that is written down starts at disallow, as in the field; the built-in `default`
    allows all.
    """

    client_connect: ClientConnect = Field(default_factory=ClientConnect)
    """From which addresses clients may connect."""

    publish_topic: PublishTopic = Field(default_factory=PublishTopic)
    """Which topics clients may publish to."""

    subscribe_topic: SubscribeTopic = Field(default_factory=SubscribeTopic)
    """Which topics clients may subscribe to."""

    subscribe_share_name: SubscribeShareName = Field(default_factory=SubscribeShareName)
    """Which groups of shared subscriptions clients may join."""


def allow_by_default(written: object) -> object:
    """What is written for the profile `default`, with `allow` wherever no action is written."""
    written = {} if written is None else written
    if not isinstance(written, dict):
        return written
    opened = dict(written)
    for group in GROUPS:
        inner = opened.get(group) or {}
        if isinstance(inner, dict):
            opened[group] = {"default_action": "allow", **inner}
    return opened
