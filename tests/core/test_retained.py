"""vpnrouter.core.retained: the last message of each topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.message import Message
from vpnrouter.core.retained import Retained
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.topics.oracle import oracle_matches

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

TOPICS = ["a", "a/b", "a/b/c", "a//c", "b/b", "$s/b", "/"]
FILTERS = ["#", "+", "a/#", "+/b", "a/+/c", "a/b", "$s/#", "+/+", "x"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(TOPICS), st.sampled_from([b"", b"1", b"2"]), st.sampled_from([0, 5])
        ),
        max_size=12,
    ),
    st.sampled_from(FILTERS),
    st.sampled_from([4, 5]),
)
def test_what_matches(kept: list[tuple[str, bytes, int]], text: str, now_ns: int) -> None:
    """A dictionary and the oracle say the same: the last payload of each topic, none empty, none expired."""
    retained = Retained()
    model: dict[str, tuple[bytes, int]] = {}
    for topic, payload, expires_ns in kept:
        message = Message(topic.encode(), payload, b"", True)
        message.expires_ns = expires_ns
        retained.keep(message)
        model.pop(topic, None)
        if payload:
            model[topic] = (payload, expires_ns)
    wanted = [
        (topic, payload)
        for topic, (payload, expires_ns) in model.items()
        if oracle_matches(text, MQTT, topic) and (not expires_ns or expires_ns > now_ns)
    ]
    for _ in range(2):
        found = retained.matching(parse_filter(text, MQTT), now_ns)
        assert sorted((m.topic.decode(), m.payload) for m in found) == sorted(wanted)


def test_the_bound() -> None:
    """A new topic beyond the bound is not retained and counted; known ones still change; clearing makes room."""
    retained = Retained(2)
    for topic in (b"a", b"b", b"c", b"a"):
        retained.keep(Message(topic, b"x", b"", True))
    assert (len(retained), retained.refused) == (2, 1)
    retained.keep(Message(b"a", b"", b"", True))
    retained.keep(Message(b"c", b"x", b"", True))
    assert (len(retained), retained.refused) == (2, 1)


def test_a_message_beyond_the_bound_is_still_delivered(world: MemoryRouter) -> None:
    """Not retaining is no reason not to deliver."""
    world.add_vpn("blue", bounds=VpnLimits(max_retained_msg_count=1))
    watcher = world.connect("w")
    watcher.subscribe("#")
    publisher = world.connect("p")
    publisher.publish("a", b"1", retain=True)
    publisher.publish("b", b"2", retain=True)
    assert watcher.payloads() == [b"1", b"2"]
    assert len(world.vpn().retained) == 1


def test_the_default_bound() -> None:
    """By default a message VPN retains RETAINED_MESSAGES."""
    assert VpnLimits().max_retained_msg_count == Retained().most == limits.RETAINED_MESSAGES


def test_a_retained_message_holds_no_session(world: MemoryRouter) -> None:
    """The memory of a publisher that left does not stay behind its retained messages."""
    client = world.connect("c")
    client.publish("a", b"1", retain=True)
    (message,) = world.vpn().retained.matching(parse_filter("a", MQTT), 0)
    assert message.source is None
    assert message.source_name == "c"
