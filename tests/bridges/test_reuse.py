"""One connection, both directions (LINK-39)."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.own_half import OwnHalf
from vpnrouter.bridges.remote_settings import BridgeEnds, RemoteSettings
from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at
from vpnrouter.wire.mqtt.encode import encode as mqtt_encode
from vpnrouter.wire.mqtt.packets import Publish

BYE = (0x00, "Bridge Shutdown")

COMPRESSED = pytest.mark.parametrize("compress", [False, True], ids=["plain", "zstd"])


def last_from(link: Any, direction: int) -> Any:
    """The last frame that the dialer (0) or the acceptor (1) sent, packed ones left out."""
    data = b"".join(link.wire.carried[direction])
    found, pos = None, 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found = decode(data, pos, length)
        pos += length
    return found


@COMPRESSED
def test_both_directions(pair: Any, compress: bool) -> None:
    """The acceptor's bridge logs in over the dialer's connection; messages cross both ways, no echo."""
    both = pair(compress=compress)
    assert both.told.names == ["welcomed", "subscribed"]
    assert both.both_ways() == (3, 3)
    assert len(both.world.links) == 1
    assert both.link.accepted.features == frames.REUSE | frames.RETAINED | frames.AMQP | (
        frames.ZSTD if compress else 0
    )
    both.balance()
    for record in (both.link.half.record, both.back.record):
        assert record.counters.data_rx_msg_count == 3
        assert record.counters.delivered_rx_msg_count == 3
    for book in both.world.books.values():
        (record,) = book.records.values()
        assert record.counters.data_tx_msg_count == 3
    for end in (both.link.dialed, both.link.accepted):
        assert (end.client.offered, end.client.discarded.counts) == (3, {})


def test_traces_tell_both_directions(world: Any, pair: Any) -> None:
    """Each crossing has one event at either end, with the bridge and the peer of its direction."""
    for name in ("core", "edge"):
        world.router(name, sample=1.0)
    both = pair()
    for name in ("core", "edge"):
        world.traces(name)
    for client, source, target, bridge, vpn, peer in (
        (both.here, "core", "edge", "back", "blue", "yellow"),
        (both.there, "edge", "core", "b", "yellow", "blue"),
    ):
        client.publish("a", b"x")
        (sent,) = [e for e in world.traces(source) if e.event == "bridge_send"]
        (came,) = [e for e in world.traces(target) if e.event == "bridge_receive"]
        assert sent.trace == came.trace
        assert (sent.context.bridge, sent.context.vpn, sent.context.peer_vpn) == (
            bridge,
            peer,
            vpn,
        )
        assert (came.context.bridge, came.context.vpn, came.context.peer_vpn) == (
            bridge,
            vpn,
            peer,
        )


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "unknown name": (
        {"locked": True, "beyond": {"client_username": "x", "password": "right"}},
        0x86,
        "403 Forbidden",
    ),
    "no bridges allowed": (
        {"yellow": {"profile": ClientProfile("plain")}},
        0x87,
        "403 Bridge Connections Not Allowed",
    ),
    "another router": (
        {"beyond": {"remote_router": "other"}},
        0xC3,
        "404 Router Name Mismatch: this is core",
    ),
}


@pytest.mark.parametrize(("chosen", "code", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_refused_second_half(pair: Any, chosen: Any, code: int, reason: str) -> None:
    """REFUSE of the second half leaves the first one as it was, and another try may succeed."""
    both = pair(**chosen)
    assert both.told.told == [("refused", reason), ("lost", reason)]
    answer = last_from(both.link, 0)
    assert isinstance(answer, frames.Refuse)
    assert (answer.code, answer.reason) == (code, reason)
    assert both.link.up
    assert both.back.over
    assert both.both_ways() == (3, 0)
    both.balance()
    assert not both.link.accepted.can_attach(), "it dials, in the meantime"
    both.world.wait(limits.LINK_SHUNNED_S, step_s=1)
    assert both.link.accepted.can_attach()
    better = {"client_username": "edge", "password": "right"} if "locked" in chosen else {}
    again, told = both.world.bridge(both.blue, both.link.accepted, "yellow", **better)
    if code == 0x87:
        assert told.names == ["refused", "lost"]
    else:
        assert told.names == ["welcomed", "subscribed"]
        assert not again.over
        assert both.both_ways() == (3, 3)


def test_a_proof_that_never_comes(pair: Any, world: Any) -> None:
    """A second half that does not answer its challenge is refused in time, and the first one goes on."""
    both = pair(locked=True)
    both.told.told.clear()
    asked = RemoteSettings(
        "late",
        "yellow",
        "",
        filters=[(0, ">")],
        scheme=frames.SCRAM,
        client_username="edge",
        password="right",
    )
    OwnHalf(both.link.accepted, asked, type(both.told)(), world.record(both.blue, "late"))
    while both.link.wire.pump():
        pass
    assert isinstance(last_from(both.link, 0), frames.Challenge)
    for router in world.routers.values():
        router.derivations.clear()
    refused = world.routers["edge"].logins_refused, world.routers["core"].logins_refused
    world.wait(limits.CONNECT_TIMEOUT_S - 1, step_s=1)
    assert (world.routers["edge"].logins_refused, world.routers["core"].logins_refused) == refused
    world.wait(2, step_s=1)
    after = world.routers["edge"].logins_refused, world.routers["core"].logins_refused
    assert sum(after) == sum(refused) + 1
    assert both.link.up


@pytest.mark.parametrize("good", [True, False])
def test_a_proof_that_takes_its_time(pair: Any, world: Any, good: bool) -> None:
    """Messages of the first half go on while both sides compute what the second one's login needs."""
    both = pair(locked=True)
    jobs = world.routers["core"].derivations, world.routers["edge"].derivations
    events = type(both.told)()
    terms = {"client_username": "edge", "password": "right" if good else "wrong"}
    both.told.told.clear()
    both.took()
    asked = RemoteSettings("late", "yellow", "", filters=[(0, ">")], scheme=frames.SCRAM, **terms)
    OwnHalf(both.link.accepted, asked, events, world.record(both.blue, "late"))
    for number in range(50):
        both.there.connection.feed(mqtt_encode(Publish(b"t", b"%d" % number), 5))
        both.link.wire.pump()
        if number > 40:
            for waiting in jobs:
                while waiting:
                    job = waiting.pop()
                    job.finish(job.work())
    world.settle()
    assert both.here.payloads() == [b"%d" % number for number in range(50)]
    assert events.names == (["welcomed", "subscribed"] if good else ["refused", "lost"])
    both.balance()


