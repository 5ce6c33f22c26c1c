"""vpnrouter.core.publisher: permissions that are remembered, and counters that balance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.topics.grammar import MQTT

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


def test_the_memory_of_permissions_is_bounded(world: MemoryRouter) -> None:
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
