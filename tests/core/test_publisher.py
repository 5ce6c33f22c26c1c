"""vpnrouter.core.publisher: permissions that are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.message import Message
from vpnrouter.topics.grammar import MQTT

if TYPE_CHECKING:
    from tests.core.world import World


def test_a_permission_is_not_anothers(world: World) -> None:
    """A route that remembers who was allowed lets nobody else through."""
    rule = TopicRule(False, [("own/$client-id/#", MQTT)])
    world.add_vpn("blue", acl=AclProfile("default", publish=rule))
    watcher = world.connect("w")
    watcher.subscribe("#")
    first, second = world.connect("a"), world.connect("b")
    for _ in range(3):
        first.publish("own/a/x", b"allowed")
        second.publish("own/a/x", b"denied")
    assert watcher.payloads() == [b"allowed"] * 3
    assert second.connection.publisher is not None
    assert second.connection.publisher.acl_denied == 3


def test_the_memory_of_permissions_is_bounded(world: World) -> None:
    """PERMITTED_TOPICS topics are remembered, with one more the memory starts anew; answers stay right."""
    rule = TopicRule(True, [("no/#", MQTT)])
    vpn = world.add_vpn("blue", acl=AclProfile("default", publish=rule))
    publisher = world.connect("p").connection.publisher
    assert publisher is not None
    for number in range(limits.PERMITTED_TOPICS + 1):
        assert len(publisher.permitted) == number
        assert publisher.allowed(vpn.route(b"yes/%d" % number))
        if number + 1 == limits.PERMITTED_TOPICS:
            break
    assert not publisher.allowed(vpn.route(b"no/x"))
    assert len(publisher.permitted) == 1
    assert not publisher.allowed(vpn.route(b"no/x"))


def test_where_a_plain_frame_has_been(world: World) -> None:
    """A link's publisher writes its path into messages, a client's does not."""
    publisher = world.connect("p").connection.publisher
    assert publisher is not None
    message = Message(b"a", b"x")
    publisher.arrived(message)
    assert (message.path, message.hops) == ([], 0)
    publisher.path = ["far/blue"]
    publisher.arrived(message)
    assert (message.path, message.hops) == (["far/blue"], 1)
