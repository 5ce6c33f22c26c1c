"""The receiver of a guaranteed flow against a real sender, with a spool on both sides."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.flow_receiver import FlowAcks, FlowBinding
from vpnrouter.bridges.flow_sender import FlowCallbacks
from vpnrouter.bridges.received_positions import ReceivedPositions
from vpnrouter.bridges.remote_settings import FlowSettings
from vpnrouter.core.guaranteed import spool
from vpnrouter.core.guaranteed.counters import ACKED
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.link.frames import Bind, Bound

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
    assert pair.taker.unmatched == 1
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


# -- flow answers ----------------------------------------------------------------------------------


class Ear(FlowCallbacks):
    """Hears what is said."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.stalls: list[str] = []

    def say(self, data: bytes) -> None:
        self.said.append(decode(data, 0, len(data)))

    def stalled(self, reason: str) -> None:
        self.stalls.append(reason)

    def released(self) -> None:
        self.stalls.append("released")


def opened(window: int = 3) -> tuple[FlowAcks, Ear]:
    """The answers of a flow that stands."""
    answers, ear = FlowAcks(), Ear()
    answers.owner = ear
    answers.opened(7, window)
    return answers, ear


def test_outcomes_come_before_the_acknowledgement_and_refusals_behind() -> None:
    """SETTLED, ACK, REJECT, each about the right message (LINK-43)."""
    answers, ear = opened()
    for position in (1, 2, 3):
        answers.came(position)
    answers.refused(3, "503 Spool Over Quota", held=True)
    answers.stored(1, spool.DEMOTED)
    answers.stored(2, spool.SPOOLED)
    answers.acknowledge()
    settled, ack, reject = ear.said
    assert (settled.position, settled.outcome) == (1, frames.DEMOTED)
    assert (ack.ranges, ack.window) == ([(1, 2)], 3)
    assert (reject.position, reject.reason, reject.fate) == (3, "503 Spool Over Quota", 0)
    assert answers.out == {3}
    answers.acknowledge()
    assert len(ear.said) == 3


def test_what_is_given_up_makes_room_in_the_window() -> None:
    """It is out no more as soon as REJECT is on its way."""
    answers, ear = opened(window=1)
    answers.came(1)
    answers.give_up(1)
    with pytest.raises(ProtocolError, match="LINK-41"):
        answers.came(2)
    answers.refused(1, "no", held=False)
    answers.acknowledge()
    assert [frame.fate for frame in ear.said] == [frames.GIVEN_UP]
    answers.came(2)


# -- flow binding ----------------------------------------------------------------------------------


STORE = b"s" * 16


def asked(binding: FlowBinding) -> Bind:
    """The BIND that is due now."""
    data = binding.ask(ReceivedPositions(), FlowSettings())
    frame = decode(data, 0, len(data))
    assert isinstance(frame, Bind)
    return frame


def test_a_sync_that_nobody_was_told_of() -> None:
    """The wish behind it is asked for all the same."""
    binding = FlowBinding()
    binding.want("a", 1)
    binding.give_up()
    binding.over()
    again = binding.want("a", 1)
    assert binding.due(again)
    assert asked(binding).queue == "a"


def test_answers() -> None:
    """Yes, no, and to nothing."""
    binding = FlowBinding()
    binding.want("a", 1)
    number = asked(binding).request_id
    with pytest.raises(ProtocolError, match="LINK-40"):
        binding.answered(Bound(number + 1, 0, 2, 1, STORE))
    assert binding.answered(Bound(number, 0, 2, 1, STORE))
    assert not binding.answered(Bound(number, 0xC8, 0, 0, bytes(16)))
    assert binding.queue == ""


def test_what_bound_keeps_is_not_settled() -> None:
    """Ranges that the sender still has are remembered: they come again, and must be known then."""
    binding = FlowBinding()
    accepted = ReceivedPositions()
    for position in (*range(10, 20), 30):
        accepted.of(STORE, "a").add(position)
    binding.want("a", 1)
    binding.ask(accepted, FlowSettings())
    kept = [(12, 3), (30, 1), (99, 5)]
    assert binding.settled(Bound(1, 0, 2, 1, STORE, kept=kept)) == [(10, 2), (15, 5)]


# -- flow changes ----------------------------------------------------------------------------------


SPEC_FLOW_CHANGES = importlib.util.spec_from_file_location(
    "flow_links", Path(__file__).parent / "flow_links.py"
)
assert SPEC_FLOW_CHANGES is not None
assert SPEC_FLOW_CHANGES.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC_FLOW_CHANGES)
SPEC_FLOW_CHANGES.loader.exec_module(kit)


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


@pytest.mark.parametrize("policy", [0, 1, 2])
def test_paused_in_the_middle(two: Any, policy: int) -> None:
    """What was on its way is held, and nothing more is sent; then all enters in order, those that came first first."""
    two.take(flow={"on_reject": policy})
    binds = len(kit.said(two.link, 0, frames.Bind))
    for _ in range(5):
        two.publish()
    two.sea.sync()
    two.take(window=0, flow={"on_reject": policy, "paused": True})
    for _ in range(5):
        two.publish()
    two.sea.settle()
    held = two.taker.held
    assert 0 < held <= 5
    assert kit.contents(two.into) == []
    assert two.half.in_flight == held
    assert kit.said(two.link, 0, frames.Ack)[-1].window == 0
    assert len(two.out.flows) == 1
    two.take(window=255, flow={"on_reject": policy})
    assert two.crossed() == list(range(1, 11))
    assert two.taker.held == 0
    assert len(kit.said(two.link, 0, frames.Bind)) == binds
    assert two.told("stalled", "released") == []


def test_paused_over_a_new_connection(two: Any) -> None:
    """What was held goes back, and the flow is bound without a window; the pause over, all of it comes."""
    for _ in range(5):
        two.publish()
    two.sea.sync()
    two.take(window=0, flow={"paused": True})
    assert two.taker.held == 5
    two.again()
    two.take(window=0, flow={"paused": True})
    for _ in range(5):
        two.publish()
    assert two.crossed() == []
    assert two.half.flow.bound_since_ns > 0
    two.take(window=255, flow={"paused": False})
    assert two.crossed() == list(range(1, 11))


def test_paused_while_a_message_is_refused(two: Any) -> None:
    """A pause ends the stall, and what is refused after it is a stall again."""
    two.open(False)
    two.publish()
    two.sea.settle()
    two.take(window=0, flow={"paused": True})
    two.sea.wait(3)
    two.take(window=255, flow={"paused": False})
    two.sea.settle()
    assert [name for name, _ in two.told("stalled", "released")] == [
        "stalled",
        "released",
        "stalled",
    ]
    two.open(True)
    two.sea.wait(2)
    assert two.crossed() == [1]


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
