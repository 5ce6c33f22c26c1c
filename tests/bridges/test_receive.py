from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.receive import arrived, lane, obstacle
from vpnrouter.core.message import Message
from vpnrouter.core.tracing import TraceFilter, TraceSettings
from vpnrouter.spool.record import encode_rare
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.span import span_id
from vpnrouter.wire.link import frames
from vpnrouter.wire.mqtt.properties import Properties

NOW_NS = 5_000_000_000
SECOND_NS = 1_000_000_000
EXPIRES_IN_60_S = b"\x02\x00\x00\x00\x3c"
GROUP_A = b"\x26\x00\x0bJMSXGroupID\x00\x01a"


def came(
    world: Any, extension: frames.Extension | None, block: bytes = b"", flags: int = 6
) -> Message:
    """The message in a GUARANTEED frame."""
    vpn = world.vpn("red", "core")
    vpn.context.now_ns = NOW_NS
    direct = frames.Direct(b"t/a", block, b"x", extension)
    frame = frames.Guaranteed(1, 2, flags, 7, direct)
    return arrived(frame, world.client(vpn, "c").connection.session, ["edge/blue"], vpn.context)


def test_without_an_extension_it_comes_from_the_sending_vpn(world: Any) -> None:
    """One hop, the path of the link, priority and flags of the frame (LINK-29, LINK-41)."""
    message = came(world, None)
    assert (message.path, message.hops, message.priority) == (["edge/blue"], 1, 7)
    assert (message.persistent, message.dmq_eligible, message.qos) == (True, True, 1)
    assert message.expires_ns == 0
    exact = came(world, None, flags=6 | frames.EXACTLY_ONCE)
    assert (exact.persistent, exact.qos) == (True, 2)
    bare = came(world, None, flags=0)
    assert (bare.persistent, bare.dmq_eligible) == (False, False)


@pytest.mark.parametrize(
    ("expiry_ms", "block", "due_ns"),
    [
        (-1, b"", 0),
        (1500, b"", NOW_NS + 1_500_000_000),
        (0, b"", NOW_NS),
        (-1, EXPIRES_IN_60_S, NOW_NS + 60 * SECOND_NS),
        (1500, EXPIRES_IN_60_S, NOW_NS + 1_500_000_000),
        (4_294_967_295_000, b"", NOW_NS + 4_294_967_295 * SECOND_NS),
        (4_294_967_295_001, EXPIRES_IN_60_S, 0),
        ((1 << 64) - 1, b"", 0),
    ],
)
def test_milliseconds_count_more_than_seconds(
    world: Any, expiry_ms: int, block: bytes, due_ns: int
) -> None:
    """Field 8 before the property, the property where there is none (LINK-41); too long is never."""
    assert came(world, frames.Extension([], 1, expiry_ms=expiry_ms), block).expires_ns == due_ns


def test_a_path_that_the_spool_has_no_room_for() -> None:
    """Names at their bound fit up to LINK_PATH_KEPT of them; one more is refused, whatever `max_ttl` says."""
    message = Message(b"t", b"x")
    message.path = ["é" * 127 + "x"] * limits.LINK_PATH_KEPT
    message.hops = len(message.path)
    assert obstacle(message, "c/d", 255, 5) == ""
    assert encode_rare(message.hops, message.path, "r" * 255, "v" * 255, 1, 1, 1)
    message.path.append("a/b")
    assert obstacle(message, "c/d", 255, 5) == "ttl-exceeded"


def test_a_lane_is_a_topic_or_a_partition_key() -> None:
    """The key where lanes go by it and there is one, else the topic."""
    plain, other, keyed = Message(b"t/a", b""), Message(b"t/b", b""), Message(b"t/a", b"", GROUP_A)
    by_topic, by_key = frames.LANES_TOPIC, frames.LANES_PARTITION_KEY
    assert lane(plain, by_topic) == lane(keyed, by_topic) != lane(other, by_topic)
    assert lane(plain, by_key) == lane(plain, by_topic) != lane(keyed, by_key)
    assert lane(keyed, by_key) == lane(Message(b"t/b", b"", GROUP_A), by_key)


# -- decided once ----------------------------------------------------------------------------------


TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736
SPAN = 0x00F067AA0BA902B7


def terms(sample: float | None = None, **more: bool) -> TraceSettings:
    """Terms with a filter of this share for everything, if there is one."""
    filters = []
    if sample is not None:
        filters.append(TraceFilter(Sampler(sample, 3), [parse_filter(">", SMF)], [], [], []))
    return TraceSettings(filters=filters, **more)


def cross(world: Any, edge: TraceSettings, core: TraceSettings, *parents: str) -> tuple[Any, Any]:
    """What comes to a client in core's yellow of a message published in edge's blue; the link is up."""
    world.router("edge", terms=edge)
    world.router("core", terms=core)
    blue = world.vpn("blue", "edge")
    world.link(world.vpn("yellow", "core"), "edge", "blue")
    near, far = (
        world.client(blue, "near"),
        world.client(world.routers["core"].vpns["yellow"], "far"),
    )
    far.subscribe("a/b")
    for name in ("edge", "core"):
        world.traces(name)
    for text in parents or ("",):
        pairs = [("traceparent", text)] if text else None
        near.publish("a/b", b"x", properties=Properties(user_properties=pairs))
    return near, far


