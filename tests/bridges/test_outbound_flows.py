"""Which flows a peer's bridge gets, and which frames of them are taken (LINK-40)."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS
from vpnrouter.core.profile import ClientProfile
from vpnrouter.events.log import EventLog
from vpnrouter.server.apply.changes import judge_all
from vpnrouter.wire.link import encode, frames

SPEC = importlib.util.spec_from_file_location("flow_links", Path(__file__).parent / "flow_links.py")
assert SPEC is not None
assert SPEC.loader is not None
kit: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)


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
    [({"allow_guaranteed_msg_receive_enabled": False}, 0x87), ({"max_egress_flow_count": 1}, 0x97)],
)
def test_what_the_profile_says(world: Any, attributes: dict[str, Any], code: int) -> None:
    """A client profile bounds a bridge as it bounds any client."""
    profile = ClientProfile("default", allow_bridge_connections_enabled=True, **attributes)
    raw = Raw(world, profile=profile)
    if code == 0x97:
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


def test_what_a_lost_link_had_is_the_queues_again(raw: Raw) -> None:
    """Nobody else gets what is out, until the link is gone."""
    raw.bind()
    for number in range(3):
        raw.sea.publish(raw.blue, "t/a", b"%d" % number)
    raw.sea.settle()
    assert [len(flow.unacked) for flow in raw.queue.flows] == [3]
    raw.end.lost("cut")
    assert raw.queue.flows == []
    assert kit.contents(raw.queue) == [b"0", b"1", b"2"]


def test_a_router_without_spool_agrees_on_no_flows(world: Any) -> None:
    """Nobody offers flows to keep nothing in them, and who offers them is not answered with them (LINK-48)."""
    kit.Sea(world, "core")
    world.router("edge")
    link = world.link(world.vpn("yellow", "core"), "edge", world.vpn("blue", "edge").name)
    assert link.accepted.features == frames.REUSE | frames.RETAINED
    link.dialed.say(encode.bind(frames.Bind(1, "q", 1)))
    world.settle()
    assert kit.said(link, 1, frames.Close)[-1].code == 0xC0


def test_much_that_waits_is_not_added_to(raw: Raw) -> None:
    """A slow link gets no more messages than half of its outbox holds, and one in any case."""
    raw.bind()
    raw.link.accepted.outbox.limit = 400_000
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
