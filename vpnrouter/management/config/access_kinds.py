"""Who may log in and do what, in the table of kinds: client usernames, client profiles, ACL profiles."""

from typing import Final

from vpnrouter import limits
from vpnrouter.config.acl_profile import AclProfile
from vpnrouter.config.client_profile import ClientProfile
from vpnrouter.config.client_username import ClientUsername
from vpnrouter.management.config import absent
from vpnrouter.management.config.attribute import TEXT, Attribute
from vpnrouter.management.config.derive import Differences
from vpnrouter.management.config.kind import Kind
from vpnrouter.management.config.msg_vpn_kind import MSG_VPN
from vpnrouter.management.config.row import (
    BESIDE,
    CHILDREN,
    PASSWORD,
    kind_of,
    name_of,
)
from vpnrouter.management.config.store import Named, Texts

CLIENT_USERNAME: Final = kind_of(
    "clientUsernames",
    "msgVpnClientUsername",
    "clientUsername",
    Named("client_usernames", built_in="default"),
    name_of("clientUsername", limits.CLIENT_USERNAME_LENGTH, "The client username."),
    model=ClientUsername,
    parent=MSG_VPN,
    differences=Differences(
        names={"client_profile": "clientProfileName", "acl_profile": "aclProfileName"},
        defaults={"enabled": False},
        lengths={
            "password": PASSWORD,
            "clientProfileName": (1, limits.PROFILE_NAME_LENGTH),
            "aclProfileName": (1, limits.PROFILE_NAME_LENGTH),
        },
        hashed=frozenset({"password"}),
        ours=frozenset({"passwordRequired"}),
    ),
    absent=absent.CLIENT_USERNAME,
    built_in="default",
)

CLIENT_PROFILE: Final = kind_of(
    "clientProfiles",
    "msgVpnClientProfile",
    "clientProfile",
    Named("client_profiles", built_in="default"),
    name_of("clientProfileName", limits.PROFILE_NAME_LENGTH, "Name of the client profile."),
    model=ClientProfile,
    parent=MSG_VPN,
    differences=Differences(
        defaults={
            "allowGuaranteedEndpointCreateEnabled": False,
            "allowGuaranteedMsgReceiveEnabled": False,
            "allowGuaranteedMsgSendEnabled": False,
            "allowSharedSubscriptionsEnabled": False,
        },
        lengths={"endToEndBridge": (0, limits.BRIDGE_NAME_LENGTH)},
        ours=frozenset(
            {
                "endToEndBridge",
                "maxKeepaliveTimeout",
                "maxMqttSessionCountPerClientUsername",
                "maxMqttSessionExpiryInterval",
                "maxOutboxBytes",
            }
        ),
    ),
    absent=absent.CLIENT_PROFILE,
    tolerated=absent.CLIENT_PROFILE_DEPRECATED,
    built_in="default",
)

_GROUPS: Final = ("publish_topic", "subscribe_topic", "subscribe_share_name")

ACL_PROFILE: Final = kind_of(
    "aclProfiles",
    "msgVpnAclProfile",
    "aclProfile",
    Named("acl_profiles", built_in="default"),
    name_of("aclProfileName", limits.PROFILE_NAME_LENGTH, "Name of the ACL profile."),
    model=AclProfile,
    parent=MSG_VPN,
    differences=Differences(
        left={"client_connect.exceptions": CHILDREN}
        | {f"{group}.exceptions": CHILDREN for group in _GROUPS}
        | {f"{group}.topic_syntax": BESIDE for group in _GROUPS},
    ),
    built_in="default",
)


def _exceptions(
    collection: str, title: str, topic: str, syntax: str, group: str, *, deprecated: bool = False
) -> Kind:
    return kind_of(
        collection,
        f"msgVpnAclProfile{title}",
        topic,
        Texts(group, "exceptions", syntax="topic_syntax"),
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
        differences=Differences(),
        changes=False,
        deprecated=deprecated,
    )


EXCEPTIONS: Final = (
    kind_of(
        "clientConnectExceptions",
        "msgVpnAclProfileClientConnectException",
        "clientConnectException",
        Texts("client_connect", "exceptions"),
        name_of("clientConnectExceptionAddress", 43, "An IPv4 or IPv6 network (CIDR)."),
        parent=ACL_PROFILE,
        differences=Differences(),
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
