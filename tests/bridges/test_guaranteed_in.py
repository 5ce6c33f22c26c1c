"""The receiver of a guaranteed flow against a real sender, with a spool on both sides."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.guaranteed.counters import ACKED
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import frames

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)

BLOCK, PARK, SKIP = 0, 1, 2


def linked(**more: Any) -> Any:
    """A pair whose flow stands."""
    pair = flow_pair.FlowPair(**more)
    pair.connect()
    pair.settle()
    return pair


def test_messages_cross_and_leave_nothing_behind() -> None:
    """In order, once; the queue is empty in the end and nothing is left to remember."""
    pair = linked()
    for _ in range(10):
        pair.publish()
    pair.settle()
    assert pair.received() == list(range(1, 11))
    assert pair.edge.contents("out") == []
    assert pair.core.store.get(pair.key) is None
    assert pair.here.kinds() == ["Bind", "Ack"]
    assert pair.there.kinds()[:2] == ["Bound", "Guaranteed"]
    assert pair.there.kinds()[-1] == "Forget"
    assert (pair.taker.received, pair.taker.taken, pair.taker.duplicates) == (10, 10, 0)


def test_nothing_is_acknowledged_before_the_sync() -> None:
    """ACK leaves when the commit is done, not when the message is taken (LINK-42)."""
    pair = linked()
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    pair.core.seal()
    assert "Ack" not in pair.here.kinds()
    pair.core.sync()
    assert pair.here.kinds()[-1] == "Ack"
    assert pair.here.said[-1].ranges == [(1, 1)]


def test_a_window_in_a_row_is_one_range() -> None:
    """What one commit stored is acknowledged with one frame."""
    pair = linked(window=50)
    for _ in range(50):
        pair.publish()
    pair.edge.sync()
    pair.to_core()
    pair.core.sync()
    acks = [f for f in pair.here.said if isinstance(f, frames.Ack)]
    assert [ack.ranges for ack in acks] == [[(1, 50)]]


def test_what_was_stored_and_not_acknowledged_does_not_come_twice() -> None:
    """The link is lost with the ACK on it: the next BIND names the position (LINK-49)."""
    pair = linked()
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    pair.core.sync()
    pair.cut()
    assert pair.core.store.get(pair.key) is not None
    pair.connect()
    pair.settle()
    assert pair.here.said[0].accepted == {b"e" * 16: [(1, 1)]}
    assert pair.received() == [1]
    assert pair.edge.contents("out") == []
    assert pair.core.store.get(pair.key) is None


def test_bind_names_only_what_is_synced() -> None:
    """A position whose commit is under way is named when it is done, not before."""
    pair = linked()
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    pair.core.seal()
    pair.cut()
    pair.connect()
    assert pair.here.said == []
    pair.core.sync()
    pair.core.sync()
    assert pair.here.said[0].accepted == {b"e" * 16: [(1, 1)]}


def test_the_window_bounds_what_is_out() -> None:
    """A sender that sends more breaks the protocol (LINK-41); so does one that sends a position twice."""
    pair = linked(window=2)
    message = frames.Direct(b"t/a", b"", b"1")

    def take(position: int) -> None:
        flow_id = pair.taker.flow_id
        pair.taker.on_message(frames.Guaranteed(flow_id, position, 2, 4, message))

    pair.core.open("in", False)
    take(1)
    with pytest.raises(ProtocolError, match="LINK-41"):
        take(1)
    take(2)
    with pytest.raises(ProtocolError, match="LINK-41"):
        take(3)


def test_limit_of_positions_to_remember() -> None:
    """LINK_FLOW_POSITIONS that were sent and not forgotten are taken, one more is refused (LINK-42)."""
    pair = linked(window=limits.LINK_FLOW_POSITIONS)
    pair.taker.accepted.of(b"e" * 16, "out").fill(1, limits.LINK_FLOW_POSITIONS - 1)
    message = frames.Direct(b"t/a", b"", b"1")
    flow_id = pair.taker.flow_id
    pair.taker.on_message(frames.Guaranteed(flow_id, 1 << 40, 2, 4, message))
    with pytest.raises(ProtocolError, match="LINK-42"):
        pair.taker.on_message(frames.Guaranteed(flow_id, 1 << 41, 2, 4, message))


def test_frames_of_a_flow_that_never_was() -> None:
    """Closed with 0x82; those of one that ends on our word are passed over (LINK-40)."""
    pair = linked()
    stranger = frames.Forget(99, [(1, 1)])
    with pytest.raises(ProtocolError, match="LINK-40"):
        pair.taker.on_forget(stranger)
    pair.publish()
    pair.edge.sync()
    pair.taker.stop(0, "Bridge Shutdown")
    pair.settle()
    assert pair.received() == []
    assert pair.edge.contents("out") == [b"1"]
    assert pair.there.kinds()[-1] == "Unbound"


def test_a_bind_that_nobody_wants_any_more() -> None:
    """BOUND that comes after stop() is answered with UNBIND."""
    pair = flow_pair.FlowPair()
    pair.connect()
    pair.core.sync()
    pair.taker.stop(0, "")
    pair.settle()
    assert pair.here.kinds() == ["Bind", "Unbind"]
    assert pair.there.kinds() == ["Bound", "Unbound"]
    assert pair.taker.flow_id == 0


def test_block_holds_everything_and_sends_nothing_again() -> None:
    """HOLD: the refused head keeps its place, told once, and goes when there is room (LINK-43)."""
    pair = linked(queues={"in": "t/a", "other": "t/b"}, window=10)
    pair.core.open("in", False)
    for topic in ("t/b", "t/a", "t/b", "t/a"):
        pair.publish(topic)
    pair.settle()
    assert pair.received("other") == [1]
    assert pair.here.told[1:] == [("stalled", "503 Queue Shutdown")]
    assert pair.flow.stalled == "503 Queue Shutdown"
    before = len([f for f in pair.there.said if isinstance(f, frames.Guaranteed)])
    for _ in range(3):
        pair.core.wait(1.1)
        pair.settle()
    assert len([f for f in pair.here.said if isinstance(f, frames.Reject)]) == 1
    pair.core.open("in", True)
    pair.core.wait(1.1)
    pair.settle()
    assert pair.received("in") == [2, 4]
    assert pair.received("other") == [1, 3]
    assert pair.here.told[-1] == ("released", "")
    assert before == 4
    assert len([f for f in pair.there.said if isinstance(f, frames.Guaranteed)]) == before
    assert pair.edge.contents("out") == []
    assert pair.flow.stalled == ""


def test_a_lost_link_is_not_told_that_the_stall_is_over() -> None:
    """What was held is the remote queue's again, and stalls anew over the next link."""
    pair = linked()
    pair.core.open("in", False)
    pair.publish()
    pair.settle()
    before = pair.here
    pair.cut()
    assert before.told[-1] == ("stalled", "503 Queue Shutdown")
    pair.connect()
    pair.settle()
    assert pair.here.told == [("bound", ""), ("stalled", "503 Queue Shutdown")]


