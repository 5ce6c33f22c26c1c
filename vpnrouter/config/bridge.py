"""Bridges: created in the message VPN that receives; their remote message VPNs, subscriptions and topic mappings."""

from __future__ import annotations

import ssl
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from vpnrouter import limits
from vpnrouter.config.listeners import Address, Location, parse_location, router_of
from vpnrouter.config.model import (
    ClientUsernameName,
    FilePath,
    Many,
    Model,
    MsgVpnName,
    QueueName,
    RouterName,
)
from vpnrouter.config.secrets import Secret
from vpnrouter.settings.schema import TopicSyntax


class TopicMapping(Model):
    """One rule: `{from, to}`, `{add_prefix}` or `{strip_prefix}`, each with its direction."""

    from_: Annotated[str | None, Field(alias="from")] = None
    """Filter in the dialect of the bridge for topics to map; needs to."""

    to: str | None = None
    """What such a topic becomes; {1}, {2} … are what the wildcards of from matched, in order."""

    add_prefix: Annotated[str | None, Field(examples=["yellow/"])] = None
    """Levels put before every topic."""

    strip_prefix: str | None = None
    """Levels taken away from the topics below them."""

    direction: Literal["in", "out", "both"] = "in"
    """in: messages that this bridge brings; out: messages that a bridge of the remote message VPN
    takes from here; both: in as written, and out the other way round."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        pair = (self.from_ is not None) + (self.to is not None)
        forms = (pair > 0) + (self.add_prefix is not None) + (self.strip_prefix is not None)
        if forms != 1 or pair == 1:
            raise ValueError(
                "a topic mapping has exactly one of from with to, add_prefix, strip_prefix"
            )
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """As it stands in a file, where `from` is no word of Python."""
        return {"from" if key == "from_" else key: value for key, value in write(self).items()}


AuthenticationScheme = Literal["basic", "client-certificate"]


def _check_heartbeat(interval: int) -> int:
    if 0 < interval < limits.LINK_HEARTBEAT_MIN_MS:
        raise ValueError(
            f"must be 0 or from {limits.LINK_HEARTBEAT_MIN_MS} to {limits.LINK_HEARTBEAT_MAX_MS},"
            f" not {interval}"
        )
    return interval


DEFAULT_CIPHERS: Final = "default"


def _check_ciphers(written: str) -> str:
    """Check that OpenSSL knows all names for TLS 1.2: it would pass over others in silence."""
    if written == DEFAULT_CIPHERS:
        return written
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL")
    known = {str(each["name"]) for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"}
    for name in written.split(":"):
        if name not in known:
            raise ValueError(f"{name!r} is no cipher suite of TLS 1.2 that this system has")
    return written


class BasicRemoteAuthentication(Model):
    """Client username and password for the remote message VPN."""

    client_username: Annotated[ClientUsernameName | None, Field(examples=["bridge"])] = None
    """Client username to log in with; its client profile must allow bridge connections."""

    mechanism: Literal["scram-sha-256", "plain"] = "scram-sha-256"
    """How the password is used. scram-sha-256: both sides prove that they know it, and nobody sees it.
    plain: it is shown, which needs tls_enabled and a verified name of every remote router."""

    password: Secret | None = None
    """Its password: text, {env: NAME} or {file: PATH}."""


class ClientCertRemoteAuthentication(Model):
    """Client certificate for the remote message VPN."""

    certificate: FilePath | None = None
    """PEM file with the certificate and, after it, the chain."""

    key: FilePath | None = None
    """PEM file with the private key."""

    password: Secret | None = None
    """What decrypts the private key."""


class RemoteAuthentication(Model):
    """How a bridge logs in to its remote message VPNs."""

    scheme: AuthenticationScheme = "basic"
    """basic: client username and password; client-certificate: needs TLS to every remote message
    VPN."""

    basic: BasicRemoteAuthentication = Field(default_factory=BasicRemoteAuthentication)
    """Client username and password."""

    client_cert: ClientCertRemoteAuthentication = Field(
        default_factory=ClientCertRemoteAuthentication
    )
    """Client certificate."""


class RemoteConnection(Model):
    """How often a remote message VPN is tried, and how its loss is noticed."""

    retry_count: Annotated[int, Field(ge=0, le=255)] = 0
    """Tries of one remote message VPN before the next one in connect order; 0 is one try."""

    retry_delay: Annotated[int, Field(ge=0, le=255)] = 3
    """Seconds between two tries, before jitter."""

    failback_delay: Annotated[int, Field(ge=0, le=86_400)] = 30
    """Seconds that a remote message VPN of lower connect order must have been healthy before the
    bridge goes back to it; 0 never goes back."""

    heartbeat_interval: Annotated[
        int, Field(ge=0, le=limits.LINK_HEARTBEAT_MAX_MS), AfterValidator(_check_heartbeat)
    ] = limits.LINK_HEARTBEAT_MS
    """Milliseconds of silence after which the peer is asked for a sign of life; without one after
    three of them the connection is lost. 0 asks never, else at least 100."""


class RemoteMsgVpn(Model):
    """One place where a bridge finds its messages."""

    name: Annotated[MsgVpnName, Field(examples=["yellow"])]
    """The remote message VPN."""

    router: RouterName | None = None
    """Name that the remote router must give; without it any is taken."""

    location: Annotated[Location, Field(examples=["127.0.0.1:55556"])]
    """HOST[:PORT] or [IPV6][:PORT] of a link listener (port 55555, with TLS 55443), or v:ROUTER."""

    enabled: bool = True
    """Whether it is used."""

    connect_order: Annotated[int, Field(ge=1, le=4)] = 4
    """Preference among several, 1 first."""

    queue_binding: QueueName | None = None
    """Exclusive queue of the remote message VPN that guaranteed messages are taken from."""

    client_username: ClientUsernameName | None = None
    """Used here instead of remote_authentication's."""

    password: Secret | None = None
    """Used here instead of remote_authentication's; needs client_username."""

    authentication_scheme: Annotated[AuthenticationScheme | None, Field(examples=["basic"])] = None
    """Used here instead of remote_authentication's scheme; client-certificate needs tls_enabled."""

    client_cert: ClientCertRemoteAuthentication | None = None
    """Used here instead of remote_authentication's client certificate."""

    tls_enabled: bool = False
    """Whether the connection is encrypted."""

    compressed_data_enabled: bool = False
    """Whether the connection is compressed."""

    egress_flow_window_size: Annotated[int, Field(ge=0, le=65_535)] = 255
    """Guaranteed messages on the way and not yet acknowledged."""

    @property
    def address(self) -> Address | None:
        """`location` taken apart; None where it names a router."""
        if router_of(self.location) is not None:
            return None
        return parse_location(self.location, tls_enabled=self.tls_enabled)


