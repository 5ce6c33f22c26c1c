"""What frames of AMQP cost: the work that is counted for them, and what is done in slices."""

from __future__ import annotations

import random
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.amqp.serials import SERIAL, SerialOrder
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Flow,
    Modified,
    Open,
    Received,
    Released,
    SaslInit,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from vpnrouter.wire.amqp.types import Described, Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

SECOND = 1
WIDE = 0x7FFF_FFFE


@pytest.fixture
def join(router: SpooledWorld, amqp: ModuleType) -> Callable[..., Peer]:
    """Makes clients that are logged in and have a session."""

    def make(container: str = "me", **more: Any) -> Peer:
        peer: Peer = amqp.Peer(router)
        peer.join(container, **more)
        return peer

    return make


def work_of(peer: Peer, *packets: Any) -> int:
    """The work that is counted for frames that come together."""
    peer.say(*packets)
    return int(peer.connection.context.work)


def slices(router: SpooledWorld) -> int:
    """Run all jobs; how many slices that took."""
    jobs = router.router.context.jobs
    count = 0
    while len(jobs):
        jobs.step()
        assert router.router.context.work < limits.TURN_WORK + 200
        count += 1
    return count


MANY: dict[object, object] = {Symbol(f"k{number}"): [] for number in range(500)}

COSTS: list[tuple[str, Any, int, int]] = [
    ("a flow", Flow(0, 5_000, 0, 5_000), 0, 20),
    ("a flow with properties", Flow(0, 5_000, 0, 5_000, properties=MANY), 250, 400),
    ("nothing known", Disposition(False, 7, WIDE, True), 0, 20),
    ("nothing to settle", Disposition(True, 7, WIDE, True, Accepted()), 0, 20),
    ("nothing to look at", Disposition(True, 7, WIDE, False, Received(0, 0)), 0, 20),
    ("a link", Attach("l", 7, True, source=Source("a"), target=Target("b")), 40, 90),
    (
        "a long selector",
        Attach("l", 7, True, source=Source("a", filter={Symbol("s"): Described(1, "x" * 8_000)})),
        4_000,
        4_200,
    ),
]
"""A frame, and between what its work is counted."""


@pytest.mark.parametrize(("name", "packet", "least", "most"), COSTS)
def test_what_a_frame_costs(join: Any, name: str, packet: Any, least: int, most: int) -> None:
    """By its values and by what it is about, not by what it names."""
    assert least <= work_of(join(), packet) <= most, name


def test_ids_that_nobody_has_cost_nothing(router: SpooledWorld, join: Any, amqp: Any) -> None:
    """With thousands of deliveries over many links that are not settled, a disposition of others is cheap."""
    peer = join()
    for handle in range(4):
        peer.sender("topic://nobody", handle, rcv_settle_mode=SECOND)
    for number in range(2_000):
        peer.send(amqp.message(b""), number % 4)
    peer.answers()
    assert work_of(peer, Disposition(False, 1 << 20, (1 << 20) + WIDE, True)) < 20
    assert len(peer.connection.sessions[0].incoming) == 2_000
    peer.say(Disposition(False, 0, WIDE, True))
    assert slices(router) >= 3
    assert not peer.connection.sessions[0].incoming
    assert not any(link.unsettled.outcomes for link in peer.connection.sessions[0].links.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("state", "settled", "left"),
    [
        (Accepted(), True, 0),
        (Modified(True, True), True, 0),
        (Released(), True, 2_000),
        (Accepted(), False, 0),
        (Received(0, 0), False, 2_000),
    ],
)
def test_outcomes_of_thousands(
    router: SpooledWorld, join: Any, amqp: Any, state: Any, settled: bool, left: int
) -> None:
    """Half of all ids in one disposition take many turns, and what the client sent behind it waits for them."""
    queue = router.queue("q")
    peer, source = join(), join("source")
    source.sender("queue://q")
    for _ in range(2_000):
        source.send(amqp.message(b""))
    source.answers()
    peer.receiver("queue://q", credit=2_000)
    assert len(peer.messages()) == 2_000
    peer.say(Disposition(True, 0, WIDE, settled, state), Flow(0, 5_000, 0, 5_000, echo=True))
    assert not [one for one in peer.connection.outbox.chunks if b"\x00\x53\x13" in one]
    assert slices(router) >= 3
    found = peer.answers()
    assert sum(isinstance(one, Flow) for one in found) == 1
    told = [one for one in found if isinstance(one, Disposition)]
    assert told == ([] if settled else [Disposition(False, 0, WIDE, True, state)])
    assert queue.spooled_count == left
    # A second word on them changes nothing, and costs nothing, unless they are still there.
    if not left:
        assert work_of(peer, Disposition(True, 0, WIDE, True, Accepted())) < 20


