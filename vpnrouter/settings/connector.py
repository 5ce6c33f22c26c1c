"""Connectors: links between a message VPN and the broker of somebody else, the provider."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.bridge import ClientCertRemoteAuthentication
from vpnrouter.settings.failures import Failures, Then
from vpnrouter.settings.schema import (
    IN_FILE,
    Effect,
    Secret,
    Settings,
    Text,
    Token,
    TopicSyntax,
    attribute,
    group,
    like,
    numbered,
)
from vpnrouter.settings.transform import Transforming
from vpnrouter.units import MILLISECOND_NS, SECOND_NS

QualityOfService = Literal["at-most-once", "duplicates-ok", "once-and-only-once"]
LinkConnection = Literal["shared", "dedicated"]
Retained = Literal["keep", "clear"]
MqttVersion = Literal["auto", "5", "3.1.1"]
ProviderBroker = Literal[
    "auto",
    "artemis",
    "ibm-mq",
    "rabbitmq",
    "rabbitmq3",
    "service-bus",
    "vpnrouter",
    "other",
]

Method = Literal["POST", "PUT", "PATCH"]
Order = Literal["key", "link", "none"]

AS_SOURCE: Final = "AS_SOURCE"
"""In a target: the topic that the message has."""


class Scheme(NamedTuple):
    """What the scheme of a provider's URL says: the `protocol`, the `port` of a URL that names none, whether the
    connection is encrypted, and whether it is a WebSocket.
    """

    protocol: str
    port: int
    tls: bool
    websocket: bool = False

    @property
    def has_path(self) -> bool:
        """Whether a URL may have a path."""
        return self.websocket or self.protocol == HTTP


MQTT: Final = "mqtt"
AMQP: Final = "amqp"
HTTP: Final = "http"
"""Protocols of providers."""

SCHEMES: Final = {
    "mqtt": Scheme(MQTT, 1883, tls=False),
    "mqtts": Scheme(MQTT, 8883, tls=True),
    "amqp": Scheme(AMQP, 5672, tls=False),
    "amqps": Scheme(AMQP, 5671, tls=True),
    "amqpws": Scheme(AMQP, 80, tls=False, websocket=True),
    "amqpwss": Scheme(AMQP, 443, tls=True, websocket=True),
    "http": Scheme(HTTP, 80, tls=False),
    "https": Scheme(HTTP, 443, tls=True),
}
"""The schemes of URLs of providers."""

_THIS_MACHINE: Final = "localhost"

_LOCAL_NAMES: Final = frozenset(
    {_THIS_MACHINE, "localhost.localdomain", "ip6-localhost", "ip6-loopback"}
)

_LOCAL_DOMAIN: Final = ".localhost"
"""All names in it are the machine itself (RFC 6761, 6.3)."""

_SHORT_LOOPBACK: Final = re.compile(r"127(\.[0-9]+){1,2}|0")
"""Forms of IPv4 addresses that only systems understand."""

_BASE: Final = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*")
"""A path (RFC 3986, 3.3)."""

_HTTP_HOST: Final = re.compile(r"[A-Za-z0-9._:%~-]+")
"""What Host can have: a name, or an IP address without brackets."""

MACHINE: Final = "@"
"""Before the router in the name of a provider on the router's own machine."""

NAMED: Final = "provider://"
"""Before the name of a provider that has one, in paths."""


