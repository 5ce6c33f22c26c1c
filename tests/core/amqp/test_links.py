"""Links of AMQP clients: what is published, what is delivered, and what becomes of it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed.endpoint_settings import NO_ACCESS
from vpnrouter.wire.amqp.performatives import (
    UINT_MAX,
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Header,
    MessageProperties,
    Modified,
    Rejected,
    Released,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

if TYPE_CHECKING:
    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld


# -- publishing --------------------------------------------------------------------------------------


def test_settled_is_direct(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Settled is direct."""
    mqtt = router.join("m")
    mqtt.sub("a/b", 0)
    peer = join()
    peer.sender("topic://a/b")
    peer.send(amqp.message(b"hello"), settled=True)
    (got,) = mqtt.messages()
    assert (got.topic, got.payload, got.qos) == (b"a/b", b"hello", 0)
    assert peer.answers() == []
    assert router.commits == 0


def test_unsettled_is_accepted_when_it_is_synced(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Unsettled is accepted when it is synced."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q")
    commits = router.commits
    for number in range(3):
        peer.send(amqp.message(b"%d" % number))
    assert not peer.connection.outbox.chunks
    dispositions = [one for one in peer.answers() if isinstance(one, Disposition)]
    # One frame for all of them.
    assert dispositions == [Disposition(True, 0, 2, True, Accepted())]
    assert router.commits > commits
    assert queue.spooled_count == 3


def test_message_in_parts(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Message in parts."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q")
    body = bytes(range(256)) * 20
    assert peer.sent(amqp.message(body), frame=300) == Accepted()
    assert peer.connection._part_bytes == 0
    assert queue.spooled_count == 1
    peer.receiver("queue://q")
    assert peer.bodies() == [body]


