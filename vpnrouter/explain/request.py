"""The request and the answer of explain: who publishes what and where, and the steps that the message takes."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Final, final

from vpnrouter import limits
from vpnrouter.errors import VpnrouterError
from vpnrouter.topics.grammar import MQTT, parse_filter


@final
@dataclass(frozen=True, slots=True)
class Event:
    """A row of the trace (docs/traces.md). Texts are "" and numbers -1 where the row has nothing.

    `path` are the message VPNs visited before, "router/vpn", oldest first. Times are nanoseconds:
    `ts_ns` since 1970, `since_ingress_ns` since the message came into this router.
    """

    router: str
    event: str
    vpn: str = ""
    topic: str = ""
    mode: str = ""
    client: str = ""
    endpoint: str = ""
    bridge: str = ""
    peer_router: str = ""
    peer_vpn: str = ""
    hops: int = 0
    path: tuple[str, ...] = ()
    reason: str = ""
    ts_ns: int = -1
    since_ingress_ns: int = -1
    size: int = -1
    message_id: int = 0
    origin_router: str = ""
    origin_vpn: str = ""
    origin_ts_ns: int = -1
    partition: int = -1

    @property
    def place(self) -> str:
        """The message VPN where it happened, "router/vpn"."""
        return f"{self.router}/{self.vpn}"

    @property
    def peer(self) -> str:
        """The message VPN at the other end of the bridge, "router/vpn"; "" without a bridge."""
        return f"{self.peer_router}/{self.peer_vpn}" if self.peer_router or self.peer_vpn else ""


def path_of(text: str) -> tuple[str, ...]:
    """Return the path of a row, which has ">" between the message VPNs."""
    return tuple(text.split(">")) if text else ()


DIRECT: Final = "direct"
PERSISTENT: Final = "persistent"
MODES: Final = (DIRECT, PERSISTENT)

_TEXT_BYTES: Final = 65_535
"""Of a string of MQTT."""

_QOS: Final = re.compile(r"@([012])\Z")


class UsageError(VpnrouterError):
    """The question itself is wrong: an unknown router, a number out of bounds."""


@final
@dataclass(frozen=True, slots=True)
class Subscriber:
    """A client with subscriptions in MQTT's dialect, each with its QoS, at a message VPN.

    `name` is the client's name, "" for one that is made up; `client_username` "" for one that may log in.
    Of one that is not `connected` only the session is there.
    """

    router: str
    msg_vpn: str
    filters: tuple[tuple[str, int], ...]
    name: str = ""
    client_username: str = ""
    connected: bool = True


@final
@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A message of `size` bytes, or with this `payload`, on `topic`, published into message VPN `msg_vpn` of `router`.

    `mode` is one of MODES. `client_username` "" is one that may publish it, or nobody's where everybody may
    log in. `client_address` is where the client comes from, "" for an address that no rule names.
    `properties` are MQTT 5 user properties. `subscribers` are clients beside what the configurations have.
    """

    router: str
    msg_vpn: str
    topic: str
    mode: str = DIRECT
    client_username: str = ""
    client_address: str = ""
    size: int = 0
    properties: tuple[tuple[str, str], ...] = ()
    subscribers: tuple[Subscriber, ...] = ()
    all_misses: bool = False
    payload: str = ""

    @property
    def content(self) -> bytes:
        """The payload."""
        return self.payload.encode("utf-8", "surrogateescape") or bytes(self.size)

    def check(self) -> None:
        """Raise UsageError for a question that no router can answer."""
        if self.payload and self.size:
            raise UsageError("--size and --payload both say how large the message is")
        if self.size < 0 or len(self.content) > limits.EXPLAIN_PAYLOAD_BYTES:
            raise UsageError(
                f"a size is from 0 to {limits.EXPLAIN_PAYLOAD_BYTES:,} bytes, not"
                f" {self.size or len(self.content)}"
            )
        if self.mode not in MODES:
            raise UsageError(f"the mode is one of {', '.join(MODES)}, not {self.mode}")
        if not 0 <= self.size <= limits.EXPLAIN_PAYLOAD_BYTES:
            raise UsageError(
                f"a size is from 0 to {limits.EXPLAIN_PAYLOAD_BYTES:,}, not {self.size}"
            )
        if len(self.properties) > limits.EXPLAIN_PROPERTIES:
            raise UsageError(f"at most {limits.EXPLAIN_PROPERTIES} properties")
        texts = [self.client_username, *(text for pair in self.properties for text in pair)]
        for text in texts:
            _check_text(text)


