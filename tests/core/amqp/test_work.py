"""What frames of AMQP cost: the work that is counted for them, and what is done in slices."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter import limits
from vpnrouter.core.amqp.link import LINK_COST, Link
from vpnrouter.core.amqp.serials import SERIAL, SerialOrder
from vpnrouter.server.net.loop import TaskHost
from vpnrouter.server.run import say_goodbye
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.frames import AMQP_HEADER, SASL_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
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
    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

SECOND = 1
WIDE = 0x7FFF_FFFE


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


def waiting(join: Any, amqp: Any, count: int) -> Any:
    """A client with a link on channel 1 for which so many Direct messages wait."""
    peer, source = join(), join("source")
    peer.begin(1, 1 << 30)
    peer.say(
        Attach("l", 0, True, SECOND, source=Source("topic://w"), target=Target("x")), channel=1
    )
    peer.answers()
    source.sender("topic://w")
    for number in range(count):
        source.send(amqp.message(b"%d" % number), settled=True)
    source.answers()
    return peer


def test_what_waits_for_credit_is_sent_in_slices(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """Direct messages that have waited leave in order, some of them each turn."""
    peer = waiting(join, amqp, 1_500)
    peer.say(Flow(0, 1 << 30, 0, 5_000, 0, 0, 5_000), channel=1)
    assert slices(router) >= 3
    assert peer.bodies() == [b"%d" % number for number in range(1_500)]


def test_a_drain_waits_for_what_is_sent_in_slices(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """A client that wants its credit used up is told so when all that waited has left."""
    peer = waiting(join, amqp, 1_000)
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


@pytest.mark.parametrize("how", ["add", "catch_up"])
@pytest.mark.parametrize("seed", range(20))
def test_order_of_serials(seed: int, how: str) -> None:
    """Ranges of ids are what a plain look at all of them finds, also where the count begins anew."""
    draws = random.Random(seed)
    order = SerialOrder()
    alive: dict[int, object] = {}
    following = draws.choice((0, SERIAL - 300, 1 << 31))
    for _ in range(600):
        kind = draws.randrange(5)
        if kind < 3:
            alive[following & SERIAL] = None
            if how == "add":
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
            if how == "catch_up":
                order.catch_up(following, alive)
            assert order.within(first & SERIAL, count, alive) == wanted, seed
        assert len(order) <= 2 * len(alive) + 66


# -- the end of many links ----------------------------------------------------------------------------

MANY_LINKS = 1_200
FLOWS = 1_000

KINDS: list[tuple[str, Callable[[int], Any]]] = [
    (
        "direct",
        lambda number: Attach(f"l{number}", number, True, SECOND, source=Source("topic://t")),
    ),
    ("own", lambda number: Attach(f"l{number}", number, True, source=Source("topic://t"))),
    (
        "durable",
        lambda number: Attach(
            f"l{number}",
            number,
            True,
            source=Source("topic://t", durable=2, expiry_policy="never"),
        ),
    ),
    (
        "temporary",
        lambda number: Attach(f"l{number}", number, True, source=Source(None, dynamic=True)),
    ),
    (
        "sending",
        lambda number: Attach(
            f"l{number}",
            number,
            False,
            source=Source("here"),
            target=Target("topic://t"),
            initial_delivery_count=0,
        ),
    ),
    ("refused", lambda number: Attach(f"l{number}", number, True, source=Source("queue://none"))),
]
"""What links are, and the attach of one."""


def attach_many(router: SpooledWorld, peer: Peer, attach: Any, count: int = MANY_LINKS) -> None:
    """Attach links, each with a handle of its own."""
    for first in range(0, count, 100):
        peer.say(*(attach(number) for number in range(first, first + 100)))
        router.router.context.jobs.finish()
    peer.answers()
    assert peer.connection.link_count == count


def leave(peer: Peer, how: str) -> int:
    """End all links of a client; the work of the turn in which it says so, or is gone."""
    context = peer.connection.context
    context.work = 0
    if how == "cut":
        peer.connection.lost("cut")
    else:
        peer.say({"end": End(), "close": Close()}[how])
    return int(context.work)


@pytest.mark.parametrize("how", ["end", "close", "cut"])
@pytest.mark.parametrize(("name", "attach"), KINDS)
def test_many_links_end_in_slices(
    router: SpooledWorld, join: Any, name: str, attach: Any, how: str
) -> None:
    """No turn is longer for them, nothing is left of them, and the end of a session is told when that is so."""
    blue = router.router.vpns["blue"]
    peer = join()
    before = len(blue.endpoints), blue.subscription_count
    attach_many(router, peer, attach)
    if name == "sending":
        peer.send(b"\x00\x53\x75\xa0\x01x", 3)
        assert blue.ingress_flows == 1
        peer.answers()
    assert leave(peer, how) < limits.TURN_WORK + 200
    context = router.router.context
    if how == "end":
        assert not peer.connection.outbox.chunks
    assert slices(router) >= 3, name
    if how == "end":
        assert peer.answers() == [End()]
        peer.begin()
    assert peer.connection.link_count == 0
    kept = (MANY_LINKS, MANY_LINKS) if name == "durable" else (0, 0)
    assert (len(blue.endpoints) - before[0], blue.subscription_count - before[1]) == kept
    assert (blue.egress_flows, blue.ingress_flows) == (0, 0)
    assert not blue.leaving
    assert blue.memory.own == (0 if how != "end" else peer.connection.account.held)  # type: ignore[union-attr]
    assert not any(context.barrier.counts.values())


def unsettled(router: SpooledWorld, join: Any, amqp: Any, count: int, **settings: Any) -> Peer:
    """A client that has been sent so many messages of the queue `q` and has settled none."""
    router.queue("q", **settings)
    source: Peer = join("source")
    source.sender("queue://q")
    for number in range(count):
        source.send(amqp.message(b"%d" % number))
    source.answers()
    peer: Peer = join()
    peer.receiver("queue://q", credit=count)
    assert len(peer.messages()) == count
    return peer


@pytest.mark.parametrize("how", ["end", "close", "cut"])
def test_unsettled_deliveries_come_back_in_slices(
    router: SpooledWorld, join: Any, amqp: Any, how: str
) -> None:
    """Another consumer of an exclusive queue is sent nothing before all are back, and then all in order."""
    peer = unsettled(router, join, amqp, 4_000)
    other = join("other")
    other.receiver("queue://q", credit=4_000)
    assert leave(peer, how) < limits.TURN_WORK + 200
    jobs = router.router.context.jobs
    jobs.step()
    assert len(jobs)
    router.round()
    assert not other.connection.outbox.chunks
    assert slices(router) >= 1
    assert other.bodies() == [b"%d" % number for number in range(4_000)]


def test_a_browser_of_much_ends_in_a_turn(router: SpooledWorld, join: Any, amqp: Any) -> None:
    """What was looked at stays where it is."""
    queue = router.queue("q")
    source, peer = join("source"), join()
    source.sender("queue://q")
    for _ in range(4_000):
        source.send(amqp.message(b""))
    source.answers()
    peer.receiver("queue://q", credit=4_000, distribution_mode="copy")
    for _ in range(100):
        router.advance(0.1)
        peer.drain()
    (link,) = peer.connection.sessions[0].links.values()
    assert len(link.consumer.unacked) == 4_000
    assert leave(peer, "cut") < limits.TURN_WORK
    slices(router)
    assert not link.consumer
    assert queue.spooled_count == 4_000


def durable(number: int) -> Any:
    """The attach of a link with a durable subscription."""
    return dict(KINDS)["durable"](number)


ALONE = {"desired_capabilities": [Symbol("sole-connection-for-container")]}


def hurry(peer: Peer, container: str, *packets: Any, **more: Any) -> None:
    """Log in and send frames of a session, all before anything is done in a later turn."""
    peer.raw(SASL_HEADER)
    peer.say(SaslInit(Symbol("ANONYMOUS")), kind=frames.SASL)
    peer.raw(AMQP_HEADER)
    peer.say(Open(container, **more), Begin(None, 0, 5_000, 5_000), *packets)


@pytest.mark.parametrize("how", ["close", "cut"])
def test_the_next_connection_of_a_container_waits(
    router: SpooledWorld, join: Any, amqp: Any, how: str
) -> None:
    """It has the name at once, also one that is alone, and its links when those of the earlier one have gone."""
    first = join("sole", **ALONE)
    attach_many(router, first, durable, FLOWS)
    leave(first, how)
    second = amqp.Peer(router)
    last = FLOWS - 1
    hurry(second, "sole", durable(last), Flow(0, 5_000, 0, 5_000, last, 0, 10), **ALONE)
    assert second.connection.client.client_name == "sole"
    assert second.connection.link_count == 0
    assert slices(router) >= 2
    assert second.connection.link_count == 1
    router.join("m").pub("t", b"x")
    assert [frame.payload for frame in second.got() if isinstance(frame.performative, Transfer)]


def test_deliveries_are_resumed_when_the_earlier_link_has_gone(
    router: SpooledWorld, join: Any, amqp: Any
) -> None:
    """What a client knows to be accepted of thousands that its cut connection had is not delivered again."""
    first = unsettled(router, join, amqp, 2_000)
    (link,) = first.connection.sessions[0].links.values()
    tag = link.consumer.tags.tag(next(iter(link.consumer.unacked)))
    leave(first, "cut")
    second = amqp.Peer(router)
    again = Attach(
        "receiver 1", 1, True, source=Source("queue://q"), target=Target("here"),
        unsettled={tag: Described(0x24, [])},
    )  # fmt: skip
    hurry(second, "me", again, Flow(0, 5_000, 0, 5_000, 1, 0, 5_000))
    assert slices(router) >= 2
    sent = [one for one in second.answers() if isinstance(one, Transfer) and not one.resume]
    assert len(sent) == 1_999
    assert tag not in [one.delivery_tag for one in sent]


def test_a_place_at_a_queue_is_there_at_once(router: SpooledWorld, join: Any, amqp: Any) -> None:
    """A queue for one consumer takes another client's while the earlier link holds what it had; nothing is lost."""
    peer = unsettled(router, join, amqp, 3_000, max_bind_count=1)
    other = join("other")
    leave(peer, "cut")
    assert len(router.router.context.jobs)
    other.say(
        Attach("l", 1, True, source=Source("queue://q"), target=Target("here")),
        Flow(0, 5_000, 0, 5_000, 1, 0, 5_000),
    )
    slices(router)
    assert sum(isinstance(one, Transfer) for one in other.answers()) == 3_000


