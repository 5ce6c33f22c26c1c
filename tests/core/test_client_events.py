"""What the event log is told of clients, and that nothing is told per message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.message import Message
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import Event, EventLog
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.packets import SubscriptionRequest, Will

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import MemoryRouter


@pytest.fixture
def told(world: MemoryRouter) -> list[Event]:
    """Every event from here on."""
    log = EventLog("here", lambda: 1)
    heard: list[Event] = []
    log.listeners.append(heard.append)
    world.router.context.events = log
    return heard


def names(told: list[Event]) -> list[str]:
    """What was told, without the scopes; forgets it."""
    found = [event.kind.name.removeprefix("CLIENT_CLIENT_") for event in told]
    told.clear()
    return found


def test_connect_and_disconnect(world: MemoryRouter, told: list[Event]) -> None:
    """One event each, with who it was, from where, and why it ended."""
    client = world.connect("c")
    client.publish("t")
    client.disconnect(4)
    connect, disconnect = told
    assert (connect.msg_vpn, connect.name) == ("blue", "c")
    who = "VPN blue client c username #anonymous from 192.0.2.1"
    assert connect.text == f"{who} connected: MQTT 5"
    assert disconnect.text == (
        f"{who} disconnected: client disconnected, reason code 0x04; received 1 sent 0 messages"
    )
    assert names(told) == ["CONNECT", "DISCONNECT"]


@pytest.mark.parametrize("how", ["lose", "disconnect", "take over", "keep alive", "break"])
def test_each_end_is_told_once(world: MemoryRouter, told: list[Event], how: str) -> None:
    """Whatever ends a connection, each CONNECT has its DISCONNECT."""
    client = world.connect("c", keep_alive_s=1)
    if how == "lose":
        client.lose()
    elif how == "disconnect":
        client.disconnect()
    elif how == "take over":
        world.connect("c").disconnect()
    elif how == "keep alive":
        world.advance(2)
    else:
        client.raw(b"\x00\x00")
    client.lose()
    found = [name for name in names(told) if name != "PARSE_ERROR"]
    assert found.count("CONNECT") == found.count("DISCONNECT") == 1 + (how == "take over")
    assert found[:2] == ["CONNECT", "DISCONNECT"]


def test_refused_logins(world: MemoryRouter, told: list[Event]) -> None:
    """Who was refused and why; never with which password."""
    world.add_vpn("red", (ClientUsername("ann", "planted-secret", "default", "default"),), True)
    told.clear()
    client = world.hello("c", "red", username="ann", password=b"wrong-planted")
    world.verify()
    assert client.closed
    (event,) = told
    assert (event.kind.name, event.msg_vpn, event.name) == (
        "SYSTEM_CLIENT_CONNECT_FAIL",
        "red",
        "c",
    )
    assert event.text == (
        "VPN red client c username ann from 192.0.2.1: connect failed: 403 Forbidden"
    )
    told.clear()
    world.refused("c", "none")
    assert told[0].msg_vpn == ""
    assert "planted" not in "".join(event.text for event in told)


def test_strangers_are_no_clients(world: MemoryRouter, told: list[Event]) -> None:
    """Bytes that are no CONNECT raise nothing: a port scan is counted and not told."""
    client = world.open()
    client.raw(b"GET / HTTP/1.1\r\n\r\n")
    client.lose()
    assert told == []


def test_a_publish_denial_is_told_once(
    kit: ModuleType, world: MemoryRouter, told: list[Event]
) -> None:
    """However many messages are denied; a new connection is told of anew."""
    rule = TopicRule(True, [("no/#", MQTT)])
    world.add_vpn("red", acl=AclProfile("default", publish=rule, subscribe=rule))
    told.clear()
    for _ in range(2):
        client = world.connect("c", "red")
        for _ in range(5):
            client.publish("no/1")
            client.publish("yes/1")
        client.request([SubscriptionRequest("no/+"), SubscriptionRequest("no/2")])
        client.disconnect()
        denied = [event for event in told if "DENIAL" in event.kind.name]
        assert [event.kind.name for event in denied] == [
            "SYSTEM_CLIENT_ACL_PUBLISH_DENIAL",
            "SYSTEM_CLIENT_ACL_SUBSCRIBE_DENIAL",
        ]
        assert denied[0].text == "VPN red client c: 403 Publish ACL Denied: topic no/1"
        told.clear()


@pytest.mark.parametrize("qos", [0, 1])
def test_large_messages(world: MemoryRouter, told: list[Event], qos: int) -> None:
    """One above the threshold is delivered and told of once; one too big is refused and told of once."""
    bounds = VpnLimits(max_msg_size=2_000, large_msg_size=1_000)
    world.add_vpn("red", bounds=bounds)
    told.clear()
    client = world.connect("c", "red")
    taker = world.connect("s", "red")
    taker.subscribe("t")
    told.clear()
    for size in (1_000, 1_001, 1_500, 2_000, 2_001, 3_000):
        client.publish("t", b"x" * size)
    assert [len(payload) for payload in taker.payloads()] == [1_000, 1_001, 1_500, 2_000]
    assert names(told) == ["LARGE_MESSAGE", "MESSAGE_TOO_BIG"]


def test_bounds_of_a_message_vpn(world: MemoryRouter, told: list[Event]) -> None:
    """The first refusal is told; the others stay silent until the log has it cleared."""
    world.add_vpn("red", bounds=VpnLimits(max_connection_count=1, max_subscription_count=1))
    told.clear()
    client = world.connect("a", "red")
    for _ in range(3):
        world.refused("b", "red")
    client.request([SubscriptionRequest(text) for text in ("x", "y", "z")])
    found = [event.kind.name for event in told]
    assert found.count("VPN_VPN_MAX_CONNECTIONS_EXCEEDED") == 1
    assert found.count("VPN_VPN_MAX_SUBSCRIPTIONS_EXCEEDED") == 1
    assert found.count("SYSTEM_CLIENT_CONNECT_FAIL") == 3


def test_messages_raise_nothing(world: MemoryRouter, told: list[Event]) -> None:
    """A million messages a second are a million messages: none of them is an event."""
    one, other = world.connect("a"), world.connect("b", level=4)
    other.subscribe("t/#")
    told.clear()
    for number in range(100):
        one.publish(f"t/{number}", retain=True)
        one.publish("nobody")
    assert len(other.messages()) == 100
    assert told == []


class TestAnnounce:
    """Messages of the router itself (MessageVpn.announce)."""

    def test_who_asks_for_it_gets_it(self, world: MemoryRouter) -> None:
        """A filter that names the first level, in any form of subscription."""
        clients = {
            text: world.connect(f"c{place}")
            for place, text in enumerate(
                ("$SYS/LOG/#", "$SYS/+/INFO/#", "$SYS/#", "#", "+/LOG/#", "$share/g/$SYS/LOG/#")
            )
        }
        for text, client in clients.items():
            client.subscribe(text)
        assert world.vpn().announce(Message(b"$SYS/LOG/INFO/x", b"!", b""))
        got = [text for text, client in clients.items() if client.payloads() == [b"!"]]
        assert got == ["$SYS/LOG/#", "$SYS/+/INFO/#", "$SYS/#", "$share/g/$SYS/LOG/#"]

    def test_no_link_takes_it(self, world: MemoryRouter, kit: Any) -> None:
        """Events stay in their message VPN, even where a bridge asks for them."""
        vpn = world.vpn()
        link = kit.FakeLink(vpn, "far/red")
        link.subscribe("#LOG/>")
        assert not vpn.announce(Message(b"#LOG/INFO/x", b"!", b""))
        assert link.taken() == []

    def test_nothing_of_it_is_counted_or_cached(self, world: MemoryRouter) -> None:
        """A message that nobody wants is no discard, and no client can ride on its route."""
        vpn = world.vpn()
        assert not vpn.announce(Message(b"$SYS/LOG/INFO/x", b"!", b""))
        assert vpn.discards.counts == {}
        assert vpn.cache.entries == {}

    @pytest.mark.parametrize("level", [4, 5])
    def test_clients_cannot_publish_it(self, world: MemoryRouter, level: int) -> None:
        """Neither form; and a will is refused with its CONNECT."""
        taker = world.connect("s")
        taker.subscribe("$SYS/LOG/#")
        for topic in ("$SYS/LOG/INFO/x", "#LOG/INFO/x"):
            world.vpn().announce(Message(topic.encode(), b"own", b""))
            liar = world.connect("c", level=level)
            liar.publish(topic)
            assert liar.closed
        will = Will(b"$SYS/LOG/INFO/x", b"will")
        assert world.refused("w", level=level, will=will).reason_code != 0
        assert taker.payloads() == [b"own"]
