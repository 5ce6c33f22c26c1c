"""What all packets share: a type, equality by value, and a repr that names every field."""

from typing import final

from vpnrouter.wire.mqtt.packet_type import PINGREQ, PINGRESP


class Packet:  # noqa: PLW1641 (fields may change: not for hashing)
    """Any MQTT control packet. `packet_type` is one of packet_type.py."""

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