def test_a_subscription_is_taken_over_at_once(router: SpooledWorld, join: Any) -> None:
    """Another connection of the container has a durable subscription that one which has ended still held."""
    first, second = join("me"), join("me")
    attach_many(router, first, durable, FLOWS)
    leave(first, "cut")
    last = FLOWS - 1
    second.say(durable(last), Flow(0, 5_000, 0, 5_000, last, 0, 10))
    assert len(router.router.context.jobs)
    found = second.answers()
    assert [type(one) for one in found] == [Attach]
    router.join("m").pub("t", b"x")
    assert second.bodies() == [b"x"]


def test_ends_that_come_together(router: SpooledWorld, join: Any) -> None:
    """A connection that is lost while a session ends forgets nothing, of this session or of others."""
    blue = router.router.vpns["blue"]
    peer = join()
    attach_many(router, peer, dict(KINDS)["temporary"], 1_000)
    peer.begin(1)
    peer.say(
        *(
            Attach(f"m{number}", number, True, source=Source(None, dynamic=True))
            for number in range(1_000)
        ),
        channel=1,
    )
    router.router.context.jobs.finish()
    peer.answers()
    leave(peer, "end")
    peer.connection.lost("cut")
    peer.connection.lost("again")
    assert slices(router) >= 2
    assert peer.connection.link_count == 0
    assert not blue.endpoints
    assert not [one for one in peer.answers() if isinstance(one, End)]


