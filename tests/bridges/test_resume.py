"""A bridge that moves from one connection to another (LINK-20)."""

import random
from typing import Any

import pytest

from vpnrouter.bridges.half_events import HalfCallbacks, HalfEvent
from vpnrouter.bridges.link import LinkFactory, dial
from vpnrouter.bridges.own_half import UNSURE, OwnHalf
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import EventLog
from vpnrouter.events.table import SUBSCRIPTION_REFUSED
from vpnrouter.topics.grammar import SMF


class Mover(HalfCallbacks):
    """Reads the new connection when the old one is over, as the task of a bridge does."""

    def __init__(self, old: OwnHalf) -> None:
        self.old = old
        self.told: list[str] = []
        self.moved = False

    def on_half_event(self, half: OwnHalf, event: HalfEvent, reason: str) -> None:
        self.told.append(event.value)

    def look(self, half: OwnHalf) -> None:
        """Go over when the old half has ended."""
        if half.welcomed and self.old.over and not self.moved:
            self.moved = True
            half.want(half.terms.filters, {})
            if half.link.paused:
                half.link.resume()


def move(world: Any, old: Any, *, resume: bool = True) -> tuple[Any, OwnHalf, Mover]:
    """A second connection for the bridge of `old`, whose HELLO asks to go on where that one is."""
    mover = Mover(old.half)
    local = old.dialed.vpn
    half = dial(
        world.books["core"],
        local,
        "198.51.100.1:55555",
        old.half.terms,
        mover,
        old.half.record,
        tls=False,
        moves_from=old.half if resume else None,
    )
    accepted = LinkFactory(world.books["edge"], tls=False).connection("192.0.2.7")
    link = type(old)(half, accepted, mover)
    return link, half, mover


def bridged(world: Any, filters: tuple[str, ...] = (">",)) -> Any:
    """A link from blue on edge into yellow on core, a publisher and a subscriber."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", filters)
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    return link, world.client(remote, "p"), subscriber


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "zstd"])
@pytest.mark.parametrize("seed", range(40))
def test_nothing_lost_nothing_twice(world: Any, seed: int, compress: bool) -> None:
    """However the bytes of both connections fall, every message comes once and in order."""
    draw = random.Random(seed)
    old, publisher, subscriber = bridged(world)
    old.half.terms.compress = compress
    # From here on the test itself says which bytes move.
    world.links.clear()
    new, half, mover = move(world, old)
    waiting = [old, new]
    for link in waiting:
        link.wire.piece = draw.choice([0, 1, 5])
    for number in range(300):
        publisher.publish("t", b"%d" % number)
        for _ in range(draw.randrange(3)):
            draw.choice(waiting).wire.pump()
            mover.look(half)
    for _ in range(50):
        for link in waiting:
            link.wire.pump()
        mover.look(half)
    assert half.resumed
    assert old.half.over
    assert old.events.told[-1] == ("lost", "409 Client Name Taken Over")
    assert subscriber.payloads() == [b"%d" % number for number in range(300)]
    assert len(world.books["edge"].serving) == 1


def test_the_new_connection_waits_for_the_old_one(world: Any) -> None:
    """What the new one brings is not read before CLOSE came over the old one, behind its last message."""
    old, publisher, subscriber = bridged(world)
    world.links.clear()
    publisher.publish("t", b"old")
    new, half, mover = move(world, old)
    new.wire.pump()
    new.wire.pump()
    assert half.resumed
    assert new.dialed.paused
    publisher.publish("t", b"new")
    for _ in range(3):
        new.wire.pump()
        mover.look(half)
    assert subscriber.payloads() == []
    old.wire.pump()
    assert subscriber.payloads() == [b"old"]
    mover.look(half)
    assert subscriber.payloads() == [b"new"]
    assert not new.dialed.paused


def test_what_was_asked_for_on_the_way(world: Any) -> None:
    """A SUBSCRIBE or UNSUBSCRIBE that the old connection did not bring over is said again on the new one."""
    old, publisher, subscriber = bridged(world, ("a", "b"))
    world.links.clear()
    old.half.want([(0, "b"), (0, "c")], {})
    new, half, mover = move(world, old)
    new.wire.pump()
    new.wire.pump()
    assert half.wanted == {"a": UNSURE, "b": 0, "c": UNSURE}
    half.terms.filters = [(0, "b"), (0, "c")]
    for _ in range(3):
        old.wire.pump()
        mover.look(half)
        new.wire.pump()
    for topic in "abc":
        publisher.publish(topic, topic.encode())
    new.wire.pump()
    assert subscriber.payloads() == [b"b", b"c"]
    assert world.books["edge"].router.vpns["blue"].subscription_count == 2


def test_a_takeover_without_resume(world: Any) -> None:
    """Without the wish to go on, the older connection's subscriptions go, and the new one begins anew."""
    old, publisher, subscriber = bridged(world)
    world.links.clear()
    new, half, mover = move(world, old, resume=False)
    for _ in range(3):
        new.wire.pump()
    assert mover.told == ["welcomed"]
    assert not half.resumed
    assert not new.dialed.paused
    assert world.books["edge"].router.vpns["blue"].subscription_count == 0
    publisher.publish("t", b"nobody wants it")
    old.wire.pump()
    mover.look(half)
    for _ in range(3):
        new.wire.pump()
    publisher.publish("t", b"again")
    new.wire.pump()
    assert subscriber.payloads() == [b"again"]


