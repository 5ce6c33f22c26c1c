"""How attributes of monitoring are displayed: the title of each, and what kind of value it is.

`show` and the screens choose attributes from here by name. This module imports nothing that takes long, so that
commands start quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from vpnrouter.text import snake

NONE: Final = "-"
"""Stands for a value that is absent."""

RATE_TITLES: Final = ("Rx/s", "Tx/s")
"""Titles of the messages a second that are received and sent."""


class Form(Enum):
    """What kind of value an attribute is. Each output has a way to write each of them."""

    TEXT = auto()
    NAME = auto()
    """A text that tells things apart by its beginning and its end: it is cut in the middle."""
    STATE = auto()
    """A word for a state, which may have a colour."""
    NUMBER = auto()
    LOSS = auto()
    """A number of messages that should be 0."""
    RATE = auto()
    """Messages a second."""
    BYTES = auto()
    QUOTA = auto()
    """Bytes that count against a quota in megabytes."""
    BOUND = auto()
    """The most that is allowed, 0 for no bound."""
    SECONDS = auto()
    """How long something has lasted, None if it has not begun."""
    AGE = auto()
    """Milliseconds that something has lasted, negative for none."""
    AGO = auto()
    """Milliseconds since something happened, negative for never."""
    MOMENT = auto()
    """Seconds since 1970, 0 for never."""
    ID = auto()
    """A number that names something: its digits are not grouped."""
    FLAG = auto()
    """Written yes or no."""
    ENABLED = auto()
    """Written enabled or disabled."""
    SWITCH = auto()
    """Written on or off."""
    COUNTS = auto()
    """Numbers by name."""

    @property
    def right(self) -> bool:
        """Whether values stand at the right of their column."""
        return self in _RIGHT


_RIGHT: Final = frozenset(
    {Form.NUMBER, Form.LOSS, Form.RATE, Form.BYTES, Form.QUOTA, Form.BOUND, Form.AGE, Form.ID}
)


class Display(NamedTuple):
    """How an attribute is displayed, or a value that is made of several attributes."""

    title: str
    form: Form = Form.TEXT
    of: tuple[str, ...] = ()
    """The attributes, in camelCase; () for the one that this is the display of."""
    make: Callable[..., Any] | None = None
    """Makes the value of these attributes; None where the attribute is the value."""
    narrow: str = ""
    """The title for columns that have no room for `title`."""
    none: str = NONE
    """Stands for no bound."""

    def value(self, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a value of JSON)
        """Return the value in a row. None where a router of an earlier version does not have the attribute."""
        if self.make is None:
            return row.get(self.of[0])
        return self.make(*(row[name] for name in self.of))


def _named(**displays: Display) -> Mapping[str, Display]:
    return {name: each._replace(of=each.of or (name,)) for name, each in displays.items()}


def _sum_by_reason(*counts: Mapping[str, int]) -> int:
    return sum(sum(by_reason.values()) for by_reason in counts)


def _client_state(connected: bool, slow: bool) -> str:
    if not connected:
        return "away"
    return "slow" if slow else "connected"


def _direction(inbound: str, outbound: str) -> str:
    """Return `bi` where the remote's bridge shares the connection, else `uni`."""
    both = inbound != "not-applicable" and outbound != "not-applicable"
    return "bi" if both else "uni"


def _bridge_queue(bound: bool, standby: bool, remotes: list[Mapping[str, Any]]) -> str:
    """Return whether the bridge is bound to its queue or stands by there; "" where it has none."""
    if bound:
        return "standby" if standby else "bound"
    return "unbound" if any(remote["queueBinding"] for remote in remotes) else ""


def _least_age(*ages_ms: int) -> int:
    """Return the least of those that are not negative, -1 for none."""
    return min((age for age in ages_ms if age >= 0), default=-1)


MSG_VPN: Final = _named(
    msgVpnName=Display("VPN", Form.NAME),
    enabled=Display("Admin", Form.ENABLED),
    state=Display("State", Form.STATE),
    adminState=Display(
        "State",
        Form.STATE,
        of=("enabled", "state"),
        make=lambda enabled, state: state if enabled else "disabled",
    ),
    msgVpnConnections=Display("Clients", Form.NUMBER),
    maxConnectionCount=Display("of", Form.BOUND, none="any"),
    subscriptionCount=Display("Subscriptions", Form.NUMBER, narrow="Subs"),
    maxSubscriptionCount=Display("of", Form.BOUND, none="any"),
    bridgeCount=Display("Bridges", Form.NUMBER),
    rxMsgCount=Display("Rx messages", Form.NUMBER, narrow="Rx msgs"),
    txMsgCount=Display("Tx messages", Form.NUMBER, narrow="Tx msgs"),
    discardedMsgCount=Display("Discarded", Form.NUMBER),
    rxByteCount=Display("Rx bytes", Form.NUMBER),
    txByteCount=Display("Tx bytes", Form.NUMBER),
    rxMsgRate=Display("Rx rate", Form.NUMBER),
    txMsgRate=Display("Tx rate", Form.NUMBER),
    discarded=Display("Discards by reason", Form.COUNTS),
)

