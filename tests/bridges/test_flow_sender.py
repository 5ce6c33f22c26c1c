"""The sender of a guaranteed flow, against a real receiver and without one."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.flow_sender import FlowSender
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed.end_to_end import EndToEndAnswers, EndToEndCallback
from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, NO_ACCESS
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED
from vpnrouter.core.message import Message
from vpnrouter.core.profile import ClientProfile
from vpnrouter.errors import ProtocolError, Refused
from vpnrouter.events.log import EventLog
from vpnrouter.selectors import parse_selector
from vpnrouter.server.apply.message_vpn_change import judge_all
from vpnrouter.topics.mapping import TopicMapping, add_prefix
from vpnrouter.wire.link import encode, frames

SPEC = importlib.util.spec_from_file_location("flow_pair", Path(__file__).parent / "flow_pair.py")
assert SPEC is not None
assert SPEC.loader is not None
flow_pair: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(flow_pair)

STORE = b"e" * 16


class Alone:
    """A sender whose receiver is the test."""

    def __init__(self, window: int = 4, **bind: Any) -> None:
        self.pair = flow_pair.FlowPair(window=window)
        self.pair.connect()
        self.wire = self.pair.there
        self.edge = self.pair.edge
        self.bind = frames.Bind(7, "out", window, **bind)
        self.flow = self.make()

    def make(self, **more: Any) -> FlowSender:
        """A flow that has not begun."""
        return FlowSender(self.edge.ends["out"], self.wire, self.pair.peer, 5, self.bind, **more)

    def begin(self) -> None:
        """Bind, sync, and forget BOUND."""
        self.flow.begin(self.bind, STORE, CONSUME, CONSUME)
        self.edge.sync()
        assert isinstance(self.wire.said.pop(0), frames.Bound)

    def publish(self, count: int = 1, **more: Any) -> None:
        """Messages that are synced, and sent as far as there is room."""
        for _ in range(count):
            self.pair.publish(**more)
        self.edge.sync()
        self.edge.sync()

    def lend(self, count: int) -> None:
        """Messages go out over a flow before this one, whose link is lost."""
        bind = self.bind
        self.bind = frames.Bind(6, "out", count)
        self.flow = self.make()
        self.begin()
        self.publish(count)
        self.sent()
        self.flow.end()
        self.bind = bind
        self.flow = self.make()

    def ack(self, *ranges: tuple[int, int], window: int = 4) -> None:
        """The peer has them."""
        self.flow.on_ack(frames.Ack(5, window, list(ranges)))

    def sent(self) -> list[int]:
        """Positions of the messages that were sent since the last look."""
        said = [f.position for f in self.wire.said if isinstance(f, frames.Guaranteed)]
        self.wire.said.clear()
        return said


def test_bound_comes_when_what_the_peer_has_is_settled_and_synced() -> None:
    """Positions that were sent and that BIND names are gone from the store before BOUND, and never sent again
    (LINK-40).
    """
    alone = Alone(window=2, accepted={STORE: [(1, 2), (999, 1)], b"x" * 16: [(3, 1)]})
    alone.lend(2)
    alone.publish()
    alone.flow.begin(alone.bind, STORE, CONSUME, CONSUME)
    alone.edge.seal()
    assert alone.wire.said == []
    alone.edge.sync()
    bound = alone.wire.said[0]
    assert (bound.request_id, bound.code, bound.flow_id, bound.window, bound.store_id) == (
        *(7, 0, 5, 2),
        STORE,
    )
    assert bound.kept == []
    alone.edge.sync()
    alone.edge.sync()
    assert alone.sent() == [3]
    assert alone.edge.contents("out") == [b"3"]


def test_bind_settles_only_what_was_sent_to_this_bridge() -> None:
    """A bridge that stands by names what the active one holds: nothing is lost, and BOUND keeps it (LINK-40)."""
    alone = Alone()
    alone.begin()
    alone.publish(3)
    assert alone.sent() == [1, 2, 3]
    active = alone.flow
    alone.bind = frames.Bind(9, "out", 4, accepted={STORE: [(1, 60_000)]})
    alone.flow = alone.make(taker="another")
    alone.flow.begin(alone.bind, STORE, CONSUME, CONSUME)
    alone.edge.sync()
    assert alone.wire.said[-1].kept == [(1, 3)]
    assert list(active.unacked) == [1, 2, 3]
    assert alone.edge.contents("out") == [b"1", b"2", b"3"]


def test_who_else_had_a_message_does_not_count() -> None:
    """A message that went out to one bridge and came back cannot be settled by another bridge."""
    alone = Alone(accepted={STORE: [(1, 2)]})
    alone.lend(2)
    mine = alone.flow
    alone.flow = alone.make(taker="another")
    alone.flow.begin(alone.bind, STORE, CONSUME, CONSUME)
    alone.edge.sync()
    alone.flow.end()
    assert alone.edge.contents("out") == [b"1", b"2"]
    mine.begin(alone.bind, STORE, CONSUME, CONSUME)
    alone.edge.sync()
    assert alone.edge.contents("out") == []


def test_an_ack_of_more_than_was_sent() -> None:
    """An ACK of more than was sent breaks LINK-42 and does nothing; SETTLED of what was not sent counts nothing."""
    alone = Alone()
    alone.begin()
    alone.publish(2)
    alone.sent()
    alone.flow.on_settled(frames.Settled(5, 77, frames.DEMOTED))
    assert alone.flow.outcomes == {}
    alone.ack((10, 65_535))
    with pytest.raises(ProtocolError, match="LINK-42"):
        alone.ack((1, 1))
    assert alone.edge.contents("out") == [b"1", b"2"]


def test_a_wide_ack_settles_what_is_in_it() -> None:
    """A range that covers more than what is out settles just that, and FORGET names it as it came."""
    alone = Alone()
    alone.begin()
    alone.publish(3)
    alone.sent()
    alone.ack((2, 40_000))
    alone.edge.sync()
    assert [frame.ranges for frame in alone.wire.said] == [[(2, 40_000)]]
    assert alone.edge.contents("out") == [b"1"]


def test_a_bind_that_the_queue_refuses_settles_nothing() -> None:
    """The field's reason; the messages stay."""
    alone = Alone(accepted={STORE: [(1, 1)]})
    alone.publish()
    with pytest.raises(Refused, match="403 Permission Denied"):
        alone.flow.begin(alone.bind, STORE, NO_ACCESS, CONSUME)
    alone.edge.sync()
    assert alone.wire.said == []
    assert alone.edge.contents("out") == [b"1"]


