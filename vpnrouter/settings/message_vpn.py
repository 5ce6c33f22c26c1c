"""Message VPNs: isolated from each other, each with its own clients, rules, queues and bridges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.endpoint import Mqtt, QueueDefaults
from vpnrouter.settings.event import VpnEvent
from vpnrouter.settings.schema import LONGEST, MEGABYTES, Effect, Settings, Text, attribute, group

UsernameSource = Literal["common-name", "certificate-thumbprint", "subject-alternate-name"]


# Where authentication is enabled, names that are not listed may not stay.
class BasicAuthentication(Settings, effect=Effect.DISCONNECT):
    """Client username and password."""

    enabled: bool = attribute(True, off=Effect.NEXT_LOGIN)
    """Whether client username and password are asked for. If neither they nor client certificates
    are, everybody may log in, with any name or none."""


class ClientCertAuthentication(Settings, effect=Effect.NEXT_LOGIN):
    """Client certificates; the listener's tls.client_ca says whose, for this message VPN alone `ca`."""

    enabled: bool = attribute(False, effect=Effect.DISCONNECT, off=Effect.NEXT_LOGIN)
    """Whether a client may log in with a certificate. Beside basic authentication: a login with
    client username and password uses these, any other one its certificate."""

    ca: str | None = attribute(None, text=names.PATH, file=True, ours=True)
    """PEM file with the authorities whose certificates this message VPN takes; without it those of
    every authority that the listener trusts. They are among the listener's tls.client_ca, or issued
    by one of these."""

    max_chain_depth: int = attribute(3, least=0, most=8)
    """Certificates between the client's own and the authority's."""

    username_source: UsernameSource = attribute("common-name")
    """What of the certificate names the client username: the first common name, the SHA-256 in
    hexadecimal, or the first DNS name, URI or e-mail address."""

    validate_date_enabled: bool = attribute(True)
    """Whether the certificate and its chain must be valid today."""


class Authentication(Settings):
    """How clients and bridges show who they are."""

    basic: BasicAuthentication = group(BasicAuthentication)
    """Client username and password."""

    client_cert: ClientCertAuthentication = group(ClientCertAuthentication)
    """Client certificates."""


# As in the field: every TLS bridge of the message VPN shakes hands again.
class TlsServerCert(Settings, effect=Effect.RECONNECT):
    """How the bridges of this message VPN check the remote router's certificate."""

    ca: str | None = attribute(None, text=names.PATH, file=True, ours=True)
    """PEM file with the authorities to trust; without it the system's."""

    crl: str | None = attribute(None, text=names.PATH, file=True, ours=True)
    """PEM file with a revocation list of each authority that issues router certificates."""

    max_chain_depth: int = attribute(3, least=0, most=8)
    """Certificates between the router's own and the authority's."""

    validate_date_enabled: bool = attribute(True)
    """Whether the certificate must be valid today."""

    validate_name_enabled: bool = attribute(True)
    """Whether the certificate must name the host that was dialled."""

    trusted_common_names: tuple[str, ...] = attribute(
        (), text=Text(1, limits.COMMON_NAME_LENGTH), examples=("edge",), ours=True
    )
    """If any, the common name of the certificate must be one of these."""


class Bridging(Settings):
    """What holds for all bridges of this message VPN."""

    tls_server_cert: TlsServerCert = group(TlsServerCert)
    """How the remote router's certificate is checked."""


