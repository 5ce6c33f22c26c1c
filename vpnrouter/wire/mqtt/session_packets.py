"""Packets that open, authenticate and end a session: CONNECT, CONNACK, DISCONNECT, AUTH."""

from typing import final

from vpnrouter.wire.mqtt.packet import Packet
from vpnrouter.wire.mqtt.packet_type import AUTH, CONNACK, CONNECT, DISCONNECT
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import SUCCESS


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


@final
class Connect(Packet):
    """A client introduces itself (3.1).

    `protocol_level` is 4 (MQTT 3.1.1) or 5. `clean_start` is 3.1.1's "clean session".
    `keep_alive_s` 0 means no keep-alive. An empty `client_id` asks the server to assign one.
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
