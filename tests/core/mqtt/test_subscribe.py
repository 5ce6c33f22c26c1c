"""vpnrouter.core.mqtt.subscribe: permission, limits, options, and retained messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.packets import (
    Packet,
    Publish,
    Suback,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from vpnrouter.testing.memory import Client, MemoryRouter


def answer(client: Client, *texts: str) -> Suback:
    """The SUBACK of one SUBSCRIBE, and nothing else."""
    (packet,) = client.request([SubscriptionRequest(text) for text in texts])
    assert isinstance(packet, Suback)
    return packet


def payloads(packets: list[Packet]) -> list[bytes]:
    """The payloads of retained messages."""
    for packet in packets:
        assert isinstance(packet, Publish)
        assert packet.retain
    return sorted(packet.payload for packet in packets if isinstance(packet, Publish))


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_qos_is_granted_as_0(world: MemoryRouter, level: int, qos: int) -> None:
    """SUBACK grants QoS 0 whatever was asked for."""
    world.connect("c", level=level).subscribe("a", qos=qos)


@pytest.mark.parametrize(("level", "code"), [(4, 0x80), (5, 0x8F)])
def test_one_bad_filter_hurts_no_other(world: MemoryRouter, level: int, code: int) -> None:
    """Each filter has its own code, in order."""
    client = world.connect("c", level=level)
    bad = ["a/#/b", "a+", "$share/g", "$share//a", "$share/g+/a"]
    assert answer(client, "a", *bad, "b").reason_codes == [0, *[code] * len(bad), 0]
    assert world.vpn().subscription_count == 2
    assert not client.closed


def test_filters_beyond_the_vpns_limits(world: MemoryRouter) -> None:
    """A filter at the bound of levels or bytes is taken, one beyond is not."""
    world.add_vpn("blue", bounds=VpnLimits(max_topic_levels=3, max_topic_bytes=10))
    client = world.connect("c")
    codes = answer(client, "a/b/#", "a/b/c/#", "abcdefghij", "abcdefghijk").reason_codes
    assert codes == [0, 0x8F, 0, 0x8F]


def test_filters_have_the_bounds_of_the_router_by_default(world: MemoryRouter) -> None:
    """TOPIC_LEVELS levels pass, one more does not."""
    client = world.connect("c")
    most = "/" * (limits.TOPIC_LEVELS - 1)
    assert answer(client, most, most + "/").reason_codes == [0, 0x8F]


@pytest.mark.parametrize("text", ["$queue/q", "$share/g/$queue/q"])
@pytest.mark.parametrize(("level", "code"), [(4, 0x80), (5, 0x83)])
def test_queues_cannot_be_bound_yet(world: MemoryRouter, text: str, level: int, code: int) -> None:
    """A filter that means a queue is refused rather than taken for a topic."""
    client = world.connect("c", level=level)
    assert answer(client, text).reason_codes == [code]


def test_shared_subscriptions_need_the_profile(world: MemoryRouter) -> None:
    """A client profile without them gets 0x9E."""
    profile = ClientProfile("default", allow_shared_subscriptions_enabled=False)
    world.add_vpn("blue", profile=profile)
    assert answer(world.connect("c"), "$share/g/a", "a").reason_codes == [0x9E, 0]


def test_no_local_on_a_shared_subscription(world: MemoryRouter) -> None:
    """It is a protocol error (MQTT-3.8.3-4)."""
    client = world.connect("c")
    client.raw(b"\x82\x10\x00\x01\x00\x00\x0a$share/g/a\x04")
    assert client.reason() == 0x82


def test_share_names_have_their_own_rule(world: MemoryRouter) -> None:
    """The ACL's share-name rule refuses groups, by name."""
    acl = AclProfile("default", share_name=TopicRule(False, [("mine", MQTT)]))
    world.add_vpn("blue", acl=acl)
    codes = answer(world.connect("c"), "$share/mine/a", "$share/yours/a", "a").reason_codes
    assert codes == [0, 0x87, 0]


def test_acl_by_default_allowed(world: MemoryRouter) -> None:
    """A filter is refused only where an exception denies all of it; what is denied in part is left out."""
    acl = AclProfile("default", subscribe=TopicRule(True, [("secret/#", MQTT)]))
    world.add_vpn("blue", acl=acl)
    client = world.connect("c")
    codes = answer(
        client, "a", "secret/x", "secret", "#", "+/x", "$share/g/secret/x", "+"
    ).reason_codes
    assert codes == [0, 0x87, 0x87, 0, 0, 0x87, 0]
    other = world.connect("o")
    for topic in ("secret", "secret/x", "open/x", "open"):
        other.publish(topic, topic.encode())
    assert client.payloads() == [b"open/x", b"open"]


