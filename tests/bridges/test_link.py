"""What both ends have in common: heartbeats, dead peers, garbage, order, goodbyes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.bridges.half_events import HalfCallbacks
from vpnrouter.bridges.link import LinkFactory, dial
from vpnrouter.bridges.remote_settings import RemoteSettings
from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at


def spoken(data: bytes) -> list[Any]:
    """The frames in `data`."""
    found, pos = [], 0
    while length := link_frame_at(data, pos, len(data), limits.LINK_FRAME_BYTES):
        found.append(decode(data, pos, length))
        pos += length
    return found


def said(end: Any) -> list[Any]:
    """The frames that wait in an end's outbox."""
    return spoken(end.outbox.take(1 << 30))


def linked(world: Any, **terms: Any) -> Any:
    """A link from blue on edge to yellow on core."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    return world.link(local, "edge", "blue", terms=terms)


def test_an_idle_link_stays_up(world: Any) -> None:
    """Heartbeats keep a link alive on which nothing is published."""
    link = linked(world, heartbeat_ms=1_000)
    world.wait(30)
    assert link.up
    for direction in (0, 1):
        beats = spoken(b"".join(link.wire.carried[direction]))
        answers = [f for f in beats if isinstance(f, frames.Heartbeat) and f.answer]
        assert answers


def test_without_heartbeats_silence_means_nothing(world: Any) -> None:
    """An interval of 0 switches heartbeats off: a cut wire goes unnoticed."""
    link = linked(world, heartbeat_ms=0)
    link.wire.cut = True
    world.wait(600, step_s=10)
    assert link.up


def test_a_busy_link_is_not_asked(world: Any) -> None:
    """Whoever hears something within each interval does not ask."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"heartbeat_ms": 1_000})
    publisher = world.client(remote, "p")
    for _ in range(20):
        publisher.publish("a", b"x")
        world.wait(0.5)
    from_dialer = spoken(b"".join(link.wire.carried[0]))
    assert not [f for f in from_dialer if isinstance(f, frames.Heartbeat) and not f.answer]


def test_whoever_only_listens_gives_signs_of_life(world: Any) -> None:
    """A side that hears all the time and has nothing to say is heard within two intervals all the same."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"heartbeat_ms": 1_000})
    world.wait(0.1)
    # What the other side asks waits behind messages, which are read one by one here.
    link.wire.cut = True
    for _ in range(4):
        link.dialed.feed(encode.direct(encode.direct_body(b"a", b"", b"x")))
        world.wait(0.5)
    assert [f for f in said(link.dialed) if isinstance(f, frames.Heartbeat) and not f.answer]


@pytest.mark.parametrize("phase_s", [0.0, 0.1, 0.5, 0.9])
def test_a_silent_peer_is_dead_after_three_intervals(world: Any, phase_s: float) -> None:
    """Both ends close with 0x8d once nothing was heard for three intervals, not much later."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"heartbeat_ms": 1_000})
    world.wait(5 + phase_s)
    world.client(remote, "p").publish("a", b"the last sign of life")
    link.wire.cut = True
    world.wait(1.9)
    assert link.up
    world.wait(1.3)
    assert link.dialed.client is None
    assert link.accepted.client is None
    assert link.events.told[-1] == ("lost", "408 Heartbeat Timeout")
    for end in (link.dialed, link.accepted):
        last = said(end)[-1]
        assert (last.code, last.reason) == (0x8D, "408 Heartbeat Timeout")
        assert end.closing


def test_a_heartbeat_is_answered_with_its_token(world: Any) -> None:
    """The answer repeats the question's token, behind what waited already (LINK-21)."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue")
    link.wire.cut = True
    world.client(remote, "p").publish("a", b"x")
    link.accepted.feed(encode.heartbeat(frames.Heartbeat(0xFFFF_FFFF_FFFF_FFFF, answer=False)))
    message, beat = said(link.accepted)
    assert message.payload == b"x"
    assert (beat.token, beat.answer) == (0xFFFF_FFFF_FFFF_FFFF, True)


def test_the_handshake_timeout(world: Any) -> None:
    """A stranger who says nothing and an acceptor that answers nothing are both left in time."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", settle=False)
    link.wire.cut = True
    world.wait(limits.CONNECT_TIMEOUT_S - 0.2)
    assert not link.dialed.closing
    assert not link.accepted.closing
    world.wait(0.3)
    (refuse,) = said(link.accepted)
    assert (refuse.code, refuse.reason) == (0xC5, "408 Handshake Timeout")
    assert link.events.told == [("lost", "408 Handshake Timeout")]
    assert link.dialed.closing