def test_the_window_and_its_changes() -> None:
    """No more are out than ACK says last, never more than was granted (LINK-42)."""
    alone = Alone()
    alone.begin()
    alone.publish(9)
    assert alone.sent() == [1, 2, 3, 4]
    alone.ack((1, 2), window=2)
    alone.edge.sync()
    assert alone.sent() == []
    alone.ack((3, 1), window=99)
    alone.edge.sync()
    assert alone.sent() == [5, 6, 7]


def test_forget_is_said_after_the_sync() -> None:
    """Never before: a position that is forgotten and sent again would be a duplicate (LINK-49)."""
    alone = Alone()
    alone.begin()
    alone.publish(3)
    alone.sent()
    alone.ack((1, 1), (3, 1))
    alone.edge.seal()
    alone.ack((2, 1))
    assert [type(frame).__name__ for frame in alone.wire.said] == []
    alone.edge.sync()
    assert [frame.ranges for frame in alone.wire.said] == [[(1, 1), (3, 1)]]
    alone.edge.sync()
    assert [frame.ranges for frame in alone.wire.said[1:]] == [[(2, 1)]]


def test_what_is_not_known_may_be_forgotten() -> None:
    """An ACK of what an operator took away meanwhile is answered all the same."""
    alone = Alone()
    alone.begin()
    alone.ack((77, 1))
    alone.edge.sync()
    assert [frame.ranges for frame in alone.wire.said] == [[(77, 1)]]


