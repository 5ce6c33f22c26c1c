"""The table of kinds: every kind of object that the API configures, with what differs from its model."""

from __future__ import annotations

from typing import Final

from vpnrouter import limits
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.management.config import unsupported_attributes
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.document_access import (
    AUTO,
    MappingAccess,
    RecordsAccess,
    TextsAccess,
)
from vpnrouter.management.config.object_type import (
    ObjectType,
    always_of,
    name_of,
    object_type,
)
from vpnrouter.settings import bridge, message_vpn
from vpnrouter.settings.acl_profile import AclProfile
from vpnrouter.settings.bridge import RemoteMsgVpn, RemoteSubscription
from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.endpoint import Queue, ReplayLog, TopicEndpoint

MSG_VPN: Final = object_type(
    "msgVpns",
    "msgVpn",
    "msgVpn",
    MappingAccess("msg_vpns"),
    name_of("msgVpnName", limits.MSG_VPN_NAME_LENGTH, "Name of the message VPN."),
    of=message_vpn.MsgVpn,
    model=MsgVpn,
    children=(
        "client_profiles",
        "acl_profiles",
        "client_usernames",
        "queues",
        "topic_endpoints",
        "replay_logs",
        "bridges",
        "connectors",
    ),
    more=(
        always_of(
            "authenticationBasicType",
            "internal",
            "Where passwords are: with the client usernames.",
            identifying=False,
            required=False,
        ),
    ),
    absent=unsupported_attributes.MSG_VPN,
    tolerated=unsupported_attributes.MSG_VPN_DEPRECATED,
)


CLIENT_USERNAME: Final = object_type(
    "clientUsernames",
    "msgVpnClientUsername",
    "clientUsername",
    MappingAccess("client_usernames", built_in="default"),
    name_of("clientUsername", limits.CLIENT_USERNAME_LENGTH, "The client username."),
    of=ClientUsername,
    parent=MSG_VPN,
    absent=unsupported_attributes.CLIENT_USERNAME,
    built_in="default",
)

CLIENT_PROFILE: Final = object_type(
    "clientProfiles",
    "msgVpnClientProfile",
    "clientProfile",
    MappingAccess("client_profiles", built_in="default"),
    name_of("clientProfileName", limits.PROFILE_NAME_LENGTH, "Name of the client profile."),
    of=ClientProfile,
    parent=MSG_VPN,
    absent=unsupported_attributes.CLIENT_PROFILE,
    tolerated=unsupported_attributes.CLIENT_PROFILE_DEPRECATED,
    built_in="default",
)

ACL_PROFILE: Final = object_type(
    "aclProfiles",
    "msgVpnAclProfile",
    "aclProfile",
    MappingAccess("acl_profiles", built_in="default"),
    name_of("aclProfileName", limits.PROFILE_NAME_LENGTH, "Name of the ACL profile."),
    of=AclProfile,
    parent=MSG_VPN,
    built_in="default",
)


def _exceptions(
    collection: str, title: str, topic: str, syntax: str, group: str, *, deprecated: bool = False
) -> ObjectType:
    return object_type(
        collection,
        f"msgVpnAclProfile{title}",
        topic,
        TextsAccess(group, "exceptions", syntax="topic_syntax"),
        Attribute(
            name=syntax,
            form=TEXT,
            choices=("smf", "mqtt"),
            required=True,
            identifying=True,
            says="Dialect of the exception; all of one list have the same.",
        ),
        name_of(topic, limits.TOPIC_BYTES, "Topics that the other action holds for."),
        path=f"{{{syntax}:word}},{{{topic}}}",
        parent=ACL_PROFILE,
        changes=False,
        deprecated=deprecated,
    )


EXCEPTIONS: Final = (
    object_type(
        "clientConnectExceptions",
        "msgVpnAclProfileClientConnectException",
        "clientConnectException",
        TextsAccess("client_connect", "exceptions"),
        name_of("clientConnectExceptionAddress", 43, "An IPv4 or IPv6 network (CIDR)."),
        parent=ACL_PROFILE,
        changes=False,
    ),
    _exceptions(
        "publishTopicExceptions",
        "PublishTopicException",
        "publishTopicException",
        "publishTopicExceptionSyntax",
        "publish_topic",
    ),
    _exceptions(
        "subscribeTopicExceptions",
        "SubscribeTopicException",
        "subscribeTopicException",
        "subscribeTopicExceptionSyntax",
        "subscribe_topic",
    ),
    _exceptions(
        "subscribeShareNameExceptions",
        "SubscribeShareNameException",
        "subscribeShareNameException",
        "subscribeShareNameExceptionSyntax",
        "subscribe_share_name",
    ),
    # The field's older names for two of them; clients made then still use these.
    _exceptions(
        "publishExceptions",
        "PublishException",
        "publishExceptionTopic",
        "topicSyntax",
        "publish_topic",
        deprecated=True,
    ),
    _exceptions(
        "subscribeExceptions",
        "SubscribeException",
        "subscribeExceptionTopic",
        "topicSyntax",
        "subscribe_topic",
        deprecated=True,
    ),
)


