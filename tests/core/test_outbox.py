"""vpnrouter.core.outbox: what waits for one connection, bounded."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.profile import ClientProfile
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.compressed import LinkPacker, LinkUnpacker
from vpnrouter.wire.link.decode import link_frame_at
from vpnrouter.wire.mqtt.encode import encode, encode_publish
from vpnrouter.wire.mqtt.packets import Pingreq, Pingresp, Publish
from vpnrouter.wire.varint import read_varint

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter


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
    written=st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=40),
)
def test_order_survives_partial_writes(
    frames: list[bytes], at_most: int, written: list[tuple[int, bool]]
) -> None:
    """Taking, writing a part and putting back the rest, over and over, sends every byte once and in order."""
    outbox = Outbox([], 1_000)
    for frame in frames:
        outbox.offer(frame, 1)
    sent = b""
    for count, chunks in written:
        if not outbox.chunks:
            break
        data = write(outbox, at_most, count, chunks=chunks)
        assert len(data) <= max(at_most, 18)
        sent += data
    rest = b"".join(drained(outbox, at_most))
    assert sent + rest == b"".join(frames)
    assert outbox.size == 0


def write(outbox: Outbox, at_most: int, most: int, *, chunks: bool) -> bytes:
    """Take, write `most` bytes of it at most, and put the rest back; the bytes written."""
    if chunks:
        taken = outbox.take_chunks(at_most)
        data = b"".join(taken)
        if data[most:]:
            outbox.put_back_chunks(taken, most)
    else:
        data = outbox.take(at_most)
        if data[most:]:
            outbox.put_back(data, most)
    return data[:most]


def test_a_slow_consumer_affects_no_other(world: MemoryRouter) -> None:
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


def test_the_default_bound(world: MemoryRouter) -> None:
    """Without a bound in the profile OUTBOX_BYTES wait for a client, not one byte more."""
    client = world.connect("c")
    client.subscribe("a")
    publisher = world.connect("p")
    frame = encode(Publish(b"a", b"x" * (limits.OUTBOX_BYTES // 8 - 9)), 5)
    size = len(frame)
    assert 8 * size <= limits.OUTBOX_BYTES < 8 * size + 8
    publisher.raw(frame * 8)
    assert client.connection.outbox.discarded == 0
    publisher.publish("a", b"12345678")
    assert client.connection.outbox.discarded == 1


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 200)), max_size=12),
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 600), st.booleans()), max_size=8),
)
def test_what_goes_down_with_the_outbox_is_counted(
    parts: list[tuple[bool, int]], writes: list[tuple[int, int, bool]]
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
    for at_most, count, chunks in writes:
        if not outbox.chunks:
            break
        sent += len(write(outbox, at_most, count, chunks=chunks))
    assert outbox.waiting() == sum(end > sent for end in ends)
    assert outbox.close() == sum(end > sent for end in ends)
    assert outbox.close() == outbox.waiting() == 0


class Peer:
    """Reads what a packing outbox sends, byte by byte if it must."""

    def __init__(self) -> None:
        self.unpacker = LinkUnpacker(limits.LINK_FRAME_BYTES)
        self.buffer = b""
        self.got = b""
        self.packed = 0

    def feed(self, data: bytes) -> None:
        """Read whole frames."""
        self.buffer += data
        while self.buffer:
            size = len(self.buffer)
            length = link_frame_at(self.buffer, 0, size, limits.LINK_FRAME_BYTES)
            if length == 0:
                break
            if self.buffer[0] == frames.COMPRESSED:
                _, head = read_varint(self.buffer, 1, length)
                self.got += self.unpacker.unpack(self.buffer[head:length])
                self.packed += 1
            else:
                self.got += self.buffer[:length]
            self.buffer = self.buffer[length:]


CONTROL = b"\xd0\x00"
HANDSHAKE = bytes((frames.WELCOME, 3)) + b"abc"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["message", "noise", "control", "handshake", "write", "write"]),
            st.integers(0, 400),
            st.integers(1, 900),
        ),
        max_size=40,
    ),
    st.integers(0, 10),
)
def test_a_packing_outbox_sends_the_same(
    steps: list[tuple[str, int, int]], packs_from: int
) -> None:
    """Wherever writes are cut and whenever packing begins, the peer reads every frame once and in order,
    and what had not arrived is what waited.
    """
    draw = random.Random(1)
    outbox = Outbox([], 1_000_000)
    peer = Peer()
    frames_in: list[bytes] = []
    for number, (what, size, at_most) in enumerate(steps):
        if number == packs_from:
            outbox.packer = LinkPacker(limits.LINK_FRAME_BYTES)
        if what == "write":
            if outbox.size:
                data = outbox.take(at_most)
                peer.feed(data[:size])
                if data[size:]:
                    outbox.put_back(data, size)
        elif what in {"message", "noise"}:
            payload = bytes(size) if what == "message" else draw.randbytes(size)
            frames_in.append(encode_publish(b"topic", payload, 5))
            outbox.offer(frames_in[-1], 1)
        else:
            frames_in.append(CONTROL if what == "control" else HANDSHAKE)
            outbox.control(frames_in[-1])
        assert outbox.size == sum(len(chunk) for chunk in outbox.chunks)
    whole = b"".join(frames_in)
    assert whole.startswith(peer.got)
    rest = sum(frame[0] == 0x30 for frame in frames_in)
    at = 0
    for frame in frames_in:
        at += len(frame)
        if at <= len(peer.got):
            rest -= frame[0] == 0x30
    assert outbox.waiting() == rest
    while outbox.size:
        peer.feed(outbox.take(300))
    assert (peer.got, peer.buffer) == (whole, b"")
    assert outbox.waiting() == outbox.close() == 0


def test_of_many_packed_frames_those_that_left_whole_are_not_lost() -> None:
    """A write of several frames counts each on its own."""
    outbox = Outbox([], 1_000_000)
    outbox.packer = LinkPacker(16_384)
    frame = encode_publish(b"topic", bytes(7_000), 5)
    for _ in range(6):
        outbox.offer(frame, 1)
    packed = outbox.take(1_000_000)
    assert outbox.packer.counts == [2, 2, 2]
    outbox.put_back(packed, outbox.packer.ends[0])
    assert outbox.waiting() == 4
    outbox.take(0)
    outbox.put_back(packed[outbox.packer.ends[0] :], len(packed) - outbox.packer.ends[0] - 1)
    assert outbox.close() == 2


def test_a_lost_client_s_messages_are_counted(world: MemoryRouter) -> None:
    """What waited for it counts as discarded, client-not-connected, and no longer as sent."""
    client = world.connect("c")
    client.subscribe("#")
    world.connect("p").raw(encode(Publish(b"a/b/c", b"x"), 5) * 7)
    client.lose()
    counted = world.vpn("blue").totals()
    assert counted.discards == {"client-not-connected": 7}
    assert counted.tx_msg_count == 0


@given(st.lists(st.integers(0, 60), min_size=1, max_size=30), st.integers(0, 2_000), st.booleans())
def test_frames_of_any_sizes_share_a_bound(sizes: list[int], limit: int, closed: bool) -> None:
    """Of frames of several sizes the first are taken, as many as fit; the others are counted, each once."""
    run = [encode_publish(b"topic", bytes(size), 4) for size in sizes]
    outbox = Outbox([], limit)
    if closed:
        outbox.close()
    fit = 0
    while not closed and fit < len(run) and sum(map(len, run[: fit + 1])) <= limit:
        fit += 1
    assert outbox.offer_mixed(b"".join(run), len(run)) == fit
    assert (outbox.messages, outbox.discarded) == (fit, len(run) - fit)
    assert b"".join(outbox.chunks) == b"".join(run[:fit])
