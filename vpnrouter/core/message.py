"""One message on its way through a message VPN, off the batch path.

Most Direct messages never become an object: they cross as slices of the chunk they came in (forward.py).
This class is for the rest: properties, retain, traces, wills, shared groups, several hops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.core import conversion
from vpnrouter.core.timers import TimerTarget
from vpnrouter.errors import ProtocolError
from vpnrouter.selectors import Text
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.mqtt.fields import varint
from vpnrouter.wire.mqtt.properties import (
    MODE_HEADER,
    PRIORITY_HEADER,
    decode_properties,
    selector_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from vpnrouter.trace.recorder import Context

DEFAULT_PRIORITY: Final = 4
"""Of a message that says none, as in the field."""

HIGHEST: Final = 9
"""The highest priority; a message that says more has this one."""

PRIORITY: Final = "priority"
"""Name of the user property that is the priority of a message of MQTT."""

_PERSISTENT: Final = Text("PERSISTENT")
_NON_PERSISTENT: Final = Text("NON_PERSISTENT")
"""What JMS calls its two delivery modes."""

DELIVER_TO_ONE: Final = "deliver-to-one"
"""Name of the user property with which a publisher asks for one consumer."""

MQTT: Final = 0
"""`payload` is a payload, and `block` has the message's properties."""

AMQP: Final = 1
"""`payload` is the content of an AMQP message (conversion.py), and `block` has what the router added."""

_NAME: Final = DELIVER_TO_ONE.encode()
YES: Final = ("true", "1")
"""What the user property says where that is wanted."""


def priority_of(text: object) -> int:
    """Return the priority that a user property says; the default one for what is no number."""
    if isinstance(text, str) and text.isascii() and text.isdigit():
        return min(int(text[:4]), HIGHEST)
    return DEFAULT_PRIORITY


def wants_deliver_to_one(block: bytes) -> bool:
    """Return whether the properties in `block` ask for deliver-to-one; False for a damaged block."""
    if _NAME not in block:
        return False
    field = varint(len(block)) + block
    try:
        properties, _ = decode_properties(field, 0, len(field), PUBLISH)
    except ProtocolError:
        # Told where the block is checked.
        return False
    pairs = properties.user_properties
    return (DELIVER_TO_ONE, YES[0]) in pairs or (DELIVER_TO_ONE, YES[1]) in pairs


@mypyc_attr(allow_interpreted_subclasses=True)
class Source(TimerTarget):
    """Who publishes: what a message knows of a subscriber that it came from.

    `vpn_id` is "router/vpn" of the far side for a link's client, else "". `local_name` is the name by which no-local
    knows it: its own, or that of the connector whose provider it belongs to.
    """

    __slots__ = ("client_name", "is_link", "local_name", "vpn_id")

    def __init__(self, client_name: str, local_name: str = "", vpn_id: str = "") -> None:
        self.client_name = client_name
        self.local_name = local_name or client_name
        self.is_link = bool(vpn_id)
        self.vpn_id = vpn_id

    def bridge_of(self, inward: bool) -> str:
        """Of a link's client, for traces: the bridge that takes messages in here, or there; else ""."""
        return ""