def test_nothing_to_go_on_with(world: Any) -> None:
    """Who asks to go on where nothing is any more is let in and told so."""
    old, publisher, subscriber = bridged(world)
    old.accepted.goodbye(0x98, "503 Disconnected By Administrator")
    world.settle()
    world.links.clear()
    new, half, mover = move(world, old)
    for _ in range(4):
        new.wire.pump()
        mover.look(half)
    assert not half.resumed
    assert half.welcomed
    publisher.publish("t", b"x")
    new.wire.pump()
    assert subscriber.payloads() == [b"x"]


@pytest.mark.parametrize("changed", ["levels", "count", "acl"])
def test_what_is_not_allowed_any_more_is_dropped(world: Any, changed: str) -> None:
    """Bounds that were lowered meanwhile, and rules, hold for what is inherited; the rest goes on, and an event
    tells.
    """
    old, _, _ = bridged(world, ("a", "b/c/d"))
    world.links.clear()
    blue = world.books["edge"].router.vpns["blue"]
    events = blue.context.events = EventLog("edge", lambda: 1)
    if changed == "levels":
        blue.take_bounds(VpnLimits(max_topic_levels=2))
    elif changed == "count":
        blue.take_bounds(VpnLimits(max_subscription_count=1))
    else:
        blue.acl_profiles["default"] = AclProfile(
            "default", subscribe=TopicRule(True, [("b/>", SMF)])
        )
    new, half, _ = move(world, old)
    for _ in range(4):
        new.wire.pump()
        old.wire.pump()
    assert half.resumed
    assert list(new.accepted.client.subscriptions) == ["a"]
    assert blue.subscription_count == 1
    assert list(new.accepted.peer_half.attracted.asked) == ["a"]
    (event,) = (e for e in events.newest(9) if e.kind is SUBSCRIPTION_REFUSED)
    assert "subscription b/c/d dropped: 40" in event.text


def test_both_records_balance_after_a_move(world: Any) -> None:
    """The peer's record goes on over both connections, and every message is accounted for in it."""
    old, publisher, _ = bridged(world)
    world.links.clear()
    publisher.publish("t", b"1")
    new, half, mover = move(world, old)
    for _ in range(4):
        new.wire.pump()
        old.wire.pump()
        mover.look(half)
    publisher.publish("t", b"2")
    new.wire.pump()
    new.accepted.tally()
    new.dialed.tally()
    (record,) = world.books["edge"].records.values()
    assert record.counters.data_tx_msg_count == 2
    assert record.counters.tx_imbalance(0) == 0
    assert len(record.sending) == 1
    assert half.record.counters.data_rx_msg_count == 2
    assert half.record.counters.rx_imbalance(0) == 0
