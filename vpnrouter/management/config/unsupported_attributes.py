"""Attributes of the field that this router does not have, each with the field's default.

The default is taken and means nothing, so that what was made for the field need not leave it out; every
other value is refused by name. Where the field has no default of its own but "as much as there can be",
that number stands here.
"""

from collections.abc import Mapping
from typing import Any, Final

from vpnrouter.settings import kinds
from vpnrouter.settings.kinds import Kind


def _percent(*names: str, clear: int = 60, of: int = 80) -> dict[str, Any]:
    return {f"event{name}Threshold": {"clearPercent": clear, "setPercent": of} for name in names}


_MSG_VPN: Final[dict[str, Any]] = {
    "alias": "",
    "allowDmqEligibleEndpointOverrideEnabled": True,
    "authenticationBasicProfileName": "default",
    "authenticationBasicRadiusDomain": "",
    "authenticationClientCertAllowApiProvidedUsernameEnabled": False,
    "authenticationClientCertCertificateMatchingRulesEnabled": False,
    "authenticationClientCertRevocationCheckMode": "allow-valid",
    "authenticationKerberosAllowApiProvidedUsernameEnabled": False,
    "authenticationKerberosEnabled": False,
    "authenticationOauthDefaultProviderName": "",
    "authenticationOauthDefaultProfileName": "",
    "authenticationOauthEnabled": False,
    "authorizationLdapGroupMembershipAttributeName": "memberOf",
    "authorizationLdapTrimClientUsernameDomainEnabled": False,
    "authorizationProfileName": "",
    "authorizationType": "internal",
    "distributedCacheManagementEnabled": True,
    "dmrEnabled": False,
    **_percent(
        "ServiceAmqpConnectionCount",
        "ServiceMqttConnectionCount",
        "ServiceRestIncomingConnectionCount",
        "ServiceSmfConnectionCount",
        "ServiceWebConnectionCount",
        "TransactedSessionCount",
        "TransactionCount",
    ),
    "exportSubscriptionsEnabled": False,
    "jndiEnabled": False,
    "maxKafkaBrokerConnectionCount": 10_000,
    "maxTransactedSessionCount": 30_000,
    "maxTransactionCount": 50_000,
    "preferIpVersion": "ipv4",
    "replicationAckPropagationIntervalMsgCount": 20,
    "replicationBridgeAuthenticationBasicClientUsername": "",
    "replicationBridgeAuthenticationBasicPassword": "",
    "replicationBridgeAuthenticationClientCertContent": "",
    "replicationBridgeAuthenticationClientCertPassword": "",
    "replicationBridgeAuthenticationScheme": "basic",
    "replicationBridgeCompressedDataEnabled": False,
    "replicationBridgeEgressFlowWindowSize": 255,
    "replicationBridgeRetryDelay": 3,
    "replicationBridgeTlsEnabled": False,
    "replicationBridgeUnidirectionalClientProfileName": "#client-profile",
    "replicationEnabled": False,
    "replicationEnabledQueueBehavior": "fail-on-existing-queue",
    "replicationQueueMaxMsgSpoolUsage": 60_000,
    "replicationQueueRejectMsgToSenderOnDiscardEnabled": True,
    "replicationRejectMsgWhenSyncIneligibleEnabled": False,
    "replicationRole": "standby",
    "replicationTransactionMode": "async",
    "restTlsServerCertMaxChainDepth": 3,
    "restTlsServerCertValidateDateEnabled": True,
    "restTlsServerCertValidateNameEnabled": True,
    "sempOverMsgBusAdminClientEnabled": False,
    "sempOverMsgBusAdminDistributedCacheEnabled": False,
    "sempOverMsgBusAdminEnabled": False,
    "sempOverMsgBusEnabled": True,
    "sempOverMsgBusShowEnabled": False,
    "serviceAmqpMaxConnectionCount": 200_000,
    "serviceAmqpPlainTextEnabled": False,
    "serviceAmqpPlainTextListenPort": 0,
    "serviceAmqpTlsEnabled": False,
    "serviceAmqpTlsListenPort": 0,
    "serviceMqttMaxConnectionCount": 200_000,
    "serviceMqttPlainTextEnabled": False,
    "serviceMqttPlainTextListenPort": 0,
    "serviceMqttTlsEnabled": False,
    "serviceMqttTlsListenPort": 0,
    "serviceMqttTlsWebSocketEnabled": False,
    "serviceMqttTlsWebSocketListenPort": 0,
    "serviceMqttWebSocketEnabled": False,
    "serviceMqttWebSocketListenPort": 0,
    "serviceRestIncomingAuthorizationHeaderHandling": "drop",
    "serviceRestIncomingMaxConnectionCount": 200_000,
    "serviceRestIncomingPlainTextEnabled": False,
    "serviceRestIncomingPlainTextListenPort": 0,
    "serviceRestIncomingTlsEnabled": False,
    "serviceRestIncomingTlsListenPort": 0,
    "serviceRestMode": "messaging",
    "serviceRestOutgoingMaxConnectionCount": 30_000,
    "serviceSmfMaxConnectionCount": 200_000,
    "serviceSmfPlainTextEnabled": True,
    "serviceSmfTlsEnabled": True,
    "serviceWebMaxConnectionCount": 200_000,
    "serviceWebPlainTextEnabled": True,
    "serviceWebTlsEnabled": True,
    "tlsAllowDowngradeToPlainTextEnabled": False,
}