class ProviderUrl(NamedTuple):
    """The address of a provider; `host` is an IPv6 address without its brackets. `base` is what the paths of requests
    to an HTTP server begin with, or the path of a WebSocket, "" for nothing.
    """

    scheme: str
    host: str
    port: int
    base: str = ""

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return SCHEMES[self.scheme].tls

    @property
    def websocket(self) -> bool:
        """Whether the connection is a WebSocket."""
        return SCHEMES[self.scheme].websocket

    @property
    def protocol(self) -> str:
        """What the provider speaks."""
        return SCHEMES[self.scheme].protocol

    def place(self, router: str) -> str:
        """Return what names the broker in the paths of messages of the router.

        It is the same however the address is spelled. An address of the machine itself is another broker on each one,
        so that the router's name goes with it.
        """
        host = _one_spelling(self.host)
        name = str(self._replace(host=host))
        return f"{name}{MACHINE}{router}" if host == _THIS_MACHINE else name

    @property
    def authority(self) -> str:
        """The server as requests of HTTP name it: without the port where that is the usual one (RFC 9110, 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == SCHEMES[self.scheme].port else f"{host}:{self.port}"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.base}"


def _one_spelling(host: str) -> str:
    """Return a host name or address as all its spellings are compared."""
    name = host.lower().rstrip(".")
    if name in _LOCAL_NAMES or name.endswith(_LOCAL_DOMAIN):
        return _THIS_MACHINE
    if _SHORT_LOOPBACK.fullmatch(name):
        return _THIS_MACHINE
    try:
        address: IPv4Address | IPv6Address = ip_address(name)
    except ValueError:
        return name
    address = getattr(address, "ipv4_mapped", None) or address
    # To connect to 0.0.0.0 is to connect to the machine itself.
    return _THIS_MACHINE if address.is_loopback or address.is_unspecified else str(address)


def parse_url(text: str) -> ProviderUrl:
    """Return the parts of a provider's URL. Raises ValueError that says what is wrong."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{text} is no URL: {error}") from error
    if parts.scheme not in SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ValueError(f"{text} does not begin with one of {known}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL has no login in it: username and password have keys of their own")
    scheme = SCHEMES[parts.scheme]
    based = scheme.has_path
    base = parts.path.rstrip("/")
    if not parts.hostname or (base and not based) or parts.query or parts.fragment:
        form = f"{parts.scheme}://HOST[:PORT]{'[/BASE]' if based else ''}"
        raise ValueError(f"{text} is not of the form {form}")
    if port == 0:
        raise ValueError(f"{text} names port 0, on which nobody listens")
    if not _BASE.fullmatch(base) or "/../" in f"{base}/" or "/./" in f"{base}/":
        raise ValueError(f"{text} has a path that is none of a URL: percent-encode it")
    host = unquote(parts.hostname)
    if based and not _HTTP_HOST.fullmatch(host):
        raise ValueError(f"{text} names a host that no request can name")
    return ProviderUrl(parts.scheme, host, scheme.port if port is None else port, base)


def _check_url(text: str) -> str:
    if len(text) > limits.PATH_LENGTH:
        raise ValueError(f"a URL has at most {limits.PATH_LENGTH:,} characters")
    parse_url(text)
    return text


_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""A token (RFC 9110, 5.6.2)."""


def _check_header(text: str) -> str:
    if not _HEADER.fullmatch(text):
        raise ValueError("a header's name is 1 to 128 letters, digits and !#$%&'*+.^_`|~-")
    return text


_URL: Final = Text(1, limits.PATH_LENGTH, _check_url)

PROXY_SCHEME: Final = "http"
"""Scheme of proxies: what is asked of one is not encrypted, and what goes through it as the provider's URL says."""


def parse_proxy(text: str) -> ProviderUrl:
    """Return the parts of a proxy's URL. Raises ValueError that says what is wrong."""
    form = f"{PROXY_SCHEME}://HOST:PORT"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{text} is no URL: {error}") from error
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL has no login in it: username and password have keys of their own")
    more = parts.path not in {"", "/"} or parts.query or parts.fragment
    if parts.scheme != PROXY_SCHEME or not parts.hostname or port is None or more:
        raise ValueError(f"{text} is not of the form {form}")
    return ProviderUrl(parts.scheme, unquote(parts.hostname), port)


def _check_proxy(text: str) -> str:
    if len(text) > limits.PATH_LENGTH:
        raise ValueError(f"a URL has at most {limits.PATH_LENGTH:,} characters")
    parse_proxy(text)
    return text


class ProviderConnect(Settings):
    """How often a provider is tried."""

    retry_count: int = attribute(-1, least=-1, most=1_000_000, held="retry_count")
    """Failed attempts in a row after which the connector stops, until it is enabled again or changed; -1
    is never."""

    retry_delay: int = attribute(5, least=0, most=3600, held="retry_delay_ns", scale=SECOND_NS)
    """Seconds between two attempts, before jitter."""

    idle_timeout: int = attribute(0, least=0, most=86_400, held="idle_timeout_ns", scale=SECOND_NS)
    """Seconds after which a connection is closed over which nothing has crossed, and for which nothing waits. It is
    made again within a second when a message waits; 0 keeps it. Links that bring messages in, or take topics out at
    most once, need the connection."""


class ProviderTls(Settings):
    """What the router says to a provider before TLS begins."""

    server_name: str | None = attribute(None, text=names.SERVER_NAME, guards=True)
    """Name that the provider is asked for (SNI), and that its certificate must have; the host of the url without
    it."""

    alpn: tuple[str, ...] = attribute((), text=names.ALPN, examples=("x-amzn-mqtt-ca",))
    """Names of protocols that are offered (ALPN), the preferred one first: by them a cloud tells MQTT from HTTPS on
    port 443."""


