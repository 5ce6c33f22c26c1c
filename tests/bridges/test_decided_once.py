"""What is traced is decided where a message first enters; routers behind a bridge only add their rows."""

from typing import Any

import pytest

from vpnrouter.core.tracing import TraceFilter, TraceSettings
from vpnrouter.topics.grammar import SMF, parse_filter
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.properties import Properties

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


@pytest.mark.parametrize(
    ("edge", "core", "wanted"), [(1.0, 0.0, True), (0.0, 1.0, False), (1.0, None, True)]
)
def test_a_filter_behind_a_bridge_is_not_asked(
    world: Any, edge: float, core: float | None, wanted: bool
) -> None:
    """A traced message stays one where nothing would be traced, and the other way about."""
    cross(world, terms(edge), terms(core))
    for name in ("edge", "core"):
        events = [event["event"] for event in world.traces(name)]
        assert bool(events) is wanted, events


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
    assert {row["trace"] for row in rows} == {(TRACE >> 64, TRACE & (1 << 64) - 1)}
    (number,) = {row["message_id"] for row in rows}
    span = span_id(TRACE >> 64, TRACE & (1 << 64) - 1, number, "core", "yellow", "deliver", "far")
    traced, plain = far.take()
    assert traced.properties.user_properties == [("traceparent", f"00-{TRACE:032x}-{span:016x}-01")]
    assert not plain.properties.user_properties, "it is not traced, so nothing is to be said"


def test_deliveries_behind_a_bridge_say_how_they_came(world: Any) -> None:
    """Way, hops and origin, on every row at the far router."""
    cross(world, terms(1.0), terms())
    rows = world.traces("core")
    assert [row["event"] for row in rows] == ["bridge_receive", "deliver"]
    for row in rows:
        context = row["context"]
        assert (context.hops, context.path) == (1, "edge/blue")
        assert (context.origin_router, context.origin_vpn) == ("edge", "blue")
        assert row["origin_ts_ns"] == world.now_ns


def test_local_deliveries_do_not_say_so(world: Any) -> None:
    """A client that got a message over a bridge gets a local one next: its row has no way and no hops."""
    _, far = cross(world, terms(1.0), terms(1.0))
    world.traces("core")
    yellow = world.routers["core"].vpns["yellow"]
    world.client(yellow, "local").publish("a/b", b"y")
    (deliver,) = [row for row in world.traces("core") if row["event"] == "deliver"]
    assert (deliver["context"].hops, deliver["context"].path) == (0, "")
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
    assert {(row["topic"], row["message_id"], row["trace"]) for row in rows} == {
        ("a/b", 3, (0, 0)),
        ("a/c", 1, (0, 0)),
    }
    for row in rows:
        context = row["context"]
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
        (name, row["context"].reason, row["context"].bridge, row["context"].peer_vpn)
        for name in ("edge", "core")
        for row in world.traces(name)
    ]
    assert found == [("core", "loop-detected", "west", "blue")]
    assert yellow.discards.counts == {"loop-detected": 1}
