"""Corners of AMQP 1.0: sizes that a peer sets, formats, relays that cannot route, and queues that are gone."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, NO_ACCESS, READ_ONLY
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Flow,
    Header,
    MessageProperties,
    Rejected,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledWorld

# -- the size of messages ----------------------------------------------------------------------------

SOURCES: dict[str, tuple[str, int, dict[str, object]]] = {
    "queue": ("queue://q", 0, {}),
    "browser": ("queue://q", 0, {"distribution_mode": Symbol("copy")}),
    "subscription": ("topic://a", 0, {}),
    "direct": ("topic://a", 1, {}),
}


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("source", SOURCES)
def test_receiver_of_small_messages(
    router: SpooledWorld, join: Any, amqp: ModuleType, source: str, settled: bool
) -> None:
    """It gets none that is larger than it said (2.7.3): a queue's is a dead letter, others are discarded."""
    dead = router.queue("dead")
    queue = router.queue("q", "a", dead_msg_queue="dead")
    address, mode, more = SOURCES[source]
    peer = join("receiver")
    packet = Attach(
        "r",
        1,
        True,
        mode,
        source=Source(address, **more),
        target=Target("here"),
        max_message_size=100,
    )
    peer.attach(packet)
    peer.credit(1, 10)
    sender = join("sender")
    sender.sender("topic://a")
    for size in (50, 200, 60):
        sender.send(amqp.message(bytes(size)), settled=settled)
    sender.drain()
    router.advance(0.05)
    assert [len(one) for one in peer.bodies()] == [50, 60]
    assert dead.spooled_count == int(source == "queue")
    assert queue.spooled_count == (2 if source == "queue" else 3)
    counted = router.vpn().discards.counts.get("msg-too-big", 0)
    assert counted == int(source != "browser")


# -- the size of frames ------------------------------------------------------------------------------


def test_error_with_a_long_text_fits(router: SpooledWorld, join: Any, amqp: ModuleType) -> None:
    """A topic in the description of an error does not make the frame larger than the client takes."""
    peer = join(max_frame_size=512)
    topic = "ü" * 100
    router.queue(topic)
    peer.sender(topic)
    state = peer.sent(amqp.message())
    assert isinstance(state, Rejected)
    assert len(frames.encode(state, 0)) < 400


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_answer_that_does_not_fit(
    router: SpooledWorld, join: Any, amqp: ModuleType, role: str
) -> None:
    """A link whose source or target fills more than a frame of the client is refused; others go on."""
    router.queue("q")
    peer = join(max_frame_size=512)
    long = {Symbol("selector"): Described(0x0000_468C_0000_0004, "a = '" + "x" * 600 + "'")}
    if role == "sender":
        source = Source("here", filter=long)
        packet = Attach(
            "l", 0, False, source=source, target=Target("queue://q"), initial_delivery_count=0
        )
    else:
        packet = Attach(
            "l", 0, True, source=Source("queue://q", filter=long), target=Target("here")
        )
    attached, detached = peer.attach(packet)
    assert isinstance(attached, Attach)
    assert isinstance(detached, Detach)
    assert detached.error is not None
    assert detached.error.condition == "amqp:frame-size-too-small"
    queue: Any = router.vpn().queue("q")
    assert (queue.flows, queue.senders) == ([], {})
    peer.sender("queue://q", 1)
    assert peer.sent(amqp.message(), 1) == Accepted()


def test_name_that_does_not_fit(join: Any) -> None:
    """Nothing can be said of a link whose name fills more than a frame of the client."""
    peer = join(max_frame_size=512)
    packet = Attach("n" * 500, 0, False, target=Target("topic://a"), initial_delivery_count=0)
    (closed,) = peer.attach(packet)
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.condition == "amqp:frame-size-too-small"


def test_open_that_does_not_fit(router: SpooledWorld, amqp: ModuleType) -> None:
    """A client of small frames is not told of the stand-by servers, in place of a frame that it does not take."""
    peer = amqp.Peer(router)
    peer.connection._stand_bys = [{Symbol("hostname"): "h" * 100} for _ in range(10)]
    opened = peer.join(max_frame_size=512)
    assert opened.properties is None
    assert len(frames.encode(opened, 0)) <= 512
    other = amqp.Peer(router)
    other.connection._stand_bys = peer.connection._stand_bys
    assert Symbol("failover-server-list") in other.join("other").properties


