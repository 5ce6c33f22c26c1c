"""vpnrouter.core.tracing: what rows say of subscriptions and of messages that went no further."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.message import Message
from vpnrouter.core.tracing import TraceSettings, kept_mode
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import SMF
from vpnrouter.trace.events import DIRECT, MODE_NAMES
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType


def test_subscriptions_say_their_dialect(kit: ModuleType) -> None:
    """A filter's text alone does not say what it means; both dialects stand in one message VPN."""
    world = kit.MemoryRouter(sample=1.0)
    client = world.connect("c")
    client.subscribe("a/+")
    kit.FakeLink(world.vpn(), "far/red").subscribe("a/*")
    client.unsubscribe("a/+")
    found = [
        (row.event, row.context.client, row.topic, row.context.topic_syntax) for row in world.rows()
    ]
    assert found == [
        ("subscribe", "c", b"a/+", "mqtt"),
        ("subscribe", "#bridge/far/red", b"a/*", "smf"),
        ("unsubscribe", "c", b"a/+", "mqtt"),
    ]


def test_subscriptions_are_told_whatever_the_share(kit: ModuleType) -> None:
    """A report on subscriptions needs all of them, also where no message is traced."""
    for terms, count in ((None, 0), (TraceSettings(), 1)):
        world = kit.MemoryRouter(terms=terms)
        world.connect("c").subscribe("a")
        assert len(world.rows()) == count


@pytest.mark.parametrize("sample", [0.0, 1.0])
def test_who_did_not_get_it(kit: ModuleType, sample: float) -> None:
    """Discards on the way to a receiver name the receiver, traced or not."""
    world = kit.MemoryRouter(sample=sample, terms=TraceSettings(discards=True))
    picky = world.connect("picky", properties=Properties(maximum_packet_size=50))
    own = world.connect("own")
    picky.subscribe("big")
    own.subscribe("own", no_local=True)
    world.rows()
    own.publish("big", bytes(100))
    own.publish("own", b"x")
    own.publish("none", b"x", retain=True)
    world.advance(1)
    found = {
        (row.context.client, row.topic, row.context.reason, row.messages, bool(row.trace))
        for row in world.rows()
        if row.event == "discard"
    }
    assert found == {
        ("picky", b"big", "msg-too-big", 1, sample == 1.0),
        ("own", b"own", "no-local-delivery", 1, sample == 1.0),
        ("own", b"none", "no-subscription-match", 1, sample == 1.0),
    }


def test_a_message_that_came_over_a_bridge(kit: ModuleType) -> None:
    """A row of a traced message has its bridge's peer, way and origin where it is given up."""
    world = kit.MemoryRouter(sample=1.0)
    vpn = world.vpn()
    link = kit.FakeLink(vpn, "far/red")
    message = Message(b"a", b"x", source=link)
    message.trace_low = 5
    message.path = ["far/red"]
    message.hops = 1
    message.origin_router, message.origin_vpn = "far", "red"
    assert vpn.publish(message) == "no-subscription-match"
    (row,) = world.rows()
    context = row.context
    assert (context.peer_router, context.peer_vpn) == ("far", "red")
    assert (context.path, context.hops) == ("far/red", 1)
    assert (context.origin_router, context.origin_vpn, context.mode) == ("far", "red", DIRECT)


def test_mode_of_what_is_kept() -> None:
    """What was published as guaranteed is persistent, what a queue promoted is not."""
    message = Message(b"a", b"x")
    assert MODE_NAMES[kept_mode(message)] == "non_persistent"
    message.persistent = True
    assert MODE_NAMES[kept_mode(message)] == "persistent"


def test_messages_that_may_not_enter(kit: ModuleType) -> None:
    """Too large, or not allowed: told with topic and publisher before anybody asks for a trace."""
    world = kit.MemoryRouter(sample=1.0, terms=TraceSettings(discards=True))
    world.add_vpn(
        "blue",
        acl=AclProfile("default", publish=TopicRule(True, [("no", SMF)])),
        bounds=VpnLimits(max_msg_size=10),
    )
    client = world.connect("c")
    client.publish("no", b"x")
    client.publish("yes", bytes(11))
    world.advance(1)
    found = [(row.event, row.topic, row.context.reason, row.trace) for row in world.rows()]
    assert found == [
        ("discard", b"no", "publish-topic-acl", 0),
        ("discard", b"yes", "msg-too-big", 0),
    ]
