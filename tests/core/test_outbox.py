"""vpnrouter.core.outbox: what waits for one connection, bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.totals import totals
from vpnrouter.wire.mqtt.encode import encode, encode_publish
from vpnrouter.wire.mqtt.packets import Pingreq, Pingresp, Publish

if TYPE_CHECKING:
    from tests.core.world import World


def drained(outbox: Outbox, at_most: int) -> list[bytes]:
    """What `take` gives until nothing is left."""
    parts: list[bytes] = []
    while outbox.chunks:
        parts.append(outbox.take(at_most))
    return parts


@pytest.mark.parametrize(
    ("limit", "fit"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (12, 3), (99, 3)]
)
def test_of_a_run_the_first_frames_that_fit_are_taken(limit: int, fit: int) -> None:
    """Whole frames, the first ones; the rest is counted as discarded."""
    outbox = Outbox([], limit)
    assert outbox.offer(b"aaaabbbbcccc", 3) == fit
    assert b"".join(drained(outbox, 100)) == b"aaaabbbbcccc"[: 4 * fit]
    assert (outbox.messages, outbox.bytes_, outbox.discarded) == (fit, 4 * fit, 3 - fit)


def test_control_frames_are_never_dropped() -> None:
    """They pass a full outbox, behind what waits; messages do not, until there is room again."""
    outbox = Outbox([], 4)
    outbox.offer(b"aaaa", 1)
    outbox.control(b"control")
    outbox.offer(b"bbbb", 1)
    assert outbox.discarded == 1
    assert drained(outbox, 100) == [b"aaaacontrol"]
    outbox.offer(b"cccc", 1)
    assert drained(outbox, 100) == [b"cccc"]
    assert (outbox.messages, outbox.size) == (2, 0)


def test_an_outbox_is_ready_once() -> None:
    """Whatever is queued, the shared list names it once until the edge has flushed it."""
    ready: list[Outbox] = []
    outbox = Outbox(ready, 100)
    outbox.offer(b"a", 1)
    outbox.control(b"b")
    outbox.offer(b"c", 1)
    assert ready == [outbox]
    ready.clear()
    outbox.dirty = False
    outbox.control(b"d")
    assert ready == [outbox]


def test_a_refused_frame_makes_nobody_ready() -> None:
    """An outbox that took nothing has nothing to flush."""
    ready: list[Outbox] = []
    Outbox(ready, 1).offer(b"aa", 1)
    assert ready == []


def test_a_closed_outbox_takes_nothing() -> None:
    """What waited is gone; messages are counted as discarded, control frames ignored."""
    ready: list[Outbox] = []
    outbox = Outbox(ready, 100)
    outbox.offer(b"a", 1)
    outbox.close()
    assert outbox.offer(b"bb", 2) == 0
    outbox.control(b"c")
    assert outbox.chunks == []
    assert (outbox.size, outbox.messages, outbox.discarded) == (0, 1, 2)


@given(
    frames=st.lists(st.binary(min_size=1, max_size=9), max_size=20),
    at_most=st.integers(1, 30),
    written=st.lists(st.integers(0, 9), max_size=40),
)
def test_order_survives_partial_writes(
    frames: list[bytes], at_most: int, written: list[int]
) -> None:
    """Taking, writing a part and putting back the rest, over and over, sends every byte once and in order."""
    outbox = Outbox([], 1_000)
    for frame in frames:
        outbox.offer(frame, 1)
    sent = b""
    for count in written:
        if not outbox.chunks:
            break
        data = outbox.take(at_most)
        assert len(data) <= max(at_most, 18)
        sent += data[:count]
        if data[count:]:
            outbox.put_back(data, count)
    rest = b"".join(drained(outbox, at_most))
    assert sent + rest == b"".join(frames)
    assert outbox.size == 0


def test_a_slow_consumer_affects_no_other(world: World) -> None:
    """Who does not read loses its own messages; others of both levels get all of them."""
    world.add_vpn("blue", profile=ClientProfile("default", max_outbox_bytes=200))
    slow, fast, old = world.connect("slow"), world.connect("fast"), world.connect("old", level=4)
    for client in (slow, fast, old):
        client.subscribe("#")
    publisher = world.connect("p")
    for number in range(20):
        publisher.raw(encode(Publish(b"a/b/c", b"%06d" % number), 5) * 3)
        assert len(fast.payloads()) == 3
        assert len(old.payloads()) == 3
    slow.send(Pingreq())
    *messages, last = slow.received()
    assert last == Pingresp()
    # A frame of 2 + 7 + 1 + 6 bytes: twelve of them fit into 200.
    assert len(messages) == 12
    assert slow.connection.outbox.discarded == 48
    assert fast.connection.outbox.discarded == 0


def test_the_default_bound(world: World) -> None:
    """Without a bound in the profile OUTBOX_BYTES wait for a client, not one byte more."""
    client = world.connect("c")
    client.subscribe("a")
    publisher = world.connect("p")
    frame = encode(Publish(b"a", b"x" * (limits.OUTBOX_BYTES // 4 - 8)), 5)
    size = len(frame)
    assert 4 * size <= limits.OUTBOX_BYTES < 4 * size + 8
    publisher.raw(frame * 4)
    assert client.connection.outbox.discarded == 0
    publisher.publish("a", b"12345678")
    assert client.connection.outbox.discarded == 1


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=12),
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 600)), max_size=8),
)
def test_what_goes_down_with_the_outbox_is_counted(
    parts: list[tuple[bool, int]], writes: list[tuple[int, int]]
) -> None:
    """Closing tells how many messages had not left whole, wherever writes were cut; answers do not count."""
    outbox = Outbox([], 1_000_000)
    ends: list[int] = []
    total = 0
    for is_message, size in parts:
        frame = encode_publish(b"topic", bytes(size), 4) if is_message else b"\xd0\x00"
        total += len(frame)
        if is_message:
            outbox.offer(frame, 1)
            ends.append(total)
        else:
            outbox.control(frame)
    sent = 0
    for at_most, count in writes:
        if not outbox.chunks:
            break
        data = outbox.take(at_most)
        sent += len(data[:count])
        if data[count:]:
            outbox.put_back(data, count)
    assert outbox.close() == sum(end > sent for end in ends)
    assert outbox.close() == 0


def test_a_lost_client_s_messages_are_counted(world: World) -> None:
    """What waited for it counts as discarded, client-not-connected, and no longer as sent."""
    client = world.connect("c")
    client.subscribe("#")
    world.connect("p").raw(encode(Publish(b"a/b/c", b"x"), 5) * 7)
    client.lose()
    counted = totals(world.vpn("blue"))
    assert counted.discards == {"client-not-connected": 7}
    assert counted.tx_msg_count == 0
