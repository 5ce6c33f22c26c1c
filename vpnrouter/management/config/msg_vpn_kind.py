"""The message VPN in the table of kinds."""

from typing import Final

from vpnrouter import limits
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.management.config import absent
from vpnrouter.management.config.derive import Differences
from vpnrouter.management.config.row import (
    CHILDREN,
    always_of,
    kind_of,
    name_of,
)
from vpnrouter.management.config.store import Named

MSG_VPN: Final = kind_of(
    "msgVpns",
    "msgVpn",
    "msgVpn",
    Named("msg_vpns"),
    name_of("msgVpnName", limits.MSG_VPN_NAME_LENGTH, "Name of the message VPN."),
    model=MsgVpn,
    differences=Differences(
        defaults={
            "enabled": False,
            "eventPublishTopicFormatMqttEnabled": False,
            "maxMsgSpoolUsage": 0,
        },
        lengths={"eventLogTag": (0, 32)},
        ours=frozenset(
            {
                "authenticationClientCertCa",
                "bridgingTlsServerCertCa",
                "bridgingTlsServerCertCrl",
                "bridgingTlsServerCertTrustedCommonNames",
                "maxMsgSize",
                "maxRetainedMsgCount",
                "maxTopicBytes",
                "maxTopicLevels",
                "mqttMaxSessionCount",
                "mqttSessionQueue*",
            }
        ),
        files=frozenset(
            {"authenticationClientCertCa", "bridgingTlsServerCertCa", "bridgingTlsServerCertCrl"}
        ),
        left=dict.fromkeys(
            (
                "client_profiles",
                "acl_profiles",
                "client_usernames",
                "queues",
                "topic_endpoints",
                "replay_logs",
                "bridges",
            ),
            CHILDREN,
        ),
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
    absent=absent.MSG_VPN,
    tolerated=absent.MSG_VPN_DEPRECATED,
)