class ProviderProxy(Settings):
    """A proxy by which the provider is reached, asked by CONNECT of HTTP (RFC 9110, 9.3.6)."""

    url: str | None = attribute(
        None,
        text=Text(1, limits.PATH_LENGTH, _check_proxy),
        dials=lambda _, url: parse_proxy(url),
    )
    """http://HOST:PORT. The proxy looks the provider's name up."""

    username: str | None = attribute(None, text=names.CLIENT_USERNAME)
    """Username for the proxy, by the basic scheme."""

    password: Secret | None = attribute(None, text=Text(0, limits.PASSWORD_BYTES), sent=True)
    """Its password: text, {env: NAME} or {file: PATH}."""


class Provider(Settings, held=False):
    """The foreign broker: where it is, and how the router logs in."""

    url: str | None = attribute(
        None,
        text=_URL,
        examples=("mqtt://broker.example.org:1883",),
        dials=lambda _, url: parse_url(url),
    )
    """mqtt://HOST[:PORT], or amqp:// or http://; with TLS mqtts://, amqps:// or https://, whose trust is that of
    bridging.tls_server_cert; amqpws:// and amqpwss:// are AMQP over WebSocket. An HTTP server and a WebSocket may have
    a path behind it."""

    failover_urls: tuple[str, ...] = attribute((), text=_URL, dials=lambda _, url: parse_url(url))
    """Further addresses of the same provider, tried in their order when the one before fails."""

    name: str | None = attribute(None, text=names.PROVIDER, examples=("plant-broker",))
    """Name of the provider in the paths of messages, by which they do not go round: the same one for all
    connectors to one broker, whatever their addresses, and another one for each other broker. Without it
    the first url is the name; together with the router's name where it is an address of the machine
    itself."""

    username: str | None = attribute(None, text=names.CLIENT_USERNAME, held="username", guards=True)
    """Username to log in with."""

    password: Secret | None = attribute(None, text=Text(0, limits.PASSWORD_BYTES), sent=True)
    """Its password: text, {env: NAME} or {file: PATH}."""

    token: Token | None = attribute(None, text=Text(0, limits.TOKEN_BYTES), sent=True)
    """Bearer token for an HTTP server, instead of username and password: text, {env: NAME} or {file: PATH}."""

    client_cert: ClientCertRemoteAuthentication | None = group(
        ClientCertRemoteAuthentication, optional=True
    )
    """Client certificate to log in with, over TLS."""

    tls: ProviderTls = group(ProviderTls)
    """What is said before TLS begins."""

    interface: str | None = attribute(None, text=names.INTERFACE)
    """IP address of this machine, or name of its interface, from which the provider is reached; the one that the
    system chooses without it."""

    proxy: ProviderProxy = group(ProviderProxy)
    """The proxy by which it is reached; none without its url."""

    client_id: str | None = attribute(None, text=Text(1, limits.CLIENT_ID_BYTES))
    """MQTT client id; ROUTER-VPN-CONNECTOR without it. The provider keeps what waits for the connector
    under this name."""

    client_names: tuple[str, ...] = attribute((), text=Text(1, limits.CLIENT_ID_BYTES))
    """Names of clients of this message VPN (client ids of MQTT, container ids of AMQP) by which the provider is
    connected here itself, because it has a bridge of its own. What the links carry does not go by these clients as
    well."""

    mqtt_version: MqttVersion = attribute("auto")
    """MQTT version; auto is 5, and 3.1.1 where the provider knows no 5."""

    keepalive: int = attribute(30, least=5, most=3600, held="keep_alive_s")
    """Seconds between signs of life. A provider that gives none for one and a half of them is lost."""

    answer_timeout: int = attribute(30, least=0, most=3600, held="answer_timeout_s")
    """Seconds that a message may be without an answer of a provider that is alive. Then the connection is made anew, as
    if the provider had ended it for this message; 0 is never."""

    receive_maximum: int = attribute(10, least=1, most=65_535, held="receive_maximum")
    """Messages of QoS 2 that may be unfinished at a provider of MQTT 3.1.1, which cannot say how many it takes.
    mosquitto takes max_inflight_messages (20) and loses the others without a word: half of that is safe. In MQTT 5 the
    provider says it."""

    broker: ProviderBroker = attribute("auto", held="broker")
    """Of AMQP: what the provider is, where it does not say so itself. It decides what queue:// and topic:// mean there
    (docs/connectors.md); other is one that understands the capabilities `queue` and `topic` of JMS."""

    virtual_host: str | None = attribute(
        None, text=names.VIRTUAL_HOST, held="virtual_host", guards=True
    )
    """Of AMQP: the name under which the provider is asked for, such as vhost:NAME of RabbitMQ; the host of the url
    without it."""

    window: int = attribute(1_000, least=1, most=10_000, held="window")
    """Of AMQP: messages that each link may be sent, and that are not answered yet."""

    max_connections: int = attribute(
        16, least=1, most=limits.HTTP_CONNECTIONS, held="max_connections"
    )
    """Connections to an HTTP server, each with one request at a time."""

    connect: ProviderConnect = group(ProviderConnect, held="connect")
    """How often it is tried."""