def test_nothing_comes_over_links_that_have_ended(router: SpooledWorld, join: Any) -> None:
    """Direct messages that come before a link's turn are lost for it, and told nobody."""
    blue = router.router.vpns["blue"]
    source = router.join("m")
    peer = join()
    attach_many(router, peer, dict(KINDS)["direct"])
    peer.say(*(Flow(0, 5_000, 0, 5_000, number, 0, 10) for number in range(100)))
    slices(router)
    peer.answers()
    leave(peer, "end")
    source.pub("t", b"x")
    assert blue.memory.own == peer.connection.account.held
    slices(router)
    assert peer.answers() == [End()]
    assert peer.connection.outbox.parked == 0


class Faulty(Link):
    """A link that cannot be let go of."""

    def let_go(self, *, closed: bool) -> None:
        """Raise."""
        raise RuntimeError("planted")


@pytest.mark.parametrize("how", ["end", "close", "cut"])
def test_a_link_that_raises_costs_itself(router: SpooledWorld, join: Any, how: str) -> None:
    """The others end as well, it counts no longer, and the fault is counted."""
    blue = router.router.vpns["blue"]
    peer = join()
    attach_many(router, peer, dict(KINDS)["temporary"], 1_000)
    session = peer.connection.sessions[0]
    for number in (2_000, 2_001):
        assert peer.connection.take(LINK_COST)
        session.add(Faulty(session, peer.connection.client, "planted", number))
    leave(peer, how)
    slices(router)
    assert peer.connection.link_count == 0
    assert not blue.endpoints
    assert router.router.context.barrier.counts["connection"] == 4
    assert peer.closed == (how != "end")


