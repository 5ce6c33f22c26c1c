"""vpnrouter.wire.link.compressed: packing and unpacking what crosses a link."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes, encode, frames
from vpnrouter.wire.link.compressed import LEAST_BYTES, LinkPacker, LinkUnpacker
from vpnrouter.wire.link.decode import link_frame_at
from vpnrouter.wire.varint import read_varint

MOST = limits.LINK_FRAME_BYTES
HEARTBEAT = encode.heartbeat(frames.Heartbeat(7, answer=False))
HELLO = encode.hello(frames.Hello("a" * 80, "bridge", "blue", "yellow"))


def message(payload: bytes, topic: bytes = b"a/b/c") -> bytes:
    """A DIRECT frame."""
    return encode.direct(encode.direct_body(topic, b"", payload))


def split(wire: bytes) -> list[tuple[int, bytes]]:
    """Type and body of each frame."""
    out = []
    at = 0
    while at < len(wire):
        length = link_frame_at(wire, at, len(wire), MOST)
        assert length, "a frame is not whole"
        _, start = read_varint(wire, at + 1, at + length)
        out.append((wire[at], wire[start : at + length]))
        at += length
    return out


def unpacked(wire: bytes, unpacker: LinkUnpacker) -> bytes:
    """What arrives, with everything compressed unpacked."""
    out = b""
    at = 0
    for kind, body in split(wire):
        length = link_frame_at(wire, at, len(wire), MOST)
        out += unpacker.unpack(body) if kind == frames.COMPRESSED else wire[at : at + length]
        at += length
    return out


def stream(window_log: int = 17) -> zstandard.ZstdCompressionObj:
    """A foreign sender's stream."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        1, window_log=window_log, write_content_size=False
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj()


def flushed(sender: zstandard.ZstdCompressionObj, data: bytes) -> bytes:
    """One block."""
    return sender.compress(data) + sender.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def body(size: int, block: bytes, algorithm: int = 1) -> bytes:
    """The body of a COMPRESSED frame as LINK-44 lays it out."""
    return bytes((algorithm,)) + size.to_bytes(4, "big") + block


def test_a_block_is_laid_out_as_the_clause_says() -> None:
    """Algorithm, inner length, zstd stream: read here with the library's plain decompressor."""
    data = message(b"x" * 500) + HEARTBEAT
    packer = LinkPacker(MOST)
    ((kind, inside),) = split(packer.pack(data))
    assert kind == 0x60
    assert inside[:5] == b"\x01" + len(data).to_bytes(4, "big")
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 20).decompressobj()
    assert reader.decompress(inside[5:]) == data
    ((_, again),) = split(packer.pack(data))
    assert reader.decompress(again[5:]) == data
    assert len(again) < len(inside) / 2, "what went before is remembered"
    assert (packer.bytes_in, packer.bytes_out) == (2 * len(data), len(inside) + len(again) + 4)


def test_what_is_short_leaves_as_it_is() -> None:
    """One byte below the threshold nothing is packed, at the threshold it is."""
    packer = LinkPacker(MOST)
    short = message(b"x" * (LEAST_BYTES - 1 - len(message(b""))))
    assert packer.pack(short) is short
    assert split(packer.pack(message(b"x" * (LEAST_BYTES - len(message(b""))))))[0][0] == 0x60
    assert packer.bytes_in == 2 * LEAST_BYTES - 1


def test_the_handshake_is_never_packed() -> None:
    """HELLO, WELCOME and REFUSE stay plain wherever they stand, and in their place."""
    packer, unpacker = LinkPacker(MOST), LinkUnpacker(MOST)
    data = HELLO + message(b"y" * 100) + HEARTBEAT + HELLO + HELLO + message(b"z" * 100)
    wire = packer.pack(data)
    assert [kind for kind, _ in split(wire)] == [0x10, 0x60, 0x10, 0x10, 0x60]
    assert unpacked(wire, unpacker) == data
    assert packer.counts == [0, 1, 0, 0, 1]
    assert packer.ends[-1] == len(wire)
    for kind in (frames.HELLO, frames.WELCOME, frames.REFUSE):
        data = bytes((kind, 100)) + bytes(100)
        assert LinkPacker(MOST).pack(data) == data