def test_room_in_an_endpoint_releases_at_once() -> None:
    """The head is tried again when an endpoint has room, without waiting for the timer."""
    pair = linked()
    end = pair.core.ends["in"]
    end.settings.max_spooled_msg_count = 1
    for _ in range(2):
        pair.publish()
    pair.settle()
    assert pair.received() == [1]
    first = end.waiting[0].pop()
    end.lose(first, ACKED)
    pair.settle()
    assert pair.received() == [2]


def test_outcomes_without_an_endpoint() -> None:
    """Nothing matches: settled at both ends, and the sender is told."""
    pair = linked(queues={"in": "nothing"})
    pair.publish()
    pair.settle()
    assert pair.flow.outcomes == {frames.NO_ELIGIBLE_DESTINATION: 1}
    assert pair.edge.contents("out") == []


def test_what_may_never_enter_is_settled() -> None:
    """Too many hops: discarded, counted, acknowledged; nothing stands still (LINK-36)."""
    pair = linked()
    pair.publish(path=["x/y"] * limits.HOPS, hops=limits.HOPS)
    pair.publish()
    pair.settle()
    assert pair.received() == [2]
    assert ("discarded", "ttl-exceeded") in pair.here.told
    assert pair.flow.outcomes == {frames.DISCARDED: 1}
    assert pair.edge.contents("out") == []


