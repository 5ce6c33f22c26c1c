"""Compression on links (LINK-44): who wants it, what it saves, that nothing else changes."""

from typing import Any

import pytest

from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.link import encode, frames

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