BRIDGE: Final = object_type(
    "bridges",
    "msgVpnBridge",
    "bridge",
    MappingAccess("bridges", rest=(AUTO,)),
    name_of("bridgeName", limits.BRIDGE_NAME_LENGTH, "Name of the bridge."),
    always_of(
        "bridgeVirtualRouter",
        AUTO,
        "The virtual router that it is on: there is one.",
        identifying=True,
        required=True,
    ),
    path="{bridgeName},{bridgeVirtualRouter}",
    of=bridge.Bridge,
    model=Bridge,
    parent=MSG_VPN,
    absent=unsupported_attributes.BRIDGE,
    together=(("remoteAuthenticationBasicClientUsername", "remoteAuthenticationBasicPassword"),),
)

REMOTE_MSG_VPN: Final = object_type(
    "remoteMsgVpns",
    "msgVpnBridgeRemoteMsgVpn",
    "remoteMsgVpn",
    RecordsAccess("remote_msg_vpns", fields=("name", "location"), rest=("",)),
    name_of("remoteMsgVpnName", limits.MSG_VPN_NAME_LENGTH, "The remote message VPN."),
    name_of(
        "remoteMsgVpnLocation",
        limits.LOCATION_LENGTH,
        "HOST[:PORT], [IPV6][:PORT] or v:ROUTER of the remote router.",
    ),
    always_of(
        "remoteMsgVpnInterface",
        "",
        "The interface to go out by: the system chooses.",
        identifying=True,
        required=False,
    ),
    path="{remoteMsgVpnName},{remoteMsgVpnLocation},{remoteMsgVpnInterface:blank}",
    of=RemoteMsgVpn,
    parent=BRIDGE,
    absent=unsupported_attributes.REMOTE_MSG_VPN,
    together=(("clientUsername", "password"),),
)

REMOTE_SUBSCRIPTION: Final = object_type(
    "remoteSubscriptions",
    "msgVpnBridgeRemoteSubscription",
    "remoteSubscription",
    RecordsAccess("remote_subscriptions", fields=("topic",)),
    name_of("remoteSubscriptionTopic", limits.TOPIC_BYTES, "A topic filter for Direct messages."),
    of=RemoteSubscription,
    parent=BRIDGE,
    changes=False,
)

TRUSTED_COMMON_NAME: Final = object_type(
    "tlsTrustedCommonNames",
    "msgVpnBridgeTlsTrustedCommonName",
    "tlsTrustedCommonName",
    TextsAccess("bridging", "tls_server_cert", "trusted_common_names"),
    name_of(
        "tlsTrustedCommonName",
        limits.COMMON_NAME_LENGTH,
        "A common name that remote routers may have; it holds for all bridges of the message VPN.",
    ),
    parent=BRIDGE,
    above=1,
    changes=False,
    deprecated=True,
)


QUEUE: Final = object_type(
    "queues",
    "msgVpnQueue",
    "queue",
    MappingAccess("queues"),
    name_of("queueName", limits.QUEUE_NAME_LENGTH, "Name of the queue."),
    of=Queue,
    parent=MSG_VPN,
    absent=unsupported_attributes.QUEUE,
)

QUEUE_SUBSCRIPTION: Final = object_type(
    "subscriptions",
    "msgVpnQueueSubscription",
    "subscription",
    TextsAccess("subscriptions"),
    name_of("subscriptionTopic", limits.TOPIC_BYTES, "A topic filter of what the queue attracts."),
    parent=QUEUE,
    changes=False,
)

TOPIC_ENDPOINT: Final = object_type(
    "topicEndpoints",
    "msgVpnTopicEndpoint",
    "topicEndpoint",
    MappingAccess("topic_endpoints"),
    name_of("topicEndpointName", limits.QUEUE_NAME_LENGTH, "Name of the topic endpoint."),
    of=TopicEndpoint,
    parent=MSG_VPN,
    absent=unsupported_attributes.TOPIC_ENDPOINT,
)

REPLAY_LOG: Final = object_type(
    "replayLogs",
    "msgVpnReplayLog",
    "replayLog",
    MappingAccess("replay_logs"),
    name_of("replayLogName", limits.REPLAY_LOG_NAME_LENGTH, "Name of the replay log."),
    of=ReplayLog,
    parent=MSG_VPN,
)

TOPIC_FILTER: Final = object_type(
    "topicFilterSubscriptions",
    "msgVpnReplayLogTopicFilterSubscription",
    "topicFilterSubscription",
    TextsAccess("topic_filter", "subscriptions"),
    name_of("topicFilterSubscription", limits.TOPIC_BYTES, "A topic filter of what is logged."),
    parent=REPLAY_LOG,
    changes=False,
)


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


def children_of(kind: ObjectType) -> tuple[ObjectType, ...]:
    """Return the kinds directly below a kind."""
    return tuple(each for each in KINDS if each.parent is kind)