def test_the_dialer_detaches(pair: Any) -> None:
    """When the half that dialled ends, the other one goes on over the same connection."""
    both = pair()
    both.link.half.leave(*BYE)
    both.world.settle()
    assert isinstance(last_from(both.link, 0), frames.Detach)
    assert both.link.events.told[-1] == ("lost", "Bridge Shutdown")
    assert both.link.up
    assert both.both_ways() == (0, 3)
    assert both.blue.subscription_count == 1
    assert world_serves(both) == (0, 1)
    both.balance()


def world_serves(both: Any) -> tuple[int, int]:
    """How many bridges are logged in at edge, and at core."""
    books = both.world.books
    return len(books["edge"].serving), len(books["core"].serving)


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_half_closes(pair: Any, first: int) -> None:
    """Whichever half ends first, with the second one the connection is gone, and nothing is left."""
    both = pair()
    halves = [both.link.half, both.back]
    halves[first].leave(*BYE)
    both.world.settle()
    assert both.link.up
    halves[1 - first].leave(*BYE)
    both.world.settle()
    assert both.link.dialed.closing
    assert both.link.accepted.closing
    assert both.both_ways() == (0, 0)
    assert world_serves(both) == (0, 0)
    # The test's own subscribers are left.
    assert (both.blue.subscription_count, both.yellow.subscription_count) == (1, 1)
    both.balance()


def test_both_detach_at_once(pair: Any) -> None:
    """When the DETACH of both sides cross on the way, the connection is closed all the same."""
    both = pair()
    both.link.wire.cut = True
    both.link.half.leave(*BYE)
    both.back.leave(*BYE)
    both.link.wire.cut = False
    both.world.settle()
    assert both.link.dialed.closing
    assert both.link.accepted.closing
    assert world_serves(both) == (0, 0)
    both.balance()


@COMPRESSED
@pytest.mark.parametrize("who", [0, 1])
def test_attach_after_detach(pair: Any, compress: bool, who: int) -> None:
    """A half that left may log in again over the connection, many times."""
    both = pair(compress=compress)
    into, end, out_of = (
        (both.yellow, both.link.dialed, "blue")
        if who
        else (both.blue, both.link.accepted, "yellow")
    )
    half = both.link.half if who else both.back
    for _ in range(3):
        half.leave(*BYE)
        both.world.settle()
        assert both.both_ways() == ((0, 3) if who else (3, 0))
        both.balance()
        half, told = both.world.bridge(into, end, out_of, bridge="b" if who else "back")
        assert told.names == ["welcomed", "subscribed"]
        assert both.both_ways() == (3, 3)
        both.balance()
    assert len(both.world.links) == 1


def test_a_message_on_the_way_to_a_half_that_left(pair: Any) -> None:
    """It is discarded where it arrives, and the connection stays."""
    both = pair()
    both.link.wire.cut = True
    both.there.publish("a", b"on the way")
    both.took()
    both.link.half.leave(*BYE)
    both.link.wire.cut = False
    both.world.settle()
    assert both.here.take() == []
    assert both.both_ways() == (0, 3)
    both.balance()