@final
class Message:
    """Topic, payload and what travels with them.

    `encoding` says in whose terms payload and block are. A message stays in those in which it came, byte for byte, and
    is put into others where it leaves by another protocol (`mqtt`, `amqp`).
    `block` holds MQTT 5 properties, encoded, without length prefix, topic alias and identifiers.
    `expires_ns` is the router's monotonic time at which it expires, 0 for never.
    `trace_high`/`trace_low` are the trace id when the message is traced, else both 0.
    `path` lists the VPNs visited before this one ("router/vpn", oldest first).
    `source` is who published it here (for no-local), or None; one that is retained or waits has only its name.
    `message_id` is 0 until the message needs one (`new_message_id`).
    `link_frame` is what links send of it, once the first of them has encoded it.
    `deliver_to_one` says that the properties ask for one consumer.
    `persistent` and `qos` say how it was published; a Direct one that an endpoint keeps is non-persistent. `volatile`
    is guaranteed like any other, but its publisher said that it need not outlive a broker (AMQP: not durable).
    `snapshot` says that a new subscription brought it, of what was retained.
    `resting`: an endpoint keeps it, and what it has besides its content may be dropped (`rest`).
    `priority`, `lane` (a hash of its partition key), `dmq_eligible` and `due_ns` (monotonic; endpoints keep it back
    until then, 0 for not at all) matter to endpoints. `holders` counts endpoints that keep it.
    """

    __slots__ = (
        "_frame4",
        "_frame5",
        "_other",
        "_properties",
        "block",
        "deliver_to_one",
        "dmq_eligible",
        "due_ns",
        "encoding",
        "expires_ns",
        "holders",
        "hops",
        "ingress_ns",
        "lane",
        "link_frame",
        "message_id",
        "origin_router",
        "origin_ts_ns",
        "origin_vpn",
        "path",
        "payload",
        "persistent",
        "priority",
        "qos",
        "resting",
        "retain",
        "snapshot",
        "source",
        "source_name",
        "topic",
        "trace_high",
        "trace_low",
        "volatile",
    )

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        block: bytes = b"",
        retain: bool = False,
        source: Source | None = None,
        encoding: int = MQTT,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.block = block
        self.encoding = encoding
        self.deliver_to_one = wants_deliver_to_one(block) if block else False
        self.retain = retain
        self.source = source
        self.source_name = "" if source is None else source.client_name
        self.expires_ns = 0
        self.trace_high = 0
        self.trace_low = 0
        self.message_id = 0
        self.ingress_ns = 0
        self.path: list[str] = []
        self.hops = 0
        self.origin_router = ""
        self.origin_vpn = ""
        self.origin_ts_ns = 0
        self.link_frame = b""
        self.persistent = False
        self.qos = 0
        self.priority = DEFAULT_PRIORITY
        self.lane = 0
        self.dmq_eligible = True
        self.due_ns = 0
        self.volatile = False
        self.holders = 1
        self.resting = False
        self.snapshot = False
        self._frame4 = b""
        self._frame5 = b""
        # The message in the terms of the other protocol, once somebody asked.
        self._other: Message | None = None
        self._properties: dict[str, object] | None = None

    @property
    def size(self) -> int:
        """Bytes that the message counts for in a quota: payload, properties and topic."""
        return len(self.payload) + len(self.block) + len(self.topic)

    @property
    def local_name(self) -> str:
        """The name by which no-local knows its publisher."""
        source = self.source
        return self.source_name if source is None else source.local_name

    def rest(self) -> None:
        """Keep nothing that is found again when it is needed: the message waits, perhaps for long.

        Its publisher may end before that, and holds much.
        """
        self.resting = True
        self.source = None
        self.forget_forms()

    def forget_forms(self) -> None:
        """Keep nothing that was made of the content: it was changed. Only whoever has the message alone may do so."""
        self.link_frame = b""
        self._frame4 = b""
        self._frame5 = b""
        self._other = None
        self._properties = None

    def forget_properties(self) -> None:
        """Keep the properties for selectors no longer: nobody else looks at them soon, and they take much memory."""
        self._properties = None

    @property
    def traced(self) -> bool:
        """True when this message was picked at its first ingress."""
        return self.trace_high != 0 or self.trace_low != 0

    def text_property(self, name: str) -> str:
        """Return a user property or application property as a text, "" where it is not there."""
        value = self.properties().get(name)
        return value if isinstance(value, str) else conversion.text_of(value) or ""

    def properties(self) -> dict[str, object]:
        """Return the properties for selectors: name → value, decoded once for all who look at it in a row."""
        properties = self._properties
        if properties is None:
            if _RECENT.message is self:
                return _RECENT.properties
            properties = selector_properties(self.topic, self.block)
            conversion.MEASURE.add(2 * len(properties))
            if self.encoding == AMQP:
                properties = {**properties, **conversion.properties_of(self.topic, self.payload)}
                properties[PRIORITY_HEADER] = self.priority
            else:
                properties[PRIORITY_HEADER] = priority_of(properties.get(PRIORITY))
            lasts = (self.persistent or self.qos > 0) and not self.volatile
            properties[MODE_HEADER] = _PERSISTENT if lasts else _NON_PERSISTENT
            if self.resting:
                _RECENT.message = self
                _RECENT.properties = properties
            else:
                self._properties = properties
        return properties

    def mqtt(self) -> Message:
        """Return the message in MQTT's terms: itself, or what it is put into once."""
        if self.encoding == MQTT:
            return self
        other = self._other
        if other is None:
            other = self.copy()
            other.encoding = MQTT
            payload, block = conversion.to_mqtt(self.payload)
            other.payload = payload
            other.block = block + self.block
            other.source = self.source
            other.retain = self.retain
            other.snapshot = self.snapshot
            self._other = other
        return other

    def amqp(self) -> bytes:
        """Return the content of the message in AMQP's terms, from its message annotations on."""
        if self.encoding == AMQP:
            return conversion.annotated(self.payload, self.block) if self.block else self.payload
        other = self._other
        if other is None:
            found = conversion.from_mqtt(self.topic, self.payload, self.block)
            other = Message(self.topic, found, b"", False, None, AMQP)
            self._other = other
        return other.payload

    def to_retain(self) -> Message:
        """Return the copy to retain, which holds no reference to its publisher's session."""
        kept = Message(self.topic, self.payload, self.block, True, None, self.encoding)
        kept.source_name = self.source_name
        kept.expires_ns = self.expires_ns
        kept.persistent = self.persistent
        kept.qos = self.qos
        # A message that came over a bridge must not go back over it when the peer asks for retained messages.
        kept.path = self.path
        kept.hops = self.hops
        return kept

    def copy(self) -> Message:
        """Another message with the same content, which came the same way."""
        copy = Message(self.topic, self.payload, self.block, False, None, self.encoding)
        copy.source_name = self.source_name
        copy.expires_ns = self.expires_ns
        copy.persistent = self.persistent
        copy.qos = self.qos
        copy.volatile = self.volatile
        copy.due_ns = self.due_ns
        copy.priority = self.priority
        copy.lane = self.lane
        copy.dmq_eligible = self.dmq_eligible
        copy.trace_high = self.trace_high
        copy.trace_low = self.trace_low
        copy.message_id = self.message_id
        copy.ingress_ns = self.ingress_ns
        copy.path = self.path
        copy.hops = self.hops
        copy.origin_router = self.origin_router
        copy.origin_vpn = self.origin_vpn
        copy.origin_ts_ns = self.origin_ts_ns
        return copy

    def arrived_like(self, context: Context) -> bool:
        """Return whether this message came the way that `context` describes."""
        return (
            context.hops == self.hops
            and context.origin_router == self.origin_router
            and context.origin_vpn == self.origin_vpn
            and context.path == ">".join(self.path)
        )

    def frame4(self) -> bytes:
        """Return the MQTT 3.1.1 PUBLISH, QoS 0, retain cleared; encoded once for all receivers."""
        if not self._frame4:
            self._frame4 = encode_publish(self.topic, self.mqtt().payload, 4)
        return self._frame4

    def frame5(self) -> bytes:
        """The MQTT 5 PUBLISH, QoS 0, retain cleared, with the message's own properties."""
        if not self._frame5:
            said = self.mqtt()
            self._frame5 = encode_publish(said.topic, said.payload, 5, said.block)
        return self._frame5


@final
class _RecentProperties:
    """The properties of the resting message that was looked at last."""

    __slots__ = ("message", "properties")

    def __init__(self) -> None:
        self.message: Message | None = None
        self.properties: dict[str, object] = {}


_RECENT: Final = _RecentProperties()
