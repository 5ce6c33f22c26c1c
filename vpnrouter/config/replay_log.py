"""Replay logs: what was taken before, to be delivered again."""

from typing import Annotated

from pydantic import Field

from vpnrouter.config.acl_profile import TopicSyntax
from vpnrouter.config.model import Many, Model


class TopicFilter(Model):
    """Which messages a replay log takes."""

    enabled: bool = True
    """Whether the subscriptions choose; without any, every message is logged."""

    subscriptions: Many[str] = Field(default=(), examples=["orders/>"])
    """Topic filters of what is logged; with a leading ! of what is not."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""


class ReplayLog(Model):
    """The replay log of a message VPN: every guaranteed message that was not refused, also after its
    consumers have acknowledged it.
    """

    egress_enabled: bool = True
    """Whether messages may be replayed from it."""

    ingress_enabled: bool = True
    """Whether messages are logged."""

    max_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 1000
    """Megabytes of logged messages. Beyond: the oldest are forgotten. 0 logs nothing."""

    topic_filter: TopicFilter = Field(default_factory=TopicFilter)
    """Which messages are logged."""
