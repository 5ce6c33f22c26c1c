"""The registry of kinds: what kinds of configured objects there are, and how each is written and named.

A kind says where its objects stand in a document, how they are named, what is declared of them, and what the API
calls them. The models (`config/model.py`), the reference, the effects of changes (`config/effects.py`), the paths of
the API (`management/config/kinds.py`) and all other layers go over `KINDS`; none of them has a list of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vpnrouter import limits
from vpnrouter.settings import names
from vpnrouter.settings.acl_profile import AclProfile
from vpnrouter.settings.bridge import Bridge, RemoteMsgVpn, RemoteSubscription
from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.connector import Connector, ConnectorLink
from vpnrouter.settings.endpoint import Queue, ReplayLog, TopicEndpoint
from vpnrouter.settings.listener import Listener
from vpnrouter.settings.management import User
from vpnrouter.settings.message_vpn import MsgVpn
from vpnrouter.settings.schema import Settings, keys_of
from vpnrouter.text import camel, snake

if TYPE_CHECKING:
    from vpnrouter.settings.schema import Text, Value

ANY: Final = "*"
"""In a pattern: every name or item at that place."""

AUTO: Final = "auto"
"""The one virtual router that a bridge is on."""


class Form(Enum):
    """How the objects of a kind stand in what holds them."""

    NAMED = auto()
    """A mapping, by their names."""
    RECORDS = auto()
    """A list of mappings; some of their attributes are the key."""
    TEXTS = auto()
    """A list of texts, each of which is its own key."""


class KeyPart(NamedTuple):
    """An attribute of the key of an object in the API; `always` is its one value, where it has only one."""

    name: str
    doc: str
    most: int = 0
    """The most characters."""
    choices: tuple[str, ...] = ()
    always: str | None = None

    @property
    def place(self) -> str:
        """Its place in a path: one of `choices` holds no comma, and what is always "" may be empty."""
        if self.choices:
            return f"{{{self.name}:word}}"
        return f"{{{self.name}:blank}}" if self.always == "" else f"{{{self.name}}}"


class Action(NamedTuple):
    """What an operator may do to an object: `name` is the path's last word.

    `past` is what the audit says was done, `now` what is so then, `doc` what the API says of it. An action that `sets`
    an attribute changes the configuration, so that it outlives a restart. Another one is a method of the running
    object, or of the one that it stands in; that gets the name of what stands in it.
    """

    name: str
    past: str
    now: str
    doc: str
    sets: tuple[str, bool] | None = None


SWITCHES: Final = (
    Action(
        "enable",
        "enabled",
        "is enabled",
        "Switch it on. It stays on over a restart.",
        ("enabled", True),
    ),
    Action(
        "disable",
        "disabled",
        "is disabled",
        "Switch it off: it disconnects. It stays off over a restart.",
        ("enabled", False),
    ),
    Action(
        "pause",
        "paused",
        "is paused",
        "Let nothing cross, though it stays connected. It stays paused over a restart, and what waits for it is kept.",
        ("paused", True),
    ),
    Action(
        "resume",
        "resumed",
        "goes on",
        "Let messages cross again, those that have waited first.",
        ("paused", False),
    ),
)
"""Of what carries messages."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One kind of object. Texts are for people: `one` is the noun for one of them.

    The objects stand under `key` in what holds them, or at the end of `home`, in the `form` that it says. `named` is
    how a name of the form NAMED is checked, `built_in` the name that exists without being written, `example` the name
    in the reference, `doc` what that says of them. `parent` is the kind that holds them, None the router itself;
    `above` says how many objects further up they stand in the document than in the API.
    """

    one: str
    key: str
    parent: Kind | None = None
    settings: type[Settings] | None = None
    form: Form = Form.NAMED
    home: tuple[str, ...] = ()
    above: int = 0
    named: Text | None = None
    built_in: str = ""
    example: str = ""
    doc: str = ""
    check: str = ""
    """What checks its objects beyond what one of them says, as MODULE:NAME: a function of the problems, the
    configuration and, for what message VPNs hold, the name of one.
    """
    about: str = ""
    """What the API says of their list; "" is that they are those of what holds them."""
    actions: tuple[Action, ...] = ()
    """What operators may do to one of them."""
    running: str = ""
    """The class of its running objects, as MODULE:NAME; "" where an object is only its configuration."""
    status: str = ""
    """The class that declares what monitoring shows of one of them; "" shows what is configured."""
    metrics_most: int = limits.METRICS_BRIDGES
    """Of so many objects the page of metrics has what the status class declares. Kinds with more come later on it."""
    pages: str = ""
    """The routes of the API that serve its monitoring and actions; "" has those that are made of the kind alone."""
    monitored: bool = True
    """Whether monitoring shows the objects by themselves, and not only what holds them."""
    tables: str = ""
    """The `Spec` or the class of tables by which `show` prints it; "" has a column for each attribute."""
    screen: str = ""
    """The screen of the terminal interface that lists them; "" is the one for all kinds without their own."""
    shown_as: str = ""
    """The word for it in `show`; "" is `key` with hyphens."""

    configured_by_api: bool = True
    """Whether the API has paths that configure single objects, and not only the document as a whole."""
    # What the API calls it: all but `identity` follow from `key` where they are not said.
    identity: tuple[KeyPart, ...] = ()
    noun: str = ""
    title: str = ""
    together: tuple[tuple[str, str], ...] = ()
    """Attributes of which none is given alone."""
    always: tuple[KeyPart, ...] = ()
    """Attributes of the field that have one value here."""
    syntax: str = ""
    """The key beside a list of texts that names their dialect."""
    changes: bool = True
    """Whether an object can be changed, and not only made and deleted."""
    deprecated: bool = False
    ours: bool = False
    """Whether the field does not have it."""
    api_order: int = 0
    """Where its paths stand: behind those of its siblings that have a lower number."""

    @property
    def at(self) -> tuple[str, ...]:
        """The keys that lead to the objects from what holds them."""
        return self.home or (self.key,)

    @property
    def collection(self) -> str:
        """The part of a path that lists the objects: `clientUsernames`."""
        return camel(self.key)

    @property
    def section(self) -> str:
        """The word for one of them in metrics and in other names of code: `msg_vpn`."""
        name = snake(self.singular)
        above = self.parent
        return name if above is None or above is MSG_VPN else f"{above.section}_{name}"

    @property
    def word(self) -> str:
        """What `show` calls several of them: `topic-endpoints`."""
        return self.shown_as or self.key.replace("_", "-")

    @property
    def is_checked_in_vpn(self) -> bool:
        """Whether the objects are checked in each message VPN, and not in the configuration as a whole."""
        return MSG_VPN in self.chain

    @property
    def leads_out(self) -> bool:
        """Whether an object makes connections to others."""
        own = () if self.settings is None else self.settings.places
        if any(place.attribute.dials is not None for place in own):
            return True
        return any(each.leads_out for each in KINDS if each.parent is self)

    @property
    def has_pages(self) -> bool:
        """Whether the API monitors the objects by pages that are made of the kind alone."""
        return self.monitored and not self.pages and self.is_of_vpn

    @property
    def is_of_vpn(self) -> bool:
        """Whether message VPNs hold the objects, by name."""
        return self.form is Form.NAMED and self.parent is MSG_VPN

    @property
    def singular(self) -> str:
        """What the API calls one of them: `clientUsername`."""
        return self.noun or self.collection.removesuffix("s")

    @property
    def chain(self) -> tuple[Kind, ...]:
        """What it stands in, outermost first, and itself."""
        return (*(() if self.parent is None else self.parent.chain), self)

    @property
    def holder(self) -> Kind | None:
        """The kind in whose mapping of the document the objects stand."""
        place = self.parent
        for _ in range(self.above):
            place = None if place is None else place.parent
        return place

    @property
    def pattern(self) -> tuple[str, ...]:
        """The keys from the top of a document to an object, `*` for what tells objects apart."""
        holder = self.holder
        return (*(() if holder is None else holder.pattern), *self.at, ANY)

    @property
    def list_keys(self) -> tuple[str, ...]:
        """The attributes that tell objects of a list of mappings apart."""
        return () if self.settings is None else keys_of(self.settings)

    def of(self, holder: Any) -> Mapping[str, Value]:  # noqa: ANN401 - a model of whichever kind holds them
        """Return the objects, by name, that a model holds."""
        for key in self.at:
            holder = getattr(holder, key)
        found: Mapping[str, Value] = holder
        return found


def _name(name: str, kind: Text, doc: str) -> tuple[KeyPart, ...]:
    return (KeyPart(name, doc, kind.most),)


LISTENER: Final = Kind(
    one="listener",
    key="listeners",
    settings=Listener,
    form=Form.RECORDS,
    check="vpnrouter.config.checks.listeners:check_listeners",
    configured_by_api=False,
)

USER: Final = Kind(
    one="user",
    key="users",
    settings=User,
    home=("management", "users"),
    check="vpnrouter.config.checks.router:check_users",
    named=names.USER,
    configured_by_api=False,
)

MSG_VPN: Final = Kind(
    one="message VPN",
    key="msg_vpns",
    settings=MsgVpn,
    named=names.MSG_VPN,
    example="blue",
    doc="Message VPNs by name.",
    check="vpnrouter.config.checks.message_vpns:check_msg_vpn",
    status="vpnrouter.management.status.msg_vpns:MsgVpnStatus",
    metrics_most=limits.METRICS_MSG_VPNS,
    pages="vpnrouter.management.msg_vpns:PAGES",
    tables="vpnrouter.cli._tables:VPNS",
    shown_as="vpns",
    identity=_name("msgVpnName", names.MSG_VPN, "Name of the message VPN."),
    always=(
        KeyPart(
            "authenticationBasicType",
            "Where passwords are: with the client usernames.",
            always="internal",
        ),
    ),
)

CLIENT_PROFILE: Final = Kind(
    one="client profile",
    key="client_profiles",
    parent=MSG_VPN,
    settings=ClientProfile,
    named=names.CLIENT_PROFILE,
    built_in="default",
    example="standard",
    doc="Client profiles by name.",
    pages="vpnrouter.management.profiles:PAGES",
    identity=_name("clientProfileName", names.CLIENT_PROFILE, "Name of the client profile."),
)

ACL_PROFILE: Final = Kind(
    one="ACL profile",
    key="acl_profiles",
    parent=MSG_VPN,
    settings=AclProfile,
    named=names.ACL_PROFILE,
    built_in="default",
    example="restricted",
    doc="ACL profiles by name.",
    pages="vpnrouter.management.profiles:PAGES",
    identity=_name("aclProfileName", names.ACL_PROFILE, "Name of the ACL profile."),
)

CLIENT_CONNECT_EXCEPTION: Final = Kind(
    one="client connect exception",
    key="client_connect_exceptions",
    parent=ACL_PROFILE,
    form=Form.TEXTS,
    home=("client_connect", "exceptions"),
    identity=(KeyPart("clientConnectExceptionAddress", "An IPv4 or IPv6 network (CIDR).", 43),),
    changes=False,
)


def _exception(key: str, group: str, topic: str, syntax: str, *, deprecated: bool = False) -> Kind:
    title = camel(key)
    return Kind(
        one="topic exception",
        key=key,
        parent=ACL_PROFILE,
        form=Form.TEXTS,
        home=(group, "exceptions"),
        syntax="topic_syntax",
        noun=topic,
        title=title.removesuffix("s"),
        identity=(
            KeyPart(
                syntax,
                "Dialect of the exception; all of one list have the same.",
                choices=("smf", "mqtt"),
            ),
            KeyPart(topic, "Topics that the other action holds for.", limits.TOPIC_BYTES),
        ),
        changes=False,
        deprecated=deprecated,
    )


TOPIC_EXCEPTIONS: Final = (
    *(
        _exception(
            f"{group}_exceptions",
            group,
            f"{camel(group)}Exception",
            f"{camel(group)}ExceptionSyntax",
        )
        for group in ("publish_topic", "subscribe_topic", "subscribe_share_name")
    ),
    # The field's older names for two of them; clients made then still use these.
    *(
        _exception(
            f"{way}_exceptions",
            f"{way}_topic",
            f"{way}ExceptionTopic",
            "topicSyntax",
            deprecated=True,
        )
        for way in ("publish", "subscribe")
    ),
)

CLIENT_USERNAME: Final = Kind(
    one="client username",
    key="client_usernames",
    parent=MSG_VPN,
    settings=ClientUsername,
    named=names.CLIENT_USERNAME,
    built_in="default",
    example="alice",
    doc="Client usernames by name.",
    pages="vpnrouter.management.profiles:PAGES",
    identity=_name("clientUsername", names.CLIENT_USERNAME, "The client username."),
    api_order=-1,
)

QUEUE: Final = Kind(
    one="queue",
    key="queues",
    parent=MSG_VPN,
    settings=Queue,
    named=names.QUEUE,
    example="orders",
    doc="Queues by name.",
    status="vpnrouter.management.status.queues:QueueStatus",
    metrics_most=limits.METRICS_QUEUES,
    pages="vpnrouter.management.queues:PAGES",
    tables="vpnrouter.cli._tables:QueueTables",
    screen="vpnrouter.tui.screens.queues:Queues",
    identity=_name("queueName", names.QUEUE, "Name of the queue."),
)

QUEUE_SUBSCRIPTION: Final = Kind(
    one="subscription",
    key="subscriptions",
    parent=QUEUE,
    form=Form.TEXTS,
    identity=(
        KeyPart(
            "subscriptionTopic", "A topic filter of what the queue attracts.", limits.TOPIC_BYTES
        ),
    ),
    changes=False,
)

TOPIC_ENDPOINT: Final = Kind(
    one="topic endpoint",
    key="topic_endpoints",
    parent=MSG_VPN,
    settings=TopicEndpoint,
    named=names.TOPIC_ENDPOINT,
    example="audit",
    doc="Topic endpoints by name.",
    pages="vpnrouter.management.topic_endpoints:PAGES",
    identity=_name("topicEndpointName", names.TOPIC_ENDPOINT, "Name of the topic endpoint."),
)

REPLAY_LOG: Final = Kind(
    one="replay log",
    key="replay_logs",
    parent=MSG_VPN,
    settings=ReplayLog,
    named=names.REPLAY_LOG,
    example="replay",
    doc="The replay log by its name; a message VPN has at most one.",
    monitored=False,
    identity=_name("replayLogName", names.REPLAY_LOG, "Name of the replay log."),
    api_order=1,
)

TOPIC_FILTER: Final = Kind(
    one="topic filter",
    key="topic_filter_subscriptions",
    parent=REPLAY_LOG,
    form=Form.TEXTS,
    home=("topic_filter", "subscriptions"),
    identity=(
        KeyPart("topicFilterSubscription", "A topic filter of what is logged.", limits.TOPIC_BYTES),
    ),
    changes=False,
)

BRIDGE: Final = Kind(
    one="bridge",
    key="bridges",
    parent=MSG_VPN,
    settings=Bridge,
    named=names.BRIDGE,
    example="from-yellow",
    doc="Bridges by name.",
    check="vpnrouter.config.checks.bridges:check_bridges",
    actions=SWITCHES,
    running="vpnrouter.server.objects.bridges:BridgeObjects",
    status="vpnrouter.bridges.status:BridgeStatus",
    pages="vpnrouter.management.bridges:PAGES",
    tables="vpnrouter.cli._tables:BridgeTables",
    screen="vpnrouter.tui.screens.bridges:Bridges",
    identity=(
        *_name("bridgeName", names.BRIDGE, "Name of the bridge."),
        KeyPart(
            "bridgeVirtualRouter", "The virtual router that it is on: there is one.", always=AUTO
        ),
    ),
    together=(("remoteAuthenticationBasicClientUsername", "remoteAuthenticationBasicPassword"),),
)

REMOTE_MSG_VPN: Final = Kind(
    one="remote message VPN",
    key="remote_msg_vpns",
    parent=BRIDGE,
    settings=RemoteMsgVpn,
    form=Form.RECORDS,
    identity=(
        *_name("remoteMsgVpnName", names.MSG_VPN, "The remote message VPN."),
        KeyPart(
            "remoteMsgVpnLocation",
            "HOST[:PORT], [IPV6][:PORT] or v:ROUTER of the remote router.",
            limits.LOCATION_LENGTH,
        ),
        KeyPart(
            "remoteMsgVpnInterface", "The interface to go out by: the system chooses.", always=""
        ),
    ),
    together=(("clientUsername", "password"),),
)

REMOTE_SUBSCRIPTION: Final = Kind(
    one="remote subscription",
    key="remote_subscriptions",
    parent=BRIDGE,
    settings=RemoteSubscription,
    form=Form.RECORDS,
    identity=(
        KeyPart(
            "remoteSubscriptionTopic", "A topic filter for Direct messages.", limits.TOPIC_BYTES
        ),
    ),
    changes=False,
)

TRUSTED_COMMON_NAME: Final = Kind(
    one="trusted common name",
    key="tls_trusted_common_names",
    parent=BRIDGE,
    form=Form.TEXTS,
    home=("bridging", "tls_server_cert", "trusted_common_names"),
    above=1,
    identity=(
        KeyPart(
            "tlsTrustedCommonName",
            "A common name that remote routers may have; it holds for all bridges of the message VPN.",
            limits.COMMON_NAME_LENGTH,
        ),
    ),
    changes=False,
    deprecated=True,
)

CONNECTOR: Final = Kind(
    one="connector",
    key="connectors",
    parent=MSG_VPN,
    settings=Connector,
    named=names.CONNECTOR,
    example="to-mosquitto",
    doc="Connectors to foreign brokers by name.",
    check="vpnrouter.config.checks.connectors:check_connectors",
    about="The connectors of a message VPN to foreign brokers.",
    actions=(
        *SWITCHES,
        Action(
            "reconnect",
            "reconnected",
            "connects again",
            "Connect anew, beginning with the first address; also a connector that has stopped.",
        ),
    ),
    running="vpnrouter.server.objects.connectors:ConnectorObjects",
    status="vpnrouter.connectors.status:ConnectorStatus",
    tables="vpnrouter.cli._tables:ConnectorTables",
    screen="vpnrouter.tui.screens.connectors:Connectors",
    identity=_name("connectorName", names.CONNECTOR, "Name of the connector."),
    ours=True,
    api_order=2,
)

CONNECTOR_LINK: Final = Kind(
    one="connector link",
    key="links",
    parent=CONNECTOR,
    settings=ConnectorLink,
    named=names.CONNECTOR_LINK,
    example="sensors-in",
    doc="Links by name.",
    about="The links of a connector, in the order of the configuration.",
    actions=(
        *SWITCHES,
        Action(
            "reconnect",
            "reconnected",
            "connects again",
            "Begin it anew, also where it has stopped or was refused. It shares the connection of its connector, which"
            " connects anew with all its links.",
        ),
    ),
    status="vpnrouter.connectors.status:ConnectorLinkStatus",
    identity=_name("linkName", names.CONNECTOR_LINK, "Name of the link."),
    ours=True,
)

KINDS: Final = [
    LISTENER,
    USER,
    MSG_VPN,
    CLIENT_PROFILE,
    ACL_PROFILE,
    CLIENT_CONNECT_EXCEPTION,
    *TOPIC_EXCEPTIONS,
    CLIENT_USERNAME,
    QUEUE,
    QUEUE_SUBSCRIPTION,
    TOPIC_ENDPOINT,
    REPLAY_LOG,
    TOPIC_FILTER,
    BRIDGE,
    REMOTE_MSG_VPN,
    REMOTE_SUBSCRIPTION,
    TRUSTED_COMMON_NAME,
    CONNECTOR,
    CONNECTOR_LINK,
]
"""All kinds, each behind the one that it stands in, in the order of the reference."""


def children_of(kind: Kind | None) -> list[Kind]:
    """Return the kinds directly below a kind, or below the router."""
    return [each for each in KINDS if each.parent is kind]


def plain_kinds() -> list[Kind]:
    """Return the kinds that `show` and the screens print by their attributes alone."""
    return [each for each in KINDS if each.has_pages and not each.tables]


def named_in(settings: type[Settings]) -> list[Kind]:
    """Return the kinds whose objects stand by name in the objects that a class of settings declares."""
    return [
        each
        for each in KINDS
        if each.form is Form.NAMED and each.parent is not None and each.parent.settings is settings
    ]


def api_kinds(below: Kind | None = None) -> Iterator[Kind]:
    """Yield all kinds in the order of the API's paths, each behind the one that it stands in."""
    for kind in sorted(children_of(below), key=lambda each: each.api_order):
        if not kind.configured_by_api:
            continue
        yield kind
        yield from api_kinds(kind)


def loaded(name: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Return what a kind names as MODULE:NAME: it is of a layer above this one, which loads it where it is needed."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