def test_positions_not_yet_forgotten_bound_what_is_sent() -> None:
    """At most LINK_FLOW_POSITIONS are sent and not named in FORGET (LINK-42)."""
    alone = Alone(window=limits.LINK_FLOW_POSITIONS)
    alone.begin()
    alone.ack((1, limits.LINK_FLOW_POSITIONS), window=limits.LINK_FLOW_POSITIONS)
    alone.edge.ends["out"].settings.max_delivered_unacked_msgs_per_flow = 1_000_000
    assert alone.flow.room() == 0
    alone.edge.sync()
    assert alone.flow.room() > 0


def test_the_queue_bounds_what_a_flow_holds() -> None:
    """`max_delivered_unacked_msgs_per_flow` counts where it is below the window."""
    alone = Alone()
    alone.edge.ends["out"].settings.max_delivered_unacked_msgs_per_flow = 2
    alone.begin()
    alone.publish(3)
    assert alone.sent() == [1, 2]


def test_a_lost_link_gives_back_and_says_so_the_next_time() -> None:
    """What was out goes again first, marked as perhaps sent before."""
    alone = Alone()
    alone.begin()
    alone.publish(2)
    assert alone.sent() == [1, 2]
    alone.flow.end()
    alone.flow = alone.make()
    alone.begin()
    alone.edge.sync()
    flags = [frame.flags for frame in alone.wire.said]
    assert alone.sent() == [1, 2]
    assert flags == [7, 7]


def test_lost_links_are_no_failures_of_the_message() -> None:
    """However often the link is lost, no redelivery is counted, and nothing goes to the dead message queue."""
    alone = Alone()
    queue = alone.flow.endpoint
    queue.settings.max_redelivery_count = 1
    alone.begin()
    alone.publish()
    for _ in range(4):
        assert alone.sent() == [1]
        alone.flow.end()
        alone.flow = alone.make()
        alone.begin()
        alone.edge.sync()
    assert (queue.spooled_count, queue.counters.discarded.total()) == (1, 0)


def test_a_message_keeps_what_it_is() -> None:
    """Priority, persistence, expiry, retain, path and hops cross in GUARANTEED (LINK-41)."""
    alone = Alone()
    alone.begin()
    now_ns = alone.edge.context.now_ns
    alone.publish(
        persistent=False,
        dmq_eligible=False,
        priority=9,
        retain=True,
        expires_ns=now_ns + 2_500_000_000,
        path=["far/away"],
        hops=1,
    )
    alone.publish()
    first, second = alone.wire.said
    assert (first.flags, first.priority) == (0, 9)
    extension = first.message.extension
    assert (extension.path, extension.hops) == (["far/away", "edge/blue"], 2)
    assert (extension.expiry_ms, extension.retain) == (2500, True)
    assert (second.flags, second.priority, second.message.extension) == (6, 4, None)


def test_what_has_been_there_leaves_the_queue() -> None:
    """NOLOCAL: a message whose path holds the peer's VPN is settled and counted, not sent (LINK-36)."""
    alone = Alone()
    alone.begin()
    alone.publish(path=["core/red"], hops=1)
    alone.publish(hops=255, path=["x/y"])
    assert alone.sent() == []
    assert alone.wire.told == [
        ("discarded", "loop-detected"),
        ("discarded", "ttl-exceeded"),
    ]
    assert alone.edge.contents("out") == []


def test_what_does_not_fit_a_frame_is_a_dead_letter() -> None:
    """The peer would close the link over it: the queue gives it up (LINK-37)."""
    alone = Alone()
    alone.begin()
    alone.flow.max_frame = 20
    alone.publish()
    assert alone.sent() == []
    assert alone.wire.told == [("discarded", "msg-too-big")]
    assert alone.edge.ends["out"].counters.discarded.counts == {"rejected": 1}


def test_fates_of_what_is_rejected() -> None:
    """Held: it is still out. Again: delivered once more, and counted. Given up: gone (LINK-43)."""
    alone = Alone()
    alone.begin()
    alone.publish(3)
    alone.sent()
    for position, fate in (
        (1, frames.HELD),
        (2, frames.AGAIN),
        (3, frames.GIVEN_UP),
    ):
        alone.flow.on_reject(frames.Reject(5, position, 0x97, "503 Spool Over Quota", fate))
    alone.edge.sync()
    alone.edge.sync()
    assert alone.flow.stalled == "503 Spool Over Quota"
    assert alone.sent() == [2]
    assert alone.edge.contents("out") == [b"1", b"2"]
    assert alone.flow.rejected == 3


