"""Bridges: their remote message VPNs, subscriptions and topic mappings."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.address import LOCATION, Address, parse_location, router_of
from vpnrouter.settings.failures import Failures, Then
from vpnrouter.settings.schema import (
    CHILDREN,
    Effect,
    Secret,
    Settings,
    Text,
    TopicSyntax,
    attribute,
    group,
    like,
    numbered,
)
from vpnrouter.units import SECOND_NS

AuthenticationScheme = Literal["basic", "client-certificate"]
Mechanism = Literal["scram-sha-256", "plain"]
LaneBy = Literal["topic", "partition-key"]
OnReject = Literal["block", "park", "skip"]
Priority = Literal["p1", "p2", "p3", "p4", "da"]
Retained = Literal["ignore", "replay"]
Direction = Literal["in", "out", "both"]

DEFAULT_CIPHERS: Final = "default"

CIPHER_SUITES: Final = Text(0, limits.CIPHER_SUITES_LENGTH)
"""Names that OpenSSL has to know: the models look."""

DEFAULT_WINDOW: Final = 255
"""Of `egress_flow_window_size`, as in the field. It stands for no fixed number."""

_SECRET: Final = Text(0, limits.PASSWORD_BYTES)


def _check_heartbeat(interval: int) -> int:
    if 0 < interval < limits.LINK_HEARTBEAT_MIN_MS:
        raise ValueError(
            f"must be 0 or from {limits.LINK_HEARTBEAT_MIN_MS} to {limits.LINK_HEARTBEAT_MAX_MS},"
            f" not {interval}"
        )
    return interval


class TopicMapping(Settings):
    """One rule: `{from, to}`, `{add_prefix}` or `{strip_prefix}`, each with its direction."""

    from_: str | None = attribute(None, alias="from")
    """Filter in the dialect of the bridge for topics to map; needs to."""

    to: str | None = attribute(None)
    """What such a topic becomes; {1}, {2} … are what the wildcards of from matched, in order."""

    add_prefix: str | None = attribute(None, examples=("yellow/",))
    """Levels put before every topic."""

    strip_prefix: str | None = attribute(None)
    """Levels taken away from the topics below them."""

    direction: Direction = attribute("in")
    """in: messages that this bridge brings; out: messages that a bridge of the remote message VPN
    takes from here; both: in as written, and out the other way round."""

    def check(self) -> None:
        """Raise ValueError where it is no rule, or several."""
        pair = (self.from_ is not None) + (self.to is not None)
        forms = (pair > 0) + (self.add_prefix is not None) + (self.strip_prefix is not None)
        if forms != 1 or pair == 1:
            raise ValueError(
                "a topic mapping has exactly one of from with to, add_prefix, strip_prefix"
            )


# Credentials are looked up at each login, so no link goes down for a rotated password.
class BasicRemoteAuthentication(Settings, effect=Effect.NEXT_LOGIN):
    """Client username and password for the remote message VPN."""

    client_username: str | None = attribute(
        None, text=names.CLIENT_USERNAME, examples=("bridge",), guards=True
    )
    """Client username to log in with; its client profile must allow bridge connections."""

    mechanism: Mechanism = attribute("scram-sha-256", ours=True, guards=True)
    """How the password is used. scram-sha-256: both sides prove that they know it, and nobody sees it.
    plain: it is shown, which needs tls_enabled and a verified name of every remote router."""

    password: Secret | None = attribute(None, text=_SECRET, sent=True)
    """Its password: text, {env: NAME} or {file: PATH}."""


class ClientCertRemoteAuthentication(Settings, effect=Effect.NEXT_LOGIN):
    """Client certificate for the remote message VPN."""

    certificate: str | None = attribute(None, text=names.PATH, file=True, ours=True)
    """PEM file with the certificate and, after it, the chain."""

    key: str | None = attribute(None, text=names.PATH, file=True, ours=True)
    """PEM file with the private key."""

    password: Secret | None = attribute(None, text=_SECRET)
    """What decrypts the private key."""


class RemoteAuthentication(Settings, effect=Effect.NEXT_LOGIN):
    """How a bridge logs in to its remote message VPNs."""

    scheme: AuthenticationScheme = attribute("basic", guards=True)
    """basic: client username and password; client-certificate: needs TLS to every remote message
    VPN."""

    basic: BasicRemoteAuthentication = group(BasicRemoteAuthentication)
    """Client username and password."""

    client_cert: ClientCertRemoteAuthentication = group(ClientCertRemoteAuthentication)
    """Client certificate."""


class RemoteConnection(Settings):
    """How often a remote message VPN is tried, and how its loss is noticed."""

    retry_count: int = attribute(0, least=0, most=255, held="retry_count")
    """Tries of one remote message VPN before the next one in connect order; 0 is one try."""

    retry_delay: int = attribute(3, least=0, most=255, held="retry_delay_ns", scale=SECOND_NS)
    """Seconds between two tries, before jitter."""

    give_up_after: int = attribute(0, least=0, most=1_000_000, held="give_up_after", ours=True)
    """Tries in a row that may fail, of all remote message VPNs together, before the bridge stops until it is
    reconnected or changed; 0 never stops it."""

    failback_delay: int = attribute(
        30, least=0, most=86_400, held="failback_delay_ns", scale=SECOND_NS, ours=True
    )
    """Seconds that a remote message VPN of lower connect order must have been healthy before the
    bridge goes back to it; 0 never goes back."""

    heartbeat_interval: int = attribute(
        limits.LINK_HEARTBEAT_MS,
        least=0,
        most=limits.LINK_HEARTBEAT_MAX_MS,
        check=_check_heartbeat,
        effect=Effect.RECONNECT,
        held="heartbeat_ms",
        ours=True,
    )
    """Milliseconds of silence after which the peer is asked for a sign of life; without one after
    three of them the connection is lost. 0 asks never, else at least 100."""


class RemoteMsgVpn(Settings, effect=Effect.IN_PLACE):
    """One place where a bridge finds its messages."""

    name: str = attribute(None, text=names.MSG_VPN, examples=("yellow",), key=True, held="msg_vpn")
    """The remote message VPN."""

    router: str | None = attribute(
        None,
        text=names.ROUTER,
        effect=Effect.RECONNECT_IF_USED,
        held=None,
        semp_name="remoteRouterName",
        ours=True,
    )
    """Name that the remote router must give; without it any is taken."""

    location: str = attribute(
        None,
        text=LOCATION,
        examples=("127.0.0.1:55556",),
        key=True,
        dials=lambda remote, _: remote.address,
    )
    """HOST[:PORT] or [IPV6][:PORT] of a link listener (port 55555, with TLS 55443), or v:ROUTER."""

    enabled: bool = attribute(True, off=Effect.RECONNECT_IF_USED, semp_default=False)
    """Whether it is used."""

    connect_order: int = attribute(4, least=1, most=4)
    """Preference among several, 1 first."""

    queue_binding: str | None = attribute(None, text=names.QUEUE, held="queue")
    """Exclusive queue of the remote message VPN that guaranteed messages are taken from."""

    client_username: str | None = attribute(
        None, text=names.CLIENT_USERNAME, effect=Effect.NEXT_LOGIN, held=None, guards=True
    )
    """Used here instead of remote_authentication's."""

    password: Secret | None = attribute(
        None, text=_SECRET, effect=Effect.NEXT_LOGIN, held=None, sent=True
    )
    """Used here instead of remote_authentication's; needs client_username."""

    authentication_scheme: AuthenticationScheme | None = attribute(
        None, examples=("basic",), effect=Effect.NEXT_LOGIN, held=None, ours=True, guards=True
    )
    """Used here instead of remote_authentication's scheme; client-certificate needs tls_enabled."""

    client_cert: ClientCertRemoteAuthentication | None = group(
        ClientCertRemoteAuthentication,
        optional=True,
        effect=Effect.NEXT_LOGIN,
        held=None,
        ours=True,
    )
    """Used here instead of remote_authentication's client certificate."""

    tls_enabled: bool = attribute(False, effect=Effect.RECONNECT_IF_USED, held="tls", guards=True)
    """Whether the connection is encrypted."""

    compressed_data_enabled: bool = attribute(
        False, effect=Effect.RECONNECT_IF_USED, held="compress"
    )
    """Whether the connection is compressed."""

    egress_flow_window_size: int = attribute(DEFAULT_WINDOW, least=0, most=65_535, held=None)
    """Guaranteed messages on the way and not yet acknowledged. 255, the default, is as many as the round
    trip needs: up to the queue's max_delivered_unacked_msgs_per_flow (10,000), and 16 MiB."""

    @property
    def address(self) -> Address | None:
        """`location` taken apart; None where it names a router."""
        if router_of(self.location) is not None:
            return None
        return parse_location(self.location, tls_enabled=self.tls_enabled)


