"""Trace filters: another share of traced messages for some topics or clients."""

from typing import Annotated

from pydantic import Field

from vpnrouter import limits
from vpnrouter.config.acl_profile import TopicSyntax
from vpnrouter.config.model import Many, Model
from vpnrouter.config.names import ClientUsernameName, MsgVpnName, TraceFilterName


class TraceFilter(Model):
    """Which published messages it looks at, and how many of them are traced. What is left out, or empty,
    fits everything.
    """

    trace_filter_name: Annotated[TraceFilterName, Field(examples=["alarms"])]
    """Name of the filter, for people."""

    enabled: bool = True
    """Whether the filter is looked at."""

    subscriptions: Many[str] = Field(default=(), examples=["alarm/>"])
    """Topic filters; a message's topic has to match one of them."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the subscriptions: smf has * and >, mqtt has + and #."""

    msg_vpns: Many[MsgVpnName] = Field(default=(), examples=["blue"])
    """Message VPNs in which the message is published."""

    client_usernames: Many[ClientUsernameName] = Field(default=(), examples=["sensors"])
    """Client usernames of its publisher."""

    client_names: Many[
        Annotated[str, Field(min_length=1, max_length=limits.TRACE_CLIENT_NAME_LENGTH)]
    ] = Field(default=(), examples=["sensor-*"])
    """Client names of its publisher; one that ends in * fits all that begin alike."""

    sample: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] = 1.0
    """Share of these messages that are traced."""
