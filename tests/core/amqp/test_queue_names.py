"""Queues whose names have what no topic has within a level: they are published to, and answered to, with escapes."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.guaranteed.refusals import NOT_CONFIGURED
from vpnrouter.topics.grammar import SMF, name_meant, queue_topic
from vpnrouter.wire.amqp.performatives import Accepted, Detach, MessageProperties
from vpnrouter.wire.mqtt.packets import Ack
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

NAMES = [("a+b", "a%2Bb"), ("a#b", "a%23b"), ("100%#", "100%25%23"), ("100%23", "100%2523")]
"""A name, and how it is written in a topic."""


def answer(client: SpooledClient) -> tuple[int, str]:
    """Code and reason of the only acknowledgement that came."""
    (ack,) = client.got()
    assert isinstance(ack, Ack)
    return ack.reason_code, ack.properties.reason_string or ""


@pytest.mark.parametrize(("name", "written"), NAMES)
def test_forms_of_a_name(name: str, written: str) -> None:
    """The name is escaped, and what it meant by that is the name."""
    assert queue_topic(name) == f"$queue/{written}"
    assert name_meant(written) == name
    assert queue_topic("100%") == "$queue/100%"


@pytest.mark.parametrize(("name", "written"), NAMES)
def test_from_mqtt_to_amqp_and_back(
    router: SpooledWorld, join: Any, name: str, written: str
) -> None:
    """What MQTT publishes to the topic is in the queue, and AMQP sees the name itself."""
    router.queue(name)
    client = router.join("m")
    properties = Properties(response_topic=f"$queue/{written}")
    client.pub(f"$queue/{written}", b"1", properties=properties)
    assert answer(client) == (0, "")
    peer = join("a")
    peer.receiver(f"queue://{name}")
    (got,) = peer.messages()
    assert got.sections[0x73].to == f"queue://{name}"
    assert got.sections[0x73].reply_to == f"queue://{name}"


@pytest.mark.parametrize("address", ["queue://{}", None])
@pytest.mark.parametrize(("name", "written"), NAMES)
def test_from_amqp_to_mqtt(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    address: str | None,
    name: str,
    written: str,
) -> None:
    """AMQP sends to the name itself, over a link to the queue or a relay, and MQTT gets topics that it may have."""
    router.queue(name)
    peer = join("a")
    peer.sender(address and address.format(name))
    said = MessageProperties(to=f"queue://{name}", reply_to=f"queue://{name}")
    assert peer.sent(amqp.message(b"1", properties=said)) == Accepted()
    client = router.join("m")
    assert client.sub(f"$queue/{written}") == 1
    (got,) = client.rest
    assert got.topic == f"$queue/{written}".encode()
    assert got.properties.response_topic == f"$queue/{written}"


def test_a_link_ends_with_a_queue_of_such_a_name(router: SpooledWorld, join: Any) -> None:
    """It is told that the queue is gone, as of any other."""
    queue = router.queue("a+b")
    peer = join("a")
    peer.sender("queue://a+b")
    queue.delete(NOT_CONFIGURED)
    assert peer.answer(Detach).error.condition == "amqp:resource-deleted"


def test_the_name_as_it_is_written_goes_before(router: SpooledWorld) -> None:
    """A queue may come and go: the topic is for the one of this very name while there is one."""
    escaped = router.queue("a+b")
    client = router.join("m")
    client.pub("$queue/a%2Bb", b"1")
    literal = router.queue("a%2Bb")
    client.pub("$queue/a%2Bb", b"2")
    router.settle()
    assert (escaped.spooled_count, literal.spooled_count) == (1, 1)


def test_a_queue_that_comes_later(router: SpooledWorld) -> None:
    """That there was none is not remembered."""
    client = router.join("m")
    client.pub("$queue/a%2Bb", b"1")
    assert answer(client) == (0x87, "403 Permission Denied")
    queue = router.queue("a+b")
    client.pub("$queue/a%2bb", b"2")
    assert answer(client) == (0, "")
    assert queue.spooled_count == 1


def test_queues_of_the_router(router: SpooledWorld) -> None:
    """Escapes are no way to send to a queue whose name begins with `#`."""
    queue = router.queue("#DEAD_MSG_QUEUE")
    client = router.join("m")
    client.pub("$queue/%23DEAD_MSG_QUEUE", b"1")
    assert answer(client)[0] == 0x87
    assert queue.spooled_count == 0


@pytest.mark.parametrize("written", ["a%2Bb", "a%2bb"])
def test_a_right_is_to_the_name(router: SpooledWorld, written: str) -> None:
    """A topic that the ACL profile denies is denied however it is written."""
    rule = TopicRule(True, [("$queue/a+b", SMF)])
    router.add_vpn("blue", acl=AclProfile("default", publish=rule))
    queue = router.queue("a+b")
    client = router.join("m")
    client.pub(f"$queue/{written}", b"1")
    assert answer(client)[0] == 0x87
    assert queue.spooled_count == 0
