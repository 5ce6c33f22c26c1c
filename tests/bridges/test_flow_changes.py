"""The guaranteed flow of a bridge over real links: changed while it runs, refused, both ways, and left."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter.wire.link import frames

SPEC = importlib.util.spec_from_file_location("flow_links", Path(__file__).parent / "flow_links.py")
assert SPEC is not None
assert SPEC.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)

BLOCK, PARK, SKIP = 0, 1, 2


@pytest.fixture
def two(world: Any) -> Any:
    """As above, with what a bridge does by default."""
    return kit.Two(world)


def test_another_window_in_place(two: Any) -> None:
    """A changed window is a new flow over the same connection; nothing is lost or comes twice."""
    for _ in range(5):
        two.publish()
    two.sea.sync()
    two.take(window=2)
    assert two.link.up
    assert [frame.window for frame in kit.said(two.link, 0, frames.Bind)] == [255, 2]
    for _ in range(5):
        two.publish()
    assert two.crossed() == list(range(1, 11))
    two.take(window=2)
    assert len(kit.said(two.link, 0, frames.Bind)) == 2


def test_another_queue_in_place(two: Any) -> None:
    """The old queue keeps what comes from then on, the new one is taken from."""
    two.sea.queue(two.blue, "second", "s/>")
    two.sea.queue(two.yellow, "in2", "s/>")
    two.take(queue="second")
    two.publish()
    two.publish("s/a")
    assert two.crossed() == []
    assert kit.contents(two.out) == [b"1"]
    assert kit.contents(two.yellow.endpoints[0, "in2"]) == [b"2"]
    two.take(queue="")
    two.publish("s/a")
    two.crossed()
    assert len(kit.contents(two.yellow.endpoints[0, "in2"])) == 1


def test_another_policy_ends_a_stall(two: Any) -> None:
    """What was held under `block` goes back under `skip`."""
    dead = two.sea.queue(two.blue, "#DEAD_MSG_QUEUE")
    two.open(False)
    two.publish(dmq_eligible=True)
    two.crossed()
    assert two.told("stalled", "released") == [("stalled", "503 Queue Shutdown")]
    two.take(flow={"on_reject": SKIP})
    assert two.told("stalled", "released")[-1] == ("released", "")
    assert kit.contents(dead) == [b"1"]


def test_a_queue_that_is_not_there_yet(world: Any) -> None:
    """It is asked for again and again, which is told once; then the messages come."""
    sea = kit.Sea(world)
    yellow, blue = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    into = sea.queue(yellow, "in", "t/>")
    link = sea.link(yellow, "edge", "blue", "late")
    sea.wait(3.5)
    assert len(kit.said(link, 1, frames.Bound)) == 4
    told = [(e.value, why) for e, why in link.events.told if e.value == "unbound"]
    assert told == [("unbound", "403 Permission Denied")]
    assert link.half.flow.reason == "403 Permission Denied"
    assert link.half.flow.bound_since_ns == -1
    sea.queue(blue, "late", "t/>")
    sea.publish(blue, "t/a", b"1")
    sea.wait(1.1)
    assert kit.contents(into) == [b"1"]
    assert link.half.flow.reason == ""
    assert link.half.flow.bound_since_ns > 0


def test_a_queue_that_is_shut_down_and_opened_again(two: Any) -> None:
    """The flow ends with the reason, and is there again a moment later."""
    terms = two.out.settings.copy()
    terms.egress_enabled = False
    two.out.take_settings(terms)
    two.publish()
    assert two.crossed() == []
    assert two.told("unbound") == [("unbound", "503 Queue Shutdown")]
    assert not kit.said(two.link, 1, frames.Close)
    terms = terms.copy()
    terms.egress_enabled = True
    two.out.take_settings(terms)
    two.sea.wait(1.1)
    assert two.crossed() == [1]


def test_a_remote_without_spool(world: Any) -> None:
    """The bridge says why its queue is not bound; Direct messages cross."""
    sea = kit.Sea(world, "core")
    world.router("edge")
    yellow, blue = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = sea.link(yellow, "edge", "blue", "out")
    assert link.up
    assert link.half.flow.reason == "the remote router keeps no guaranteed messages"
    watcher = world.client(yellow, "w")
    watcher.subscribe("#")
    world.client(blue, "p").publish("d/1", b"1")
    assert watcher.payloads() == [b"1"]


def test_both_directions_over_one_connection(two: Any) -> None:
    """Each side sends under ids of its own parity; either flow may end without the other (LINK-40)."""
    sea = two.sea
    back_out = sea.queue(two.yellow, "back", "u/>")
    back_in = sea.queue(two.blue, "home", "u/>")
    taker = sea.taker(two.blue, "back")
    half, _ = two.world.bridge(
        two.blue, two.link.accepted, "yellow", (), queue="back", flow=taker.terms
    )
    half.carry(taker)
    two.publish()
    sea.publish(two.yellow, "u/a", b"1")
    assert two.crossed() == [1]
    assert kit.contents(back_in) == [b"1"]
    assert kit.contents(back_out) == []
    assert half.record.counters.rx_imbalance(half.in_flight) in (0, -1, 1)
    mine = [frame.flow_id for frame in kit.said(two.link, 1, frames.Bound)]
    theirs = [frame.flow_id for frame in kit.said(two.link, 0, frames.Bound)]
    assert (mine, theirs) == ([2], [1])
    # Both unbind in one moment; each hears that it concerns its own flow.
    two.take(queue="")
    half.leave(0, "done")
    sea.settle()
    assert not kit.said(two.link, 0, frames.Close) + kit.said(two.link, 1, frames.Close)
    two.take(queue="out")
    two.publish()
    assert two.crossed() == [1, 2]


def test_a_half_that_leaves_and_comes_back_over_the_same_connection(two: Any) -> None:
    """What was on the way to the half before is passed over, and comes again."""
    two.world.bridge(two.blue, two.link.accepted, "yellow", ())
    two.sea.settle()
    for _ in range(3):
        two.publish()
    two.sea.sync()
    two.sea.sync()
    two.half.leave(0, "off for a moment")
    half, _ = two.world.bridge(
        two.yellow, two.link.dialed, "blue", (), queue="out", flow=two.taker.terms, bridge="b"
    )
    half.carry(two.taker)
    two.sea.settle()
    assert two.crossed() == [1, 2, 3]
    assert not kit.said(two.link, 1, frames.Close)


def test_draining_acknowledges_first(two: Any) -> None:
    """A bridge that goes to another remote leaves nothing half done here: DRAINED is told behind the last ACK."""
    for _ in range(3):
        two.publish()
    two.sea.sync()
    two.sea.sync()
    two.link.wire.pump()
    two.half.drain()
    two.sea.settle()
    assert two.events.names[-1] == "drained"
    assert two.events.names.count("drained") == 1
    assert kit.contents(two.out) == []
    assert two.crossed() == [1, 2, 3]
    assert two.out.flows == []
    assert two.half.attracts is False


@pytest.mark.parametrize("filters", [(), (">",)])
def test_draining_without_a_flow(world: Any, filters: tuple[str, ...]) -> None:
    """A queue that was refused does not hold up who leaves."""
    sea = kit.Sea(world)
    yellow = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = sea.link(yellow, "edge", "blue", "nobody", filters=filters)
    link.half.drain()
    sea.settle()
    assert link.events.names.count("drained") == 1


def test_two_message_vpns_of_one_router(world: Any) -> None:
    """Sender and receiver share a spool, and it works as between routers."""
    sea = kit.Sea(world, "edge")
    yellow, blue = world.vpn("yellow", "edge"), world.vpn("blue", "edge")
    out, into = sea.queue(blue, "out", "t/>"), sea.queue(yellow, "in", "t/>")
    sea.link(yellow, "edge", "blue", "out")
    for number in range(5):
        sea.publish(blue, "t/a", b"%d" % number)
    sea.settle()
    assert kit.contents(into) == [b"%d" % number for number in range(5)]
    assert kit.contents(out) == []
