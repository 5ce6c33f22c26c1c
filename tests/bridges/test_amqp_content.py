"""Messages of AMQP over a bridge: the far end has them as they came, or in MQTT's terms (LINK-53)."""

from __future__ import annotations

from typing import Any

import pytest

from vpnrouter.core.message import AMQP, Message
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber, Subscription
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.wire.amqp import performatives
from vpnrouter.wire.amqp.performatives import MessageProperties
from vpnrouter.wire.link import encode
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.link.frames import Extension

CONTENT = performatives.write(MessageProperties("id", group_id="g")) + b"\x00\x53\x77\xa1\x05hello"


class Catcher(Subscriber):
    """Keeps the messages that it is sent."""

    def __init__(self) -> None:
        super().__init__("catcher", Outbox([], 1 << 20), FRAME_OWN)
        self.came: list[Message] = []

    def deliver(self, message: Message, subscriptions: list[Subscription]) -> None:
        """Keep it."""
        self.came.append(message)


@pytest.fixture
def bridge(world: Any) -> tuple[Any, Any, Any, Catcher]:
    """A link from blue on edge into yellow on core, and who catches what arrives there."""
    yellow = world.vpn("yellow", "core")
    blue = world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue")
    catcher = Catcher()
    yellow.subscribe(Subscription(parse_filter("#", MQTT), catcher))
    return blue, yellow, link, catcher


def _message(blue: Any) -> Message:
    message = Message(b"a/b", CONTENT, b"", False, None, AMQP)
    message.priority = 7
    message.volatile = True
    message.expires_ns = blue.context.now_ns + 5_000_000_000
    return message


def test_content_arrives_as_it_came(world: Any, bridge: tuple[Any, Any, Any, Catcher]) -> None:
    """Byte for byte, with what the header said; another bridge carries it on."""
    blue, yellow, _, catcher = bridge
    blue.publish(_message(blue))
    world.settle()
    (came,) = catcher.came
    assert (came.encoding, came.payload) == (AMQP, CONTENT)
    assert (came.priority, came.volatile, came.lane != 0) == (7, True, True)
    assert 0 < came.expires_ns - yellow.context.now_ns <= 5_000_000_000
    assert came.properties()["JMSMessageID"] == "id"


@pytest.mark.parametrize(
    "content",
    [b"", performatives.write(MessageProperties("id")), b"\x00\x53\x78\xc1\x01\x00"],
    ids=["nothing", "properties", "footer"],
)
def test_content_without_a_body(
    world: Any, bridge: tuple[Any, Any, Any, Catcher], content: bytes
) -> None:
    """A plain message of JMS crosses as others do."""
    blue, _, link, catcher = bridge
    blue.publish(Message(b"a/b", content, b"", False, None, AMQP))
    world.settle()
    (came,) = catcher.came
    assert (came.encoding, came.payload) == (AMQP, content)
    assert not link.dialed.ended


def test_peer_without_the_feature_gets_mqtt(
    world: Any, bridge: tuple[Any, Any, Any, Catcher]
) -> None:
    """An earlier version gets what an MQTT client would get."""
    blue, _, link, catcher = bridge
    link.accepted.client.takes_amqp = False
    blue.publish(_message(blue))
    world.settle()
    (came,) = catcher.came
    assert (came.encoding, came.payload) == (0, b"hello")
    assert came.properties()["message-id"] == "id"


@pytest.mark.parametrize("content", [b"nonsense", b"\x00\x53", b"\x00\x53\x70\x45" + CONTENT])
def test_content_that_is_none_costs_the_link(
    world: Any, bridge: tuple[Any, Any, Any, Catcher], content: bytes
) -> None:
    """The peer breaks the protocol; a header belongs to one hop."""
    _, _, link, catcher = bridge
    body = encode.direct_body(b"a/b", b"", content)
    link.dialed.feed(encode.direct_x(encode_extension(Extension([], amqp=True)), body))
    assert link.dialed.ended
    world.settle()
    assert catcher.came == []