def test_blocks_are_split_between_frames() -> None:
    """No inner length and no frame exceeds what the peer takes, even where bytes do not compress."""
    draw = random.Random(4)
    data = b"".join(message(draw.randbytes(size)) for size in (9_000, 6_000, 12_000, 16_360, 10))
    packer, unpacker = LinkPacker(16_384), LinkUnpacker(16_384)
    wire = packer.pack(data)
    kinds = [kind for kind, _ in split(wire)]
    assert kinds == [0x60, 0x60, 0x30, 0x60], "the longest could grow beyond the bound: plain"
    at = 0
    for end in packer.ends:
        assert link_frame_at(wire, at, len(wire), 16_384) == end - at
        at = end
    assert packer.counts == [2, 1, 1, 1]
    assert unpacked(wire, unpacker) == data


def test_random_bytes_hardly_grow() -> None:
    """Messages of 64 random bytes, one a write or hundred, grow by less than 2 %."""
    draw = random.Random(11)
    for batch in (1, 100):
        packer, unpacker = LinkPacker(MOST), LinkUnpacker(MOST)
        for _ in range(1_000 // batch + 200):
            data = b"".join(message(draw.randbytes(64)) for _ in range(batch))
            assert unpacked(packer.pack(data), unpacker) == data
        assert packer.bytes_out < packer.bytes_in * 1.02


def test_compression_comes_back_when_bytes_become_compressible() -> None:
    """After a long time of poor blocks text is compressed again, 64 times a poor block later at most."""
    draw = random.Random(12)
    packer = LinkPacker(MOST)
    for _ in range(1_000):
        packer.pack(message(draw.randbytes(500)))
    text = message(b"a text like any other " * 20)
    plain = 0
    while packer.pack(text) is text:
        plain += len(text)
    assert plain <= 65 * 520


def test_the_unpacker_s_bound_is_tested_before_the_block_is_read() -> None:
    """One byte above the bound is 0x95, at the bound it is read."""
    data = message(b"x" * (2_000 - len(message(b"x" * 1_000))))
    assert len(data) == 1_000
    assert LinkUnpacker(1_000).unpack(body(1_000, flushed(stream(), data))) == data
    with pytest.raises(
        ProtocolError, match="LINK-44: 1001 bytes inside, the limit is 1000"
    ) as caught:
        LinkUnpacker(1_000).unpack(body(1_001, b""))
    assert caught.value.reason_code == codes.FRAME_TOO_LARGE


GOOD = message(b"x" * 100)
FINISHED = zstandard.ZstdCompressor(level=1).compress(GOOD)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"", 0x81),
        (b"\x01\x00\x00\x00", 0x81),
        (body(len(GOOD), flushed(stream(), GOOD), 0), 0x82),
        (body(len(GOOD), flushed(stream(), GOOD), 2), 0x82),
        (body(0, flushed(stream(), GOOD)), 0x82),
        (body(len(GOOD), b""), 0x81),
        (body(len(GOOD), flushed(stream(), GOOD)[:-1]), 0x81),
        (body(len(GOOD) - 1, flushed(stream(), GOOD)), 0x81),
        (body(len(GOOD) + 1, flushed(stream(), GOOD)), 0x81),
        (body(len(GOOD), b"\x00" * 40), 0x81),
        (body(len(GOOD), flushed(stream(), GOOD) + b"\xff" * 40), 0x81),
        (body(len(GOOD), flushed(stream(), GOOD * 2)), 0x81),
        (body(9, flushed(stream(), GOOD[:9])), 0x81),
        (body(2 + len(GOOD), flushed(stream(), b"\x60\x00" + GOOD)), 0x82),
        (body(len(HELLO), flushed(stream(), HELLO)), 0x82),
        (body(2, flushed(stream(), b"\x12\x00")), 0x82),
    ],
)
def test_what_cannot_be_unpacked(bad: bytes, code: int) -> None:
    """Each fault has its code and names the clause."""
    with pytest.raises(ProtocolError, match="LINK-44") as caught:
        LinkUnpacker(MOST).unpack(bad)
    assert caught.value.reason_code == code


def test_a_stream_that_ended_within_a_block() -> None:
    """Bytes behind the end of the stream are not lost in silence: the next block cannot be read."""
    unpacker = LinkUnpacker(MOST)
    assert unpacker.unpack(body(len(GOOD), FINISHED * 2)) == GOOD
    with pytest.raises(ProtocolError, match="LINK-44: the block before had bytes left over"):
        unpacker.unpack(body(len(GOOD), flushed(stream(), GOOD)))


