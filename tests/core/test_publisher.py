"""vpnrouter.core.publisher: permissions that are remembered, and counters that balance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

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


TOPICS = [
    "four",
    "five",
    "both",
    "special",
    "shared",
    "away",
    "link",
    "picky",
    "links",
    "nobody",
    "denied",
]
OFFERED = {"four", "five", "both", "special", "shared", "link", "links"}


def busy(kit: ModuleType, sample: float) -> MemoryRouter:
    """A world where each of TOPICS goes another way."""
    world: MemoryRouter = kit.MemoryRouter(sample=sample)
    acl = AclProfile("default", publish=TopicRule(True, [("denied", MQTT)]))
    vpn = world.add_vpn("blue", acl=acl, bounds=VpnLimits(max_msg_size=30))
    four, five = world.connect("w4", level=4), world.connect("w5")
    for client, topics in ((four, ("four", "both")), (five, ("five", "both"))):
        for topic in topics:
            client.subscribe(topic)
    five.subscribe("special", identifier=1)
    four.subscribe("$share/g/shared")
    away = world.connect("away", properties=Properties(session_expiry_interval=60))
    away.subscribe("$share/g/away")
    away.lose()
    one, other = kit.FakeLink(vpn, "one/blue"), kit.FakeLink(vpn, "other/blue")
    one.subscribe("link")
    one.subscribe("picky", selector=parse_selector("wanted = 'yes'"))
    one.subscribe("links")
    other.subscribe("links")
    four.connection.outbox.set_limit(300)
    return world


@pytest.mark.parametrize("sample", [0.0, 0.3, 1.0])
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(TOPICS),
            st.integers(1, 5),
            st.sampled_from([1, 30, 31]),
            st.sampled_from(["", "retain", "property", "one"]),
        ),
        max_size=12,
    ),
    level=st.sampled_from([4, 5]),
)
def test_counters_balance(
    kit: ModuleType, sample: float, script: list[tuple[str, int, int, str]], level: int
) -> None:
    """Messages = delivered + unmatched + acl_denied + refused, each as a slow count says, whatever the way."""
    world = busy(kit, sample)
    client = world.connect("p", level=level)
    publisher = client.connection.publisher
    assert publisher is not None
    delivered = denied = received = 0
    for topic, times, size, how in script:
        properties = Properties()
        if level == 5 and how in ("property", "one"):
            name = "deliver-to-one" if how == "one" else "other"
            properties.user_properties = [(name, "true")]
        packet = Publish(topic.encode(), b"x" * size, retain=how == "retain", properties=properties)
        client.raw(encode(packet, level) * times)
        received += times
        if topic == "denied":
            denied += times
        elif topic in OFFERED and size <= 30:
            delivered += times
    assert publisher.messages == received
    assert publisher.acl_denied == denied
    assert publisher.delivered == delivered
    assert publisher.unmatched + publisher.refused == received - delivered - denied
