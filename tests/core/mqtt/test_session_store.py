"""vpnrouter.core.mqtt.session: what a session leaves in the store, and what not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.profile import ClientProfile
from vpnrouter.spool import keys
from vpnrouter.wire.mqtt.packets import Publish, Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBREL

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