class MsgVpn(Settings, effect=Effect.IN_PLACE):
    """One message VPN.

    Client profile, ACL profile and client username `default` always exist. The last one holds for
    clients that log in without a listed client username, where the message VPN lets them in.
    """

    enabled: bool = attribute(True, off=Effect.DISCONNECT, semp_default=False, held=None)
    """Whether clients and bridges may use it."""

    authentication: Authentication = group(Authentication, held=None)
    """How clients and bridges show who they are."""

    bridging: Bridging = group(Bridging, held=None)
    """What holds for all its bridges."""

    event: VpnEvent = group(VpnEvent)
    """Its events: when they are raised, whether they are published in it."""

    max_connection_count: int = attribute(
        limits.VPN_CONNECTIONS, least=1, most=limits.VPN_CONNECTIONS
    )
    """Clients logged in at a time. Beyond: refused."""

    max_egress_flow_count: int = attribute(
        limits.VPN_ENDPOINTS, least=0, most=200_000, semp_default=1000
    )
    """Flows that deliver guaranteed messages; with 0 nobody binds. Beyond: refused."""

    max_endpoint_count: int = attribute(
        limits.VPN_ENDPOINTS, least=0, most=200_000, semp_default=1000
    )
    """Queues and topic endpoints, those that clients create included. Beyond: refused."""

    max_ingress_flow_count: int = attribute(1000, least=0, most=1_000_000)
    """Flows that take guaranteed messages. Beyond: refused."""

    # A client and a link were told at their login how large a message may be.
    max_memory_bytes: int = attribute(
        limits.MSG_VPN_MEMORY,
        least=limits.OUTBOX_BYTES_LEAST,
        most=limits.MSG_VPN_MEMORY_MOST,
        ours=True,
    )
    """Bytes that the router keeps in memory for all clients together, of any kind. Beyond: the
    client that holds most is disconnected."""

    max_msg_size: int = attribute(
        limits.MESSAGE_BYTES,
        least=1,
        most=limits.MQTT_PACKET_BYTES,
        effect=Effect.NEXT_LOGIN,
        ours=True,
    )
    """Bytes of a payload. Beyond: refused and counted."""

    max_msg_spool_usage: int = attribute(
        limits.VPN_SPOOL_BYTES // MEGABYTES,
        least=0,
        most=6_000_000,
        scale=MEGABYTES,
        semp_default=0,
    )
    """Megabytes of guaranteed messages that may wait, and of what is retained; 0 takes none, and retains in memory
    alone."""

    max_retained_msg_count: int = attribute(
        limits.RETAINED_MESSAGES, least=0, most=limits.RETAINED_MESSAGES, ours=True
    )
    """Retained messages. Beyond: delivered but not retained, counted."""

    max_subscription_count: int = attribute(limits.VPN_SUBSCRIPTIONS, least=1, most=LONGEST)
    """Subscriptions of all clients together. Beyond: refused."""

    max_topic_bytes: int = attribute(
        limits.TOPIC_BYTES, least=1, most=limits.TOPIC_BYTES, ours=True
    )
    """Bytes of a topic or filter. Beyond: refused."""

    max_topic_levels: int = attribute(
        limits.TOPIC_LEVELS, least=1, most=limits.TOPIC_LEVELS, ours=True
    )
    """Levels of a topic or filter. Beyond: refused."""

    mqtt: Mqtt = group(Mqtt)
    """What holds for its MQTT sessions."""

    queue_defaults: QueueDefaults = group(QueueDefaults, held=None, ours=True)
    """What its queues and topic endpoints respect where they say nothing of it themselves."""

    @staticmethod
    def complete(written: Mapping[str, Any]) -> Mapping[str, Any]:
        """Let queues and topic endpoints that say nothing of it have what is written in `queue_defaults`."""
        defaults = written.get("queue_defaults")
        if not defaults or not isinstance(defaults, dict):
            return written
        # What is wrong in them is told once, and not of each queue.
        known = {
            key: one
            for key, one in defaults.items()
            if key in QueueDefaults.declared and isinstance(one, bool)
        }
        completed = dict(written)
        for key in ("queues", "topic_endpoints"):
            named = written.get(key)
            if isinstance(named, dict):
                completed[key] = {name: _below(one, known) for name, one in named.items()}
        return completed


def _below(written: Any, defaults: Mapping[str, bool]) -> Any:  # noqa: ANN401 - what a document has
    """Return what is written for an object, with what is written elsewhere for those that say nothing."""
    written = {} if written is None else written
    return {**defaults, **written} if isinstance(written, dict) else written