def test_the_queue_goes_before_bound_is_said() -> None:
    """The answer to BIND is a refusal then, with nothing bound."""
    alone = Alone()
    alone.pair.publish()
    alone.flow.begin(alone.bind, STORE, CONSUME, CONSUME)
    alone.edge.seal()
    alone.flow.unbound("503 Queue Shutdown")
    alone.edge.sync()
    assert [(frame.code, frame.reason) for frame in alone.wire.said] == [
        (0x88, "503 Queue Shutdown")
    ]


def test_a_mapping_renames_what_leaves() -> None:
    """The peer sees the new name; the queue keeps the old one."""
    alone = Alone()
    alone.flow = alone.make(mapping=TopicMapping([add_prefix("far")]))
    alone.begin()
    alone.publish()
    assert alone.wire.said[0].message.topic == b"far/t/a"


def test_a_selector_picks() -> None:
    """Only what the peer's selector wants is sent; the rest waits for others."""
    alone = Alone()
    alone.flow = alone.make(selector=parse_selector("colour = 'red'"))
    alone.begin()
    red = b"\x26\x00\x06colour\x00\x03red"
    alone.publish()
    alone.publish(block=red)
    assert alone.sent() == [2]


class Waiting:
    """A publisher at the sender's whose answers wait for the bridge `x`; `told` are tokens and outcomes."""

    def __init__(self, alone: Alone) -> None:
        self.told: list[tuple[int, int]] = []
        alone.pair.peer.peer_bridge = "x"
        self._alone = alone
        self._waits = EndToEndAnswers(alone.edge.spool, "x", _Answers(self))

    def publish(self, token: int, **more: Any) -> None:
        """One message, synced."""
        message = Message(b"t/a", b"x")
        message.persistent = True
        for name, value in more.items():
            setattr(message, name, value)
        self._waits.publish(self._alone.edge.vpn, message, token)
        self._alone.edge.sync()
        self._alone.edge.sync()


class _Answers(EndToEndCallback):
    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting

    def on_outcome(self, token: int, outcome: int, reason: str) -> None:
        self._waiting.told.append((token, outcome))

    def lost(self, token: int) -> None:
        """See Answers.lost."""


def test_publishers_wait_for_the_acknowledgement() -> None:
    """The queue knows its bridge from BIND on; ACK, once synced, is what the publisher waits for."""
    alone = Alone()
    waiting = Waiting(alone)
    alone.begin()
    assert alone.edge.ends["out"].bridges == ["x"]
    waiting.publish(1)
    assert alone.sent() == [1]
    alone.ack((1, 1))
    assert waiting.told == []
    alone.edge.sync()
    assert waiting.told == [(1, SPOOLED)]


def test_publishers_wait_for_what_bind_names() -> None:
    """An acknowledgement that went down with the link comes with the next BIND."""
    alone = Alone(accepted={STORE: [(1, 1)]})
    waiting = Waiting(alone)
    alone.edge.ends["out"].remember_bridge("x")
    bind = alone.bind
    alone.bind = frames.Bind(6, "out", 1)
    alone.flow = alone.make()
    alone.begin()
    waiting.publish(1)
    assert alone.sent() == [1]
    alone.flow.end()
    assert waiting.told == []
    alone.bind = bind
    alone.flow = alone.make()
    alone.begin()
    alone.edge.sync()
    assert waiting.told == [(1, SPOOLED)]