def test_what_can_never_be_here_is_given_up() -> None:
    """Too large for the message VPN: a dead letter of the remote queue, and the rest goes on (LINK-43)."""
    pair = linked()
    pair.core.vpn.limits.max_msg_size = 10
    pair.publish(payload=bytes(11))
    pair.publish()
    pair.settle()
    assert pair.received() == [2]
    assert ("discarded", "msg-too-big") in pair.here.told
    assert (pair.flow.rejected, pair.flow.outcomes) == (1, {})
    assert pair.edge.contents("out") == []


def test_the_sender_ends_the_flow() -> None:
    """What is being stored is acknowledged before UNBOUND; the owner hears why (LINK-40)."""
    pair = linked()
    pair.publish()
    pair.edge.sync()
    pair.to_core()
    pair.flow.unbound("503 Queue Shutdown")
    pair.to_core()
    pair.core.sync()
    assert pair.here.kinds()[-2:] == ["Ack", "Unbound"]
    assert pair.here.told[-1] == ("unbound", (0x88, "503 Queue Shutdown"))
    assert pair.taker.flow_id == 0


STEPS = {
    "publish": 6,
    "sync edge": 8,
    "seal core": 4,
    "sync core": 6,
    "to core": 8,
    "to edge": 6,
    "connect": 4,
    "cut": 1,
    "kill edge": 1,
    "kill core": 1,
    "shut": 1,
    "open": 2,
    "wait": 2,
}
"""What happens, and how often."""


def step(pair: Any, what: str, draw: random.Random) -> None:
    """One thing happens."""
    if what == "publish":
        pair.publish(draw.choice(["t/a", "t/b"]))
    elif what == "sync edge":
        pair.edge.sync()
    elif what == "seal core":
        pair.core.seal()
    elif what == "sync core":
        pair.core.sync()
    elif what == "to core":
        pair.to_core(draw.randint(1, 6))
    elif what == "to edge":
        pair.to_edge(draw.randint(1, 6))
    elif what == "connect":
        if not pair.linked:
            pair.connect()
    elif what == "cut":
        pair.cut()
    elif what == "kill edge":
        pair.kill(pair.edge, synced=draw.random() < 0.5)
    elif what == "kill core":
        pair.kill(pair.core, synced=draw.random() < 0.5)
    elif what == "wait":
        pair.core.wait(1.1)
    else:
        pair.core.open("in", what == "open")


@pytest.mark.parametrize("policy", [BLOCK, PARK])
@pytest.mark.parametrize("seed", range(30))
def test_exactly_once_whatever_breaks(policy: int, seed: int) -> None:
    """ONCE and HOLD: whoever dies, wherever the link is cut, each acknowledged message arrives once, in
    the order of its lane.
    """
    draw = random.Random(seed)
    pair = flow_pair.FlowPair(on_reject=policy, queues={"in": "t/a", "other": "t/b"}, window=5)
    for what in draw.choices(list(STEPS), list(STEPS.values()), k=300):
        step(pair, what, draw)
    pair.core.open("in", True)
    if not pair.linked:
        pair.connect()
    for _ in range(4):
        pair.settle()
        pair.core.wait(1.1)
    pair.settle()
    both = [*pair.received("in"), *pair.received("other")]
    assert len(both) == len(set(both))
    assert set(pair.publisher.safe) <= set(both)
    assert pair.received("in") == sorted(pair.received("in"))
    assert pair.received("other") == sorted(pair.received("other"))
    assert pair.received("lot") == []
    assert pair.edge.contents("out") == []
    assert pair.core.store.get(pair.key) is None