@pytest.mark.parametrize(("window_log", "taken"), [(20, True), (21, False)])
def test_the_window_is_bounded(window_log: int, taken: bool) -> None:
    """LINK_WINDOW_LOG is the largest window a peer may use."""
    assert limits.LINK_WINDOW_LOG == 20
    block = body(len(GOOD), flushed(stream(window_log), GOOD))
    if taken:
        assert LinkUnpacker(MOST).unpack(block) == GOOD
    else:
        with pytest.raises(ProtocolError, match="too much memory"):
            LinkUnpacker(MOST).unpack(block)


_BOMB = """
import resource, sys
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.compressed import LinkUnpacker
unpacker = LinkUnpacker(17_039_360)
block = sys.stdin.buffer.read()
import zstandard
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    unpacker.unpack(b"\\x01\\x00\\x00\\x04\\x00" + block)
except ProtocolError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_bomb_takes_no_memory() -> None:
    """A gigabyte of zeros that says it is a kilobyte is refused, and takes less than 4 MiB."""
    sender = stream(20)
    bomb = b"".join(sender.compress(bytes(1 << 20)) for _ in range(1_024))
    bomb += sender.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert len(bomb) < 100_000
    done = subprocess.run(
        [sys.executable, "-c", _BOMB], input=bomb, capture_output=True, check=True
    )
    said, kib = done.stdout.decode().splitlines()
    assert said == "LINK-44: more than the 1024 bytes declared"
    assert int(kib) < 4_096


def test_a_long_block_is_unpacked_whole() -> None:
    """A payload of 16 MiB in one frame, across many blocks and windows of zstd."""
    data = message(random.Random(5).randbytes(1 << 16) * 256)
    wire = LinkPacker(MOST).pack(data)
    assert len(wire) < len(data) / 10
    assert unpacked(wire, LinkUnpacker(MOST)) == data


FRAMES = st.one_of(
    st.tuples(st.sampled_from([b"a", b"flights/AA/JFK"]), st.binary(max_size=300)).map(
        lambda pair: message(pair[1], pair[0])
    ),
    st.integers(0, 5_000).map(lambda size: message(b"a text " * size)),
    st.just(HEARTBEAT),
    st.just(HELLO),
)


@settings(deadline=None)
@given(
    st.lists(st.lists(FRAMES, min_size=1, max_size=8), max_size=12), st.sampled_from([16_384, MOST])
)
def test_what_is_packed_is_unpacked(writes: list[list[bytes]], most: int) -> None:
    """Whatever frames leave in whatever writes, the peer gets those bytes, and the figures fit."""
    packer, unpacker = LinkPacker(most), LinkUnpacker(most)
    for parts in writes:
        data = b"".join(parts)
        wire = packer.pack(data)
        assert unpacked(wire, unpacker) == data
        if wire is not data:
            assert packer.ends[-1] == len(wire)
            assert sum(packer.counts) == sum(part[0] == 0x30 for part in parts)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 1_000), st.binary(max_size=60)), max_size=5),
    st.randoms(use_true_random=False),
)
def test_any_bytes_are_read_or_refused(
    attempts: list[tuple[bool, int, bytes]], draw: random.Random
) -> None:
    """Nothing but ProtocolError leaves the unpacker: random bodies, and good ones with a byte changed."""
    unpacker = LinkUnpacker(1_000)
    packer = LinkPacker(MOST)
    for raw, size, noise in attempts:
        if raw:
            bad = body(size, noise)
        else:
            wire = bytearray(split(packer.pack(message(noise + b"a text " * 50)))[-1][1])
            wire[draw.randrange(len(wire))] ^= 1 << draw.randrange(8)
            bad = bytes(wire)
        try:
            got = unpacker.unpack(bad)
        except ProtocolError:
            unpacker = LinkUnpacker(1_000)
            packer = LinkPacker(MOST)
        else:
            assert 0 < len(got) <= 1_000


def test_the_library_is_loaded_with_the_first_block_only() -> None:
    """Neither the import nor a packer and an unpacker that have nothing to do load zstandard."""
    program = (
        "import sys; from vpnrouter.wire.link.compressed import *; import vpnrouter.core.outbox\n"
        "p, u = LinkPacker(100_000), LinkUnpacker(100_000); p.pack(b'0' + bytes([48]) + bytes(48))\n"
        "assert 'zstandard' not in sys.modules; p.pack(b'0' + bytes([98]) + bytes(98))\n"
        "assert 'zstandard' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