@pytest.mark.parametrize("crossed", [0, 700])
def test_a_flow_of_many_messages_ends_in_slices(crossed: int) -> None:
    """A bridge that is back meanwhile is sent all that it has not had, in order; each message crosses once."""
    count = 1_500
    pair = flow_pair.FlowPair(window=count)
    for _ in range(count):
        pair.publish()
    pair.edge.sync()
    pair.connect()
    pair.core.sync()
    pair.to_edge()
    for _ in range(count // 16 + 2):
        pair.edge.sync()
    pair.to_core(1)
    queue = pair.edge.ends["out"]
    assert len(pair.flow.unacked) == count
    # The receiver has some in its spool, and the sender does not hear of it.
    pair.to_core(crossed)
    pair.core.sync()
    context = pair.edge.context
    context.work = 0
    pair.cut()
    assert (context.work, queue.flows, len(queue.returning)) == (0, [], 1)
    pair.connect()
    slices = 0
    while queue.returning:
        pair.core.sync()
        pair.to_edge()
        pair.edge.sync()
        context.jobs.step()
        assert context.work <= limits.TURN_WORK + 10
        slices += 1
    assert slices > 1
    pair.settle()
    assert pair.received() == list(range(1, count + 1))
    assert (queue.spooled_count, queue.counters.imbalance(0)) == (0, 0)


def test_publishers_hear_of_what_never_leaves() -> None:
    """What has been there before is settled here, and was not brought across."""
    alone = Alone()
    waiting = Waiting(alone)
    alone.begin()
    waiting.publish(1, path=["core/red"], hops=1)
    alone.flow.max_frame = 20
    waiting.publish(2)
    alone.edge.sync()
    assert waiting.told == [(1, REJECTED), (2, REJECTED)]


# -- outbound flows --------------------------------------------------------------------------------


SPEC_OUTBOUND_FLOWS = importlib.util.spec_from_file_location(
    "flow_links", Path(__file__).parent / "flow_links.py"
)
assert SPEC_OUTBOUND_FLOWS is not None
assert SPEC_OUTBOUND_FLOWS.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC_OUTBOUND_FLOWS)
SPEC_OUTBOUND_FLOWS.loader.exec_module(kit)


BEAT = encode.heartbeat(frames.Heartbeat(1, answer=True))


class Raw:
    """A link whose receiver is the test; `blue` is the sender's."""

    def __init__(self, world: Any, username: str = "", **vpn: Any) -> None:
        self.sea = kit.Sea(world)
        self.yellow = world.vpn("yellow", "core")
        self.blue = world.vpn("blue", "edge", **vpn)
        self.queue = self.sea.queue(self.blue, "q", "t/>")
        login = {"client_username": username}
        self.link = world.link(self.yellow, "edge", "blue", ("d/>",), terms=login)
        self.requests = 0
        # From here on the test speaks, and nobody else.
        self.link.wire.cut = True
        self.end = self.link.accepted
        self.heard = b""

    def bind(self, queue: str = "q", **more: Any) -> Any:
        """BIND, and its answer."""
        self.requests += 1
        return self.say(encode.bind(frames.Bind(self.requests, queue, 10, **more)), frames.Bound)[
            -1
        ]

    def say(self, data: bytes, *kinds: type) -> list[Any]:
        """Say something; the frames of these kinds that ever came back."""
        self.end.feed(data)
        while self.sea.sync():
            pass
        self.heard += self.end.outbox.take(1 << 30)
        found: list[Any] = kit.frames_in(self.heard, *kinds)
        return found

    @property
    def closed(self) -> int:
        """The code with which the sender closed the connection, -1 for not at all."""
        found = kit.frames_in(self.heard, frames.Close)
        return found[-1].code if found else -1


@pytest.fixture
def raw(world: Any) -> Raw:
    """A link as above."""
    return Raw(world)


def test_numbers_are_even_where_the_sender_was_dialled_and_never_come_again(raw: Raw) -> None:
    """Ids rise over the life of a connection, refused ones left out or not."""
    numbers = [raw.bind().flow_id for _ in range(3)]
    assert numbers == sorted(set(numbers))
    assert all(number % 2 == 0 for number in numbers)
    raw.say(encode.unbind(frames.Unbind(numbers[0], 0, "")))
    assert raw.bind().flow_id > numbers[-1]


def test_unknown_queue(raw: Raw) -> None:
    """No such queue in that message VPN: 0xc8 for who may use any, and nothing else in the answer."""
    admission = raw.end.admission
    admission.username.guaranteed_endpoint_permission_override_enabled = True
    answer = raw.bind("nobody")
    assert (answer.code, answer.reason) == (0xC8, "503 Unknown Queue")
    assert (answer.flow_id, answer.window, answer.store_id) == (0, 0, bytes(16))