class LinkSource(Settings, held=False):
    """Where a link takes messages from: exactly one of these."""

    address: str | None = attribute(None, examples=("sensors/#",))
    """At the provider: an MQTT topic filter, also $share/GROUP/FILTER; of AMQP queue://NAME, topic://NAME, or an
    address of its own. The link brings messages in."""

    subscription: str | None = attribute(None, text=names.SUBSCRIPTION)
    """Of AMQP, beside the address of a topic: name of a durable subscription, which keeps messages for the connector
    while it is away."""

    shared: bool = attribute(False)
    """Whether the subscription is shared: of all that have it, one gets a message."""

    queue: str | None = attribute(None, text=names.QUEUE)
    """A queue of this message VPN. The link takes messages out of it."""

    topic: str | None = attribute(None)
    """A topic filter of this message VPN. The link takes copies out; those that are guaranteed are kept
    for it while it is down, unless its quality of service is at-most-once."""

    selector: str | None = attribute(None)
    """Condition on headers and properties of what the link takes out, SQL-92 as in JMS; of AMQP also of what it brings
    in, which the provider selects then."""

    @property
    def kind(self) -> str:
        """Which of them it is: `address`, `queue` or `topic`."""
        if self.address is not None:
            return "address"
        return "topic" if self.queue is None else "queue"


class LinkTarget(Settings, held=False):
    """Where a link gives messages to."""

    address: str = attribute(AS_SOURCE)
    """At the provider, of a link that takes messages out: a topic, AS_SOURCE for the topic that the message has; of
    AMQP queue://NAME, topic://NAME, or an address of its own; at an HTTP server path and query, behind the BASE of the
    url. {1}, {2} … are what the wildcards of the source matched, of a queue {1} is the whole topic."""

    topic: str = attribute(AS_SOURCE)
    """In this message VPN, of a link that brings messages in: a topic, likewise."""

    queue: str | None = attribute(None, text=names.QUEUE, held="queue_target")
    """In this message VPN, of a link that brings messages in: one queue instead of a topic."""


class LinkRetry(Settings, held=False):
    """How long a link waits before it sends a message to an HTTP server again."""

    initial_interval: int = attribute(1_000, least=10, most=3_600_000)
    """Milliseconds after the first request that failed; twice as many after each one more, before jitter."""

    max_interval: int = attribute(60_000, least=10, most=86_400_000)
    """Milliseconds at most."""


class LinkRequest(Settings, held=False):
    """How a link sends messages to an HTTP server."""

    method: Method = attribute("POST")
    """Method of the requests."""

    headers: dict[str, str] = attribute(
        {},
        named=Text(1, 128, _check_header),
        text=Text(0, limits.HTTP_VALUE_BYTES),
        examples=("X-Line",),
        child=IN_FILE,
    )
    """Headers of each request by name. In a value {topic}, {message_id}, {correlation_data} and {property:NAME}, a user
    property, are those of the message; one that becomes empty is left out. Content-Type, Message-Topic and
    Idempotency-Key are there without being named."""

    order: Order = attribute("key")
    """key: messages with the same partition key wait for each other, others do not; link: each waits for the one
    before; none: none waits."""

    reply: bool = attribute(False)
    """Whether the answer to a message that names a Response Topic is published there, with its Correlation Data."""

    retry: LinkRetry = group(LinkRetry)
    """How long it waits before it tries a message again."""

    def check(self) -> None:
        """Raise ValueError for more headers than a link may add."""
        if len(self.headers) > limits.HTTP_HEADERS:
            raise ValueError(f"headers has at most {limits.HTTP_HEADERS}")


