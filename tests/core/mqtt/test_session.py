"""vpnrouter.core.mqtt.session: what outlives a connection, and how messages reach its client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.discard_reasons import MSG_TOO_BIG, NO_LOCAL_DELIVERY, TRANSMIT_CONGESTION
from vpnrouter.core.mqtt.session import NEVER_S
from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish, Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

YEAR = 365 * 24 * 3_600


def lasting(seconds: int) -> Properties:
    """Properties of a CONNECT whose session lasts."""
    return Properties(session_expiry_interval=seconds)


def test_a_session_expires(world: MemoryRouter) -> None:
    """It is there until its interval has passed, and gone with its subscriptions after."""
    client = world.connect("c", properties=lasting(60))
    client.subscribe("a")
    client.lose()
    world.advance(59.999)
    assert world.vpn().subscription_count == 1
    world.advance(0.001)
    assert world.vpn().clients == {}
    assert world.vpn().subscription_count == 0
    assert not world.connect("c", clean_start=False).connack.session_present


def test_a_session_that_is_taken_up_does_not_expire(world: MemoryRouter) -> None:
    """The interval counts from the last end of a connection."""
    world.connect("c", properties=lasting(60)).lose()
    world.advance(59)
    client = world.connect("c", clean_start=False, properties=lasting(60))
    world.advance(1_000)
    client.lose()
    world.advance(59)
    assert world.connect("c", clean_start=False).connack.session_present


@pytest.mark.parametrize("level", [4, 5])
def test_a_session_may_last_for_ever(world: MemoryRouter, level: int) -> None:
    """Interval 0xFFFFFFFF, and 3.1.1 without clean session, never expire."""
    world.connect("c", level=level, clean_start=False, properties=lasting(NEVER_S)).lose()
    world.advance(100 * YEAR)
    assert "c" in world.vpn().clients


def test_sessions_that_come_and_go_leave_no_timers(world: MemoryRouter) -> None:
    """Expiry intervals and keep-alives of clients that are gone do not pile up."""
    for _ in range(1_000):
        world.connect("c", keep_alive_s=60_000, properties=lasting(YEAR)).lose()
    assert len(world.router.context.timers) < 200


def test_a_session_without_connection_gets_nothing_direct(world: MemoryRouter) -> None:
    """Direct messages are not kept for a client that is away."""
    client = world.connect("c", properties=lasting(60))
    client.subscribe("#")
    client.lose()
    publisher = world.connect("p")
    publisher.publish("a", b"1")
    back = world.connect("c", clean_start=False)
    assert back.received() == []
    publisher.publish("a", b"2")
    assert back.payloads() == [b"2"]


def test_a_delayed_will_waits(world: MemoryRouter) -> None:
    """The will is published when its delay has passed, once."""
    watcher = world.connect("w")
    watcher.subscribe("will")
    will = Will(b"will", b"gone", properties=Properties(will_delay_interval=10))
    world.connect("c", properties=lasting(60), will=will).lose()
    world.advance(9.999)
    assert watcher.payloads() == []
    world.advance(0.001)
    assert watcher.payloads() == [b"gone"]
    world.advance(100)
    assert watcher.payloads() == []


def test_a_delayed_will_is_cancelled_by_coming_back(world: MemoryRouter) -> None:
    """A client that resumes its session in time publishes no will."""
    watcher = world.connect("w")
    watcher.subscribe("will")
    will = Will(b"will", b"gone", properties=Properties(will_delay_interval=10))
    world.connect("c", properties=lasting(60), will=will).lose()
    world.advance(9)
    world.connect("c", clean_start=False, properties=lasting(60))
    world.advance(100)
    assert watcher.payloads() == []


def test_a_will_waits_no_longer_than_its_session(world: MemoryRouter) -> None:
    """The end of the session publishes the will, whatever its delay (MQTT-3.1.3-9)."""
    watcher = world.connect("w")
    watcher.subscribe("will")
    will = Will(b"will", b"gone", properties=Properties(will_delay_interval=1_000))
    world.connect("c", properties=lasting(5), will=will).lose()
    assert watcher.payloads() == []
    world.advance(5)
    assert watcher.payloads() == [b"gone"]
    world.connect("c", will=will).lose()
    assert watcher.payloads() == [b"gone"]


def test_a_will_is_retained_and_carries_its_properties(world: MemoryRouter) -> None:
    """Retain flag and properties of a will are those of the message."""
    properties = Properties(content_type="text/plain", user_properties=[("k", "v")])
    world.connect("c", will=Will(b"will", b"gone", retain=True, properties=properties)).lose()
    (message,) = world.connect("w").subscribe("will")
    assert isinstance(message, Publish)
    assert message.retain
    assert message.properties.content_type == "text/plain"
    assert message.properties.user_properties == [("k", "v")]


def test_aliases_are_used_up_to_the_clients_maximum(world: MemoryRouter) -> None:
    """The first topics get an alias with their first message, later messages the alias alone."""
    client = world.connect("c", properties=Properties(topic_alias_maximum=2))
    client.subscribe("#")
    publisher = world.connect("p", level=4)
    for _ in range(2):
        for topic in ("one/1", "two/2", "three/3", "abc"):
            publisher.publish(topic)
    seen = [
        (packet.topic, packet.properties.topic_alias)
        for packet in client.received()
        if isinstance(packet, Publish)
    ]
    first = [(b"one/1", 1), (b"two/2", 2), (b"three/3", None), (b"abc", None)]
    again = [(b"", 1), (b"", 2), (b"three/3", None), (b"abc", None)]
    assert seen == first + again


def test_an_alias_that_never_left_is_not_used(world: MemoryRouter) -> None:
    """When the message that was to set an alias is discarded, the next one carries its topic."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=40))
    client = world.connect("c", properties=Properties(topic_alias_maximum=2))
    client.subscribe("topic/one")
    publisher = world.connect("p")
    publisher.publish("topic/one", b"x" * 60)
    assert client.messages() == []
    publisher.publish("topic/one", b"1")
    (message,) = client.messages()
    assert message.topic == b"topic/one"
    assert world.vpn().totals().discards == {TRANSMIT_CONGESTION: 1}