CLIENT: Final = _named(
    clientName=Display("Client", Form.NAME),
    msgVpnName=Display("VPN", Form.NAME),
    clientUsername=Display("Username", Form.NAME),
    clientAddress=Display("Address"),
    platform=Display("Platform"),
    state=Display("State", Form.STATE, of=("connected", "slowSubscriber"), make=_client_state),
    subscriptionCount=Display("Subscriptions", Form.NUMBER, narrow="Subs"),
    uptime=Display(
        "Uptime",
        Form.SECONDS,
        of=("connected", "uptime"),
        make=lambda connected, uptime: uptime if connected else None,
    ),
    clientId=Display("Client id", Form.NAME),
    clientProfileName=Display("Client profile", Form.NAME),
    aclProfileName=Display("ACL profile", Form.NAME),
    cleanSession=Display("Clean", Form.FLAG),
    keepalive=Display("Keepalive", Form.NUMBER),
    tlsVersion=Display("TLS"),
    bindCount=Display("Flows", Form.NUMBER),
    rxMsgCount=Display("Rx messages", Form.NUMBER, narrow="Rx msgs"),
    txMsgCount=Display("Tx messages", Form.NUMBER, narrow="Tx msgs"),
    rxDiscardedMsgCount=Display("Rx discards", Form.NUMBER),
    txDiscardedMsgCount=Display("Tx discards", Form.NUMBER),
    lost=Display(
        "Lost",
        Form.LOSS,
        of=("rxDiscardedMsgCount", "txDiscardedMsgCount"),
        make=lambda received, sent: received + sent,
    ),
    outboxBytes=Display("Waiting bytes", Form.NUMBER),
    memoryBytes=Display("Memory bytes", Form.NUMBER),
)

SUBSCRIPTION: Final = _named(
    subscriptionTopic=Display("Topic", Form.NAME),
    holder=Display("Holder"),
    name=Display("Name", Form.NAME),
    msgVpnName=Display("VPN", Form.NAME),
    qos=Display("QoS", Form.NUMBER),
    clientUsername=Display("Username", Form.NAME),
    syntax=Display("Syntax"),
    shareName=Display("Share"),
    selector=Display("Selector"),
)

BRIDGE: Final = _named(
    bridgeName=Display("Bridge", Form.NAME),
    msgVpnName=Display("VPN", Form.NAME),
    remoteMsgVpnName=Display("Remote VPN", Form.NAME),
    remoteRouterName=Display("Remote router", Form.NAME, narrow="Router"),
    direction=Display(
        "Direction", narrow="Ways", of=("inboundState", "outboundState"), make=_direction
    ),
    enabled=Display("Admin", Form.ENABLED),
    inboundState=Display("Inbound", Form.STATE),
    outboundState=Display("Outbound", Form.STATE),
    queue=Display(
        "Queue",
        of=("boundToQueue", "remoteQueueStandby", "remotes"),
        make=_bridge_queue,
    ),
    uptime=Display("Uptime", Form.SECONDS, of=("uptime",), make=lambda uptime: uptime or None),
    health=Display("Health", Form.STATE),
    lastForwarded=Display(
        "Last forwarded",
        Form.AGO,
        of=("lastRxAgeMs", "lastTxAgeMs"),
        make=_least_age,
        narrow="Forwarded",
    ),
    establisher=Display("Establisher"),
    remoteAddress=Display("Remote address"),
    clientName=Display("Client", Form.NAME),
    maxTtl=Display("Max TTL", Form.NUMBER),
    encrypted=Display("TLS", Form.FLAG),
    compressed=Display("Compressed", Form.FLAG),
    dataRxMsgCount=Display("Rx messages", Form.NUMBER),
    dataTxMsgCount=Display("Tx messages", Form.NUMBER),
    discardedRxMsgCount=Display("Rx discards", Form.NUMBER),
    discardedTxMsgCount=Display("Tx discards", Form.NUMBER),
    failureCount=Display("Failures", Form.NUMBER),
    failureReason=Display(
        "Reason",
        of=("inboundFailureReason", "outboundFailureReason"),
        make=lambda inbound, outbound: inbound or outbound,
    ),
    rxMsgRate=Display(RATE_TITLES[0], Form.RATE),
    txMsgRate=Display(RATE_TITLES[1], Form.RATE),
    backlogMsgCount=Display("Waiting", Form.LOSS, narrow="Wait"),
)

