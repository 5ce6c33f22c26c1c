"""vpnrouter.core.mqtt.session: sessions, what is stored of them, and their expiry."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.discard_reasons import MSG_TOO_BIG, NO_LOCAL_DELIVERY, TRANSMIT_CONGESTION
from vpnrouter.core.mqtt.session import NEVER_S
from vpnrouter.core.profile import ClientProfile
from vpnrouter.spool import keys
from vpnrouter.spool.record import encode_record
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish, Suback, Subscribe, SubscriptionRequest, Will
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld
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


NOTHING_LEFT = (keys.SESSION, keys.ENDPOINT, keys.OUTBOUND, keys.INBOUND, keys.BODIES, keys.MARK)


def left(router: SpooledWorld) -> list[bytes]:
    """Keys that sessions leave in the store; the number of the next endpoint is none."""
    router.settle()
    found = [key for prefix in NOTHING_LEFT for key, _ in router.store.scan(prefix)]
    return [key for key in found if key != keys.endpoint(0)]


def payloads(client: SpooledClient) -> list[bytes]:
    """What came behind CONNACK."""
    return [packet.payload for packet in client.rest if isinstance(packet, Publish)]


def test_suback_of_a_lasting_session_waits_for_the_sync(router: SpooledWorld) -> None:
    """A QoS from 1 on is granted when it will survive a crash."""
    client = router.lasting("c")
    client.send(Subscribe(1, [SubscriptionRequest("a", 1)]))
    assert client.received() == []
    router.settle()
    assert client.received() == [Suback(1, [1])]
    client.send(Subscribe(2, [SubscriptionRequest("b", 0)]))
    assert client.received() == [Suback(2, [0])]


@pytest.mark.parametrize("how", ["clean", "expiry", "disconnect"])
def test_the_end_of_a_session_leaves_nothing(router: SpooledWorld, how: str) -> None:
    """Rows, identifiers, endpoint and messages are gone from memory and store (MQTT-3.1.2-4)."""
    client = router.join("c", clean_start=False, properties=lasting(100))
    assert client.sub("a", 2) == 2
    client.pub("x", qos=2, pid=9)
    source = router.join("p")
    for number in range(1, 6):
        source.pub("a", b"%d" % number, qos=2, pid=number)
    messages = [packet for packet in client.got() if isinstance(packet, Publish)]
    client.ack(5, messages[0].packet_id)
    router.settle()
    endpoint = router.vpn().clients["c"].endpoint
    assert endpoint is not None
    if how == "disconnect":
        client.disconnect(session_expiry_interval=0)
    else:
        client.lose()
        source.pub("a", b"6", pid=6)
        if how == "clean":
            back = router.join("c", clean_start=True)
            assert not back.connack.session_present
            assert back.rest == []
            back.lose()
        else:
            router.advance(101)
    assert left(router) == []
    assert endpoint.deleted
    assert endpoint.counters.imbalance(0) == 0
    assert router.vpn().spooled_bytes == 0
    assert router.spool.usage == 0
    assert router.vpn().endpoints == {}


def test_sessions_that_do_not_last_leave_nothing_in_the_store(router: SpooledWorld) -> None:
    """Neither a row nor a definition; their messages are gone after a crash."""
    client = router.join("c")
    assert client.sub("a", 2) == 2
    router.join("p").pub("a")
    router.settle()
    assert list(router.store.scan(keys.SESSION)) == []
    again = router.restart()
    assert again.recovered == 0
    assert left(again) == []


@pytest.mark.parametrize(
    ("durability", "lasts", "granted"),
    [
        ("all", True, 1),
        ("all", False, 1),
        ("durable", True, 1),
        ("durable", False, 0),
        ("non-durable", True, 0),
        ("non-durable", False, 1),
    ],
)
def test_endpoints_that_the_profile_allows(
    router: SpooledWorld, durability: str, lasts: bool, granted: int
) -> None:
    """Without the permission to create an endpoint QoS 0 is granted."""
    profile = ClientProfile("default", allow_guaranteed_endpoint_create_durability=durability)
    router.add_vpn("blue", profile=profile)
    client = router.lasting("c") if lasts else router.join("c")
    assert client.sub("a", 1) == granted


def test_terms_of_an_endpoint_are_the_message_vpns(router: SpooledWorld) -> None:
    """A copy of them: what changes for one session changes for no other."""
    router.vpn().session_terms.max_spooled_msg_count = 5
    assert router.lasting("c").sub("a", 1) == 1
    endpoint = router.vpn().clients["c"].endpoint
    assert endpoint is not None
    assert endpoint.settings.max_spooled_msg_count == 5
    assert endpoint.settings is not router.vpn().session_terms


def test_sessions_are_not_mixed_up(router: SpooledWorld) -> None:
    """One client id that begins like another, and filters with odd characters."""
    for name in ("c", "cc", "c/d", "c é"):
        client = router.lasting(name)
        assert client.sub(f"{name}/#", 1) == 1
        assert client.sub("é/+", 1) == 1
    router.settle()
    again = router.restart()
    for name in ("c", "cc", "c/d", "c é"):
        assert set(again.vpn().clients[name].subscriptions) == {f"{name}/#", "é/+"}


def test_numbers_are_not_drawn_twice(router: SpooledWorld) -> None:
    """A session that only publishes with QoS 2 has a number, which its endpoint takes later."""
    client = router.lasting("c")
    client.pub("x", qos=2, pid=1)
    router.settle()
    number = router.vpn().clients["c"].number
    assert number
    client.received()
    assert client.sub("a", 1) == 1
    endpoint = router.vpn().clients["c"].endpoint
    assert endpoint is not None
    assert endpoint.number == number
    again = router.restart()
    assert again.vpn().clients["c"].endpoint.number == number  # type: ignore[union-attr]
    back = again.lasting("c")
    back.ack(PUBREL, 1)
    assert back.acks() == [(7, 1, 0)]
    other = again.lasting("d")
    assert other.sub("a", 1) == 1
    assert again.vpn().clients["d"].endpoint.number > number  # type: ignore[union-attr]


HOUR_NS = 3_600_000_000_000
DECADES_NS = 40 * 365 * 24 * HOUR_NS


def pass_time(router: SpooledWorld, seconds: float, step_ns: int) -> None:
    """Let time pass, and afterwards the wall clock be `step_ns` off; all bodies have to be read again."""
    router.advance(seconds)
    context = router.router.context
    router.router.tick(router.now_ns, context.wall_ns + step_ns)
    router.settle()
    for spool_id in list(router.spool.bodies.kept):
        router.spool.bodies.drop(spool_id)


@pytest.mark.parametrize("step_ns", [-DECADES_NS, -HOUR_NS, HOUR_NS, DECADES_NS])
@pytest.mark.parametrize("max_ttl", [0, 60])
def test_life_times_count_on(router: SpooledWorld, step_ns: int, max_ttl: int) -> None:
    """A message of 60 seconds lives for 60 seconds; its rest is told as it is."""
    queue = router.queue("q", "a", respect_ttl_enabled=True, max_ttl=max_ttl)
    source = router.join("p")
    life = Properties(message_expiry_interval=None if max_ttl else 60)
    source.pub("a", b"1", properties=life)
    source.pub("a", b"2", pid=2, properties=life)
    pass_time(router, 1, step_ns)
    pass_time(router, 1, 0)
    pass_time(router, 56, step_ns)
    assert queue.spooled_count == 2
    first = router.join("first", properties=Properties(receive_maximum=1))
    assert first.sub("$queue/q") == 1
    (message,) = first.rest
    assert isinstance(message, Publish)
    assert message.payload == b"1"
    if not max_ttl:
        assert message.properties.message_expiry_interval == 2
    first.puback(message)
    first.lose()
    router.settle()
    assert queue.spooled_count == 1
    pass_time(router, 4, step_ns)
    assert queue.spooled_count == 0


@pytest.mark.parametrize("step_ns", [-HOUR_NS, HOUR_NS])
def test_sessions_count_on(router: SpooledWorld, step_ns: int) -> None:
    """A session of 100 seconds ends after 100 seconds."""
    client = router.join("c", clean_start=False, properties=Properties(session_expiry_interval=100))
    assert client.sub("a") == 1
    client.lose()
    pass_time(router, 50, step_ns)
    pass_time(router, 49, step_ns)
    assert "c" in router.vpn().clients
    pass_time(router, 2, step_ns)
    assert "c" not in router.vpn().clients


def test_traffic_goes_on(router: SpooledWorld) -> None:
    """Exactly once and in order, whatever the clock does; the delivery delay of a queue holds."""
    seed = random.SystemRandom().getrandbits(32)
    draws = random.Random(seed)
    router.queue("q", "a", respect_ttl_enabled=True, max_ttl=1_000, delivery_delay=5)
    source = router.lasting("p")
    reader = router.join("reader")
    assert reader.sub("$queue/q", 2) == 2
    client = router.lasting("c")
    assert client.sub("a", 2) == 2
    due: list[bytes] = []
    delayed: list[bytes] = []
    here: list[bytes] = []
    for number in range(1, 60):
        due.append(b"%d" % number)
        source.pub("a", due[-1], qos=2, pid=number)
        router.settle()
        assert reader.messages() == [], f"seed {seed}: sooner than after five seconds"
        pass_time(router, draws.choice([1, 6]), draws.choice([-HOUR_NS, 0, HOUR_NS]))
        here += client.take()
        pass_time(router, 5, 0)
        delayed += reader.take()
    assert here == due, f"seed {seed}"
    assert delayed == due, f"seed {seed}"


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
    data = encode_record(
        b"t",
        b"x",
        b"",
        flags=1,
        priority=4,
        expires_ns=end_ns,
        ingress_ns=wall_ns,
        message_id=1,
        source_name="p",
    )
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