@pytest.mark.parametrize("selector", ["", "1 +"])
def test_queues_that_a_remote_cannot_tell_from_none(raw: Raw, selector: str) -> None:
    """A queue that is not open to a bridge, of whatever kind, is to it like one that is not there; one event tells
    which it is, however often it asks.
    """
    log = EventLog("edge", lambda: 1)
    told: list[str] = []
    log.listeners.append(lambda event: told.append(event.text.partition("yellow/b: ")[2]))
    raw.end.context.events = log
    raw.queue.settings.permission = NO_ACCESS
    answers = []
    for exclusive in (True, False):
        raw.queue.settings.exclusive = exclusive
        for name in ("q", "nobody"):
            for _ in range(2):
                answer = raw.bind(name, selector=selector)
                answers.append((answer.code, answer.reason, answer.flow_id, answer.store_id))
    assert set(answers) == {(0x87, "403 Permission Denied", 0, bytes(16))}
    assert told == ["403 Permission Denied: queue q", "503 Unknown Queue: queue nobody"] * 2


def test_only_an_exclusive_queue(raw: Raw) -> None:
    """A queue that others take from has no order that a bridge could keep."""
    raw.queue.settings.exclusive = False
    answer = raw.bind()
    assert (answer.code, answer.reason) == (
        0x87,
        "403 Permission Denied: the queue is not exclusive",
    )


def test_a_bad_selector(raw: Raw) -> None:
    """A selector that cannot be read is answered with 0x8f; a good one selects."""
    assert raw.bind(selector="1 +").code == 0x8F
    assert raw.bind(selector="n = 1").code == 0


def test_a_queue_that_is_shut_down_or_has_no_room(raw: Raw) -> None:
    """What the queue says to any consumer is said to a bridge."""
    raw.queue.settings.egress_enabled = False
    assert raw.bind().code == 0x88
    raw.queue.settings.egress_enabled = True
    raw.queue.settings.max_bind_count = 0
    assert raw.bind().code == 0x97


def test_at_most_so_many_flows(raw: Raw) -> None:
    """LINK_FLOWS over one connection; one that ends makes room."""
    found = [raw.bind() for _ in range(limits.LINK_FLOWS)]
    assert {answer.code for answer in found} == {0}
    assert raw.bind().code == 0x97
    raw.say(encode.unbind(frames.Unbind(found[0].flow_id, 0, "")))
    assert raw.bind().code == 0


@pytest.mark.parametrize(
    ("owner", "override", "code"), [("", False, 0x87), ("core", False, 0), ("", True, 0)]
)
def test_permission(world: Any, owner: str, override: bool, code: int) -> None:
    """The client username of the bridge needs `consume`; its owner, and who may override, has it."""
    user = ClientUsername("core", guaranteed_endpoint_permission_override_enabled=override)
    raw = Raw(world, "core", usernames=[user])
    raw.queue.settings.permission = NO_ACCESS
    raw.queue.settings.owner = owner
    assert raw.bind().code == code


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"allow_guaranteed_msg_receive_enabled": False}, 0x87),
        ({"max_egress_flow_count": 1}, 0x97),
        ({"max_egress_flow_count": 0}, 0x97),
    ],
)
def test_what_the_profile_says(world: Any, attributes: dict[str, Any], code: int) -> None:
    """A client profile bounds a bridge as it bounds any client."""
    profile = ClientProfile("default", allow_bridge_connections_enabled=True, **attributes)
    raw = Raw(world, profile=profile)
    for _ in range(attributes.get("max_egress_flow_count", 0)):
        assert raw.bind().code == 0
    assert raw.bind().code == code