def test_a_router_that_stops_finishes_all(router: SpooledWorld, join: Any) -> None:
    """What links hold is given back before the router says goodbye, also those of earlier ends."""
    blue = router.router.vpns["blue"]
    first, second = join("first"), join("second")
    for peer in (first, second):
        attach_many(router, peer, dict(KINDS)["temporary"], 1_000)
    leave(first, "end")
    say_goodbye(router.router, TaskHost(router.router, Any, Any), [])
    assert not blue.endpoints
    assert second.closed
    assert blue.memory.own == 0


@pytest.mark.parametrize("size", [20_000, 1_000_000, 9_000_000])
def test_large_messages_do_not_make_a_commit_long(
    router: SpooledWorld, join: Any, amqp: ModuleType, size: int
) -> None:
    """A commit has LARGE_UNIT_BYTES and one of them; all are accepted in order, but of who has gone meanwhile."""
    queue = router.queue("q")
    each = max(2, 8_000_000 // size)
    peers = [join(f"p{number}") for number in range(4)]
    for peer in peers:
        peer.sender("queue://q")
    for number in range(each):
        for peer in peers:
            peer.send(amqp.message(b"%d" % number + bytes(size)), frame=60_000)
    gone = peers.pop()
    gone.say(Detach(0, True))
    router.settle()
    assert 0 < router.largest <= limits.LARGE_UNIT_BYTES + size + 200_000
    for peer in peers:
        told = [one for one in peer.answers() if isinstance(one, Disposition)]
        assert all(one.state == Accepted() for one in told)
        accepted = [
            number for one in told for number in range(one.first, (one.last or one.first) + 1)
        ]
        assert accepted == list(range(each))
    assert 3 * each <= queue.spooled_count <= 4 * each
