"""The table of kinds: every kind of object that the API configures."""

from typing import Final

from vpnrouter.management.config.access_kinds import (
    ACL_PROFILE,
    CLIENT_PROFILE,
    CLIENT_USERNAME,
    EXCEPTIONS,
)
from vpnrouter.management.config.bridge_kinds import (
    BRIDGE,
    REMOTE_MSG_VPN,
    REMOTE_SUBSCRIPTION,
    TRUSTED_COMMON_NAME,
)
from vpnrouter.management.config.endpoint_kinds import (
    QUEUE,
    QUEUE_SUBSCRIPTION,
    REPLAY_LOG,
    TOPIC_ENDPOINT,
    TOPIC_FILTER,
)
from vpnrouter.management.config.kind import Kind
from vpnrouter.management.config.msg_vpn_kind import MSG_VPN

KINDS: Final = (
    MSG_VPN,
    CLIENT_USERNAME,
    CLIENT_PROFILE,
    ACL_PROFILE,
    *EXCEPTIONS,
    QUEUE,
    QUEUE_SUBSCRIPTION,
    TOPIC_ENDPOINT,
    BRIDGE,
    REMOTE_MSG_VPN,
    REMOTE_SUBSCRIPTION,
    TRUSTED_COMMON_NAME,
    REPLAY_LOG,
    TOPIC_FILTER,
)
"""All kinds, each behind the one that it stands in."""


def children_of(kind: Kind) -> tuple[Kind, ...]:
    """The kinds that stand in objects of a kind."""
    return tuple(each for each in KINDS if each.parent is kind)