@pytest.mark.parametrize(
    "data",
    [
        encode.ack(frames.Ack(2, 10, [(1, 1)])),
        encode.unbind(frames.Unbind(2, 0, "")),
        encode.unbound(frames.Unbound(2)),
        encode.settled(frames.Settled(2, 1, 1)),
        encode.reject(frames.Reject(2, 1, 0x97, "")),
    ],
    ids=["ack", "unbind", "unbound", "settled", "reject"],
)
def test_a_flow_that_never_was(raw: Raw, data: bytes) -> None:
    """Any frame of it is closed with 0x82."""
    raw.say(data)
    assert raw.closed == 0x82


def test_unbound_without_unbind(raw: Raw) -> None:
    """UNBOUND answers UNBIND, and nothing else."""
    raw.say(encode.unbound(frames.Unbound(raw.bind().flow_id)))
    assert raw.closed == 0x82


def test_a_queue_that_goes_away(raw: Raw) -> None:
    """UNBIND is said; what the peer still says is passed over until UNBOUND, and closed with 0x82 after it."""
    flow_id = raw.bind().flow_id
    terms = raw.queue.settings.copy()
    terms.egress_enabled = False
    raw.queue.take_settings(terms)
    ack = encode.ack(frames.Ack(flow_id, 10, [(1, 1)]))
    (unbind,) = raw.say(ack, frames.Unbind)
    assert (unbind.flow_id, unbind.code, unbind.reason) == (flow_id, 0x88, "503 Queue Shutdown")
    raw.say(encode.unbound(frames.Unbound(flow_id)))
    assert raw.closed == -1
    raw.say(ack)
    assert raw.closed == 0x82


def test_both_unbind_at_once(raw: Raw) -> None:
    """Each is answered, and the flow is over."""
    flow_id = raw.bind().flow_id
    raw.queue.delete("gone")
    unbind = encode.unbind(frames.Unbind(flow_id, 0, ""))
    both = raw.say(unbind, frames.Unbind, frames.Unbound)
    assert [type(frame).__name__ for frame in both] == ["Unbind", "Unbound"]
    assert both[0].code == 0x88
    raw.say(encode.unbound(frames.Unbound(flow_id)))
    assert raw.closed == -1


def test_a_router_without_spool_agrees_on_no_flows(world: Any) -> None:
    """Nobody offers flows to keep nothing in them, and who offers them is not answered with them (LINK-48)."""
    kit.Sea(world, "core")
    world.router("edge")
    link = world.link(world.vpn("yellow", "core"), "edge", world.vpn("blue", "edge").name)
    assert link.accepted.features == frames.REUSE | frames.RETAINED | frames.AMQP
    link.dialed.say(encode.bind(frames.Bind(1, "q", 1)))
    world.settle()
    assert kit.said(link, 1, frames.Close)[-1].code == 0xC0


def test_much_that_waits_is_not_added_to(raw: Raw) -> None:
    """A slow link gets no more messages than half of its outbox holds, and one in any case."""
    raw.bind()
    raw.link.accepted.outbox.set_limit(400_000)
    for _ in range(10):
        raw.sea.publish(raw.blue, "t/a", bytes(100_000))

    assert len(raw.say(BEAT, frames.Guaranteed)) == 2
    position = kit.frames_in(raw.heard, frames.Guaranteed)[0].position
    ack = encode.ack(frames.Ack(2, 10, [(position, 1)]))
    assert len(raw.say(ack, frames.Guaranteed)) == 4


def test_a_flow_that_is_not_permitted_any_more(world: Any) -> None:
    """A bridge's flow ends with 0x87 when the queue, or the client profile, takes the permission away."""
    for taken in ("queue", "profile"):
        raw = Raw(world)
        flow = raw.bind()
        assert flow.code == 0
        if taken == "queue":
            terms = raw.queue.settings.copy()
            terms.permission = NO_ACCESS
            raw.queue.take_settings(terms)
        else:
            raw.blue.profiles = {
                "default": ClientProfile(
                    "default",
                    allow_bridge_connections_enabled=True,
                    allow_guaranteed_msg_receive_enabled=False,
                )
            }
            judge_all(raw.blue, world.book("edge"))
        (unbind,) = raw.say(BEAT, frames.Unbind)
        assert (unbind.flow_id, unbind.code) == (flow.flow_id, 0x87)
        assert unbind.reason == "403 Permission Denied"
        assert raw.queue.flows == []