def test_acl_by_default_denied(world: MemoryRouter) -> None:
    """A filter is refused when no exception shares a topic with it; the client gets what they allow and no more."""
    templates = [("in/$client-username/#", MQTT), ("by/$client-id/+", MQTT)]
    world.add_vpn("blue", acl=AclProfile("default", subscribe=TopicRule(False, templates)))
    client = world.connect("c", username="me")
    allowed = answer(
        client, "in/me/#", "in/me", "in/me/x/+", "by/c/x", "by/c/+", "$share/g/in/me/x"
    )
    assert allowed.reason_codes == [0] * 6
    denied = answer(client, "in/you/#", "in/you", "by/d/x", "x", "$SYS/#")
    assert denied.reason_codes == [0x87] * 5
    assert answer(client, "in/+/#", "by/c/#", "#").reason_codes == [0] * 3
    other = world.connect("o")
    for topic in ("in/you/x", "by/c/x/y", "by/d/x", "x", "in/me/1", "by/c/1"):
        other.publish(topic, topic.encode())
    assert client.payloads() == [b"in/me/1", b"by/c/1"]


@pytest.mark.parametrize("wanted", [0, 1])
def test_reasons_only_where_wanted(world: MemoryRouter, wanted: int) -> None:
    """SUBACK carries the field's reason string unless the client declined it."""
    client = world.connect("c", properties=Properties(request_problem_information=wanted))
    expected = "400 Subscription Parse Error" if wanted else None
    assert answer(client, "a+").properties.reason_string == expected


def test_suback_fits_the_clients_largest_packet(world: MemoryRouter) -> None:
    """A reason string that is too long for the client is left out."""
    client = world.connect("c", properties=Properties(maximum_packet_size=20))
    assert answer(client, "a+").properties.reason_string is None


def test_subscriptions_of_a_client_are_bounded(world: MemoryRouter) -> None:
    """Beyond the profile's bound 0x97; a filter that is already there may be renewed."""
    world.add_vpn("blue", profile=ClientProfile("default", max_subscription_count=2))
    client = world.connect("c")
    assert answer(client, "a", "b", "c", "a").reason_codes == [0, 0, 0x97, 0]
    client.unsubscribe("a")
    assert answer(client, "c").reason_codes == [0]


def test_subscriptions_of_a_vpn_are_bounded(world: MemoryRouter) -> None:
    """Beyond the VPN's bound 0x97 for everybody; renewing is free."""
    world.add_vpn("blue", bounds=VpnLimits(max_subscription_count=2))
    first, second = world.connect("c"), world.connect("d")
    assert answer(first, "a", "a", "a").reason_codes == [0, 0, 0]
    assert answer(second, "a", "b").reason_codes == [0, 0x97]
    assert answer(first, "a").reason_codes == [0]


def test_the_default_bound_of_a_vpn() -> None:
    """By default a message VPN takes VPN_SUBSCRIPTIONS subscriptions."""
    assert VpnLimits().max_subscription_count == limits.VPN_SUBSCRIPTIONS


@pytest.mark.parametrize(
    "properties", [None, Properties(user_properties=[("why", "gone")], content_type="none")]
)
def test_an_empty_payload_clears(world: MemoryRouter, properties: Properties | None) -> None:
    """A retained message without payload is delivered and removes the topic's, properties or not (MQTT-3.3.1-6)."""
    watcher = world.connect("w")
    watcher.subscribe("a")
    publisher = world.connect("p")
    publisher.publish("a", b"1", retain=True)
    publisher.publish("a", b"", retain=True, properties=properties)
    assert watcher.payloads() == [b"1", b""]
    assert watcher.subscribe("#") == []
    assert len(world.vpn().retained) == 0


def test_shared_subscriptions_get_no_retained_messages(world: MemoryRouter) -> None:
    """MQTT 5, 4.8.2: nothing retained is sent to a new shared subscription."""
    world.connect("p").publish("a", b"1", retain=True)
    assert world.connect("c").subscribe("$share/g/a") == []


def test_a_client_without_session_expiry_keeps_no_local_for_retained_messages(
    world: MemoryRouter,
) -> None:
    """No-local goes by client id, also when the session that published is gone."""
    first = world.connect("c")
    first.publish("a", b"mine", retain=True)
    first.disconnect()
    assert world.connect("c").subscribe("a", no_local=True) == []
