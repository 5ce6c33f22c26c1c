"""Message VPNs: isolated from each other, each with its own clients, rules, queues and bridges."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from vpnrouter import limits
from vpnrouter.config.access import ClientUsername, allow_by_default
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.declared import (
    AclProfile,
    ClientProfile,
    Mqtt,
    Queue,
    ReplayLog,
    TopicEndpoint,
    VpnEvent,
)
from vpnrouter.config.model import (
    AclProfileName,
    BridgeName,
    ClientProfileName,
    ClientUsernameName,
    FilePath,
    Many,
    Model,
    Named,
    QueueName,
    ReplayLogName,
    TopicEndpointName,
)


class BasicAuthentication(Model):
    """Client username and password."""

    enabled: bool = True
    """Whether client username and password are asked for. If neither they nor client certificates
    are, everybody may log in, with any name or none."""


class ClientCertAuthentication(Model):
    """Client certificates; the listener's tls.client_ca says whose, for this message VPN alone `ca`."""

    enabled: bool = False
    """Whether a client may log in with a certificate. Beside basic authentication: a login with
    client username and password uses these, any other one its certificate."""

    ca: FilePath | None = None
    """PEM file with the authorities whose certificates this message VPN takes; without it those of
    every authority that the listener trusts. They are among the listener's tls.client_ca, or issued
    by one of these."""

    max_chain_depth: Annotated[int, Field(ge=0, le=8)] = 3
    """Certificates between the client's own and the authority's."""

    username_source: Literal["common-name", "certificate-thumbprint", "subject-alternate-name"] = (
        "common-name"
    )
    """What of the certificate names the client username: the first common name, the SHA-256 in
    hexadecimal, or the first DNS name, URI or e-mail address."""

    validate_date_enabled: bool = True
    """Whether the certificate and its chain must be valid today."""


class Authentication(Model):
    """How clients and bridges show who they are."""

    basic: BasicAuthentication = Field(default_factory=BasicAuthentication)
    """Client username and password."""

    client_cert: ClientCertAuthentication = Field(default_factory=ClientCertAuthentication)
    """Client certificates."""


class TlsServerCert(Model):
    """How the bridges of this message VPN check the remote router's certificate."""

    ca: FilePath | None = None
    """PEM file with the authorities to trust; without it the system's."""

    crl: FilePath | None = None
    """PEM file with a revocation list of each authority that issues router certificates."""

    max_chain_depth: Annotated[int, Field(ge=0, le=8)] = 3
    """Certificates between the router's own and the authority's."""

    validate_date_enabled: bool = True
    """Whether the certificate must be valid today."""

    validate_name_enabled: bool = True
    """Whether the certificate must name the host that was dialled."""

    trusted_common_names: Many[
        Annotated[str, Field(min_length=1, max_length=limits.COMMON_NAME_LENGTH)]
    ] = Field(default=(), examples=["edge"])
    """If any, the common name of the certificate must be one of these."""


class Bridging(Model):
    """What holds for all bridges of this message VPN."""

    tls_server_cert: TlsServerCert = Field(default_factory=TlsServerCert)
    """How the remote router's certificate is checked."""


def _with_default(written: object) -> object:
    """Add the built-in `default` where it is not written."""
    written = {} if written is None else written
    return {"default": {}, **written} if isinstance(written, dict) else written


def _with_default_acl(written: object) -> object:
    """Add the built-in `default`, which allows everything, or open what is written for it."""
    written = {} if written is None else written
    if not isinstance(written, dict):
        return written
    return {**written, "default": allow_by_default(written.get("default", {}))}


class MsgVpn(Model):
    """One message VPN.

    Client profile, ACL profile and client username `default` always exist. The last one holds for
    clients that log in without a listed client username, where the message VPN lets them in.
    """

    enabled: bool = True
    """Whether clients and bridges may use it."""

    authentication: Authentication = Field(default_factory=Authentication)
    """How clients and bridges show who they are."""

    bridging: Bridging = Field(default_factory=Bridging)
    """What holds for all its bridges."""

    event: VpnEvent = Field(default_factory=VpnEvent)
    """Its events: when they are raised, whether they are published in it."""

    max_connection_count: Annotated[int, Field(ge=1, le=limits.VPN_CONNECTIONS)] = (
        limits.VPN_CONNECTIONS
    )
    """Clients logged in at a time. Beyond: refused."""

    max_egress_flow_count: Annotated[int, Field(ge=0, le=200_000)] = 1000
    """Flows that deliver guaranteed messages. Beyond: refused."""

    max_endpoint_count: Annotated[int, Field(ge=0, le=200_000)] = 1000
    """Queues and topic endpoints, those that clients create included. Beyond: refused."""

    max_ingress_flow_count: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    """Flows that take guaranteed messages. Beyond: refused."""

    max_msg_size: Annotated[int, Field(ge=1, le=limits.MQTT_PACKET_BYTES)] = limits.MESSAGE_BYTES
    """Bytes of a payload. Beyond: refused and counted."""

    max_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 5000
    """Megabytes of guaranteed messages that may wait, and of what is retained; 0 takes none, and retains in memory
    alone."""

    max_retained_msg_count: Annotated[int, Field(ge=0, le=limits.RETAINED_MESSAGES)] = (
        limits.RETAINED_MESSAGES
    )
    """Retained messages. Beyond: delivered but not retained, counted."""

    max_subscription_count: Annotated[int, Field(ge=1, le=4_294_967_295)] = limits.VPN_SUBSCRIPTIONS
    """Subscriptions of all clients together. Beyond: refused."""

    max_topic_bytes: Annotated[int, Field(ge=1, le=limits.TOPIC_BYTES)] = limits.TOPIC_BYTES
    """Bytes of a topic or filter. Beyond: refused."""

    max_topic_levels: Annotated[int, Field(ge=1, le=limits.TOPIC_LEVELS)] = limits.TOPIC_LEVELS
    """Levels of a topic or filter. Beyond: refused."""

    mqtt: Mqtt = Field(default_factory=Mqtt)
    """What holds for its MQTT sessions."""

    client_profiles: Annotated[
        Named[ClientProfileName, ClientProfile], BeforeValidator(_with_default)
    ] = Field(default={}, validate_default=True, examples=["standard"])
    """Client profiles by name."""

    acl_profiles: Annotated[
        Named[AclProfileName, AclProfile], BeforeValidator(_with_default_acl)
    ] = Field(default={}, validate_default=True, examples=["restricted"])
    """ACL profiles by name."""

    client_usernames: Annotated[
        Named[ClientUsernameName, ClientUsername], BeforeValidator(_with_default)
    ] = Field(default={}, validate_default=True, examples=["alice"])
    """Client usernames by name."""

    queues: Named[QueueName, Queue] = Field(default_factory=dict, examples=["orders"])
    """Queues by name."""

    topic_endpoints: Named[TopicEndpointName, TopicEndpoint] = Field(
        default_factory=dict, examples=["audit"]
    )
    """Topic endpoints by name."""

    replay_logs: Named[ReplayLogName, ReplayLog] = Field(default_factory=dict, examples=["replay"])
    """The replay log by its name; a message VPN has at most one."""

    bridges: Named[BridgeName, Bridge] = Field(default_factory=dict, examples=["from-yellow"])
    """Bridges by name."""