def test_links_are_looked_at_in_slices(router: SpooledWorld, join: Any) -> None:
    """A flow of a session with thousands of links is no turn of its own; those that may send do so."""
    mqtt = router.join("m")
    peer = join()
    peer.say(
        *(
            Attach(f"l{handle}", handle, True, SECOND, source=Source(f"topic://t/{handle}"))
            for handle in range(2_500)
        )
    )
    slices(router)
    peer.answers()
    for handle in (0, 1_200, 2_499):
        mqtt.pub(f"t/{handle}", b"x")
    peer.say(*(Flow(None, 0, 0, 5_000, handle, 0, 10) for handle in range(2_500)))
    slices(router)
    assert not [one for one in peer.answers() if isinstance(one, Transfer)]
    assert work_of(peer, Flow(0, 5_000, 0, 5_000)) < limits.TURN_WORK + 20
    assert slices(router) >= 1
    sent = [one.handle for one in peer.answers() if isinstance(one, Transfer)]
    assert sent == [0, 1_200, 2_499]


def test_what_waits_for_credit_is_sent_in_slices(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """Direct messages that have waited leave in order, some of them each turn."""
    peer, source = join(), join("source")
    peer.begin(1, 1 << 30)
    peer.say(
        Attach("l", 0, True, SECOND, source=Source("topic://w"), target=Target("x")), channel=1
    )
    peer.answers()
    source.sender("topic://w")
    for number in range(1_500):
        source.send(amqp.message(b"%d" % number), settled=True)
    source.answers()
    peer.say(Flow(0, 1 << 30, 0, 5_000, 0, 0, 5_000), channel=1)
    assert slices(router) >= 3
    assert peer.bodies() == [b"%d" % number for number in range(1_500)]


def test_a_drain_waits_for_what_is_sent_in_slices(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """A client that wants its credit used up is told so when all that waited has left."""
    peer, source = join(), join("source")
    peer.begin(1, 1 << 30)
    peer.say(
        Attach("l", 0, True, SECOND, source=Source("topic://w"), target=Target("x")), channel=1
    )
    peer.answers()
    source.sender("topic://w")
    for number in range(1_000):
        source.send(amqp.message(b"%d" % number), settled=True)
    source.answers()
    peer.say(Flow(0, 1 << 30, 0, 5_000, 0, 0, 5_000, drain=True), channel=1)
    assert slices(router) >= 2
    found = peer.answers()
    assert [type(one) for one in found] == [Transfer] * 1_000 + [Flow]
    assert (found[-1].delivery_count, found[-1].link_credit) == (5_000, 0)


def test_browsing_with_a_selector_is_done_in_slices(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """All messages are looked at, those that match are sent, and a drain is answered behind them."""
    router.queue("q")
    peer, source = join(), join("source")
    source.sender("queue://q")
    for number in range(600):
        source.send(amqp.message(b"%d" % number, application={"n": number % 300}))
    source.answers()
    wish: dict[object, object] = {Symbol("jms-selector"): "n = 299"}
    peer.receiver("queue://q", 1, 0, distribution_mode="copy", filter=wish)
    peer.say(Flow(0, 5_000, 0, 5_000, 1, 0, 100, drain=True))
    assert slices(router) >= 2
    found = peer.answers()
    assert [type(one) for one in found] == [Transfer] * 2 + [Flow]


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({Symbol("jms-selector"): "a = 1", Symbol("x"): Described(0x0000_468C_0000_0004, "b = 1")},
         "one selector"),
        ({Symbol(f"f{number}"): "x" for number in range(17)}, "at most 16 filters"),
    ],
)  # fmt: skip
def test_filters_are_few(join: Any, filters: Any, why: str) -> None:
    """A link with more is refused, and says why; the session goes on."""
    peer = join()
    found = peer.receiver("topic://a", filter=filters)
    (detach,) = [one for one in found if isinstance(one, Detach)]
    assert why in (detach.error.description or "")
    assert not peer.closed


LARGE: list[object] = [[] for _ in range(limits.AMQP_LOGIN_VALUES)]


@pytest.mark.parametrize("first", ["sasl", "open"])
def test_few_values_before_the_login(router: SpooledWorld, amqp: ModuleType, first: str) -> None:
    """A stranger's frame of many values is refused before they are read."""
    peer = amqp.Peer(router)
    properties: dict[object, object] = {Symbol("p"): LARGE}
    if first == "sasl":
        packet: Any = SaslInit("PLAIN", b"\0a\0b")
        raw = frames.encode(packet, kind=frames.SASL)
        # One field more than there are would be another error.
        raw = frames.encode(Described(0x41, [Symbol("PLAIN"), LARGE, "host"]), kind=frames.SASL)
        peer.raw(SASL_HEADER + raw)
        assert peer.answers()[-1] == SaslOutcome(1)
    else:
        peer.raw(AMQP_HEADER + frames.encode(Open("c", properties=properties)))
        (close,) = [one for one in peer.answers() if isinstance(one, Close)]
        assert close.error.condition == "amqp:decode-error"
    assert peer.closed
    assert peer.connection.context.work < 100


def test_values_of_a_client_are_bounded(join: Any) -> None:
    """A frame with more of them ends the connection with an error that says so."""
    peer = join()
    many: list[object] = [None] * limits.AMQP_VALUES
    peer.say(Flow(0, 1, 0, 1, properties={Symbol("p"): many}))
    (close,) = [one for one in peer.answers() if isinstance(one, Close)]
    assert "more than 2,048 values" in close.error.description


def test_a_temporary_queue_leaves_other_routes(router: SpooledWorld, join: Any) -> None:
    """What comes and goes with it is the route to it alone."""
    peer = join()
    blue = router.router.vpns["blue"]
    cache = blue.cache
    router.join("m").pub("a/b", b"x")
    kept = cache.get(b"a/b")
    assert kept is not None
    (answer, *_) = peer.receiver(None, dynamic=True)
    name = answer.source.address.removeprefix("queue://")
    blue.route(b"$queue/" + name.encode())
    peer.say(Detach(1, True))
    peer.answers()
    assert cache.get(b"a/b") is kept
    assert cache.get(b"$queue/" + name.encode()) is None


@pytest.mark.parametrize("seed", range(20))
def test_order_of_serials(seed: int) -> None:
    """Ranges of ids are what a plain look at all of them finds, also where the count begins anew."""
    draws = random.Random(seed)
    order = SerialOrder()
    alive: dict[int, object] = {}
    following = draws.choice((0, SERIAL - 300, 1 << 31))
    for _ in range(600):
        kind = draws.randrange(5)
        if kind < 3:
            alive[following & SERIAL] = None
            order.add(following & SERIAL, alive)
            following += draws.choice((1, 1, 1, 7))
        elif kind == 3 and alive:
            del alive[draws.choice(list(alive))]
        else:
            first = following - draws.randrange(-5, 400)
            count = draws.choice((0, 3, 100, WIDE))
            wanted = [
                serial & SERIAL
                for serial in range(first, min(first + count, following + 1) + 1)
                if serial & SERIAL in alive
            ]
            assert order.within(first & SERIAL, count, alive) == wanted, seed
        assert len(order) <= 2 * len(alive) + 66