def _check_text(text: str) -> None:
    """Raise UsageError for a text that MQTT cannot carry (1.5.4)."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError("a name or property is not UTF-8") from None
    if size > _TEXT_BYTES or "\0" in text:
        raise UsageError(f"a name or property has at most {_TEXT_BYTES:,} bytes and no NUL")


def parse_place(text: str) -> tuple[str, str]:
    """Return router and message VPN of "ROUTER/VPN". Raises UsageError."""
    router, slash, msg_vpn = text.partition("/")
    if not (router and slash and msg_vpn):
        raise UsageError(f"{text} is not of the form ROUTER/VPN")
    return router, msg_vpn


def parse_subscriber(text: str) -> Subscriber:
    """Return the client of "ROUTER/VPN=FILTER" or "ROUTER/VPN=FILTER@QOS", the filter in MQTT's dialect.

    Raises UsageError, and TopicError for a bad filter.
    """
    place, equals, filter_ = text.partition("=")
    if not equals or not filter_:
        raise UsageError(f"{text} is not of the form ROUTER/VPN=FILTER or ROUTER/VPN=FILTER@QOS")
    router, msg_vpn = parse_place(place)
    qos = 0
    match = _QOS.search(filter_)
    if match is not None:
        qos = int(match[1])
        filter_ = filter_[: match.start()]
    parse_filter(filter_, MQTT)
    return Subscriber(router, msg_vpn, ((filter_, qos),))


def parse_property(text: str) -> tuple[str, str]:
    """Return name and value of "NAME=VALUE". Raises UsageError."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"{text} is not of the form NAME=VALUE")
    return name, value


YES: Final = "yes"
"""The message goes this way."""
NO: Final = "no"
"""It does not, and the step says why."""
NOTE: Final = "note"
"""Something to know about it."""

PUBLISH: Final = "publish"
VISIT: Final = "message-vpn"
ENDPOINT: Final = "endpoint"
CLIENT: Final = "client"
BRIDGE: Final = "bridge"
CONNECTOR: Final = "connector"
LOSS: Final = "loss"
REMARK: Final = "remark"
KINDS: Final = (PUBLISH, VISIT, ENDPOINT, CLIENT, BRIDGE, CONNECTOR, LOSS, REMARK)
"""What a step is about."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """What decided: `text` says what it is, then where it stands. `line` and `column` begin at 1; `file` is ""
    for what stands in no configuration. `written` is False where a default holds: then the place is that of
    the object which does not say otherwise.
    """

    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    written: bool = True

    @property
    def place(self) -> str:
        """`FILE:LINE`, "" where it stands in no configuration."""
        return f"{self.file}:{self.line}" if self.file else ""


@final
@dataclass(slots=True)
class Step:
    """One thing that happens to the message, or does not.

    `kind` is one of KINDS, `verdict` one of YES, NO, NOTE; `text` is for people. `router`, `msg_vpn`, `name`
    say where and to whom (queue, client, bridge); `event` is the trace event behind it, "" without one;
    `reason` the router's own name of the reason. `since_ns` are nanoseconds since the message came into this
    router, `link_ns` from leaving the router before to coming in here (two clocks), -1 where not known.
    `steps` is what follows.
    """

    kind: str
    verdict: str
    text: str
    router: str = ""
    msg_vpn: str = ""
    name: str = ""
    event: str = ""
    reason: str = ""
    mode: str = ""
    topic: str = ""
    count: int = 1
    since_ns: int = -1
    link_ns: int = -1
    rules: list[Rule] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """Who gets the message: a queue or topic endpoint (`kind` "endpoint"), a client ("client"), or the provider of a
    connector ("connector"), where `name` is connector/link and `topic` the one that the provider sees.

    Else `topic` is the name that the message has there. `mode` is direct, non_persistent or persistent.
    """

    router: str
    msg_vpn: str
    kind: str
    name: str
    mode: str
    topic: str
    count: int = 1


@final
@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """Where a copy of the message ends without anybody having it: `event` is discard, reject or expire.

    `name` is the queue (then `endpoint`), or the bridge, or the client that it concerns.
    """

    router: str
    msg_vpn: str
    event: str
    reason: str
    name: str
    count: int = 1
    endpoint: bool = False


@final
@dataclass(frozen=True, slots=True)
class BridgeState:
    """One bridge of the mesh: `up`, and towards which `remote` ("router/vpn"), or `why` it is down."""

    router: str
    msg_vpn: str
    name: str
    up: bool
    remote: str
    why: str
    rule: Rule


@final
@dataclass(frozen=True, slots=True)
class ConnectorState:
    """One connector of the mesh: `up` at its `provider`, or `why` it is down."""

    router: str
    msg_vpn: str
    name: str
    up: bool
    provider: str
    why: str
    rule: Rule


@final
@dataclass(slots=True)
class Explanation:
    """Everything about one message. `steps` is the tree; `bridges` and `connectors` are those of the whole
    mesh, `notes` what the answer does not know. `answer` is what the publisher is told, "" for nothing (Direct messages
    are not answered). `trace_id` is "" for a message that was only thought of.
    """

    topic: str
    mode: str
    router: str
    msg_vpn: str
    client: str = ""
    client_username: str = ""
    size: int = 0
    trace_id: str = ""
    answer: str = ""
    steps: list[Step] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    bridges: list[BridgeState] = field(default_factory=list)
    connectors: list[ConnectorState] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data: dict, list, str, int, bool, with the names of the fields."""
        return asdict(self)
