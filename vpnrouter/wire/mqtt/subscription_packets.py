"""Packets that change what a client receives: SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK."""

from typing import final

from vpnrouter.wire.mqtt.packet import Packet
from vpnrouter.wire.mqtt.packet_type import SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE
from vpnrouter.wire.mqtt.properties import Properties


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