CONNECTOR: Final = _named(
    connectorName=Display("Connector", Form.NAME),
    msgVpnName=Display("VPN", Form.NAME),
    enabled=Display("Admin", Form.ENABLED),
    state=Display("State", Form.STATE),
    provider=Display("Provider"),
    protocol=Display("Protocol"),
    uptime=Display("Uptime", Form.SECONDS, of=("uptime",), make=lambda uptime: uptime or None),
    failure=Display("Failure"),
    failedAttempts=Display("Failed attempts", Form.NUMBER),
    rxMsgCount=Display("Rx messages", Form.NUMBER, narrow="Rx msgs"),
    txMsgCount=Display("Tx messages", Form.NUMBER, narrow="Tx msgs"),
    discardedMsgCount=Display("Discarded", Form.LOSS),
    waitingMsgCount=Display("Waiting", Form.LOSS, narrow="Wait"),
    memoryBytes=Display("Memory bytes", Form.NUMBER),
    rxMsgRate=Display(RATE_TITLES[0], Form.RATE),
    txMsgRate=Display(RATE_TITLES[1], Form.RATE),
    linkCount=Display("Links", Form.NUMBER, of=("links",), make=len),
    troubles=Display(
        "Links in trouble",
        of=("links",),
        make=lambda links: ", ".join(
            f"{link['linkName']} is {link['state']}: {link['stateReason']}"
            for link in links
            if link["stateReason"]
        ),
    ),
)

QUEUE: Final = _named(
    queueName=Display("Queue", Form.NAME),
    msgVpnName=Display("VPN", Form.NAME),
    endpointType=Display("Type"),
    accessType=Display("Access"),
    ingressEnabled=Display("In", Form.SWITCH),
    egressEnabled=Display("Out", Form.SWITCH),
    msgCount=Display("Messages", Form.NUMBER, narrow="Msgs"),
    maxSpooledMsgCount=Display("of", Form.BOUND, none="any"),
    msgSpoolUsage=Display("MB", Form.QUOTA),
    msgSpoolBytes=Display("Bytes", Form.BYTES, of=("msgSpoolUsage",)),
    maxMsgSpoolUsage=Display("of MB", Form.BOUND, none="last"),
    txUnackedMsgCount=Display("Unacked", Form.NUMBER),
    bindCount=Display("Consumers", Form.NUMBER, narrow="Flows"),
    lost=Display("Lost", Form.LOSS, of=("discarded", "refused"), make=_sum_by_reason),
    oldestMsgAgeMs=Display("Oldest", Form.AGE),
    durable=Display("Durable", Form.FLAG),
    owner=Display("Owner"),
    permission=Display("Permission"),
    maxBindCount=Display("Max binds", Form.NUMBER),
    maxRedeliveryCount=Display("Max redelivery", Form.NUMBER),
    maxTtl=Display("Max TTL", Form.NUMBER),
    deadMsgQueue=Display("Dead message queue", Form.NAME),
    spooledMsgCount=Display("Spooled", Form.NUMBER),
    ackedMsgCount=Display("Acknowledged", Form.NUMBER),
    redeliveredMsgCount=Display("Redelivered", Form.NUMBER),
    highestMsgId=Display("Highest id", Form.NUMBER),
    replayState=Display("Replay"),
)

MSG: Final = _named(
    msgId=Display("Message", Form.ID),
    topic=Display("Topic", Form.NAME),
    contentSize=Display("Bytes", Form.BYTES),
    spooledTime=Display("Spooled", Form.MOMENT),
    expiryTime=Display("Expires", Form.MOMENT),
    publisherId=Display("Publisher", Form.NAME),
    priority=Display("Priority", Form.NUMBER, narrow="Prio"),
    redeliveryCount=Display("Redelivered", Form.NUMBER, narrow="Again"),
)


def chosen(displays: Mapping[str, Display], *names: str) -> tuple[Display, ...]:
    """Return the displays of these attributes, in this order."""
    return tuple(displays[name] for name in names)


def displays_of(key: str, row: Mapping[str, Any]) -> tuple[Display, ...]:
    """Return how objects are displayed of which nothing is known but their rows, like `row`: the attribute `key` with
    the name first, then the message VPN, then all others that are no lists.
    """
    first = (key, "msgVpnName")
    others = (name for name, value in row.items() if not isinstance(value, list))
    return tuple(_display(name, row[name]) for name in dict.fromkeys((*first, *others)))


def _display(name: str, value: object) -> Display:
    """Return how an attribute is displayed, by its name and a value of it alone."""
    title = words(name).removesuffix(" name").capitalize()
    match value:
        case bool():
            return Display(title, Form.FLAG, (name,))
        case int():
            return Display(title, Form.NUMBER, (name,))
        case Mapping():
            return Display(title, Form.COUNTS, (name,))
        case _:
            return Display(title, Form.NAME, (name,))


def words(name: str) -> str:
    """Return `inbound failure reason` for `inboundFailureReason`."""
    return snake(name).replace("_", " ")


def shown(value: object) -> str:
    """Return a value for people, by its type alone."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case Mapping():
            return ", ".join(f"{key} {shown(each)}" for key, each in sorted(value.items())) or NONE
        case list() | tuple():
            return ", ".join(shown(each) for each in value) or NONE
        case None:
            return NONE
        case _:
            return str(value) or NONE