class RemoteSubscription(Settings, effect=Effect.IN_PLACE, held=False):
    """A topic filter that attracts Direct messages from the remote message VPN."""

    short: ClassVar[str] = "topic"

    topic: str = attribute(None, examples=("weather/>",), key=True)
    """FILTER; !FILTER for topics that the other filters of the bridge do not attract;
    #share/GROUP/FILTER ($share/ in mqtt syntax) to take turns with the other members of the
    group."""

    deliver_always_enabled: bool = attribute(False, semp_required=True)
    """Whether messages come even when they are sent to one receiver only and another one gets
    them."""

    selector: str | None = attribute(None, ours=True)
    """Condition on headers and properties, SQL-92 as in JMS, for example "severity > 3"; only
    messages that fulfil it come."""


class Bridge(Failures, effect=Effect.IN_PLACE):
    """A bridge into the message VPN that it stands in."""

    # The bridge comes up or goes down, and nobody else notices.
    enabled: bool = attribute(True, semp_default=False)
    """Whether it connects."""

    paused: bool = attribute(False, ours=True)
    """Whether nothing crosses by it, though it is connected: guaranteed messages wait in the remote queue, Direct ones
    are not asked for."""

    guaranteed_retry_interval: int = attribute(
        1000, least=10, most=3_600_000, held="retry_ms", ours=True
    )
    """Milliseconds until a guaranteed message that this message VPN has refused is tried again."""

    # As LINK-40 numbers them: 0 is no lane at all.
    lane_by: LaneBy = attribute("topic", held="lanes", codes=numbered(LaneBy, 1), ours=True)
    """What makes a lane, in which on_reject: park keeps the order: the topic of a guaranteed message,
    or its partition key (messages without one go by topic)."""

    max_parked_msg_spool_usage: int = attribute(100, least=0, most=6_000_000, held=None, ours=True)
    """Megabytes that on_reject: park may set aside. Beyond: as with block."""

    max_ttl: int = attribute(limits.HOPS, least=1, most=255)
    """Bridges that a message may have crossed, this one included. Beyond: discarded."""

    on_reject: OnReject = attribute("block", codes=numbered(OnReject), ours=True)
    """What happens to a guaranteed message that this message VPN refuses. block: it is tried again,
    and no later one passes it. park: it and what follows it in its lane are set aside in the spool and
    tried again, and the rest goes on. skip: it is given up at once: it goes to dead_msg_queues, or without that to the
    dead message queue of the remote queue."""

    reject_attempts: int = like(Failures, "reject_attempts", default=0)
    """How often a guaranteed message may be refused here before `then` is done with it; 0 is without end. Refusals
    within guaranteed_retry_interval count as one."""

    remote_authentication: RemoteAuthentication = group(RemoteAuthentication, held=None)
    """How it logs in."""

    remote_connection: RemoteConnection = group(RemoteConnection)
    """How often a remote message VPN is tried, and how its loss is noticed."""

    remote_deliver_to_one_priority: Priority = attribute("p1", held=None)
    """Rank for messages that go to one receiver only, p1 first; da takes no part."""

    # A change of the list itself is one of its order, which counts among remotes of one connect order.
    remote_msg_vpns: tuple[RemoteMsgVpn, ...] = attribute(
        (), items=RemoteMsgVpn, held=None, child=CHILDREN
    )
    """Where it finds its messages, several for fail-over."""

    remote_subscriptions: tuple[RemoteSubscription, ...] = attribute(
        (), items=RemoteSubscription, ordered=False, held=None, child=CHILDREN
    )
    """Topic filters for Direct messages: FILTER or {topic: FILTER, deliver_always_enabled: …,
    selector: …}."""

    retained: Retained = attribute("ignore", held=None, ours=True)
    """What becomes of messages that the remote retains before this bridge subscribes: replay has them
    sent, ignore leaves them there. What is published with RETAIN later comes in any case."""

    then: Then = like(Failures, "then")
    """What is done with it then. dead-letter: it goes to dead_msg_queues, or without that to the dead message queue of
    the remote queue; park: as on_reject: park; skip: it is discarded and counted; stop: it stays there, and the bridge
    stops until it is reconnected or changed."""

    tls_cipher_suite_list: str = attribute(
        DEFAULT_CIPHERS,
        text=CIPHER_SUITES,
        effect=Effect.RECONNECT,
        held=None,
    )
    """Cipher suites of TLS 1.2 that it may agree on, with colons between them; default leaves the choice
    to OpenSSL. TLS 1.3 has its own."""

    topic_mapping: tuple[TopicMapping, ...] = attribute(
        (), items=TopicMapping, held=None, ours=True
    )
    """Rules by which messages take other topics where they cross; each has from and to, or
    add_prefix, or strip_prefix."""

    topic_syntax: TopicSyntax = attribute("smf", held=None, ours=True)
    """Dialect of the remote subscriptions and topic mappings: smf has * and >, mqtt has + and #."""