STRANGERS = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: edge\r\n\r\n",
    "MQTT": bytes.fromhex("101000044d5154540402003c000474657374"),
    "TLS": bytes.fromhex("16030100c8010000c40303"),
    "SSH": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "zeros": bytes(100),
}


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS.keys())
def test_strangers_get_no_answer(world: Any, data: bytes) -> None:
    """What is not a link is closed without a word and counted (LINK-11)."""
    world.vpn("blue", "edge")
    accepted = LinkFactory(world.book("edge"), tls=False).connection("192.0.2.7")
    accepted.feed(data)
    assert accepted.closing
    assert accepted.outbox.size == 0
    assert world.routers["edge"].protocol_errors == 1


FAULTS = {
    "a length that does not end": (bytes.fromhex("20ffffffffff"), 0x81),
    "a heartbeat of three bytes": (bytes.fromhex("1403000000"), 0x81),
    "a heartbeat of a third kind": (bytes.fromhex("1409020000000000000000"), 0x82),
    "a second HELLO": (encode.hello(frames.Hello("core", "b", "yellow", "blue")), 0x82),
    "a message to the acceptor": (encode.direct(encode.direct_body(b"a", b"", b"x")), 0x82),
    "a frame of the room": (bytes.fromhex("4000"), 0xC0),
    "a mandatory type nobody knows": (bytes.fromhex("7f00"), 0xC0),
    "a frame above the announced size": (bytes.fromhex("20ffffff7f"), 0x95),
    "no filter": (bytes.fromhex("200400000001"), 0x82),
}


@pytest.mark.parametrize(("data", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_close_the_link_alone(world: Any, data: bytes, code: int) -> None:
    """A fault is answered with CLOSE and its code; other links and clients go on."""
    local = world.vpn("yellow", "core")
    remote = world.vpn("blue", "edge")
    bad = world.link(local, "edge", "blue", bridge="bad")
    good = world.link(world.vpn("red", "core"), "edge", "blue", bridge="good")
    subscriber = world.client(world.routers["core"].vpns["red"], "s")
    subscriber.subscribe("#")
    bad.wire.cut = True
    bad.accepted.feed(data)
    (close,) = said(bad.accepted)
    assert isinstance(close, frames.Close)
    assert close.code == code
    assert bad.accepted.closing
    assert world.routers["edge"].protocol_errors == 1
    world.client(remote, "p").publish("a", b"still here")
    assert subscriber.payloads() == [b"still here"]
    assert good.up


def test_optional_frames_are_skipped(world: Any) -> None:
    """A type from 0x80 on that is not known is passed over once the link is up (LINK-4)."""
    link = linked(world)
    link.accepted.feed(bytes.fromhex("a002abcd"))
    link.dialed.feed(bytes.fromhex("ff00"))
    world.settle()
    assert link.up


def test_a_close_tells_the_other_side(world: Any) -> None:
    """CLOSE carries its reason to the peer's owner, and both ends are gone."""
    link = linked(world)
    link.accepted.goodbye(codes.SHUTTING_DOWN, "503 Service Unavailable")
    link.accepted.goodbye(codes.NORMAL, "said twice is said once")
    world.settle()
    assert link.events.told[-1] == ("lost", "503 Service Unavailable")
    closes = [f for f in spoken(b"".join(link.wire.carried[1])) if isinstance(f, frames.Close)]
    assert [close.code for close in closes] == [0x8B]


@settings(max_examples=200)
@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda kind, body: bytes((kind, len(body))) + body,
            st.sampled_from([0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x21, 0x22, 0x30, 0x31, 0x80]),
            st.binary(max_size=100),
        ),
        st.builds(
            encode.direct_x,
            st.binary(max_size=60),
            st.builds(
                encode.direct_body,
                st.text(min_size=1, max_size=8).map(str.encode),
                st.binary(max_size=8),
                st.binary(max_size=8),
            ),
        ),
    ),
    to_acceptor=st.booleans(),
    logged_in=st.booleans(),
    piece=st.sampled_from([1, 7, 1_000]),
)
def test_no_bytes_hurt(
    make_world: Any, data: bytes, to_acceptor: bool, logged_in: bool, piece: int
) -> None:
    """Whatever bytes come, an end closes in order or goes on; nothing else escapes from it."""
    world = make_world()
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", settle=logged_in)
    end = link.accepted if to_acceptor else link.dialed
    for at in range(0, len(data), piece):
        if not end.closing:
            end.feed(data[at : at + piece])
    assert end.ended == end.closing
    end.lost("reset")
    assert end.closing