class LinkBatch(Settings, held=False):
    """How many messages a link sends together."""

    max_size: int = attribute(0, least=0, most=10_000, held="batch_size")
    """With `transacted` the messages of one transaction; 0 is 100. Without it, messages that may be under way and not
    answered; 0 is as many as the provider takes, 10,000 at most."""

    max_time: int = attribute(
        0,
        least=-1,
        most=3_600_000,
        held="batch_wait_ns",
        scale=MILLISECOND_NS,
        held_least=-MILLISECOND_NS,
    )
    """With `transacted`: milliseconds that a transaction waits to be full from its first message on; 0 takes what is
    there, -1 waits until it is full."""


class ConnectorLink(Transforming, effect=Effect.RECONNECT):
    """A link of a connector: messages go from its source to its target, one way."""

    enabled: bool = attribute(True)
    """Whether it carries messages. What a disabled link would take out is kept for it. What it would bring in is
    not: the provider is told that the router does not want it."""

    paused: bool = attribute(False, effect=Effect.IN_PLACE, held=None)
    """Whether nothing crosses, though it is open: what it would take out is kept for it, and what comes in from the
    provider at least once is set aside. It goes on in order."""

    connection: LinkConnection = attribute("shared", held=None)
    """shared: the link uses the connection that the connector has for its links. dedicated: it has one of its own,
    which logs in with -LINK behind the client id. Then it does not wait for other links, and their trouble does not
    end its connection."""

    quality_of_service: QualityOfService = attribute(
        "duplicates-ok", held="qos", codes=numbered(QualityOfService)
    )
    """at-most-once: nothing is acknowledged, and a loss of the connection may lose messages.
    duplicates-ok: a message is acknowledged when the other side has it, and may come twice then.
    once-and-only-once: neither."""

    reject_attempts: int = like(Failures, "reject_attempts")
    """How often the provider may refuse a message that the link takes out, by a code or by ending the connection,
    before `then` is done with it; 0 is without end. A connection that ends counts where the next attempt to connect
    succeeds: else the provider had gone."""

    then: Then = like(Failures, "then")
    """What is done with it then. dead-letter: it goes to dead_msg_queues, or without that to the dead message queue of
    its queue; park: to the queue #connector/CONNECTOR/LINK/parked; skip: it is discarded; stop: it stays, and the link
    stops."""

    retained: Retained = attribute(
        "keep", held="keeps_retained", codes={"keep": True, "clear": False}
    )
    """Whether a message keeps its RETAIN flag."""

    source: LinkSource = group(LinkSource)
    """Where messages come from."""

    target: LinkTarget = group(LinkTarget)
    """Where they go."""

    request: LinkRequest = group(LinkRequest)
    """How they are sent to an HTTP server."""

    transacted: bool = attribute(False)
    """Whether messages are sent in transactions of the provider, a batch in each. It has to be one of AMQP that has
    transactions."""

    batch: LinkBatch = group(LinkBatch)
    """How many are sent together, to a provider of AMQP."""

    @property
    def inbound(self) -> bool:
        """Whether it brings messages into the message VPN."""
        return self.source.address is not None

    def check(self) -> None:
        """Raise ValueError for a source or target that is none, or several."""
        source, target = self.source, self.target
        if (source.address, source.queue, source.topic).count(None) != 2:
            raise ValueError("source has exactly one of address, queue and topic")
        if self.inbound:
            if target.address != AS_SOURCE:
                raise ValueError("target.address is for a source that is a queue or topic")
            if target.queue is not None and target.topic != AS_SOURCE:
                raise ValueError("target has topic or queue, not both")
        elif source.subscription is not None or source.shared:
            raise ValueError("source.subscription and source.shared are for an address")
        elif target.queue is not None or target.topic != AS_SOURCE:
            raise ValueError("the target of a queue or topic is an address at the provider")


class Connector(Settings, effect=Effect.RECONNECT):
    """A connector to a provider, with its links."""

    enabled: bool = attribute(True, held=None)
    """Whether it connects. What waits for it is kept."""

    paused: bool = attribute(False, effect=Effect.IN_PLACE, held=None)
    """Whether all its links are paused. It stays connected."""

    provider: Provider = group(Provider)
    """The foreign broker."""

    max_ttl: int = attribute(limits.HOPS, least=1, most=255)
    """Message VPNs and providers that a message may have visited when it enters, the provider from which it comes
    among them; in MQTT 5 it says so. Beyond: discarded."""

    topic_syntax: TopicSyntax = attribute("smf", held=None)
    """Dialect of source.topic: smf has * and >, mqtt has + and #. Addresses at the provider are in its
    own."""