def test_large_message_leaves_in_frames_that_the_client_takes(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Large message leaves in frames that the client takes."""
    router.queue("q")
    peer = join(max_frame_size=512)
    peer.sender("queue://q")
    body = bytes(2_000)
    peer.sent(amqp.message(body))
    peer.receiver("queue://q", credit=0)
    peer.credit(1, 5)
    data = peer.drain()
    sizes = []
    pos = 0
    while pos < len(data):
        sizes.append(int.from_bytes(data[pos : pos + 4], "big"))
        pos += sizes[-1]
    assert len(sizes) == 5
    assert max(sizes) <= 512


def test_aborted_message_is_forgotten(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Aborted message is forgotten."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q")
    peer.say(Transfer(0, 0, b"t", 0, False, True))
    peer.say(Transfer(0, aborted=True))
    peer._delivery = 1
    assert peer.sent(amqp.message()) == Accepted()
    assert queue.spooled_count == 1


def test_anonymous_relay_goes_where_each_message_says(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Anonymous relay goes where each message says."""
    router.queue("q")
    mqtt = router.join("m")
    mqtt.sub("a/b", 0)
    peer = join()
    peer.sender(None)
    to_queue = amqp.message(b"1", properties=MessageProperties(to="queue://q"))
    to_topic = amqp.message(b"2", properties=MessageProperties(to="a/b"))
    nowhere = amqp.message(b"3", properties=MessageProperties(to="queue://other"))
    assert peer.sent(to_queue) == Accepted()
    assert peer.sent(to_topic) == Accepted()
    state = peer.sent(nowhere)
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:unauthorized-access"
    assert [one.payload for one in mqtt.messages()] == [b"2"]


@pytest.mark.parametrize(
    ("address", "capabilities", "condition"),
    [
        # Who may not learn which queues there are is told no more.
        ("queue://nobody", None, "amqp:unauthorized-access"),
        ("nobody", ["queue"], "amqp:unauthorized-access"),
        ("queue://#mqtt/x", None, "amqp:not-allowed"),
        ("topic://a/#/b", None, "amqp:invalid-field"),
        ("topic://" + "a/" * 300, None, "amqp:invalid-field"),
        (17, None, "amqp:invalid-field"),
    ],
)
def test_sender_is_refused(
    join: Any, amqp: ModuleType, address: Any, capabilities: Any, condition: str
) -> None:
    """Sender is refused."""
    peer = join()
    given = None if capabilities is None else amqp.symbols(*capabilities)
    attached, detached = peer.sender(address, capabilities=given)
    assert isinstance(attached, Attach)
    assert attached.target is None
    assert isinstance(detached, Detach)
    assert detached.closed
    assert detached.error is not None
    assert detached.error.condition == condition
    # The handle is free when the client has detached too.
    peer.say(Detach(0, True))
    assert peer.answers() == []
    assert isinstance(peer.sender("topic://a")[0], Attach)


def test_no_topic_wants_the_message(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """No topic wants the message."""
    peer = join()
    peer.sender("topic://a")
    assert peer.sent(amqp.message()) == Accepted()
    router.vpn().profiles["default"].reject_msg_to_sender_on_no_subscription_match_enabled = True
    state = peer.sent(amqp.message())
    assert isinstance(state, Rejected)


def test_full_queue_rejects(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Full queue rejects."""
    router.queue("q", max_spooled_msg_count=1)
    peer = join()
    peer.sender("queue://q")
    assert peer.sent(amqp.message()) == Accepted()
    state = peer.sent(amqp.message())
    assert isinstance(state, Rejected)
    assert state.error is not None
    assert state.error.condition == "amqp:resource-limit-exceeded"
    assert state.error.description == "503 Max message usage exceeded"


def test_receiver_settles_second(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Receiver settles second."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q", rcv_settle_mode=1)
    peer.send(amqp.message())
    (answer,) = [one for one in peer.answers() if isinstance(one, Disposition)]
    assert not answer.settled
    assert answer.state == Accepted()


def test_credit_is_topped_up(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Credit is topped up."""
    peer = join()
    _, flow = peer.sender("topic://a")
    assert isinstance(flow, Flow)
    assert flow.link_credit == 10_000
    for _ in range(5_000):
        peer.send(amqp.message(), settled=True)
    (flow,) = peer.answers()
    assert (flow.delivery_count, flow.link_credit) == (5_000, 10_000)


def test_more_than_the_credit_ends_the_link(join: Any, amqp: ModuleType) -> None:
    """More than the credit ends the link."""
    peer = join()
    peer.sender("topic://a")
    link = peer.connection.sessions[0].links[0]
    link.credit = 1
    link.count = 9_999
    peer.send(amqp.message(), settled=True)
    assert isinstance(peer.answer(Flow), Flow)
    link.credit = 0
    peer.send(amqp.message(), settled=True)
    detached = peer.answer(Detach)
    assert detached.error.condition == "amqp:link:transfer-limit-exceeded"
    # What is still under way is passed over.
    peer.send(amqp.message(), settled=True)
    assert peer.answers() == []


def test_message_that_is_too_large_ends_the_link(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Message that is too large ends the link."""
    peer = join()
    peer.sender("topic://a")
    most = peer.connection.sessions[0].links[0].most
    peer.connection.sessions[0].links[0].most = 1_000
    assert most > 1_000
    peer.send(amqp.message(bytes(1_500)), frame=400)
    detached = peer.answer(Detach)
    assert detached.error.condition == "amqp:link:message-size-exceeded"
    assert peer.connection._part_bytes == 0


# -- consuming ---------------------------------------------------------------------------------------


def _filled(router: SpooledWorld, join: Any, amqp: ModuleType, *bodies: bytes) -> Any:
    router.queue("q", delivery_count_enabled=False)
    peer = join("filler")
    peer.sender("queue://q")
    for body in bodies:
        assert peer.sent(amqp.message(body, Header(True))) == Accepted()
    return peer


def test_outcomes(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Outcomes."""
    dead = router.queue("#DEAD_MSG_QUEUE")
    _filled(router, join, amqp, b"1", b"2", b"3", b"4", b"5")
    peer = join()
    peer.receiver("queue://q", credit=5)
    one, two, three, four, five = peer.messages()
    assert [got.header.delivery_count for got in (one, two)] == [0, 0]
    assert one.header.durable
    peer.settle(one, Accepted())
    peer.settle(two, Rejected())
    peer.settle(three, Released())
    peer.settle(four, Modified(True))
    peer.settle(five, Modified(True, True))
    peer.credit(1, 5, 5)
    again = {got.body: got for got in peer.messages()}
    assert set(again) == {b"3", b"4"}
    assert again[b"3"].header.delivery_count == 0
    assert again[b"4"].header.delivery_count == 1
    assert not again[b"4"].header.first_acquirer
    assert dead.spooled_count == 2
    (reason,) = {one.message.properties()["dead-letter-reason"] for one in dead.browse(0, 1)}
    assert reason == "rejected"


def test_dead_letter_says_why_among_its_annotations(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Dead letter says why among its annotations."""
    router.queue("#DEAD_MSG_QUEUE")
    router.queue("dead")
    router.queue("q", dead_msg_queue="dead")
    peer = join()
    peer.sender("queue://q")
    data = amqp.message(
        b"1",
        annotations={Symbol("x-opt-jms-msg-type"): Typed("byte", 3)},
        properties=MessageProperties("id"),
    )
    peer.sent(data)
    peer.receiver("queue://q")
    (got,) = peer.messages()
    peer.settle(got, Rejected())
    peer.receiver("queue://dead", 2)
    (dead,) = peer.messages()
    assert dead.bare == got.bare
    notes = dead.sections[0x72]
    assert notes[Symbol("x-opt-dead-letter-reason")] == "rejected"
    assert notes[Symbol("x-opt-dead-letter-queue")] == "q"
    # A byte has stayed a byte: JMS clients want one.
    assert b"x-opt-jms-msg-type\x51\x03" in dead.data


def test_default_outcome_is_what_settling_without_one_means(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Default outcome is what settling without one means."""
    _filled(router, join, amqp, b"1")
    peer = join()
    peer.receiver("queue://q", default_outcome=Modified(True))
    (got,) = peer.messages()
    peer.settle(got, None)
    (again,) = peer.messages()
    assert again.header.delivery_count == 1


def test_client_that_settles_second_is_answered(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """It is answered when its outcome is synced."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q")
    peer.sent(amqp.message())
    peer.receiver("queue://q")
    (got,) = peer.messages()
    peer.settle(got, Accepted(), settled=False)
    assert not peer.connection.outbox.chunks
    answer = peer.answer(Disposition)
    assert (answer.role, answer.settled, answer.state) == (False, True, Accepted())
    assert queue.spooled_count == 0


def test_presettled_consumer_takes_at_once(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Presettled consumer takes at once."""
    _filled(router, join, amqp, b"1", b"2")
    peer = join()
    peer.receiver("queue://q", mode=1)
    assert [got.transfer.settled for got in peer.messages()] == [True, True]
    assert router.vpn().queue("q").spooled_count == 0  # type: ignore[union-attr]


def test_credit_bounds_what_is_sent(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Credit bounds what is sent."""
    _filled(router, join, amqp, b"1", b"2", b"3")
    peer = join()
    peer.receiver("queue://q", credit=0)
    assert peer.bodies() == []
    peer.credit(1, 2)
    assert peer.bodies() == [b"1", b"2"]
    # The client has seen two of them: the count is the link's.
    peer.credit(1, 1, 2)
    assert peer.bodies() == [b"3"]


def test_session_window_bounds_what_is_sent(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Session window bounds what is sent."""
    _filled(router, join, amqp, b"1", b"2", b"3")
    peer = join()
    peer.begin(1, window=2)
    attach = Attach("r", 0, True, 0, source=amqp.Source("queue://q"), target=Target("x"))
    peer.say(attach, channel=1)
    peer.say(Flow(0, 2, 0, 100, 0, 0, 10), channel=1)
    frames_ = [frame for frame in peer.got() if isinstance(frame.performative, Transfer)]
    assert len(frames_) == 2
    peer.say(Flow(2, 2, 0, 100), channel=1)
    frames_ = [frame for frame in peer.got() if isinstance(frame.performative, Transfer)]
    assert len(frames_) == 1


def test_drain_is_answered(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Drain is answered."""
    _filled(router, join, amqp, b"1")
    peer = join()
    peer.receiver("queue://q", credit=0)
    peer.credit(1, 10, drain=True)
    transfer, flow = peer.answers()
    assert isinstance(transfer, Transfer)
    assert isinstance(flow, Flow)
    assert (flow.handle, flow.delivery_count, flow.link_credit, flow.drain) == (1, 10, 0, True)
    # An empty queue is drained at once.
    peer.credit(1, 10, 10, drain=True)
    (flow,) = peer.answers()
    assert (flow.delivery_count, flow.link_credit) == (20, 0)


def test_drain_after_a_restart_brings_what_is_there(
    router: SpooledWorld, join: Any, amqp: ModuleType, spooled: ModuleType
) -> None:
    """Drain after a restart brings what is there."""
    _filled(router, join, amqp, b"1", b"2")
    later = router.restart()
    peer = amqp.Peer(later)
    peer.join()
    peer.receiver("queue://q", credit=0)
    peer.credit(1, 10, drain=True)
    kinds = [type(one).__name__ for one in peer.answers()]
    assert kinds == ["Transfer", "Transfer", "Flow"]


def test_selector(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Selector."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    for colour in ("red", "blue"):
        peer.sent(amqp.message(colour.encode(), application={"colour": colour, "n": 5}))
    chosen: dict[object, object] = {
        Symbol("jms-selector"): Described(0x0000_468C_0000_0004, "colour = 'blue' AND n > 4")
    }
    (attached,) = peer.receiver("queue://q", filter=chosen)
    assert attached.source.filter == chosen
    assert peer.bodies() == [b"blue"]


def test_selector_that_is_none_is_refused(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Selector that is none is refused."""
    router.queue("q")
    peer = join()
    bad: dict[object, object] = {
        Symbol("s"): Described(Symbol("apache.org:selector-filter:string"), "colour = ")
    }
    _, detached = peer.receiver("queue://q", filter=bad)
    assert detached.error.condition == "amqp:invalid-field"
    unknown: dict[object, object] = {Symbol("other"): Described(Symbol("some:filter"), "x")}
    (attached,) = peer.receiver("queue://q", 2, filter=unknown)
    assert attached.source.filter is None


def test_browser_takes_nothing(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Browser takes nothing."""
    _filled(router, join, amqp, b"1", b"2")
    peer = join()
    peer.receiver("queue://q", distribution_mode=Symbol("copy"), mode=1)
    assert peer.bodies() == [b"1", b"2"]
    peer.credit(1, 98, 2, drain=True)
    (flow,) = peer.answers()
    assert flow.link_credit == 0
    assert router.vpn().queue("q").spooled_count == 2  # type: ignore[union-attr]


def test_detached_consumer_gives_back(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Detached consumer gives back."""
    _filled(router, join, amqp, b"1")
    peer = join()
    peer.receiver("queue://q")
    (got,) = peer.messages()
    peer.say(Detach(1, True))
    assert peer.answers() == [Detach(1, True)]
    other = join("other")
    other.receiver("queue://q")
    (again,) = other.messages()
    # It was sent before, and that does not count as a failure.
    assert again.header.delivery_count == 0
    # What the first client says of it now comes too late.
    peer.settle(got, Accepted())
    assert router.vpn().queue("q").spooled_count == 1  # type: ignore[union-attr]


def test_lost_connection_gives_back(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Lost connection gives back."""
    _filled(router, join, amqp, b"1")
    peer = join()
    peer.receiver("queue://q")
    peer.messages()
    peer.connection.lost("gone")
    other = join("other")
    other.receiver("queue://q")
    assert other.bodies() == [b"1"]


def test_queue_that_is_deleted_ends_the_link(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Queue that is deleted ends the link."""
    queue = router.queue("q")
    peer = join()
    peer.receiver("queue://q")
    queue.delete("503 Queue Shutdown")
    detached = peer.answer(Detach)
    assert detached.error.description == "503 Queue Shutdown"


def test_forbidden_queue(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Forbidden queue."""
    router.queue("q", permission=NO_ACCESS, owner="somebody")
    peer = join()
    _, detached = peer.receiver("queue://q")
    assert detached.error.condition == "amqp:unauthorized-access"


# -- order, time, groups -----------------------------------------------------------------------------


def test_priority_ttl_and_delay(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Priority ttl and delay."""
    router.queue("q", respect_msg_priority_enabled=True, respect_ttl_enabled=True)
    peer = join()
    peer.sender("queue://q")
    wall_ms = router.router.context.wall_ns // 1_000_000
    late: dict[object, object] = {
        Symbol("x-opt-delivery-time"): Typed("timestamp", wall_ms + 3_000)
    }
    delayed: dict[object, object] = {Symbol("x-opt-delivery-delay"): 1_000}
    peer.sent(amqp.message(b"low", Header(priority=1)))
    peer.sent(amqp.message(b"high", Header(priority=9)))
    peer.sent(amqp.message(b"short", Header(ttl=500)))
    peer.sent(amqp.message(b"late", annotations=late))
    peer.sent(amqp.message(b"delayed", annotations=delayed))
    router.advance(0.6)
    peer.receiver("queue://q")
    assert peer.bodies() == [b"high", b"low"]
    router.advance(0.5)
    assert peer.bodies() == [b"delayed"]
    router.advance(2.0)
    assert peer.bodies() == [b"late"]


def test_delay_outlives_a_restart(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Delay outlives a restart."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    delayed: dict[object, object] = {Symbol("x-opt-delivery-delay"): 5_000}
    peer.sent(amqp.message(b"delayed", annotations=delayed))
    later = router.restart()
    other = amqp.Peer(later)
    other.join()
    other.receiver("queue://q")
    assert other.bodies() == []
    later.advance(5.1)
    assert other.bodies() == [b"delayed"]


def test_ttl_that_is_left_goes_with_the_message(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Ttl that is left goes with the message."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    peer.sent(amqp.message(b"1", Header(ttl=10_000)))
    router.advance(4)
    peer.receiver("queue://q")
    (got,) = peer.messages()
    assert got.header.ttl == 6_000


def test_groups_stay_together(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Groups stay together."""
    router.queue("q", partition_count=8, exclusive=False, max_bind_count=10)
    peer = join()
    first, second = join("a"), join("b")
    first.receiver("queue://q")
    second.receiver("queue://q")
    router.advance(60)
    peer.sender("queue://q")
    for number in range(40):
        group = f"g{number % 8}"
        peer.sent(amqp.message(group.encode(), properties=MessageProperties(group_id=group)))
    at_first, at_second = first.bodies(), second.bodies()
    assert len(at_first) + len(at_second) == 40
    assert not set(at_first) & set(at_second)


# -- topics ------------------------------------------------------------------------------------------


def test_direct_subscriber_waits_for_credit(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Direct subscriber waits for credit."""
    peer = join()
    peer.receiver("topic://a/*", mode=1, credit=1)
    sender = join("sender")
    sender.sender("topic://a/b")
    for body in (b"1", b"2"):
        sender.send(amqp.message(body), settled=True)
    assert peer.bodies() == [b"1"]
    peer.credit(1, 1, 1)
    assert peer.bodies() == [b"2"]


def test_direct_subscriber_gets_guaranteed_messages_as_direct(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Direct subscriber gets guaranteed messages as direct."""
    peer = join()
    peer.receiver("topic://a", mode=1)
    sender = join("sender")
    sender.sender("topic://a")
    assert sender.sent(amqp.message(b"1")) == Accepted()
    (got,) = peer.messages()
    assert got.transfer.settled


def test_topic_consumer_settles(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Topic consumer settles."""
    peer = join()
    peer.receiver("topic://a")
    sender = join("sender")
    sender.sender("topic://a")
    sender.sent(amqp.message(b"1"))
    (got,) = peer.messages()
    assert not got.transfer.settled
    peer.settle(got, Modified(True))
    (again,) = peer.messages()
    assert again.header.delivery_count == 1
    peer.say(Detach(1, True))
    peer.answers()
    assert not [key for key in router.vpn().endpoints if "amqp" in key[1]]


def test_two_consumers_of_one_connection_get_a_copy_each(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Two consumers of one connection get a copy each."""
    peer = join()
    peer.receiver("topic://a", 1)
    peer.receiver("topic://a", 2)
    peer.receiver("topic://a", 3, mode=1)
    peer.sender("topic://a")
    peer.send(amqp.message(b"1"))
    handles = [one.handle for one in peer.answers() if isinstance(one, Transfer)]
    assert sorted(handles) == [1, 2, 3]


def test_no_local(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """No local."""
    chosen: dict[object, object] = {Symbol("no-local"): Described(0x0000_468C_0000_0003, [])}
    peer = join()
    peer.receiver("topic://a", 1, filter=chosen)
    peer.receiver("topic://a", 2, mode=1, filter=chosen)
    peer.sender("topic://a")
    peer.send(amqp.message(b"own"))
    assert [one for one in peer.answers() if isinstance(one, Transfer)] == []
    other = join("other")
    other.sender("topic://a")
    other.sent(amqp.message(b"other"))
    assert peer.bodies() == [b"other", b"other"]


def _durable(peer: Any, name: str = "sub", topic: str = "topic://news", **more: Any) -> list[Any]:
    found: list[Any] = peer.receiver(
        topic, 1, name=name, durable=2, expiry_policy=Symbol("never"), **more
    )
    return found


def test_durable_subscription(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Durable subscription."""
    peer = join()
    (attached,) = _durable(peer)
    assert attached.source.durable == 2
    peer.say(Detach(1, False))
    assert peer.answers() == [Detach(1, False)]
    sender = join("sender")
    sender.sender("topic://news")
    sender.sent(amqp.message(b"while away"))
    later = router.restart()
    back = amqp.Peer(later)
    back.join()
    _durable(back)
    (got,) = back.messages()
    assert got.body == b"while away"
    back.settle(got, Accepted())
    # Closing the link ends it.
    back.say(Detach(1, True))
    back.answers()
    assert not [key for key in later.vpn().endpoints if "amqp" in key[1]]
    assert not [key for key in later.restart().vpn().endpoints if "amqp" in key[1]]


def test_durable_subscription_is_granted_when_it_is_stored(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Durable subscription is granted when it is stored."""
    peer = join()
    peer.say(
        Attach("s", 1, True, 0, source=amqp.Source("topic://a", durable=2), target=Target("x"))
    )
    assert not peer.connection.outbox.chunks
    assert isinstance(peer.answer(Attach), Attach)


def test_unsubscribe(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Unsubscribe."""
    peer = join()
    _durable(peer)
    locked = peer.attach(Attach("sub", 2, True, source=None, target=Target("x")))
    assert locked[1].error.condition == "amqp:resource-locked"
    peer.say(Detach(1, False))
    peer.answers()
    (attached,) = peer.attach(Attach("sub", 3, True, source=None, target=Target("x")))
    assert attached.source.address == "topic://news"
    peer.say(Detach(3, True))
    assert peer.answers() == [Detach(3, True)]
    attached, detached = peer.attach(Attach("sub", 4, True, source=None, target=Target("x")))
    assert attached.source is None
    assert detached.error.condition == "amqp:not-found"


def test_other_topic_is_another_subscription(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Other topic is another subscription."""
    peer = join()
    _durable(peer)
    peer.say(Detach(1, False))
    sender = join("sender")
    sender.sender("topic://news")
    sender.sent(amqp.message(b"old"))
    peer.answers()
    _durable(peer, topic="topic://other")
    assert peer.bodies() == []


def test_link_is_stolen_by_a_new_connection(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Link is stolen by a new connection."""
    first = join("c")
    _durable(first)
    second = join("c")
    (attached,) = _durable(second)
    assert attached.source is not None
    detached = first.answer(Detach)
    assert detached.error.condition == "amqp:link:stolen"
    sender = join("sender")
    sender.sender("topic://news")
    sender.sent(amqp.message(b"1"))
    assert second.bodies() == [b"1"]


def test_shared_subscription(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Shared subscription."""
    peer = join()
    shared = amqp.symbols("topic", "shared")
    peer.receiver("topic://a", 1, name="sh|volatile1", capabilities=shared)
    peer.receiver("topic://a", 2, name="sh|volatile2", capabilities=shared)
    sender = join("sender")
    sender.sender("topic://a")
    for number in range(4):
        sender.sent(amqp.message(b"%d" % number))
    got = peer.messages()
    assert sorted(one.body for one in got) == [b"0", b"1", b"2", b"3"]
    assert [one.transfer.handle for one in got].count(1) == 2
    peer.say(Detach(1, True))
    peer.say(Detach(2, True))
    peer.answers()
    assert not [key for key in router.vpn().endpoints if "amqp" in key[1]]


def test_shared_by_all_containers(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """Shared by all containers."""
    shared = amqp.symbols("topic", "shared", "global")
    one, two = join("one"), join("two")
    for peer in (one, two):
        peer.receiver("topic://a", 1, name="sh|global", capabilities=shared, durable=2)
    sender = join("sender")
    sender.sender("topic://a")
    for number in range(4):
        sender.sent(amqp.message(b"%d" % number))
    assert sorted(one.bodies() + two.bodies()) == [b"0", b"1", b"2", b"3"]


# -- temporary queues and topics ---------------------------------------------------------------------


def test_request_and_reply_over_a_temporary_queue(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Request and reply over a temporary queue."""
    asker, answerer = join("asker"), join("answerer")
    packet = Target(None, dynamic=True, capabilities=amqp.symbols("temporary-queue"))
    attached, _ = asker.sender(None, 5, target=packet)
    address = attached.target.address
    assert address.startswith("queue://")
    asker.receiver(address, 1)
    answerer.sender(None)
    data = amqp.message(b"answer", properties=MessageProperties(to=address))
    assert answerer.sent(data) == Accepted()
    assert asker.bodies() == [b"answer"]
    # Others may send to it, not consume from it.
    _, detached = answerer.receiver(address, 3)
    assert detached.error.condition == "amqp:unauthorized-access"
    asker.say(Detach(5, True))
    kinds = [type(one).__name__ for one in asker.answers()]
    assert kinds == ["Detach", "Detach"]
    state = answerer.sent(data)
    assert isinstance(state, Rejected)


def test_temporary_queue_is_closed_to_clients_of_mqtt(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Who guesses its name may send to it, and not consume from it."""
    router.add_vpn("blue", (ClientUsername("ann"), ClientUsername("bob")))
    asker = amqp.Peer(router)
    asker.plain("ann", "")
    asker.open("asker")
    asker.begin()
    target = Target(None, dynamic=True)
    attached, _ = asker.sender(None, 5, target=target)
    name = attached.target.address.removeprefix("queue://")
    mqtt = router.join("m", username="bob")
    assert mqtt.refused(f"$queue/{name}")[0] == 0x87
    mqtt.pub(f"$queue/{name}", b"answer")
    assert mqtt.acks()[0][2] == 0
    asker.receiver(attached.target.address, 1)
    assert asker.bodies() == [b"answer"]


def test_dynamic_source_and_temporary_topic(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """Dynamic source and temporary topic."""
    peer = join()
    (attached,) = peer.receiver(None, 1, dynamic=True)
    queue = attached.source.address
    topic = Target(None, dynamic=True, capabilities=amqp.symbols("temporary-topic"))
    attached, _ = peer.sender(None, 2, target=topic)
    assert attached.target.address.startswith("topic://")
    peer.sender(queue, 3)
    peer.send(amqp.message(b"1"), 3)
    assert [one for one in peer.answers() if isinstance(one, Transfer)]
    peer.connection.lost("gone")
    assert not [key for key in router.vpn().endpoints if "_P2P" in key[1]]
    assert router.vpn().endpoints_of == {}


# -- errors of clients -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packet", "condition"),
    [
        (Transfer(7, 0, b"t", 0), "amqp:session:unattached-handle"),
        (Detach(7), "amqp:session:unattached-handle"),
        (Flow(0, 1, 0, 1, 7), "amqp:session:unattached-handle"),
        (Attach("again", 0, False, initial_delivery_count=0), "amqp:session:handle-in-use"),
        (Transfer(1, 0, b"t", 0), "amqp:session:errant-link"),
    ],
)
def test_error_that_ends_the_session(
    router: SpooledWorld, join: Any, packet: Any, condition: str
) -> None:
    """Error that ends the session."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q", 0)
    peer.receiver("queue://q", 1)
    peer.answers()
    peer.say(packet)
    ended = peer.answer(End)
    assert ended.error.condition == condition
    # What the client sent before it knew is passed over; another session can begin.
    peer.say(Flow(0, 1, 0, 1))
    peer.say(End())
    assert peer.answers() == []
    assert isinstance(peer.begin(), Begin)


@pytest.mark.parametrize(
    ("packet", "channel", "condition"),
    [
        (Flow(0, 1, 0, 1), 5, "amqp:not-allowed"),
        (Begin(None, 0, 1, 1), 0, "amqp:not-allowed"),
        (Begin(None, 0, 1, 1), limits.AMQP_CHANNELS, "amqp:connection:framing-error"),
        (Begin(3, 0, 1, 1), 1, "amqp:invalid-field"),
        (End(), 9, "amqp:not-allowed"),
        (Attach("x", 4_096, True), 0, "amqp:connection:framing-error"),
        (Disposition(True, 5, 4), 0, "amqp:invalid-field"),
    ],
)
def test_error_that_ends_the_connection(
    join: Any, packet: Any, channel: int, condition: str
) -> None:
    """Error that ends the connection."""
    peer = join()
    peer.say(packet, channel=channel)
    closed = peer.answer(Close)
    assert closed.error.condition == condition
    assert peer.closed


def test_message_that_is_none_ends_the_link(join: Any, amqp: ModuleType) -> None:
    """Message that is none ends the link."""
    peer = join()
    peer.sender("topic://a")
    peer.send(b"nonsense")
    detached = peer.answer(Detach)
    assert detached.error.condition == "amqp:decode-error"


def test_too_many_links(router: SpooledWorld, join: Any) -> None:
    """Too many links."""
    peer = join()
    peer.connection.link_count = 4_096
    _, detached = peer.sender("topic://a")
    assert detached.error.condition == "amqp:resource-limit-exceeded"


def test_a_publisher_waits_for_the_credit_of_a_receiver(
    router: SpooledWorld, amqp: ModuleType
) -> None:
    """It is left unread while much waits for credit, and read again once that came and the messages have left."""
    backpressure = router.router.context.backpressure
    backpressure.active = True
    peer: Peer = amqp.Peer(router)
    peer.join()
    peer.receiver("topic://t/a", 1, 0, mode=1)
    publisher = router.connect("p")
    sent = 0
    while not publisher.connection.held:
        publisher.publish("t/a", bytes(60_000))
        sent += 60_000
        assert sent < 2 * limits.CROWDED_BYTES
    outbox = peer.connection.outbox
    assert outbox.parked > limits.CROWDED_BYTES - 60_100
    assert outbox.size == 0
    backpressure.step(router.now_ns + 1)
    assert publisher.connection.held
    peer.credit(1, 100)
    outbox.has_left(len(peer.drain()))
    assert outbox.parked == 0
    backpressure.step(router.now_ns + 2)
    assert not publisher.connection.held
    assert outbox.discarded == 0


def test_all_links_of_a_connection_share_what_may_wait_for_credit(
    router: SpooledWorld, amqp: ModuleType
) -> None:
    """Together they have as much as an outbox holds; a link that ends gives its part back."""
    peer: Peer = amqp.Peer(router)
    peer.join()
    peer.connection.outbox.set_limit(100_000)
    for number in range(4):
        peer.receiver("topic://t/a", number, 0, mode=1)
    publisher = router.connect("p")
    for _ in range(10):
        publisher.publish("t/a", bytes(10_000))
    outbox = peer.connection.outbox
    assert 80_000 < outbox.parked <= 100_000
    assert outbox.discarded == 40 - outbox.parked // 10_000
    for number in range(4):
        peer.say(Detach(number, True))
    peer.answers()
    assert outbox.parked == 0


@pytest.mark.parametrize(
    ("left_ms", "ttl"),
    [(1_000, 1_000), (UINT_MAX, UINT_MAX), (UINT_MAX + 1, None), (250_000_000_000_000, None)],
)
def test_life_time_beyond_what_a_header_can_say(
    router: SpooledWorld, join: Any, amqp: ModuleType, left_ms: int, ttl: int | None
) -> None:
    """A receiver is not told of a shorter life than the message has: JMS clients throw away what has ended."""
    router.queue("q")
    peer = join()
    peer.sender("queue://q")
    wall_ms = router.router.context.wall_ns // 1_000_000
    said = MessageProperties(absolute_expiry_time=wall_ms + left_ms)
    peer.sent(amqp.message(b"1", properties=said))
    peer.receiver("queue://q")
    (got,) = peer.messages()
    assert got.header.ttl == ttl