class RemoteSubscription(Model):
    """A topic filter that attracts Direct messages from the remote message VPN."""

    topic: Annotated[str, Field(examples=["weather/>"])]
    """FILTER; !FILTER for topics that the other filters of the bridge do not attract;
    #share/GROUP/FILTER ($share/ in mqtt syntax) to take turns with the other members of the
    group."""

    deliver_always_enabled: bool = False
    """Whether messages come even when they are sent to one receiver only and another one gets
    them."""

    selector: str | None = None
    """Condition on headers and properties, SQL-92 as in JMS, for example "severity > 3"; only
    messages that fulfil it come."""


def _written_short(value: object) -> object:
    """Take `- FILTER` for `- {topic: FILTER}`."""
    return {"topic": value} if isinstance(value, str) else value


class Bridge(Model):
    """A bridge into the message VPN that it stands in."""

    enabled: bool = True
    """Whether it connects."""

    guaranteed_retry_interval: Annotated[int, Field(ge=10, le=3_600_000)] = 1000
    """Milliseconds until a guaranteed message that this message VPN has refused is tried again."""

    lane_by: Literal["topic", "partition-key"] = "topic"
    """What makes a lane, in which on_reject: park keeps the order: the topic of a guaranteed message,
    or its partition key (messages without one go by topic)."""

    max_parked_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 100
    """Megabytes that on_reject: park may set aside. Beyond: as with block."""

    max_ttl: Annotated[int, Field(ge=1, le=255)] = limits.HOPS
    """Bridges that a message may have crossed, this one included. Beyond: discarded."""

    on_reject: Literal["block", "park", "skip"] = "block"
    """What happens to a guaranteed message that this message VPN refuses. block: it is tried again,
    and no later one passes it. park: it and what follows it in its lane are set aside in the spool and
    tried again, and the rest goes on. skip: it is counted, and goes to the dead message queue of the
    remote queue."""

    remote_authentication: RemoteAuthentication = Field(default_factory=RemoteAuthentication)
    """How it logs in."""

    remote_connection: RemoteConnection = Field(default_factory=RemoteConnection)
    """How often a remote message VPN is tried, and how its loss is noticed."""

    remote_deliver_to_one_priority: Literal["p1", "p2", "p3", "p4", "da"] = "p1"
    """Rank for messages that go to one receiver only, p1 first; da takes no part."""

    remote_msg_vpns: Many[RemoteMsgVpn] = ()
    """Where it finds its messages, several for fail-over."""

    remote_subscriptions: Many[Annotated[RemoteSubscription, BeforeValidator(_written_short)]] = ()
    """Topic filters for Direct messages: FILTER or {topic: FILTER, deliver_always_enabled: …,
    selector: …}."""

    retained: Literal["ignore", "replay"] = "ignore"
    """What becomes of messages that the remote retains before this bridge subscribes: replay has them
    sent, ignore leaves them there. What is published with RETAIN later comes in any case."""

    tls_cipher_suite_list: Annotated[
        str, Field(max_length=limits.CIPHER_SUITES_LENGTH), AfterValidator(_check_ciphers)
    ] = DEFAULT_CIPHERS
    """Cipher suites of TLS 1.2 that it may agree on, with colons between them; default leaves the choice
    to OpenSSL. TLS 1.3 has its own."""

    topic_mapping: Many[TopicMapping] = ()
    """Rules by which messages take other topics where they cross; each has from and to, or
    add_prefix, or strip_prefix."""

    topic_syntax: TopicSyntax = "smf"
    """Dialect of the remote subscriptions and topic mappings: smf has * and >, mqtt has + and #."""