_MSG_VPN_DEPRECATED: Final = frozenset(
    {
        "bridgingTlsServerCertEnforceTrustedCommonNameEnabled",
        "restTlsServerCertEnforceTrustedCommonNameEnabled",
        "sempOverMsgBusLegacyShowClearEnabled",
    }
)

_CLIENT_USERNAME: Final[dict[str, Any]] = {"subscriptionManagerEnabled": False}

_CLIENT_PROFILE: Final[dict[str, Any]] = {
    "allowTransactedSessionsEnabled": False,
    "apiQueueManagementCopyFromOnCreateTemplateName": "",
    "apiTopicEndpointManagementCopyFromOnCreateTemplateName": "",
    **_percent("ClientProvisionedEndpointSpoolUsage", clear=18, of=25),
    **_percent(
        "EgressFlowCount",
        "EndpointCountPerClientUsername",
        "IngressFlowCount",
        "ServiceSmfConnectionCountPerClientUsername",
        "ServiceWebConnectionCountPerClientUsername",
        "SubscriptionCount",
        "TransactedSessionCount",
        "TransactionCount",
    ),
    "maxAmqpLinkCount": 146_625,
    "maxMsgsPerTransaction": 256,
    "maxTransactedSessionCount": 10,
    "maxTransactionCount": 50_000,
    "queueControl1MaxDepth": 20_000,
    "queueControl1MinMsgBurst": 4,
    "queueDirect1MaxDepth": 20_000,
    "queueDirect1MinMsgBurst": 4,
    "queueDirect2MaxDepth": 20_000,
    "queueDirect2MinMsgBurst": 4,
    "queueDirect3MaxDepth": 20_000,
    "queueDirect3MinMsgBurst": 4,
    "queueGuaranteed1MaxDepth": 20_000,
    "queueGuaranteed1MinMsgBurst": 255,
    "replicationAllowClientConnectWhenStandbyEnabled": False,
    "serviceMinKeepaliveTimeout": 30,
    "serviceSmfMaxConnectionCountPerClientUsername": 200_000,
    "serviceSmfMinKeepaliveEnabled": False,
    "serviceWebInactiveTimeout": 30,
    "serviceWebMaxConnectionCountPerClientUsername": 200_000,
    "serviceWebMaxPayload": 1_000_000,
    "tcpKeepaliveCount": 5,
    "tcpKeepaliveIdleTime": 3,
    "tcpKeepaliveInterval": 1,
    "tcpMaxSegmentSize": 1460,
    "tlsAllowDowngradeToPlainTextEnabled": True,
}

_CLIENT_PROFILE_DEPRECATED: Final = frozenset(
    {
        "allowCutThroughForwardingEnabled",
        "apiQueueManagementCopyFromOnCreateName",
        "apiTopicEndpointManagementCopyFromOnCreateName",
        "tcpCongestionWindowSize",
        "tcpMaxWindowSize",
    }
)

_ENDPOINT: Final[dict[str, Any]] = {"consumerAckPropagationEnabled": True}

ABSENT: Final[Mapping[Kind, dict[str, Any]]] = {
    kinds.MSG_VPN: _MSG_VPN,
    kinds.CLIENT_USERNAME: _CLIENT_USERNAME,
    kinds.CLIENT_PROFILE: _CLIENT_PROFILE,
    kinds.QUEUE: _ENDPOINT,
    kinds.TOPIC_ENDPOINT: _ENDPOINT,
    kinds.BRIDGE: {"remoteAuthenticationClientCertContent": ""},
    kinds.REMOTE_MSG_VPN: {"unidirectionalClientProfile": "#client-profile"},
}
"""Those of each kind that has any."""

DEPRECATED: Final[Mapping[Kind, frozenset[str]]] = {
    kinds.MSG_VPN: _MSG_VPN_DEPRECATED,
    kinds.CLIENT_PROFILE: _CLIENT_PROFILE_DEPRECATED,
}
"""Attributes that the field has given up; any value is taken."""
