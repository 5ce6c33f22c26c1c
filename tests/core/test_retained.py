"""vpnrouter.core.retained: the last message of each topic."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.context import RouterContext
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.guaranteed.recover import recover_retained
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.message import Message
from vpnrouter.core.retained import Retained, retain
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.spool import keys
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.topics.oracle import oracle_matches
from vpnrouter.trace.recorder import Recorder

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


SECOND = 1_000_000_000


class Kept:
    """A message VPN with room for two retained messages, over a store in memory."""

    def __init__(self, store: MemoryStore, now_ns: int = 5 * SECOND) -> None:
        self.store = store
        self.context = RouterContext("here", 7, Recorder(), 0.0)
        self.context.now_ns = now_ns
        self.context.wall_ns = 1_700_000_000 * SECOND + now_ns
        self.spool = Spool(self.context, Ledger(store))
        self.context.spool = self.spool
        self.vpn = MessageVpn(
            "blue",
            self.context,
            Credentials(False, ()),
            {},
            {},
            VpnLimits(max_retained_msg_count=2),
        )

    def retain(self, topic: str, payload: bytes, expires_ns: int = 0) -> None:
        """Retain one message and commit."""
        message = Message(topic.encode(), payload, b"", True)
        message.expires_ns = expires_ns
        retain(self.vpn, message)
        batch = self.spool.end_round()
        if batch is not None:
            self.store.commit(batch)
            self.spool.committed()

    def topics(self) -> set[str]:
        """Topics of what is in the store."""
        return {keys.vpn_and_rest(key)[1].decode() for key, _ in self.store.scan(keys.RETAINED)}


@pytest.fixture
def kept() -> Kept:
    """The first start of a router."""
    return Kept(MemoryStore(bytes(16)))


EMPTY = Retained().memory + limits.RETAINED_MESSAGE_COST
"""What a bound of memory leaves for topic, properties and payload of one message."""


@pytest.mark.parametrize("topic", ["{0}", "a/b/{0}/c", "{0}/x/y", "a/{1}/b/{2}"])
def test_the_memory_that_small_messages_take_is_bounded(topic: str) -> None:
    """Thousands of messages of one byte take no more memory than is allowed, whatever their topics look like."""
    most = 5_000_000
    kept = Kept(MemoryStore(bytes(16)))
    kept.vpn.take_bounds(VpnLimits(max_retained_bytes=most, max_msg_spool_usage=0))
    tracemalloc.start()
    try:
        for number in range(most // limits.RETAINED_MESSAGE_COST):
            kept.retain(topic.format(number, number >> 1, number & 1), b"1")
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept.vpn.retained.refused > 0
    assert most / 2 < taken < most * 1.2


def test_bytes_are_bounded_and_counted_towards_the_quotas() -> None:
    """At any of the three bounds a message is not retained, nor the one before it, and that is counted."""
    store = MemoryStore(bytes(16))
    for bounds, most in (
        (VpnLimits(max_retained_bytes=1_000 + EMPTY), 0),
        (VpnLimits(max_msg_spool_usage=1_000), 0),
        (VpnLimits(), 1_000),
    ):
        kept = Kept(store)
        kept.vpn.take_bounds(bounds)
        kept.spool.max_usage = most
        kept.retain("a", bytes(900))
        kept.retain("b", bytes(99))
        assert kept.topics() == {"a"}, bounds
        assert kept.vpn.retained.refused == 1
        assert kept.vpn.retained.bytes_ == 901
        assert kept.spool.taken == kept.vpn.spool_taken == 901
        # In the place of the first one it has room.
        kept.retain("a", bytes(950))
        assert kept.vpn.retained.bytes_ == 951
        kept.retain("a", bytes(1_000))
        assert kept.topics() == set()
        assert kept.vpn.retained.refused == 2
        kept.retain("b", bytes(9))
        kept.retain("b", b"")
        assert kept.vpn.retained.bytes_ == kept.spool.taken == 0


def test_the_bound_of_bytes_holds_after_a_restart(kept: Kept) -> None:
    """What does not fit under the bounds of the new start is not in memory; what does counts again."""
    kept.retain("a", bytes(600))
    kept.retain("b", bytes(300))
    again = Kept(kept.store)
    again.vpn.take_bounds(VpnLimits(max_retained_bytes=700 + EMPTY))
    recover_retained(again.store, {"blue": again.vpn})
    assert len(again.vpn.retained) == 1
    assert again.vpn.retained.bytes_ == again.spool.taken == 601


def test_a_message_vpn_without_spool_retains_in_memory_alone(kept: Kept) -> None:
    """Nothing of it is in the store, and nothing counts."""
    kept.vpn.take_bounds(VpnLimits(max_msg_spool_usage=0))
    kept.retain("a", bytes(600))
    assert kept.topics() == set()
    assert kept.vpn.retained.bytes_ == 601
    assert kept.spool.taken == 0


def test_what_has_expired_leaves_the_store_when_it_is_found(kept: Kept) -> None:
    """The bytes of an expired message are free, and its row is deleted with the next message that is retained."""
    kept.retain("a", bytes(600), kept.context.now_ns + SECOND)
    assert kept.vpn.retained.message(b"a", 0, kept.context.now_ns + SECOND) is None
    assert kept.spool.taken == 0
    kept.retain("b", b"1")
    assert kept.topics() == {"b"}