# -- reuse faults ----------------------------------------------------------------------------------


def closed_with(end: Any) -> tuple[int, str]:
    """Code and reason of the CLOSE that an end said last."""
    data = end.outbox.take(1 << 30)
    found, pos = None, 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found = decode(data, pos, length)
        pos += length
    assert isinstance(found, frames.Close)
    return found.code, found.reason


def dialed(world: Any) -> Any:
    """A connection dialled by yellow on core to blue on edge."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    world.vpn("green", "core")
    return world.link(local, "edge", "blue")


OTHERS = {
    "another VPN there": {"vpn": "green"},
    "another VPN here": {"local_vpn": "green"},
    "another router": {"router": "third"},
}


@pytest.mark.parametrize("differs", OTHERS.values(), ids=OTHERS)
def test_a_hello_for_other_vpns(world: Any, differs: dict[str, str]) -> None:
    """The second half is between the VPNs of the first one, or the connection is closed with 0x82."""
    link = dialed(world)
    link.wire.cut = True
    asked = {"router": "edge", "local_vpn": "blue", "vpn": "yellow"} | differs
    link.dialed.feed(
        encode.hello(
            frames.Hello(asked["router"], "back", asked["local_vpn"], asked["vpn"], features=1)
        )
    )
    assert closed_with(link.dialed) == (0x82, "LINK-39: a HELLO for other VPNs")
    assert link.events.told[-1][0] == "lost"


def test_a_half_that_is_taken(pair: Any) -> None:
    """A second HELLO for the same half is out of turn, from either side."""
    both = pair()
    both.link.wire.cut = True
    for end, hello in (
        (both.link.dialed, frames.Hello("edge", "third", "blue", "yellow", features=1)),
        (both.link.accepted, frames.Hello("core", "third", "yellow", "blue", features=1)),
    ):
        end.feed(encode.hello(hello))
        assert closed_with(end)[0] == 0x82
    assert both.told.told[-1][0] == "lost"
    assert both.link.events.told[-1][0] == "lost"


def test_without_the_feature(world: Any) -> None:
    """Where reuse was not agreed on, HELLO in the other direction is closed with 0x82."""
    yellow = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue", settle=False)
    hello = decode(data := link.dialed.outbox.take(1 << 20), 0, len(data))
    hello.features = 0
    link.accepted.feed(encode.hello(hello))
    world.settle()
    assert link.up
    assert link.accepted.features == 0
    assert not link.accepted.can_attach()
    link.wire.cut = True
    link.dialed.feed(encode.hello(frames.Hello("edge", "back", "blue", "yellow")))
    assert closed_with(link.dialed)[0] == 0x82


def test_a_stranger_is_not_reused(world: Any) -> None:
    """A connection whose peer has not said HELLO, and one that we dialled, serve no other bridge."""
    link = dialed(world)
    assert not link.dialed.can_attach()
    assert link.accepted.can_attach()
    link.accepted.goodbye(0x98, "503 Disconnected By Administrator")
    assert not link.accepted.can_attach()


BLUE = BridgeEnds("edge", "blue", "core", "yellow", tls=False)

FITS: dict[str, tuple[BridgeEnds, dict[str, Any], bool]] = {
    "all five": (BLUE, {}, True),
    "peer names us": (BLUE, {"remote_router": "edge"}, True),
    "1, peer names another": (BridgeEnds("west", "blue", "core", "yellow", tls=False), {}, False),
    "2, not our remote's name": (
        BridgeEnds("edge", "blue", "west", "yellow", tls=False),
        {},
        False,
    ),
    "2, our remote's name unknown": (
        BridgeEnds("edge", "blue", "", "yellow", tls=False),
        {},
        False,
    ),
    "3, peer's bridge is for another VPN": (
        BridgeEnds("edge", "red", "core", "yellow", tls=False),
        {},
        False,
    ),
    "4, peer's bridge is in another VPN": (
        BridgeEnds("edge", "blue", "core", "green", tls=False),
        {},
        False,
    ),
    "5, TLS on one side": (BridgeEnds("edge", "blue", "core", "yellow", tls=True), {}, False),
}


@pytest.mark.parametrize(("local", "terms", "fits"), FITS.values(), ids=FITS)
def test_each_of_the_five_tests(world: Any, local: BridgeEnds, terms: Any, fits: bool) -> None:
    """One difference between what is configured and what came in, and the connection is not used."""
    yellow = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(yellow, "edge", "blue", terms=terms)
    found = world.book("edge").reusable_links(local)
    assert found == ([link.accepted] if fits else [])
