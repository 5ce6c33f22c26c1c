"""Bridges and what belongs to them, in the table of kinds."""

from typing import Final

from vpnrouter import limits
from vpnrouter.config.bridge import Bridge, RemoteMsgVpn, RemoteSubscription
from vpnrouter.management.config import absent
from vpnrouter.management.config.derive import Differences
from vpnrouter.management.config.msg_vpn_kind import MSG_VPN
from vpnrouter.management.config.row import (
    CHILDREN,
    KEY,
    PASSWORD,
    always_of,
    kind_of,
    name_of,
)
from vpnrouter.management.config.store import AUTO, Named, Records, Texts

_OUR_CERTIFICATE: Final = ("ClientCertCertificate", "ClientCertKey")

BRIDGE: Final = kind_of(
    "bridges",
    "msgVpnBridge",
    "bridge",
    Named("bridges", rest=(AUTO,)),
    name_of("bridgeName", limits.BRIDGE_NAME_LENGTH, "Name of the bridge."),
    always_of(
        "bridgeVirtualRouter",
        AUTO,
        "The virtual router that it is on: there is one.",
        identifying=True,
        required=True,
    ),
    path="{bridgeName},{bridgeVirtualRouter}",
    model=Bridge,
    parent=MSG_VPN,
    differences=Differences(
        defaults={"enabled": False},
        lengths={
            "remoteAuthenticationBasicClientUsername": (0, limits.CLIENT_USERNAME_LENGTH),
            "remoteAuthenticationBasicPassword": PASSWORD,
            "remoteAuthenticationClientCertPassword": PASSWORD,
        },
        ours=frozenset(
            {
                "guaranteedRetryInterval",
                "laneBy",
                "maxParkedMsgSpoolUsage",
                "onReject",
                "remoteAuthenticationBasicMechanism",
                "remoteConnectionFailbackDelay",
                "remoteConnectionHeartbeatInterval",
                "retained",
                "topicMapping",
                "topicSyntax",
            }
            | {f"remoteAuthentication{name}" for name in _OUR_CERTIFICATE}
        ),
        files=frozenset(f"remoteAuthentication{name}" for name in _OUR_CERTIFICATE),
        left={"remote_msg_vpns": CHILDREN, "remote_subscriptions": CHILDREN},
    ),
    absent=absent.BRIDGE,
    together=(("remoteAuthenticationBasicClientUsername", "remoteAuthenticationBasicPassword"),),
)

REMOTE_MSG_VPN: Final = kind_of(
    "remoteMsgVpns",
    "msgVpnBridgeRemoteMsgVpn",
    "remoteMsgVpn",
    Records("remote_msg_vpns", fields=("name", "location"), rest=("",)),
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
    model=RemoteMsgVpn,
    parent=BRIDGE,
    differences=Differences(
        names={"router": "remoteRouterName"},
        defaults={"enabled": False},
        lengths={
            "clientUsername": (0, limits.CLIENT_USERNAME_LENGTH),
            "password": PASSWORD,
            "clientCertPassword": PASSWORD,
            "queueBinding": (0, limits.QUEUE_NAME_LENGTH),
            "remoteRouterName": (0, limits.ROUTER_NAME_LENGTH),
        },
        ours=frozenset(
            {
                "authenticationScheme",
                "clientCertCertificate",
                "clientCertKey",
                "clientCertPassword",
                "remoteRouterName",
            }
        ),
        files=frozenset({"clientCertCertificate", "clientCertKey"}),
        left={"name": KEY, "location": KEY},
    ),
    absent=absent.REMOTE_MSG_VPN,
    together=(("clientUsername", "password"),),
)

REMOTE_SUBSCRIPTION: Final = kind_of(
    "remoteSubscriptions",
    "msgVpnBridgeRemoteSubscription",
    "remoteSubscription",
    Records("remote_subscriptions", fields=("topic",)),
    name_of("remoteSubscriptionTopic", limits.TOPIC_BYTES, "A topic filter for Direct messages."),
    model=RemoteSubscription,
    parent=BRIDGE,
    differences=Differences(
        required=frozenset({"deliverAlwaysEnabled"}),
        ours=frozenset({"selector"}),
        left={"topic": KEY},
    ),
    changes=False,
)

TRUSTED_COMMON_NAME: Final = kind_of(
    "tlsTrustedCommonNames",
    "msgVpnBridgeTlsTrustedCommonName",
    "tlsTrustedCommonName",
    Texts("bridging", "tls_server_cert", "trusted_common_names"),
    name_of(
        "tlsTrustedCommonName",
        limits.COMMON_NAME_LENGTH,
        "A common name that remote routers may have; it holds for all bridges of the message VPN.",
    ),
    parent=BRIDGE,
    above=1,
    differences=Differences(),
    changes=False,
    deprecated=True,
)
