"""More of what publishers with QoS 1 and 2 are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.packets import Ack, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld
    from vpnrouter.core.guaranteed.endpoint import Endpoint

FOREVER = Properties(session_expiry_interval=0xFFFF_FFFF)


def test_large_messages_hold_everybody_back(router: SpooledWorld) -> None:
    """Beyond UNIT_BYTES clients are not read until theirs are answered, whatever their protocol."""
    queue = router.queue("q", "a")
    client = router.join("p")
    payload = bytes(limits.UNIT_BYTES // 4)
    for pid in range(1, 7):
        client.pub("a", payload, pid=pid)
    assert client.connection.paused
    assert queue.spooled_count == 4
    assert client.acks() == [(PUBACK, pid, 0) for pid in range(1, 7)]


def test_a_publisher_that_is_held_back_is_not_dead(router: SpooledWorld) -> None:
    """While we do not read, its keep-alive does not run out."""
    client = router.join("p", 4, keep_alive_s=10)
    for pid in range(1, limits.RECEIVE_MAXIMUM + 1):
        client.pub("a", pid=pid)
    assert client.connection.paused
    router.advance(60)
    assert not client.closed
    router.settle()
    router.advance(60)
    assert client.closed


def test_a_publisher_that_went_is_not_answered(router: SpooledWorld) -> None:
    """Its message is taken all the same."""
    queue = router.queue("q", "a")
    client = router.join("p")
    client.pub("a")
    client.lose()
    router.settle()
    assert client.received() == []
    assert queue.spooled_count == 1


@pytest.mark.parametrize(("level", "qos"), [(4, 1), (5, 1), (4, 2), (5, 2)])
def test_the_profile_may_forbid_it(router: SpooledWorld, level: int, qos: int) -> None:
    """Without allow_guaranteed_msg_send_enabled the maximum QoS is 0 (MQTT-3.2.2-11)."""
    router.add_vpn(
        "blue", profile=ClientProfile("default", allow_guaranteed_msg_send_enabled=False)
    )
    client = router.join("p", level)
    assert client.connack.properties.maximum_qos == (0 if level == 5 else None)
    client.pub("a", qos=qos)
    assert client.closed
    if level == 5:
        assert client.reason() == 0x9B


def test_properties_and_aliases(router: SpooledWorld) -> None:
    """A guaranteed message keeps its properties; topic aliases work for it."""
    consumer = router.join("c")
    assert consumer.sub("a", qos=1) == 1
    client = router.join("p")
    properties = Properties(content_type="t", user_properties=[("k", "v")], topic_alias=3)
    client.pub("a", b"1", pid=1, properties=properties)
    client.pub("", b"2", pid=2, properties=Properties(topic_alias=3))
    first, second = consumer.messages()
    assert (first.topic, second.topic) == (b"a", b"a")
    assert first.properties == Properties(content_type="t", user_properties=[("k", "v")])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x36\x06\x00\x01a\x00\x01\x00", 0x81),
        (b"\x32\x03\x00\x01a", 0x81),
        (b"\x32\x04\x00\x01a\x00", 0x81),
        (b"\x32\x06\x00\x01a\x00\x00\x00", 0x82),
        (b"\x32\x06\x00\x01+\x00\x01\x00", 0x90),
        (b"\x40\x02\x00\x00", 0x82),
        (b"\x60\x02\x00\x01", 0x81),
    ],
)
def test_what_is_forbidden(router: SpooledWorld, frame: bytes, code: int) -> None:
    """Each breach has its reason code and closes its sender."""
    client = router.join("c")
    client.raw(frame)
    assert client.reason() == code


ACROSS = ClientProfile("default", end_to_end_bridge="x")


def crossed(router: SpooledWorld, *filters: str, **settings: object) -> Endpoint:
    """A queue from which the bridge x takes, and clients whose answers wait for it."""
    router.vpn().profiles["default"] = ACROSS
    queue = router.queue("q", *filters, **settings)
    queue.remember_bridge("x")
    return queue


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize(("qos", "kind"), [(1, PUBACK), (2, PUBREC)])
def test_the_answer_waits_for_the_bridge(
    router: SpooledWorld, level: int, qos: int, kind: int
) -> None:
    """Neither PUBACK nor PUBREC before a consumer of the bridge's queue has the message."""
    crossed(router, "a")
    client = router.join("p", level)
    client.pub("a", qos=qos, pid=3)
    client.pub("none", qos=qos, pid=4)
    assert client.acks() == []
    bridge = router.join("b")
    bridge.sub("$queue/q")
    (message,) = [packet for packet in bridge.rest if isinstance(packet, Publish)]
    assert client.acks() == []
    bridge.puback(message)
    assert [(code, number) for code, number, _ in client.acks()] == [(kind, 3), (kind, 4)]


def test_complete_does_not_wait_for_another_message(router: SpooledWorld) -> None:
    """PUBCOMP is no answer to a publish: what is released is complete, whatever else is on its way."""
    crossed(router, "a")
    client = router.join("p")
    client.pub("none", qos=2, pid=1)
    assert client.acks() == [(PUBREC, 1, 0)]
    client.pub("a", qos=1, pid=2)
    client.ack(PUBREL, 1)
    assert client.acks() == [(PUBCOMP, 1, 0)]


