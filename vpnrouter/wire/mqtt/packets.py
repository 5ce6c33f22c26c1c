"""Defines MQTT packets as values with equality and a repr that names every field (MQTT 5, 2 and 3)."""

from __future__ import annotations

from typing import Final, final

from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBLISH,
    SUBACK,
    SUBSCRIBE,
    SUCCESS,
    UNSUBACK,
    UNSUBSCRIBE,
)


class Packet:  # noqa: PLW1641 (fields may change: not for hashing)
    """Any MQTT control packet. `packet_type` is one of reason.py."""

    __slots__ = ("packet_type",)

    def __init__(self, packet_type: int) -> None:
        self.packet_type = packet_type

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field, in the order of the constructor."""
        return []

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Packet)
            and self.packet_type == other.packet_type
            and self.fields() == other.fields()
        )

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.fields()])
        return f"{type(self).__name__}({inner})"


@final
class Pingreq(Packet):
    """The client asks whether the server is there (3.12)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(PINGREQ)


@final
class Pingresp(Packet):
    """The server is there (3.13)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(PINGRESP)


@final
class Publish(Packet):
    """A message (3.3).

    `topic` is checked UTF-8 without wildcards; empty only with a topic alias. `packet_id` is 0 at
    QoS 0, else 1..65,535.
    """

    __slots__ = ("dup", "packet_id", "payload", "properties", "qos", "retain", "topic")

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        dup: bool = False,
        packet_id: int = 0,
        properties: Properties | None = None,
    ) -> None:
        super().__init__(PUBLISH)
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.dup = dup
        self.packet_id = packet_id
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("topic", self.topic),
            ("payload", self.payload),
            ("qos", self.qos),
            ("retain", self.retain),
            ("dup", self.dup),
            ("packet_id", self.packet_id),
            ("properties", self.properties),
        ]


@final
class Ack(Packet):
    """PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7), as `packet_type` says."""

    __slots__ = ("packet_id", "properties", "reason_code")

    def __init__(
        self,
        packet_type: int,
        packet_id: int,
        reason_code: int = SUCCESS,
        properties: Properties | None = None,
    ) -> None:
        super().__init__(packet_type)
        self.packet_id = packet_id
        self.reason_code = reason_code
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("packet_type", self.packet_type),
            ("packet_id", self.packet_id),
            ("reason_code", self.reason_code),
            ("properties", self.properties),
        ]


@final
class Will:  # noqa: PLW1641 (fields may change: not for hashing)
    """The message to publish when a client goes without DISCONNECT (3.1.2.5).

    `topic` is checked UTF-8 without wildcards. `properties` may hold `will_delay_interval`.
    """

    __slots__ = ("payload", "properties", "qos", "retain", "topic")

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("topic", self.topic),
            ("payload", self.payload),
            ("qos", self.qos),
            ("retain", self.retain),
            ("properties", self.properties),
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Will) and self.fields() == other.fields()

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.fields()])
        return f"Will({inner})"


BRIDGE_BIT: Final = 0x80
"""Of a protocol level below 5: the client is a bridge, which gets back nothing that it has published, and RETAIN as it
was published. No standard has it; mosquitto, and brokers like it, do."""


@final
class Connect(Packet):
    """A client introduces itself (3.1).

    `protocol_level` is 3 (MQTT 3.1), 4 (3.1.1) or 5, with BRIDGE_BIT for a bridge. `clean_start` is 3.1.1's "clean
    session". `keep_alive_s` 0 means no keep-alive. An empty `client_id` asks the server to assign one.
    """

    __slots__ = (
        "clean_start",
        "client_id",
        "keep_alive_s",
        "password",
        "properties",
        "protocol_level",
        "username",
        "will",
    )

    def __init__(
        self,
        client_id: str,
        clean_start: bool = True,
        keep_alive_s: int = 0,
        protocol_level: int = 5,
        username: str | None = None,
        password: bytes | None = None,
        will: Will | None = None,
        properties: Properties | None = None,
    ) -> None:
        super().__init__(CONNECT)
        self.client_id = client_id
        self.clean_start = clean_start
        self.keep_alive_s = keep_alive_s
        self.protocol_level = protocol_level
        self.username = username
        self.password = password
        self.will = will
        self.properties = Properties() if properties is None else properties

    @property
    def level(self) -> int:
        """The protocol level without BRIDGE_BIT."""
        return self.protocol_level & ~BRIDGE_BIT

    @property
    def is_bridge(self) -> bool:
        """Whether the client says that it is a bridge."""
        return self.protocol_level & BRIDGE_BIT != 0

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("client_id", self.client_id),
            ("clean_start", self.clean_start),
            ("keep_alive_s", self.keep_alive_s),
            ("protocol_level", self.protocol_level),
            ("username", self.username),
            ("password", self.password),
            ("will", self.will),
            ("properties", self.properties),
        ]

    def __repr__(self) -> str:
        # A packet may end up in a traceback or a log; its password must not.
        shown = [
            (name, "..." if name == "password" and value is not None else value)
            for name, value in self.fields()
        ]
        inner = ", ".join([f"{name}={value!r}" for name, value in shown])
        return f"Connect({inner})"


@final
class Connack(Packet):
    """The server's answer to CONNECT (3.2).

    `reason_code` is an MQTT 5 reason code at both levels: a 3.1.1 return code is translated on the
    way in and out (V3_REASONS, to_v3_return_code).
    """

    __slots__ = ("properties", "reason_code", "session_present")

    def __init__(
        self,
        session_present: bool = False,
        reason_code: int = SUCCESS,
        properties: Properties | None = None,
    ) -> None:
        super().__init__(CONNACK)
        self.session_present = session_present
        self.reason_code = reason_code
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("session_present", self.session_present),
            ("reason_code", self.reason_code),
            ("properties", self.properties),
        ]


@final
class Disconnect(Packet):
    """Either side ends the connection (3.14); in 3.1.1 only the client, and without a reason."""

    __slots__ = ("properties", "reason_code")

    def __init__(self, reason_code: int = SUCCESS, properties: Properties | None = None) -> None:
        super().__init__(DISCONNECT)
        self.reason_code = reason_code
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [("reason_code", self.reason_code), ("properties", self.properties)]


@final
class Auth(Packet):
    """One step of an extended authentication (3.15); MQTT 5 only."""

    __slots__ = ("properties", "reason_code")

    def __init__(self, reason_code: int = SUCCESS, properties: Properties | None = None) -> None:
        super().__init__(AUTH)
        self.reason_code = reason_code
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [("reason_code", self.reason_code), ("properties", self.properties)]


@final
class SubscriptionRequest:  # noqa: PLW1641 (fields may change: not for hashing)
    """One filter of a SUBSCRIBE with its options (3.8.3.1).

    `filter` is checked UTF-8 and not empty; its grammar is the topic engine's business. The last
    three options are always off in 3.1.1. `retain_handling`: 0 send retained messages, 1 only when
    the subscription is new, 2 never.
    """

    __slots__ = ("filter", "no_local", "qos", "retain_as_published", "retain_handling")

    def __init__(
        self,
        filter: str,  # noqa: A002
        qos: int = 0,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
    ) -> None:
        self.filter = filter
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.retain_handling = retain_handling

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("filter", self.filter),
            ("qos", self.qos),
            ("no_local", self.no_local),
            ("retain_as_published", self.retain_as_published),
            ("retain_handling", self.retain_handling),
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubscriptionRequest) and self.fields() == other.fields()

    def __repr__(self) -> str:
        inner = ", ".join([f"{name}={value!r}" for name, value in self.fields()])
        return f"SubscriptionRequest({inner})"


@final
class Subscribe(Packet):
    """Asks for one or more subscriptions (3.8)."""

    __slots__ = ("packet_id", "properties", "requests")

    def __init__(
        self,
        packet_id: int,
        requests: list[SubscriptionRequest],
        properties: Properties | None = None,
    ) -> None:
        super().__init__(SUBSCRIBE)
        self.packet_id = packet_id
        self.requests = requests
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("packet_id", self.packet_id),
            ("requests", self.requests),
            ("properties", self.properties),
        ]


@final
class Suback(Packet):
    """Answers SUBSCRIBE: one reason code for each filter, in its order (3.9)."""

    __slots__ = ("packet_id", "properties", "reason_codes")

    def __init__(
        self, packet_id: int, reason_codes: list[int], properties: Properties | None = None
    ) -> None:
        super().__init__(SUBACK)
        self.packet_id = packet_id
        self.reason_codes = reason_codes
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("packet_id", self.packet_id),
            ("reason_codes", self.reason_codes),
            ("properties", self.properties),
        ]


@final
class Unsubscribe(Packet):
    """Gives up one or more subscriptions (3.10)."""

    __slots__ = ("filters", "packet_id", "properties")

    def __init__(
        self, packet_id: int, filters: list[str], properties: Properties | None = None
    ) -> None:
        super().__init__(UNSUBSCRIBE)
        self.packet_id = packet_id
        self.filters = filters
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("packet_id", self.packet_id),
            ("filters", self.filters),
            ("properties", self.properties),
        ]


@final
class Unsuback(Packet):
    """Answers UNSUBSCRIBE (3.11): one reason code for each filter in MQTT 5, none in 3.1.1."""

    __slots__ = ("packet_id", "properties", "reason_codes")

    def __init__(
        self, packet_id: int, reason_codes: list[int], properties: Properties | None = None
    ) -> None:
        super().__init__(UNSUBACK)
        self.packet_id = packet_id
        self.reason_codes = reason_codes
        self.properties = Properties() if properties is None else properties

    def fields(self) -> list[tuple[str, object]]:
        """Name and value of each field."""
        return [
            ("packet_id", self.packet_id),
            ("reason_codes", self.reason_codes),
            ("properties", self.properties),
        ]


__all__ = [
    "Ack",
    "Auth",
    "Connack",
    "Connect",
    "Disconnect",
    "Packet",
    "Pingreq",
    "Pingresp",
    "Publish",
    "Suback",
    "Subscribe",
    "SubscriptionRequest",
    "Unsuback",
    "Unsubscribe",
    "Will",
]