# -- door ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
def test_the_door_makes_strangers(world: Any, tls: bool) -> None:
    """A connection that was accepted has no VPN, no half and nothing to say until it heard HELLO."""
    link = LinkFactory(world.book("edge"), tls=tls).connection("192.0.2.7:1")
    assert (link.vpn, link.own_half, link.peer_half, link.dialed) == (None, None, None, False)
    assert (link.tls, link.peer, link.outbox.size) == (tls, "192.0.2.7:1", 0)


@pytest.mark.parametrize("tls", [False, True])
def test_who_dials_speaks_first(world: Any, tls: bool) -> None:
    """HELLO says who we are, what we want, and where we answer; it waits to leave at once."""
    yellow = world.vpn("yellow", "core")
    world.book("core").link_port = 1_000
    scheme = frames.BASIC if tls else frames.SCRAM
    terms = RemoteSettings(
        "b",
        "blue",
        "edge",
        "name",
        "word",
        filters=[(0, ">")],
        compress=tls,
        scheme=scheme,
        verified=tls,
    )
    half = dial(
        world.book("core"),
        yellow,
        "h:1",
        terms,
        HalfCallbacks(),
        world.record(yellow, "b"),
        tls=tls,
    )
    data = half.link.outbox.take(1 << 20)
    hello = decode(data, 0, len(data))
    assert isinstance(hello, frames.Hello)
    assert (hello.router, hello.local_vpn, hello.bridge) == ("core", "yellow", "b")
    assert (hello.remote_router, hello.remote_vpn) == ("edge", "blue")
    assert (hello.client_username, hello.password) == ("name", "word" if tls else "")
    assert (hello.scheme, len(hello.nonce)) == (scheme, 0 if tls else 24)
    assert (hello.tls, hello.resume, hello.link_port, hello.links_port) == (tls, False, 1_000, 0)
    assert hello.features == frames.REUSE | frames.RETAINED | frames.AMQP | (
        frames.ZSTD if tls else 0
    )
    assert half.link.own_half is half


# -- link clock ------------------------------------------------------------------------------------


def test_a_paused_link_misses_nobody(world: Any) -> None:
    """A link that is not read on purpose is not closed for silence; read again, it is."""
    world.vpn("blue", "edge")
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", terms={"heartbeat_ms": 1_000})
    link.dialed.paused = True
    link.wire.cut = True
    world.wait(10)
    assert not link.dialed.ended
    assert link.accepted.ended
    link.dialed.resume()
    world.wait(2)
    assert link.dialed.ended
    assert link.events.told[-1] == ("lost", "408 Heartbeat Timeout")


def test_a_password_that_takes_long(world: Any) -> None:
    """A verdict on a password that does not come in time ends the handshake."""
    remote = world.vpn(
        "blue", "edge", basic=True, usernames=[ClientUsername("core", password="right")]
    )
    link = world.link(
        world.vpn("yellow", "core"),
        "edge",
        "blue",
        terms={
            "client_username": "core",
            "password": "right",
            "scheme": frames.BASIC,
            "tls": True,
            "verified": True,
        },
        listener_tls=True,
    )
    assert not link.up
    world.wait(limits.CONNECT_TIMEOUT_S + 1)
    assert link.accepted.ended
    link.accepted.password_verified(good=True)
    world.settle()
    assert remote.clients == {}


def test_no_timer_is_left(world: Any) -> None:
    """A link that is over waits for nothing: its clock is not wound again."""
    world.vpn("blue", "edge")
    link = world.link(world.vpn("yellow", "core"), "edge", "blue", terms={"heartbeat_ms": 1_000})
    stranger = LinkFactory(world.book("edge"), tls=False).connection("192.0.2.9")
    stranger.lost("closed by peer")
    link.half.leave(0x00, "Bridge Shutdown")
    world.settle()
    said = link.dialed.control_tx_msgs, link.accepted.control_tx_msgs
    world.wait(60, step_s=1)
    assert (link.dialed.control_tx_msgs, link.accepted.control_tx_msgs) == said
    for end in (link.dialed, link.accepted, stranger):
        assert end._clock._timer is None