def test_a_new_connection_knows_no_aliases(world: MemoryRouter) -> None:
    """Topic aliases end with the connection."""
    properties = Properties(topic_alias_maximum=2, session_expiry_interval=60)
    client = world.connect("c", properties=properties)
    client.subscribe("topic/one")
    publisher = world.connect("p")
    publisher.publish("topic/one")
    client.lose()
    client = world.connect("c", clean_start=False, properties=properties)
    publisher.publish("topic/one")
    assert [message.topic for message in client.messages()] == [b"topic/one"]


@pytest.mark.parametrize("aliases", [0, 5])
def test_no_packet_exceeds_the_clients_maximum(world: MemoryRouter, aliases: int) -> None:
    """A message of exactly the client's largest packet arrives, one byte more is discarded and counted."""
    fits = Publish(b"topic", b"x" * 20)
    most = len(encode(fits, 5))
    properties = Properties(maximum_packet_size=most, topic_alias_maximum=aliases)
    client = world.connect("c", properties=properties)
    client.subscribe("topic")
    publisher = world.connect("p")
    publisher.publish("topic", b"x" * 20)
    publisher.publish("topic", b"x" * 21)
    assert client.payloads() == [b"x" * 20]
    assert world.vpn().totals().discards == {MSG_TOO_BIG: 1}


@pytest.mark.parametrize("own", [True, False])
def test_expiry_counts_down_while_a_message_is_retained(world: MemoryRouter, own: bool) -> None:
    """A message is forwarded with what is left of its expiry, rounded up (MQTT-3.3.2-6)."""
    publisher = world.connect("p")
    client = world.connect("c", properties=Properties(topic_alias_maximum=1) if own else None)
    client.subscribe("a")
    for expiry in (0, 100):
        publisher.publish(
            "a", b"x", retain=True, properties=Properties(message_expiry_interval=expiry)
        )
        (live,) = client.messages()
        assert live.properties.message_expiry_interval == expiry
    world.advance(30.5)
    (kept,) = client.subscribe("a")
    assert isinstance(kept, Publish)
    assert kept.properties.message_expiry_interval == 70
    world.advance(69.5)
    assert client.subscribe("a") == []


def test_what_no_local_withholds_is_counted(world: MemoryRouter) -> None:
    """Each message once; not where another subscription of the client takes it, nor for others' messages."""
    own, other = world.connect("own"), world.connect("other")
    own.subscribe("a", no_local=True)
    own.raw(encode(Publish(b"a", b"x"), 5) * 3)
    own.publish("a", retain=True)
    assert own.drain() == b""
    assert world.vpn().totals().discards == {NO_LOCAL_DELIVERY: 4}
    other.publish("a")
    assert own.payloads() == [b"x"]
    own.subscribe("+", retain_handling=2)
    own.publish("a")
    assert own.payloads() == [b"x"]
    assert world.vpn().totals().discards == {NO_LOCAL_DELIVERY: 4}