@pytest.mark.parametrize("qos", [1, 2])
def test_what_never_comes_over(router: SpooledWorld, qos: int) -> None:
    """Deleted before the bridge had it: refused, and the identifier stands for a new message then."""
    queue = crossed(router, "a")
    client = router.lasting("p")
    client.pub("a", b"1", qos=qos, pid=3)
    client.got()
    queue.purge()
    (answer,) = client.got()
    assert isinstance(answer, Ack)
    assert (answer.packet_id, answer.reason_code) == (3, reason.IMPLEMENTATION_SPECIFIC_ERROR)
    assert answer.properties.reason_string == refusals.PUBLISH_FAILURE
    client.pub("a", b"2", qos=qos, pid=3)
    client.got()
    assert queue.spooled_count == 1
    assert queue.counters.spooled == 2


def test_an_old_publisher_is_disconnected_when_it_never_comes_over(router: SpooledWorld) -> None:
    """MQTT 3.1.1 has no refusal; what it published behind that is in the queue all the same."""
    queue = crossed(router, "a")
    client = router.join("p", 4)
    client.pub("a", b"1", pid=1)
    router.settle()
    client.pub("a", b"2", pid=2)
    queue.purge()
    assert client.got() == []
    assert client.connection.closing
    assert queue.spooled_count == 1
    assert queue.watched is not None
    assert len(queue.watched) == 0


@pytest.mark.parametrize("crash", [False, True])
def test_qos_2_waits_for_the_bridge_over_connections(router: SpooledWorld, crash: bool) -> None:
    """A client that comes back and asks again is not told before the bridge has it, nor is it taken twice."""
    crossed(router, "a")
    client = router.lasting("p")
    client.pub("a", b"once", qos=2, pid=3)
    router.settle()
    client.lose()
    world = router
    if crash:
        world = router.restart()
        world.vpn().profiles["default"] = ACROSS
        world.attract("q", "a")
    back = world.lasting("p")
    back.pub("a", b"once", qos=2, pid=3, dup=True)
    assert back.acks() == []
    bridge = world.join("b")
    bridge.sub("$queue/q")
    (message,) = [packet for packet in bridge.rest if isinstance(packet, Publish)]
    bridge.puback(message)
    assert back.acks() == [(PUBREC, 3, 0)]
    back.ack(PUBREL, 3)
    assert back.acks() == [(PUBCOMP, 3, 0)]
    queue = world.vpn().queue("q")
    assert queue is not None
    assert queue.spooled_count == 0
    back.pub("a", b"more", qos=2, pid=3)
    assert back.acks() == []
    assert queue.spooled_count == 1


def test_as_many_as_the_receive_maximum(router: SpooledWorld) -> None:
    """An old client is read no further while so many wait for the bridge, and goes on afterwards."""
    crossed(router, "a")
    client = router.join("p", 4)
    for pid in range(1, limits.RECEIVE_MAXIMUM + 11):
        client.pub("a", pid=pid)
    router.settle()
    queue = router.vpn().queue("q")
    assert queue is not None
    assert queue.spooled_count == limits.RECEIVE_MAXIMUM
    bridge = router.join("b")
    bridge.sub("$queue/q")
    bridge.puback(*[packet for packet in bridge.rest if isinstance(packet, Publish)])
    bridge.take()
    router.settle()
    bridge.take()
    assert [pid for _, pid, _ in client.acks()] == list(range(1, limits.RECEIVE_MAXIMUM + 11))


def test_ingress_flows(router: SpooledWorld) -> None:
    """A connection is one with its first guaranteed message; beyond the bound it is refused, till one ends."""
    vpn = router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=2))
    router.queue("q", "#")
    clients = [router.join(name) for name in "abc"]
    for client in clients:
        client.pub("a", qos=0, pid=0)
    assert vpn.ingress_flows == 0
    for client in clients[:2]:
        client.pub("a", pid=1)
        client.pub("a", qos=2, pid=2)
        assert client.acks() == [(PUBACK, 1, 0), (PUBREC, 2, 0)]
    late = clients[2]
    late.pub("a", pid=1)
    late.pub("a", qos=2, pid=2)
    texts = [packet.properties.reason_string for packet in late.got() if isinstance(packet, Ack)]
    assert texts == [refusals.TOO_MANY_INGRESS_FLOWS] * 2
    assert (vpn.ingress_flows, vpn.rejected, vpn.publishers["c"].refused) == (2, 2, 2)
    clients[0].lose()
    assert vpn.ingress_flows == 1
    late.pub("a", pid=1)
    late.pub("a", qos=2, pid=2)
    assert late.acks() == [(PUBACK, 1, 0), (PUBREC, 2, 0)]
    again = router.join("c")
    assert vpn.ingress_flows == 1
    again.pub("a", pid=1)
    assert again.acks() == [(PUBACK, 1, 0)]
    assert vpn.ingress_flows == 2


def test_an_old_client_beyond_the_ingress_flows(router: SpooledWorld) -> None:
    """It is disconnected, and counts for nothing."""
    vpn = router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=1))
    first, second = router.join("a", 4), router.join("b", 4)
    first.pub("a", pid=1)
    second.pub("a", pid=1)
    assert [packet.packet_id for packet in first.got() if isinstance(packet, Ack)] == [1]
    assert second.got() == []
    assert second.connection.closing
    assert vpn.ingress_flows == 1


def test_no_bound_of_ingress_flows(router: SpooledWorld) -> None:
    """0 is none."""
    router.add_vpn("blue", bounds=VpnLimits(max_ingress_flow_count=0))
    for name in "abc":
        client = router.join(name)
        client.pub("a", pid=1)
        assert [pid for _, pid, _ in client.acks()] == [1]