# -- formats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("message_format", "taken"), [(None, True), (0, True), (1, False), (0x80013700, False)]
)
def test_message_format(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    message_format: int | None,
    taken: bool,
    parts: int,
    settled: bool,
) -> None:
    """The sections of 3.2 are format 0; what another one means is not known here, and not lost without a word."""
    mqtt = router.join("m")
    mqtt.sub("a", 0)
    peer = join()
    peer.sender("topic://a")
    # Twice: the second of them could be forwarded together with others.
    for number in range(2):
        data = amqp.message(b"x")
        first = Transfer(0, number, b"t%d" % number, message_format, settled, parts > 1)
        if parts == 1:
            peer.raw(frames.encode(first, 0, payload=data))
        else:
            peer.raw(frames.encode(first, 0, payload=data[:3]))
            peer.raw(frames.encode(Transfer(0, more=False), 0, payload=data[3:]))
    ended = [one for one in peer.answers() if isinstance(one, Detach)]
    assert len(mqtt.messages()) == (2 if taken else 0)
    assert [one.error.condition for one in ended] == ([] if taken else ["amqp:not-implemented"])


# -- relays and queues that are gone -----------------------------------------------------------------


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("to", "condition"),
    [
        (None, "amqp:invalid-field"),
        ("queue://none", "amqp:unauthorized-access"),
        ("queue://closed", "amqp:unauthorized-access"),
        ("queue://_P2P/here/1", "amqp:not-found"),
        ("topic://a/#/b", "amqp:invalid-field"),
    ],
)
def test_relay_that_cannot_route(
    router: SpooledWorld, join: Any, amqp: ModuleType, to: str | None, condition: str, settled: bool
) -> None:
    """A message is rejected, and a settled one ends the link: its sender would not hear of it (Anonymous Terminus)."""
    router.queue("closed", permission=NO_ACCESS)
    peer = join()
    peer.sender(None)
    data = amqp.message(properties=MessageProperties(to=to))
    if settled:
        peer.send(data, settled=True)
        detached = peer.answer(Detach)
        assert detached.error.condition == condition
    else:
        state = peer.sent(data)
        assert isinstance(state, Rejected)
        assert state.error is not None
        assert state.error.condition == condition


@pytest.mark.parametrize("address", ["queue://#DEAD", "$queue/#DEAD", "#DEAD"])
@pytest.mark.parametrize(
    ("permission", "role", "condition"),
    [
        (CONSUME, "consumer", ""),
        (READ_ONLY, "browser", ""),
        (READ_ONLY, "consumer", "amqp:unauthorized-access"),
        (NO_ACCESS, "browser", "amqp:unauthorized-access"),
        (None, "consumer", "amqp:unauthorized-access"),
        (CONSUME, "sender", "amqp:not-allowed"),
    ],
)
def test_names_that_begin_with_a_number_sign(
    router: SpooledWorld,
    join: Any,
    amqp: ModuleType,
    address: str,
    permission: int | None,
    role: str,
    condition: str,
) -> None:
    """Who may consumes from a dead message queue, or looks at it; only the router puts messages into it."""
    if permission is not None:
        dead = router.queue("#DEAD", permission=permission)
        router.queue("q", max_redelivery_count=1, dead_msg_queue="#DEAD")
        teller = join("teller")
        teller.sender("queue://q")
        teller.sent(amqp.message(b"x"))
        teller.receiver("queue://q")
        (got,) = teller.messages()
        teller.settle(got, Rejected())
        router.settle()
        assert dead.spooled_count == 1
    peer = join()
    capabilities = [Symbol("queue")]
    if role == "sender":
        found = peer.sender(address, capabilities=capabilities)
    else:
        copy = "copy" if role == "browser" else None
        found = peer.receiver(address, capabilities=capabilities, distribution_mode=copy)
    errors = [one.error.condition for one in found if isinstance(one, Detach)]
    assert errors == ([condition] if condition else [])
    if not condition:
        assert len(peer.messages()) == 1


@pytest.mark.parametrize("role", ["sender", "receiver"])
@pytest.mark.parametrize("gone", [True, False])
def test_temporary_queue_that_is_gone(
    router: SpooledWorld, join: Any, amqp: ModuleType, role: str, gone: bool
) -> None:
    """It is not there, which is no question of rights; another client's that is there is closed to consumers."""
    asks, other = join("asks"), join("other")
    target = Target(dynamic=True, capabilities=[Symbol("temporary-queue")])
    attached = asks.sender(None, 0, target=target)[0]
    assert isinstance(attached.target, Target)
    if gone:
        asks.say(Detach(0, True))
        asks.drain()
    address = attached.target.address
    found = other.sender(address, 0) if role == "sender" else other.receiver(address, 0)
    errors = [one.error.condition for one in found if isinstance(one, Detach)]
    expected = [] if role == "sender" else ["amqp:unauthorized-access"]
    assert errors == (["amqp:not-found"] if gone else expected)
    assert not [one for one in found if isinstance(one, Flow)] or role == "sender"


