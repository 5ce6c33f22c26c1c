"""AMQP clients that write what they may not, too much, or nothing more: each is told, and nobody else is hurt."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from vpnrouter import limits
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.conditions import CONDITIONS
from vpnrouter.wire.amqp.frames import AMQP_HEADER
from vpnrouter.wire.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Flow,
    Open,
    SaslOutcome,
    Source,
    Target,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.amqp.amqp_peer import Peer
    from tests.core.mqtt.spooled import SpooledWorld

DATA = Path(__file__).parents[2] / "conformance/data/amqp_frames.yaml"
CLIENTS: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))["clients"]
NAMES = [f"{client['client']} {client['does']}" for client in CLIENTS]


def chunks(client: dict[str, Any]) -> list[bytes]:
    """The headers and frames that a client wrote."""
    return [bytes.fromhex(one["hex"]) for one in client["wrote"]]


@pytest.fixture
def witness(router: SpooledWorld, amqp: ModuleType) -> Iterator[Peer]:
    """A client that sends to a queue and receives from it; it still can when the test is over, and nothing raised."""
    router.queue("orders", exclusive=False)
    router.queue("witness")
    peer: Peer = amqp.Peer(router)
    peer.join("witness")
    peer.sender("queue://witness", 0)
    peer.receiver("queue://witness", 1)
    peer.answers()
    yield peer
    assert isinstance(peer.sent(amqp.message(b"still there")), Accepted)
    assert peer.bodies() == [b"still there"]
    assert not any(router.router.context.barrier.counts.values())


def kinds(peer: Peer) -> list[str]:
    """What was answered, without what depends on how the bytes came."""
    return [type(one).__name__ for one in peer.answers() if not isinstance(one, Flow)]


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_every_cut_is_waited_for(
    router: SpooledWorld, amqp: ModuleType, witness: Peer, client: dict[str, Any]
) -> None:
    """What a client writes has the same answers, wherever its bytes are cut."""
    data = b"".join(chunks(client))
    found: list[list[str]] = []
    for cut in range(len(data)):
        peer: Peer = amqp.Peer(router)
        peer.raw(data[:cut])
        peer.raw(data[cut:])
        found.append(kinds(peer))
        assert found[cut] == found[0], cut
        peer.connection.lost("gone")
    assert found[0][-1] == "Close"


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_every_frame_that_ends_early(
    router: SpooledWorld, amqp: ModuleType, witness: Peer, client: dict[str, Any]
) -> None:
    """It ends the link, the session or the connection, with a condition; only a message may end anywhere."""
    wrote = chunks(client)
    for number, whole in enumerate(wrote):
        if whole[:4] == b"AMQP":
            continue
        payload = len(bytes.fromhex(client["wrote"][number].get("payload", "")))
        for size in range(frames.HEADER_BYTES + 1, len(whole) - payload):
            peer: Peer = amqp.Peer(router)
            peer.raw(b"".join(wrote[:number]))
            peer.answers()
            peer.raw(size.to_bytes(4, "big") + whole[4:size])
            ends = [one for one in peer.answers() if isinstance(one, Close | End | Detach)]
            if client["wrote"][number]["performative"] == "SaslInit":
                # A login is not told more than that it failed.
                assert not ends
            else:
                assert ends[-1].error.condition in CONDITIONS.values(), (number, size)
            if not isinstance(ends[-1] if ends else None, End | Detach):
                assert peer.closed, (number, size)
            peer.connection.lost("gone")


def test_frames_of_nobody(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """A performative that is not defined, and one that only a router sends, end the connection."""
    for body in ("00530145", "005344c003015000", "00535345"):
        peer: Peer = amqp.Peer(router)
        peer.join()
        data = bytes.fromhex(body)
        peer.raw((8 + len(data)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + data)
        assert peer.answer(Close).error.condition in CONDITIONS.values()
        assert peer.closed


def test_consumer_without_credit(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """It gets nothing and holds nothing: others get all."""
    mute: Peer = amqp.Peer(router)
    mute.join("mute")
    mute.receiver("queue://orders", credit=0)
    peer: Peer = amqp.Peer(router)
    peer.join()
    peer.sender("queue://orders", 0)
    for number in range(100):
        assert isinstance(peer.sent(amqp.message(b"%d" % number)), Accepted)
    peer.receiver("queue://orders", 1, credit=1_000)
    assert peer.bodies() == [b"%d" % number for number in range(100)]
    assert mute.messages() == []


def test_consumer_that_never_settles(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """It gets what the queue lets one flow hold, others get the rest, and all that it held when it has gone."""
    queue = router.queue("few", exclusive=False, max_delivered_unacked_msgs_per_flow=10)
    lazy: Peer = amqp.Peer(router)
    lazy.join("lazy")
    lazy.receiver("queue://few", credit=1_000)
    peer: Peer = amqp.Peer(router)
    peer.join()
    peer.sender("queue://few", 0)
    for number in range(30):
        assert isinstance(peer.sent(amqp.message(b"%d" % number)), Accepted)
    assert len(lazy.messages()) == 10
    peer.receiver("queue://few", 1, credit=1_000)
    found = peer.messages()
    assert len(found) == 10
    for one in found:
        peer.settle(one, Accepted())
    found = peer.messages()
    assert len(found) == 10
    for one in found:
        peer.settle(one, Accepted())
    lazy.connection.lost("gone")
    again = peer.messages()
    assert sorted(int(one.body) for one in again) == list(range(10))
    assert all(
        one.header.delivery_count == 0 or one.header.first_acquirer is False for one in again
    )
    for one in again:
        peer.settle(one, Accepted())
    peer.answers()
    assert queue.spooled_count == 0


def test_flood_of_sessions(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """One more than a connection may have ends by itself, and the others go on; what is ended makes room."""
    peer: Peer = amqp.Peer(router)
    peer.join()
    for channel in range(1, limits.AMQP_SESSIONS):
        peer.begin(channel)
    account = router.vpn().memory
    before = account.held
    for _ in range(3):
        peer.say(Begin(None, 0, 1, 1), channel=limits.AMQP_SESSIONS)
        begun, ended = peer.answers()
        assert isinstance(begun, Begin)
        assert ended.error.condition == "amqp:resource-limit-exceeded"
        # What was sent to it before the client knew is passed over.
        peer.say(Attach("x", 0, True, source=Source("topic://a")), channel=limits.AMQP_SESSIONS)
        peer.say(End(), channel=limits.AMQP_SESSIONS)
        assert peer.answers() == []
        assert account.held == before
    peer.say(End(), channel=7)
    assert isinstance(peer.answer(End), End)
    assert account.held < before
    peer.begin(limits.AMQP_SESSIONS)
    assert peer.receiver("topic://a")[0].source is not None


def test_channel_beyond(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """One more than the router has said that it takes ends the connection."""
    peer: Peer = amqp.Peer(router)
    opened = peer.join()
    assert opened.channel_max == limits.AMQP_CHANNELS - 1
    peer.begin(opened.channel_max)
    peer.say(Begin(None, 0, 1, 1), channel=opened.channel_max + 1)
    assert peer.answer(Close).error.condition == "amqp:connection:framing-error"
    assert peer.closed


def test_flood_of_links(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """10,000 links on one connection: the router takes its bound, and refuses each of the rest by name."""
    peer: Peer = amqp.Peer(router)
    opened = peer.join()
    assert isinstance(opened, Open)
    peer.begin(1)
    taken = refused = 0
    for number in range(10_000):
        channel, handle = divmod(number, 4_096)
        if handle == 0 and channel > 1:
            peer.begin(channel)
        name = f"link {number}"
        target = Target("topic://a")
        packet = Attach(
            name, handle, False, source=Source("x"), target=target, initial_delivery_count=0
        )
        peer.say(packet, channel=channel)
        answers = peer.answers()
        assert isinstance(answers[0], Attach)
        assert answers[0].name == name
        if len(answers) > 1 and isinstance(answers[1], Detach):
            assert answers[1].error.condition == "amqp:resource-limit-exceeded"
            refused += 1
        else:
            taken += 1
    assert (taken, refused) == (limits.AMQP_LINKS, 10_000 - limits.AMQP_LINKS)
    # The same connection goes on with what it has.
    assert isinstance(peer.sent(amqp.message(b"x")), object)


def test_flood_of_logins(router: SpooledWorld, amqp: ModuleType, witness: Peer) -> None:
    """What follows a login at once is handled once the login is answered, in order."""
    peer: Peer = amqp.Peer(router)
    outcome = peer.sasl("ANONYMOUS")
    assert isinstance(outcome, SaslOutcome)
    open_ = frames.encode(Open("me"))
    peer.raw(AMQP_HEADER + open_ + open_)
    assert peer.answer(Close).error.condition == "amqp:not-allowed"
    assert peer.closed
