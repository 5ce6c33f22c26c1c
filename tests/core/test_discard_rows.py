"""vpnrouter.core.discard_rows: every discard has a row or stands in one, and none stands in two."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.tracing import TraceSettings
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.topics.grammar import SMF
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.mqtt.packets import Publish
from vpnrouter.wire.mqtt.properties import Properties

if TYPE_CHECKING:
    from types import ModuleType

    from vpnrouter.testing.memory import MemoryRouter

ROOM = 65_536


def small(kit: ModuleType, sample: float, emits: bool = False) -> MemoryRouter:
    """A router that discards for many reasons: little room, topics that are not allowed, few bytes."""
    world: MemoryRouter = kit.MemoryRouter(
        "green", sample=sample, terms=TraceSettings(True, True, emits=emits)
    )
    world.add_vpn(
        "blue",
        profile=ClientProfile("default", max_outbox_bytes=ROOM),
        acl=AclProfile("default", publish=TopicRule(True, [("no/>", SMF)])),
        bounds=VpnLimits(max_msg_size=30_000),
    )
    return world


def told(world: MemoryRouter) -> tuple[Counter[str], Counter[str]]:
    """By reason: what the rows say, what the counters say."""
    losses = world.router.context.discard_rows
    assert losses is not None
    losses.tell()
    rows: Counter[str] = Counter()
    for row in world.rows():
        if row.event == "discard":
            assert row.messages > 0
            rows[row.context.reason] += row.messages
    counted: Counter[str] = Counter()
    for vpn in world.router.vpns.values():
        counted.update(vpn.totals().discards)
    return rows, counted


TOPICS = ("got", "away", "nobody", "no/way", "self", "got/5", "one", "share")
step = st.tuples(
    st.sampled_from(("run4", "run5", "single", "retained", "big", "drain", "leave", "wait")),
    st.sampled_from(TOPICS),
    st.integers(1, 40),
    st.integers(1, 12_000),
)


@given(
    st.lists(step, max_size=12),
    st.sampled_from((0.0, 0.2, 1.0)),
    st.booleans(),
)
@example([("run5", "got", 40, 12_000)], 0.2, False)
@example([("run4", "nobody", 40, 10), ("run5", "nobody", 3, 10), ("wait", "got", 1, 1)], 0.2, False)
@example([("single", "self", 3, 10), ("run4", "share", 3, 10), ("big", "got", 2, 10)], 0.0, True)
def test_rows_say_what_counters_say(
    kit: ModuleType, steps: list[Any], sample: float, emits: bool
) -> None:
    """For each reason the rows stand for as many messages as the router has counted, whatever happens."""
    world = small(kit, sample, emits)
    four = world.connect("four", level=4)
    five = world.connect("five")
    slow = [world.connect("slow4", level=4), world.connect("slow5")]
    picky = world.connect("picky", properties=Properties(maximum_packet_size=2_000))
    away = world.connect("away", clean_start=True, properties=Properties(session_expiry_interval=9))
    for client in (*slow, picky):
        client.subscribe("got/#")
        client.subscribe("one")
    five.subscribe("self", no_local=True)
    away.subscribe("$share/g/share")
    away.lose()
    properties = Properties(user_properties=[("deliver-to-one", "true")])
    for kind, topic, count, size in steps:
        payload = b"x" * size
        if kind == "run4":
            four.raw(encode_publish(topic.encode(), payload, 4) * count)
        elif kind == "run5":
            five.raw(encode_publish(topic.encode(), payload, 5) * count)
        elif kind == "single":
            five.send(*[Publish(topic.encode(), payload, properties=properties)] * min(count, 5))
        elif kind == "retained":
            four.publish(topic, payload, retain=True)
        elif kind == "big":
            five.publish(topic, b"x" * 30_001)
        elif kind == "drain":
            slow[0].drain()
        elif kind == "leave" and not slow[1].closed:
            slow[1].lose()
        elif kind == "wait":
            world.advance(2)
    rows, counted = told(world)
    assert rows == counted
    assert told(world) == (Counter(), counted), "nothing is told twice"


@pytest.mark.parametrize("size", [10, 10_000])
def test_an_overload_costs_one_row(kit: ModuleType, size: int) -> None:
    """Whatever a slow client loses in a second is one row, with the topic of the first."""
    world = small(kit, 0.0)
    slow = world.connect("slow")
    slow.subscribe("#")
    fast = world.connect("fast", level=4)
    world.rows()
    for topic in (b"first", b"second"):
        fast.raw(encode_publish(topic, b"x" * size, 4) * (3 * ROOM // size))
    lost = slow.connection.outbox.discarded
    assert lost > 0
    assert world.rows() == [], "not at once"
    world.advance(1)
    (row,) = world.rows()
    assert (row.event, row.topic, row.trace, row.messages) == ("discard", b"first", 0, lost)
    context = row.context
    assert (context.vpn, context.client, context.reason) == ("blue", "slow", "transmit-congestion")
    world.advance(5)
    assert world.rows() == []
    # The next second is told anew.
    fast.raw(encode_publish(b"third", b"x" * size, 4))
    world.advance(1)
    (row,) = world.rows()
    assert (row.topic, row.messages) == (b"third", 1)


def test_unwanted_topics(kit: ModuleType) -> None:
    """Runs that nobody wants are told by topic and publisher."""
    world = small(kit, 0.0)
    one, other = world.connect("one", level=4), world.connect("other")
    one.raw(encode_publish(b"a", b"x", 4) * 7)
    one.raw(encode_publish(b"b", b"x", 4) * 5)
    other.raw(encode_publish(b"a", b"x", 5) * 3)
    one.raw(encode_publish(b"a", b"x", 4) * 2)
    world.advance(1)
    found = {(row.context.client, row.topic): row.messages for row in world.rows()}
    assert found == {("one", b"a"): 9, ("one", b"b"): 5, ("other", b"a"): 3}


def test_beyond_the_bound(kit: ModuleType) -> None:
    """What is too much to tell apart is counted without topic, then without client; nothing is lost."""
    world = small(kit, 0.0)
    losses = world.router.context.discard_rows
    assert losses is not None
    assert losses.most == limits.TRACE_LOSSES
    losses.most = 4
    clients = [world.connect(f"c{number}") for number in range(20)]
    for client in clients:
        for topic in range(10):
            client.raw(encode_publish(b"nobody/%d" % topic, b"x", 5))
    losses.tell()
    rows = world.rows()
    assert sum(row.messages for row in rows) == 200
    assert len(rows) <= 4 + 3 * 4
    (rest,) = [row for row in rows if not row.context.client]
    assert (rest.topic, rest.context.reason) == (b"", "no-subscription-match")


def test_too_many_slow_clients(kit: ModuleType) -> None:
    """Of more clients than the bound the rest is one row of the message VPN."""
    world = small(kit, 0.0)
    losses = world.router.context.discard_rows
    assert losses is not None
    losses.most = 3
    for number in range(8):
        world.connect(f"s{number}").subscribe("a")
    world.rows()
    world.connect("fast", level=4).raw(encode_publish(b"a", b"x" * 20_000, 4) * 4)
    world.advance(1)
    rows = world.rows()
    assert [row.context.client for row in rows] == ["s0", "s1", "s2", ""]
    assert [row.messages for row in rows] == [1, 1, 1, 5]


@pytest.mark.parametrize(("discards", "rejects"), [(False, False), (False, True)])
def test_switched_off(kit: ModuleType, discards: bool, rejects: bool) -> None:
    """Without the wish nothing is told, and nothing kept."""
    world = kit.MemoryRouter(terms=TraceSettings(discards, rejects))
    client = world.connect("c")
    client.publish("nobody")
    client.raw(encode_publish(b"nobody", b"x", 5))
    assert client.connection.outbox.losses is None
    losses = world.router.context.discard_rows
    assert (losses is not None) == rejects
    world.advance(2)
    assert world.rows() == []


def test_a_bridge_without_room(kit: ModuleType) -> None:
    """What a link has no room for names the router and message VPN at its other end."""
    world = kit.MemoryRouter(terms=TraceSettings(discards=True, rejects=True))
    vpn = world.vpn()
    link = kit.FakeLink(vpn, "far/red", room=1)
    losses = world.router.context.discard_rows
    assert losses is not None
    link.outbox.losses = losses.of("blue", link)
    link.subscribe(">")
    world.rows()
    world.connect("c").raw(encode_publish(b"a", b"x", 5) * 3)
    world.advance(1)
    (row,) = world.rows()
    assert (row.context.peer_router, row.context.peer_vpn, row.messages) == ("far", "red", 3)
