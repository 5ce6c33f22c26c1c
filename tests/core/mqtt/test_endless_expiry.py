"""Life times that end in a century, as clients write them for "never", on every way into the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.spool.record import encode_record
from vpnrouter.wire.mqtt.packets import Publish, Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

ENDLESS_S = 0xFFFF_FFFF
KEPT_S = 2_000_000_000
"""What the spool's index has numbers for, beside a clock of today."""


def endless(seconds: int = ENDLESS_S) -> Properties:
    """Properties of a message that lives so long."""
    return Properties(message_expiry_interval=seconds)


def own_session(router: SpooledWorld, seconds: int) -> None:
    """QoS 1 to the publisher's own session."""
    client = router.lasting("c")
    assert client.sub("t") == 1
    client.pub("t", properties=endless(seconds))
    client.lose()


def own_queue(router: SpooledWorld, seconds: int) -> None:
    """QoS 1 straight into a queue."""
    router.queue("q", respect_ttl_enabled=True)
    router.join("p").pub("$queue/q", properties=endless(seconds))


def promoted(router: SpooledWorld, seconds: int) -> None:
    """QoS 0, which a queue attracts."""
    router.queue("q", "t", respect_ttl_enabled=True)
    router.join("p").publish("t", properties=endless(seconds))


def will(router: SpooledWorld, seconds: int) -> None:
    """A will at QoS 1."""
    router.queue("q", "t", respect_ttl_enabled=True)
    left = Will(b"t", b"x", 1, False, endless(seconds))
    router.join("p", will=left).lose()


def retained(router: SpooledWorld, seconds: int) -> None:
    """A retained message that a subscription at QoS 1 brings."""
    router.join("p").pub("t", retain=True, properties=endless(seconds))
    client = router.lasting("c")
    assert client.sub("t") == 1
    client.lose()


WAYS = {"session": own_session, "$queue": own_queue, "promoted": promoted, "will": will}


def consumer(router: SpooledWorld, way: str) -> SpooledClient:
    """Who gets what is stored."""
    if way in {"session", "retained"}:
        client = router.lasting("c")
    else:
        client = router.join("consumer")
        assert client.sub("$queue/q") == 1
    return client


@pytest.mark.parametrize("seconds", [KEPT_S, 2_830_000_000, ENDLESS_S])
@pytest.mark.parametrize("way", [*WAYS, "retained"])
@pytest.mark.parametrize("restarts", [False, True])
def test_stored_and_delivered(router: SpooledWorld, way: str, seconds: int, restarts: bool) -> None:
    """A message that lives for a century is stored, and delivered with its life time before and after a restart."""
    (WAYS.get(way) or retained)(router, seconds)
    router.settle()
    if restarts:
        router = router.restart()
        router.settle()
    client = consumer(router, way)
    (message,) = client.rest or client.messages()
    assert isinstance(message, Publish)
    assert message.payload == b"x"
    assert message.properties.message_expiry_interval == seconds


def test_a_retained_one_outlives_restarts(router: SpooledWorld) -> None:
    """A retained message of that kind is taken at QoS 1 after a restart, as often as somebody asks."""
    router.join("p").pub("t", retain=True, properties=endless())
    router.settle()
    for number in range(2):
        router = router.restart()
        client = router.join(f"c{number}")
        assert client.sub("t") == 1
        (message,) = client.rest
        assert isinstance(message, Publish)
        assert (message.payload, message.qos) == (b"x", 1)


def test_one_stored_with_its_end_is_read_as_endless(router: SpooledWorld) -> None:
    """A record that says when it ends in a century, as was written once, is read as one without end."""
    from vpnrouter.core.guaranteed.message_record import from_record

    now_ns, wall_ns = router.router.context.now_ns, router.router.context.wall_ns
    end_ns = wall_ns + ENDLESS_S * 1_000_000_000
    data = encode_record(b"t", b"x", b"", 1, 4, end_ns, wall_ns, 1, "p")
    assert from_record(data, now_ns, wall_ns).expires_ns == 0


def test_the_longest_life_is_never_told_as_longer(router: SpooledWorld) -> None:
    """After a restart with the clock set back by an hour the client is told the longest life time of the field."""
    own_queue(router, KEPT_S)
    router.settle()
    router = type(router)(router.store, -3_600_000_000_000)
    router.settle()
    client = consumer(router, "$queue")
    (message,) = client.rest
    assert isinstance(message, Publish)
    assert message.properties.message_expiry_interval == KEPT_S + 3_600