@pytest.mark.parametrize("kind", ["queue", "subscription"])
@pytest.mark.parametrize("respected", [True, False])
def test_what_a_client_makes_respects_as_the_message_vpn_says(
    router: SpooledWorld, join: Any, amqp: ModuleType, kind: str, respected: bool
) -> None:
    """Temporary queues and subscriptions respect priorities and life times where `queue_defaults` says so."""
    terms = router.vpn().queue_terms
    terms.respect_msg_priority_enabled = terms.respect_ttl_enabled = respected
    peer = join()
    if kind == "queue":
        target = Target(dynamic=True, capabilities=[Symbol("temporary-queue")])
        address = peer.sender(None, 0, target=target)[0].target.address
    else:
        address = "topic://t"
        peer.sender(address, 0)
        peer.receiver(address, 1, credit=0)
    for number in (1, 9, 5):
        peer.sent(amqp.message(b"%d" % number, Header(priority=number)), 0)
    peer.sent(amqp.message(b"late", Header(ttl=1_000)), 0)
    router.advance(3)
    if kind == "queue":
        peer.receiver(address, 1)
    else:
        peer.credit(1, 100)
    assert peer.bodies() == ([b"9", b"5", b"1"] if respected else [b"1", b"9", b"5", b"late"])


@pytest.mark.parametrize("credit", [1, 3, 100])
@pytest.mark.parametrize("held", [0, 2])
@pytest.mark.parametrize("partitions", [0, 3])
def test_browser_of_a_queue_with_priorities(
    router: SpooledWorld, join: Any, amqp: ModuleType, credit: int, held: int, partitions: int
) -> None:
    """It sees each message once, in the order in which consumers get them, and then what is delayed."""
    queue = router.queue(
        "q", respect_msg_priority_enabled=True, partition_count=partitions, exclusive=False
    )
    peer = join()
    peer.sender("queue://q", 0)
    delay: dict[object, object] = {Symbol("x-opt-delivery-delay"): 60_000}
    peer.sent(amqp.message(b"delayed", Header(priority=9), annotations=delay), 0)
    for number, priority in enumerate((2, 9, 4, 9, 2, 5)):
        peer.sent(amqp.message(b"%d" % number, Header(priority=priority)), 0)
    if held:
        # What a consumer has is seen at its place.
        peer.receiver("queue://q", 1, credit=held)
        assert len(peer.bodies()) == held
    browser = join("browser")
    browser.receiver("queue://q", 1, 0, distribution_mode="copy")
    seen: list[bytes] = []
    for turn in range(1, 12):
        browser.credit(1, credit, len(seen))
        seen += browser.bodies()
        if turn == 8:
            assert seen == [b"1", b"3", b"5", b"2", b"0", b"4", b"delayed"]
            peer.sent(amqp.message(b"new", Header(priority=1)), 0)
            peer.sent(amqp.message(b"first", Header(priority=7)), 0)
            router.advance(61)
    assert seen[7:] == [b"first", b"new"]
    assert queue.spooled_count == 9


def test_browser_when_priorities_are_switched(
    router: SpooledWorld, join: Any, amqp: ModuleType
) -> None:
    """It goes on in the other order with what it has not seen, and sees nothing twice."""
    queue = router.queue("q")
    peer = join()
    peer.sender("queue://q", 0)
    browser = join("browser")
    browser.receiver("queue://q", 1, 100, distribution_mode="copy")
    seen = []
    for respected in (False, True, False, True):
        settings = queue.settings.copy()
        settings.respect_msg_priority_enabled = respected
        queue.take_settings(settings)
        router.settle()
        for number in (1, 9):
            peer.sent(amqp.message(b"%d" % number, Header(priority=number)), 0)
        browser.credit(1, 100, len(seen))
        seen += browser.bodies()
    assert len(seen) == 8


@pytest.mark.parametrize("respected", [True, False])
def test_browser_of_what_has_expired(
    router: SpooledWorld, join: Any, amqp: ModuleType, respected: bool
) -> None:
    """What has expired, and was not removed yet, is not shown where life times are respected."""
    router.queue("q", respect_ttl_enabled=respected)
    peer = join()
    peer.sender("queue://q")
    peer.sent(amqp.message(b"short", Header(ttl=1_000)))
    peer.sent(amqp.message(b"long"))
    router.router.context.now_ns += 2_000_000_000
    peer.receiver("queue://q", distribution_mode="copy")
    assert peer.bodies() == ([b"long"] if respected else [b"short", b"long"])