def test_the_first_half_decides_the_interval(world: Any, pair: Any) -> None:
    """The second half's wish does not change the heartbeat that the connection has."""
    both = pair(beyond={"heartbeat_ms": 100})
    before = both.link.accepted._clock._interval_ns
    assert before == limits.LINK_HEARTBEAT_MS * 1_000_000
    assert both.link.dialed._clock._interval_ns == before
    world.wait(60, step_s=1)
    assert both.both_ways() == (3, 3)


# -- link compressed -------------------------------------------------------------------------------


NO_ZSTD = ClientProfile("n", allow_bridge_connections_enabled=True, compression_enabled=False)


@pytest.mark.parametrize(
    ("wished", "profile", "packed"),
    [(True, None, True), (False, None, False), (True, NO_ZSTD, False)],
    ids=["both want it", "not wished", "not allowed"],
)
def test_both_must_want_it(world: Any, wished: bool, profile: Any, packed: bool) -> None:
    """It is on when the bridge wishes it and its client profile allows it, and then it saves bytes."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge", profile=profile)
    link = world.link(local, "edge", "blue", terms={"compress": wished})
    for end in (link.dialed, link.accepted):
        assert bool(end.features & frames.ZSTD) == packed
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    before = sum(len(data) for data in link.wire.carried[1])
    for _ in range(20):
        publisher.publish("weather/1", b"rain and more rain, " * 50)
    assert subscriber.payloads() == [b"rain and more rain, " * 50] * 20
    carried = sum(len(data) for data in link.wire.carried[1]) - before
    assert (carried < 5_000) == packed
    link.dialed.tally()
    link.accepted.tally()
    (record,) = world.book("edge").records.values()
    counters = link.half.record.counters
    # Counters are of frames as they are, not as they are packed.
    assert counters.data_rx_msg_count == record.counters.data_tx_msg_count == 20
    assert counters.data_rx_byte_count == record.counters.data_tx_byte_count > 20_000
    assert counters.control_rx_byte_count == record.counters.control_tx_byte_count


@pytest.mark.parametrize("second", [False, True])
def test_a_wish_of_the_second_half(pair: Any, second: bool) -> None:
    """A second half that wishes otherwise is let in, and both directions are as the first one is."""
    both = pair(compress=not second, beyond={"compress": second})
    assert both.told.names == ["welcomed", "subscribed"]
    assert bool(both.link.dialed.features & frames.ZSTD) != second
    assert both.both_ways() == (3, 3)
    both.balance()


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_however_the_bytes_are_cut(world: Any, piece: int) -> None:
    """Packed frames may come in pieces of any size."""
    local, remote = world.vpn("yellow", "core"), world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", piece=piece, terms={"compress": True})
    subscriber = world.client(local, "s")
    subscriber.subscribe("#")
    publisher = world.client(remote, "p")
    sent = [bytes([number]) * number * 9 for number in range(60)]
    for payload in sent:
        publisher.publish("a", payload)
    assert subscriber.payloads() == sent
    assert link.up


def test_packed_where_it_was_not_agreed_on(world: Any) -> None:
    """COMPRESSED over a link without the feature is closed with 0xc0."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue")
    link.dialed.feed(bytes([0x60, 6, 1, 0, 0, 0, 1, 0]))
    world.settle()
    assert link.events.told[-1] == ("lost", "LINK-5: frame 0x60 is not agreed on")


def test_a_block_that_cannot_be_read(world: Any) -> None:
    """Garbage in a packed frame is closed with 0x81, at the end that got it."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"compress": True})
    link.wire.cut = True
    link.dialed.feed(bytes([0x60, 9, 1, 0, 0, 0, 9]) + b"rain")
    assert link.dialed.ended
    assert link.events.told[-1][0] == "lost"


def test_heartbeats_are_packed_too(world: Any) -> None:
    """An idle link that is compressed stays up: its heartbeats go the same way."""
    local = world.vpn("yellow", "core")
    world.vpn("blue", "edge")
    link = world.link(local, "edge", "blue", terms={"compress": True, "heartbeat_ms": 1_000})
    world.wait(30)
    assert link.up
    link.dialed.feed(encode.heartbeat(frames.Heartbeat(7, answer=False)))
    world.settle()
    assert link.up