@pytest.mark.parametrize("flag", [0, 1])
def test_a_traceparent_behind_a_bridge_decides_nothing(world: Any, flag: int) -> None:
    """A router that ignores it has decided for all behind it; the property goes through untouched."""
    text = f"00-{TRACE:032x}-{SPAN:016x}-{flag:02x}"
    _, far = cross(world, terms(), terms(1.0, honours=True, emits=True), text)
    (message,) = far.take()
    assert message.properties.user_properties == [("traceparent", text)]
    assert world.traces("edge") == world.traces("core") == []


@pytest.mark.parametrize("emits", [False, True])
def test_the_far_router_says_its_own_span(world: Any, emits: bool) -> None:
    """One trace id from the publisher to the consumer behind the bridge, whose delivery is the parent then."""
    text = f"00-{TRACE:032x}-{SPAN:016x}-01"
    _, far = cross(world, terms(honours=True), terms(emits=emits), text, "")
    rows = world.traces("edge") + world.traces("core")
    assert {row.trace for row in rows} == {TRACE}
    (number,) = {row.message_id for row in rows}
    span = span_id(TRACE >> 64, TRACE & (1 << 64) - 1, number, "core", "yellow", "deliver", "far")
    traced, plain = far.take()
    assert traced.properties.user_properties == [("traceparent", f"00-{TRACE:032x}-{span:016x}-01")]
    assert not plain.properties.user_properties, "it is not traced, so nothing is to be said"


def test_deliveries_behind_a_bridge_say_how_they_came(world: Any) -> None:
    """Way, hops and origin, on every row at the far router."""
    cross(world, terms(1.0), terms())
    rows = world.traces("core")
    assert [row.event for row in rows] == ["bridge_receive", "deliver"]
    for row in rows:
        context = row.context
        assert (context.hops, context.path) == (1, "edge/blue")
        assert (context.origin_router, context.origin_vpn) == ("edge", "blue")
        assert row.origin_ts_ns == world.now_ns


def test_local_deliveries_do_not_say_so(world: Any) -> None:
    """A client that got a message over a bridge gets a local one next: its row has no way and no hops."""
    _, far = cross(world, terms(1.0), terms(1.0))
    world.traces("core")
    yellow = world.routers["core"].vpns["yellow"]
    world.client(yellow, "local").publish("a/b", b"y")
    (deliver,) = [row for row in world.traces("core") if row.event == "deliver"]
    assert (deliver.context.hops, deliver.context.path) == (0, "")
    assert len(far.take()) == 2


def test_discards_behind_a_bridge_are_told_there(world: Any) -> None:
    """Of a message that nobody traces each router tells what it discarded itself, with the bridge."""
    always = TraceSettings(discards=True, rejects=True)
    world.router("edge", terms=always)
    world.router("core", terms=TraceSettings(discards=True, rejects=True))
    blue = world.vpn("blue", "edge")
    world.link(world.vpn("yellow", "core"), "edge", "blue", bridge="east")
    near = world.client(blue, "near")
    for name in ("edge", "core"):
        world.traces(name)
    for _ in range(3):
        near.publish("a/b", b"x")
    near.publish("a/c", b"x", properties=Properties(user_properties=[("k", "v")]))
    world.wait(1.5)
    assert world.traces("edge") == []
    rows = world.traces("core")
    assert {(row.topic, row.messages, row.trace) for row in rows} == {
        (b"a/b", 3, 0),
        (b"a/c", 1, 0),
    }
    for row in rows:
        context = row.context
        assert (context.bridge, context.peer_router, context.peer_vpn) == ("east", "edge", "blue")
        assert (context.hops, context.path) == (1, "edge/blue")
        assert context.reason == "no-subscription-match"


def test_stopped_loops_are_told(world: Any) -> None:
    """A way round that the loop control stops is told where it stops, with the bridge that is wasted."""
    for name in ("edge", "core"):
        world.router(name, terms=TraceSettings(discards=True))
    blue, yellow = world.vpn("blue", "edge"), world.vpn("yellow", "core")
    world.link(yellow, "edge", "blue", bridge="east")
    world.link(blue, "core", "yellow", bridge="west")
    near = world.client(blue, "near")
    for name in ("edge", "core"):
        world.traces(name)
    near.publish("a", b"x")
    world.wait(1.5)
    found = [
        (name, row.context.reason, row.context.bridge, row.context.peer_vpn)
        for name in ("edge", "core")
        for row in world.traces(name)
    ]
    assert found == [("core", "loop-detected", "west", "blue")]
    assert yellow.discards.counts == {"loop-detected": 1}
