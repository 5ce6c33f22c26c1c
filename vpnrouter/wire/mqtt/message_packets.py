"""Packets that carry a message and settle it: PUBLISH and its four acknowledgements."""

from typing import final

from vpnrouter.wire.mqtt.packet import Packet
from vpnrouter.wire.mqtt.packet_type import PUBLISH
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import SUCCESS


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
