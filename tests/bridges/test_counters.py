"""From the counters of a link to those of a bridge's record: each message once, whatever becomes of it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.counters import ControlTally, Counters, RxTally, TxTally
from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.profile import ClientProfile


def linked(world: Any, **profile: Any) -> Any:
    """A link out of blue, with a publisher there."""
    chosen = ClientProfile("b", allow_bridge_connections_enabled=True, **profile)
    remote = world.vpn("blue", "edge", profile=chosen)
    link = world.link(world.vpn("yellow", "core"), "edge", "blue")
    return link, world.client(remote, "p")


def record_of(world: Any) -> Any:
    """The record of the one bridge that is known at edge."""
    (record,) = world.book("edge").records.values()
    return record


def test_looking_twice_counts_once(world: Any) -> None:
    """What was counted is added once, however often somebody asks."""
    link, publisher = linked(world)
    for number in range(1, 4):
        publisher.publish("a", b"12345")
        for _ in range(3):
            link.dialed.tally()
            link.accepted.tally()
        sent, came = record_of(world).counters, link.half.record.counters
        assert (sent.data_tx_msg_count, sent.offered_tx_msg_count) == (number, number)
        assert (came.data_rx_msg_count, came.discarded_rx_msg_count) == (number, number)
        assert sent.data_tx_byte_count == came.data_rx_byte_count


@pytest.mark.parametrize("ends", ["transport", "detach"])
def test_what_waits_when_it_ends(world: Any, ends: str) -> None:
    """Messages that went down with a connection are discarded; those a half left behind still leave."""
    link, publisher = linked(world)
    link.wire.cut = True
    for _ in range(5):
        publisher.publish("a", b"x")
    link.accepted.tally()
    record = record_of(world)
    waiting = record.tx_in_flight
    assert (waiting, record.counters.data_tx_msg_count) == (5, 0)
    assert record.counters.tx_imbalance(5) == 0
    if ends == "transport":
        link.accepted.lost("closed by peer")
    else:
        link.half.link.say(b"")
        link.accepted.peer_half._detached("Bridge Shutdown")
    assert record.sending == []
    sent = 0 if ends == "transport" else 5
    assert record.counters.data_tx_msg_count == sent
    lost = {} if sent else {"client-not-connected": 5}
    assert record.counters.discarded_tx.counts == lost
    assert record.counters.tx_imbalance(0) == 0


def test_no_room(world: Any) -> None:
    """A message for which the outbox has no room is discarded and counted."""
    link, publisher = linked(world, max_outbox_bytes=3_000)
    link.wire.cut = True
    for _ in range(5):
        publisher.publish("a", b"x" * 1_000)
    link.accepted.tally()
    counters = record_of(world).counters
    assert counters.discarded_tx.counts == {"transmit-congestion": 3}
    assert counters.tx_imbalance(2) == 0


def test_control_frames(world: Any) -> None:
    """Frames that are no messages are counted at both ends alike, the handshake among them."""
    link, _ = linked(world)
    link.dialed.tally()
    link.accepted.tally()
    here, there = link.half.record.counters, record_of(world).counters
    assert here.control_tx_msg_count == there.control_rx_msg_count == 2
    assert here.control_rx_msg_count == there.control_tx_msg_count == 2
    assert here.control_tx_byte_count == there.control_rx_byte_count > 0
    assert (here.login_tx_msg_count, here.login_rx_msg_count) == (1, 1)
    assert (there.login_tx_msg_count, there.login_rx_msg_count) == (1, 1)


def test_each_tally_begins_where_it_was_made(world: Any) -> None:
    """What was counted before a half began is not its own."""
    link, publisher = linked(world)
    publisher.publish("a", b"x")
    counters = Counters()
    sink, client, outbox = link.dialed.sink, link.accepted.client, link.accepted.outbox
    RxTally(sink).update_counters(sink, counters, 1)
    discarded = client.discarded
    TxTally(outbox, client, discarded).update_counters(outbox, client, discarded, counters, 1)
    assert (counters.data_rx_msg_count, counters.data_tx_msg_count) == (0, 0)
    control = ControlTally()
    control.update_counters((1, 2, 3, 4, 5, 6), counters)
    control.update_counters((1, 2, 3, 4, 5, 7), counters)
    assert (counters.control_rx_msg_count, counters.login_tx_msg_count) == (1, 7)


# -- counters --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    fates=st.lists(st.sampled_from(["delivered", "waiting", *REASONS]), max_size=60),
)
def test_the_balance_tells_a_message_that_went_missing(fates: list[str]) -> None:
    """Accounted for, the imbalance is 0 in both directions; one message more is exactly 1."""
    counters = Counters()
    for fate in fates:
        counters.data_rx(1, 10, 0)
        counters.offered_tx_msg_count += 1
        if fate == "delivered":
            counters.delivered_rx_msg_count += 1
            counters.data_tx(1, 10, 0)
        elif fate != "waiting":
            counters.discard_rx(fate)
            counters.discard_tx(fate)
    waiting = fates.count("waiting")
    assert counters.rx_imbalance(waiting) == counters.tx_imbalance(waiting) == 0
    counters.data_rx(1, 10, 0)
    counters.offered_tx_msg_count += 1
    assert counters.rx_imbalance(waiting) == counters.tx_imbalance(waiting) == 1


def test_sums() -> None:
    """Adding takes every count of both, and the later time of a last message."""
    one, other = Counters(), Counters()
    for counters, factor in ((one, 1), (other, 10)):
        counters.data_rx(factor, 2 * factor, 3 * factor)
        counters.data_tx(4 * factor, 5 * factor, 6 * factor)
        counters.control_rx(7 * factor, login=True)
        counters.control_tx(8 * factor, login=True)
        counters.discard_rx("msg-too-big", 9 * factor)
        counters.discard_tx("loop-detected", factor)
        counters.delivered_rx_msg_count += factor
        counters.offered_tx_msg_count += factor
    one.add(other)
    assert (one.data_rx_msg_count, one.data_rx_byte_count, one.last_data_rx_ns) == (11, 22, 30)
    assert (one.data_tx_msg_count, one.data_tx_byte_count, one.last_data_tx_ns) == (44, 55, 60)
    assert (one.control_rx_msg_count, one.control_rx_byte_count) == (2, 77)
    assert (one.control_tx_msg_count, one.control_tx_byte_count) == (2, 88)
    assert (one.login_rx_msg_count, one.login_tx_msg_count) == (2, 2)
    assert (one.discarded_rx_msg_count, one.discarded_tx_msg_count) == (99, 11)
    assert (one.delivered_rx_msg_count, one.offered_tx_msg_count) == (11, 11)
