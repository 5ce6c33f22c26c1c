"""vpnrouter.core.mqtt.restore: sessions that outlive the router."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.mqtt.restore import restore_sessions, restore_wills
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.store import Batch
from vpnrouter.wire.mqtt.packets import Publish, Subscribe, SubscriptionRequest, Will
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld

NOTHING_LEFT = (keys.SESSION, keys.ENDPOINT, keys.OUTBOUND, keys.INBOUND, keys.BODIES, keys.MARK)


def left(router: SpooledWorld) -> list[bytes]:
    """Keys that sessions leave in the store; the number of the next endpoint is none."""
    router.settle()
    found = [key for prefix in NOTHING_LEFT for key, _ in router.store.scan(prefix)]
    return [key for key in found if key != keys.endpoint(0)]


def lasting(seconds: int) -> Properties:
    """Properties of a CONNECT whose session lasts."""
    return Properties(session_expiry_interval=seconds)


def payloads(client: SpooledClient) -> list[bytes]:
    """What came behind CONNACK."""
    return [packet.payload for packet in client.rest if isinstance(packet, Publish)]


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("crash", [False, True])
def test_messages_wait_for_a_client_that_is_away(
    router: SpooledWorld, level: int, crash: bool
) -> None:
    """QoS 1 and 2 messages are kept for it, over a crash of the router too (MQTT 5, 4.1)."""
    client = router.lasting("c", level)
    assert client.sub("a/#", 1) == 1
    assert client.sub("b", 2) == 2
    client.lose()
    source = router.join("p")
    source.pub("a/x", b"1", pid=1)
    source.pub("b", b"2", qos=2, pid=2)
    source.pub("a/x", b"direct", qos=0, pid=0)
    router.settle()
    world = router.restart() if crash else router
    back = world.lasting("c", level)
    assert back.connack.session_present
    messages = [packet for packet in back.rest if isinstance(packet, Publish)]
    assert [(message.payload, message.qos) for message in messages] == [(b"1", 1), (b"2", 2)]
    assert back.take() == []
    world.join("p").pub("a/y", b"3")
    assert [message.payload for message in back.messages()] == [b"3"]


def test_subscriptions_keep_their_options(router: SpooledWorld) -> None:
    """QoS, no-local, retain as published and identifier are as they were; what was unsubscribed is gone."""
    client = router.lasting("c")
    requests = [
        SubscriptionRequest("a", 2, no_local=True),
        SubscriptionRequest("b", 1, retain_as_published=True),
        SubscriptionRequest("c", 0),
        SubscriptionRequest("$share/g/d", 1),
        SubscriptionRequest("gone", 1),
    ]
    client.request(requests, 5)
    router.settle()
    client.received()
    client.unsubscribe("gone")
    router.settle()
    again = router.restart()
    session = again.vpn().clients["c"]
    found = {
        key: (one.qos, one.no_local, one.retain_as_published, one.identifier)
        for key, one in session.subscriptions.items()
    }
    assert found == {
        "a": (2, True, False, 5),
        "b": (1, False, True, 5),
        "c": (0, False, False, 5),
        "$share/g/d": (1, False, False, 5),
    }


def test_a_session_expires_by_the_wall_clock(router: SpooledWorld) -> None:
    """The interval counts from when the client left, the time without a router included."""
    for name in ("goes", "stays", "here"):
        client = router.join(name, clean_start=False, properties=lasting(100))
        assert client.sub("a", 1) == 1
        if name == "stays":
            router.advance(50)
        if name != "here":
            client.lose()
    router.join("p").pub("a")
    router.settle()
    router.now_ns += 60_000_000_000
    again = router.restart()
    assert set(again.vpn().clients) == {"stays", "here"}
    assert again.recovered == 2
    again.settle()
    assert again.session_row("goes") is None
    again.advance(39)
    assert set(again.vpn().clients) == {"stays", "here"}
    again.advance(2)
    assert set(again.vpn().clients) == {"here"}
    again.advance(60)
    assert set(again.vpn().clients) == set()
    assert left(again) == []


def test_a_session_with_direct_subscriptions_only(router: SpooledWorld) -> None:
    """It is there again after a restart, without an endpoint."""
    client = router.lasting("c")
    assert client.sub("a", 0) == 0
    router.settle()
    back = router.restart().lasting("c")
    assert back.connack.session_present
    back.world.join("p").publish("a", b"1")
    assert [message.payload for message in back.messages()] == [b"1"]


def test_what_was_delivered_before_a_crash_comes_with_dup(router: SpooledWorld) -> None:
    """QoS 1: perhaps again, then with DUP (promise MARK)."""
    client = router.lasting("c")
    assert client.sub("a", 1) == 1
    router.join("p").pub("a", b"1")
    (message,) = client.messages()
    assert not message.dup
    back = router.restart().lasting("c")
    (again,) = [packet for packet in back.rest if isinstance(packet, Publish)]
    assert again.dup


def test_retained_messages_over_a_restart(router: SpooledWorld) -> None:
    """They come at their QoS to a new subscription, with RETAIN (MQTT-3.3.1-8)."""
    source = router.join("p")
    for qos in (0, 1, 2):
        source.pub(f"r/{qos}", b"%d" % qos, qos=qos, pid=qos, retain=True)
    source.pub("r/gone", b"x", qos=1, pid=5, retain=True)
    source.pub("r/gone", b"", qos=1, pid=6, retain=True)
    router.settle()
    for world in (router, router.restart()):
        client = world.join("c")
        assert client.sub("r/#", 2) == 2
        got = [packet for packet in client.rest if isinstance(packet, Publish)]
        found = sorted((message.payload, message.qos, message.retain) for message in got)
        assert found == [(b"0", 0, True), (b"1", 1, True), (b"2", 2, True)]
        other = world.join("d")
        assert other.sub("r/#", 0) == 0
        got = [packet for packet in other.rest if isinstance(packet, Publish)]
        assert sorted((message.payload, message.qos) for message in got) == [
            (b"0", 0),
            (b"1", 0),
            (b"2", 0),
        ]


def test_retained_messages_wait_for_a_lasting_session(router: SpooledWorld) -> None:
    """RETAIN is still set when they are delivered after a restart."""
    router.join("p").pub("r", b"1", retain=True)
    router.settle()
    client = router.lasting("c")
    client.send(Subscribe(1, [SubscriptionRequest("r", 1)]))
    client.lose()
    router.settle()
    back = router.restart().lasting("c")
    (message,) = [packet for packet in back.rest if isinstance(packet, Publish)]
    assert message.retain


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("level", [4, 5])
def test_wills(router: SpooledWorld, level: int, qos: int) -> None:
    """A will with QoS 1 or 2 is kept for those who are away (MQTT-3.1.2-8)."""
    watcher = router.lasting("w")
    assert watcher.sub("will", 2) == 2
    watcher.lose()
    client = router.join("c", level, will=Will(b"will", b"gone", qos=qos))
    client.lose()
    router.settle()
    back = router.restart().lasting("w")
    (message,) = [packet for packet in back.rest if isinstance(packet, Publish)]
    assert (message.payload, message.qos) == (b"gone", qos)


def test_a_will_beyond_the_maximum_qos(router: SpooledWorld) -> None:
    """Who may not publish guaranteed messages has no such will (MQTT-3.2.2-12)."""
    profile = ClientProfile("default", allow_guaranteed_msg_send_enabled=False)
    router.add_vpn("blue", profile=profile)
    assert router.refused("c", will=Will(b"w", b"x", qos=1)).reason_code == 0x9B


def test_endpoints_are_bounded(router: SpooledWorld) -> None:
    """One session more than max_endpoint_count is refused with 0x97; QoS 0 is free."""
    router.add_vpn("blue", bounds=VpnLimits(max_endpoint_count=2))
    router.queue("q")
    first, second = router.join("c1"), router.join("c2")
    assert first.sub("a", 1) == 1
    assert first.sub("b", 1) == 1
    assert second.sub("a", 1) == 0x97
    assert second.sub("a", 0) == 0
    first.disconnect()
    router.settle()
    assert second.sub("a", 1) == 1
    assert (SESSION, "#mqtt/c2") in router.vpn().endpoints


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"level": "x"}'])
def test_a_damaged_row_is_an_error(router: SpooledWorld, value: bytes) -> None:
    """Nothing is guessed."""
    router.lasting("c")
    router.settle()
    router.spool.ledger.put(keys.session("blue", "c"), value)
    router.settle()
    with pytest.raises(SpoolError, match="damaged"):
        restore_sessions(router.vpn(), router.store)


def test_endpoints_of_a_client_username(router: SpooledWorld) -> None:
    """Sessions count for who made them, over a restart too, until they end."""
    profile = ClientProfile("default", max_endpoint_count_per_client_username=2)
    router.add_vpn("blue", profile=profile)
    for name in ("a", "b"):
        assert router.lasting(name).sub("t") == 1
    assert router.lasting("c").sub("t") == 0x97
    router.settle()
    world = router.restart()
    world.vpn().profiles["default"] = profile
    late = world.lasting("c")
    assert late.sub("t") == 0x97
    assert late.sub("t", 0) == 0
    world.join("a")
    assert late.sub("t") == 1
    assert sum(world.vpn().endpoints_of.values()) == 2


def wills_after(world: SpooledWorld, later_s: float = 0.0) -> tuple[SpooledWorld, list[bytes]]:
    """The router killed and started again, and what its queue of wills has some seconds later."""
    world.settle()
    world = world.restart()
    queue = world.attract("wills", "w/#")
    restore_wills(world.vpn(), world.store)
    world.settle()
    world.advance(later_s)
    world.settle()
    return world, [row.message.payload for row in queue.browse(0, 99)]


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("lasts", [False, True])
def test_a_will_outlives_a_crash(router: SpooledWorld, qos: int, lasts: bool) -> None:
    """After a crash a will is published once (MQTT 5, 3.1.2.5), and retained where it says so."""
    router.queue("wills", "w/#")
    join = router.lasting if lasts else router.join
    join("c", will=Will(b"w/c", b"gone", qos=qos, retain=True))
    world, found = wills_after(router)
    assert found == [b"gone"]
    assert world.vpn().retained.has(b"w/c")
    assert [key for key, _ in world.store.scan(keys.WILL)] == []
    assert wills_after(world)[1] == [b"gone"]


def test_wills_that_are_not_due(router: SpooledWorld) -> None:
    """No will is left of a client that disconnected, whose will was published, or that has another one or none."""
    router.queue("wills", "w/#")
    router.lasting("goodbye", will=Will(b"w/1", b"goodbye", qos=1)).disconnect()
    router.lasting("lost", will=Will(b"w/2", b"lost", qos=1)).lose()
    for name, will in (("other", Will(b"w/3", b"new", qos=1)), ("none", None)):
        old = Will(b"w/3", b"old", qos=1, properties=Properties(will_delay_interval=99))
        router.lasting(name, will=old).lose()
        router.lasting(name, will=will)
    assert wills_after(router)[1] == [b"lost", b"new"]


def test_a_will_with_a_delay_waits_for_its_client(router: SpooledWorld) -> None:
    """After a crash the delay begins, or goes on; a client that is back in time takes its will with it."""
    router.queue("wills", "w/#")
    delayed = Properties(will_delay_interval=100)
    for name in ("here", "back", "gone"):
        will = Will(b"w/" + name.encode(), name.encode(), qos=1, properties=delayed)
        client = router.lasting(name, will=will)
        if name == "gone":
            client.lose()
    short = Will(b"w/short", b"short", qos=1, properties=delayed)
    router.join("short", clean_start=False, properties=lasting(10), will=short)
    router.advance(60)
    world, found = wills_after(router)
    assert found == []
    world.advance(30)
    world.lasting("back")
    world.settle()
    queue = world.vpn().queue("wills")
    assert queue is not None
    assert [row.message.payload for row in queue.browse(0, 99)] == [b"short"]
    world.advance(11)
    world.settle()
    assert [row.message.payload for row in queue.browse(0, 99)] == [b"short", b"gone"]
    world.advance(100)
    world.settle()
    assert [row.message.payload for row in queue.browse(0, 99)] == [b"short", b"gone", b"here"]
    assert [key for key, _ in world.store.scan(keys.WILL)] == []


def test_a_will_that_may_not_be_published_any_more(router: SpooledWorld) -> None:
    """What an ACL profile forbids when the router is back is not published."""
    router.queue("wills", "w/#")
    router.lasting("c", will=Will(b"w/c", b"gone", qos=1))
    router.settle()
    world = router.restart()
    queue = world.attract("wills", "w/#")
    world.vpn().acl_profiles["default"] = AclProfile("default", publish=TopicRule(False))
    restore_wills(world.vpn(), world.store)
    world.settle()
    assert queue.spooled_count == 0
    assert [key for key, _ in world.store.scan(keys.WILL)] == []


def test_a_damaged_will(router: SpooledWorld) -> None:
    """A row that is no will is a clear error."""
    row = Batch()
    row.put(keys.will("blue", "c"), b"{}")
    router.store.commit(row)
    with pytest.raises(SpoolError, match="the will of an MQTT client in the spool is damaged"):
        restore_wills(router.vpn(), router.store)
