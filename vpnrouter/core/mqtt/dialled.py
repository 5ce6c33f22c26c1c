"""Defines what a connection asks of whoever dialled it, where the peer is the MQTT server and the router its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from vpnrouter.core.timers import TimerTarget

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.wire.mqtt.packets import Packet


@mypyc_attr(allow_interpreted_subclasses=True)
class Dialled(TimerTarget):
    """The client's side of a connection that the router dialled.

    MQTT is the same in both directions once the login is over: PUBLISH and its acknowledgements are handled as those of
    a client, over a session of the router's own. What only a client gets comes here.
    """

    __slots__ = ()

    def answer(self, packet: Packet) -> None:
        """Take a CONNACK, SUBACK, UNSUBACK, PINGRESP or DISCONNECT. Raises ProtocolError."""
        raise AssertionError(packet)

    def topic(self, topic: bytes) -> bytes:
        """Return the topic under which a message of the peer enters. Raises TopicError where that is none."""
        return topic

    def retained_in(self, topic: bytes) -> bool:
        """Return whether a message of the peer on `topic` keeps its RETAIN flag."""
        return True

    def retained_out(self, flow: str) -> bool:
        """Return whether a message for the peer keeps its RETAIN flag; `flow` as in `outward`."""
        return True

    def held_back(self, message: Message, token: int) -> None:
        """Take a guaranteed message that the message VPN refuses now. Nothing is read until it has left again."""
        raise AssertionError(token)

    def outward(self, topic: bytes, flow: str) -> bytes:
        """Return the topic under which a message leaves, b"" where it has none there.

        `flow` is the name of the flow that it comes from, "" for a Direct message.
        """
        return topic

    def ended(self, why: str) -> None:
        """Note that the connection is over."""
