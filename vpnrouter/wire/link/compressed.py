"""Packs frames into COMPRESSED frames: one zstd stream per direction of a link, flushed at each frame (LINK-44).

The library is imported when the first block is packed or unpacked, so compression costs nothing on a link that never
carries more than heartbeats.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, cast, final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.codes import FRAME_TOO_LARGE, MALFORMED, PROTOCOL_ERROR
from vpnrouter.wire.link.frames import COMPRESSED, HANDSHAKE
from vpnrouter.wire.varint import frame_at, varint

if TYPE_CHECKING:
    import zstandard

ZSTD: Final = 1
"""The algorithm byte of LINK-44."""

LEAST_BYTES: Final = 64
"""Less than this leaves as it is: a heartbeat would not become smaller."""

LEVEL: Final = 3
"""zstd's level: against level 1 flights as JSON become 1 to 6 % smaller, most where writes are small and so
the two cost the same; where they are large it takes a tenth to a third longer (bench/compression.py)."""

WINDOW_LOG: Final = 18
"""A window of 256 KiB: 2**20 would save another 3 to 9 % for 0.8 MiB more of memory on each side."""

TABLE_LOG: Final = 15
"""Size of the tables beside the window, an eighth of what the level would take: the ratio is the same."""

GAIN_SHIFT: Final = 4
"""A block that does not become smaller by 1/16 is a poor one: its bytes are not worth the work."""

REST_SHIFT: Final = 6
"""After poor blocks so many bytes leave plain as the block had, doubled with each, up to 64 times: what
cannot be compressed grows by less than 2 % and costs next to nothing, and a change is noticed."""

_FLUSH_BLOCK: Final = 1
"""zstandard.COMPRESSOBJ_FLUSH_BLOCK: everything up to here can be read; the stream goes on."""

_HEAD: Final = 5
"""Algorithm and inner length."""

_SPARE: Final = 256
"""Room for the head of the frame and for what zstd may add, beside one byte in 256."""


@final
class LinkPacker:
    """The sending direction. `most` is the longest frame that the peer takes, in bytes.

    `bytes_in` and `bytes_out` count what went through. `ends` and `counts` describe what the last `pack`
    returned, when it is not what it was given: where each frame ends, and how many messages it holds.
    """

    __slots__ = ("_most", "_poor", "_rest", "_stream", "bytes_in", "bytes_out", "counts", "ends")

    def __init__(self, most: int) -> None:
        # What cannot be compressed grows, and must still be a frame that the peer takes.
        self._most = most - (most >> 8) - _SPARE
        self._stream: zstandard.ZstdCompressionObj | None = None
        self._poor = 0
        self._rest = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.ends: list[int] = []
        self.counts: list[int] = []

    def pack(self, data: bytes) -> bytes:
        """Return the bytes to send for the whole frames `data`; `data` itself where packing is not worth it.

        Frames of the handshake, and one too long to be packed, stay as they are.
        """
        size = len(data)
        self.bytes_in += size
        if size < LEAST_BYTES:
            self.bytes_out += size
            return data
        if self._rest > 0:
            self._rest -= size
            self.bytes_out += size
            return data
        self.ends = []
        self.counts = []
        parts: list[bytes] = []
        start = 0
        at = 0
        messages = 0
        while at < size:
            # 0 is no frame's length: what our own encoders made is whole.
            end = at + (frame_at(data, at, size, size, FRAME_TOO_LARGE, MALFORMED) or size - at)
            kind = data[at]
            plain = kind in HANDSHAKE or end - at > self._most
            if at > start and (plain or end - start > self._most):
                self._add(parts, self._block(data[start:at]), messages)
                start = at
                messages = 0
            if kind & 0xF0 == 0x30:
                messages += 1
            at = end
            if plain:
                self._add(parts, data[start:at], messages)
                start = at
                messages = 0
        if start == 0:
            self._add(parts, self._block(data), messages)
        elif start < size:
            self._add(parts, self._block(data[start:]), messages)
        packed = parts[0] if len(parts) == 1 else b"".join(parts)
        self.bytes_out += len(packed)
        if len(packed) > size - (size >> GAIN_SHIFT):
            self._rest = size << self._poor
            self._poor = min(self._poor + 1, REST_SHIFT)
        else:
            self._poor = 0
        return packed

    def _add(self, parts: list[bytes], frame: bytes, messages: int) -> None:
        parts.append(frame)
        self.ends.append(len(frame) + (self.ends[-1] if self.ends else 0))
        self.counts.append(messages)

    def _block(self, data: bytes) -> bytes:
        stream = self._stream
        if stream is None:
            stream = self._stream = _compressor()
        block = stream.compress(data) + stream.flush(_FLUSH_BLOCK)
        head = bytes((COMPRESSED,)) + varint(_HEAD + len(block)) + bytes((ZSTD,))
        return head + len(data).to_bytes(4, "big") + block


def _compressor() -> zstandard.ZstdCompressionObj:
    import zstandard

    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        window_log=WINDOW_LOG,
        hash_log=TABLE_LOG,
        chain_log=TABLE_LOG,
        write_content_size=False,
        write_checksum=False,
        write_dict_id=False,
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj()


@final
class LinkUnpacker:
    """The receiving direction. `most` is the longest frame that this side announced, in bytes.

    After an error the stream is of no use any more; the link is closed anyway.
    """

    __slots__ = ("_broken", "_most", "_reader", "_source")

    def __init__(self, most: int) -> None:
        self._most = most
        self._source = _Source()
        self._reader: zstandard.ZstdDecompressionReader | None = None
        self._broken: type[Exception] = Exception

    def unpack(self, body: bytes) -> bytes:
        """Return the whole frames inside a COMPRESSED frame with this body; at least one.

        Takes no more memory than the inner length says, whatever the block holds. Raises ProtocolError: 0x95 for an
        inner length above the bound, 0x82 for an unknown algorithm, an empty block or a frame that may not be inside,
        0x81 for everything else.
        """
        if len(body) < _HEAD:
            raise ProtocolError(MALFORMED, "LINK-44: the head of COMPRESSED is cut off")
        if body[0] != ZSTD:
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-44: algorithm {body[0]} is not known here")
        size = int.from_bytes(body[1:_HEAD], "big")
        if size > self._most:
            raise ProtocolError(
                FRAME_TOO_LARGE, f"LINK-44: {size} bytes inside, the limit is {self._most}"
            )
        if size == 0:
            raise ProtocolError(PROTOCOL_ERROR, "LINK-44: nothing inside")
        data = self._inflate(body, size)
        if len(data) != size:
            raise ProtocolError(
                MALFORMED,
                f"LINK-44: {'more' if len(data) > size else 'fewer'} than the {size} bytes declared",
            )
        self._check(data, size)
        return data

    def _inflate(self, body: bytes, size: int) -> bytes:
        """At most `size` + 1 bytes, so that one too many shows."""
        reader = self._reader
        if reader is None:
            reader = self._open()
        source = self._source
        source.block = body[_HEAD:]
        try:
            # read1 stops at the first output: a whole block's, because there is room for all of it.
            data = reader.read1(size + 1)
        except BlockingIOError:
            return b""
        except self._broken as error:
            raise ProtocolError(MALFORMED, f"LINK-44: the block cannot be read: {error}") from error
        if source.block:
            raise ProtocolError(MALFORMED, "LINK-44: the block before had bytes left over")
        return data

    def _open(self) -> zstandard.ZstdDecompressionReader:
        import zstandard

        self._broken = zstandard.ZstdError
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << limits.LINK_WINDOW_LOG)
        reader = decompressor.stream_reader(cast("IO[bytes]", self._source))
        self._reader = reader
        return reader

    def _check(self, data: bytes, size: int) -> None:
        at = 0
        while at < size:
            kind = data[at]
            if kind == COMPRESSED or kind in HANDSHAKE:
                raise ProtocolError(
                    PROTOCOL_ERROR, f"LINK-44: frame 0x{kind:02x} may not be inside COMPRESSED"
                )
            length = frame_at(data, at, size, self._most, FRAME_TOO_LARGE, MALFORMED)
            if length == 0:
                raise ProtocolError(MALFORMED, "LINK-44: a frame is cut off inside")
            at += length


def load() -> None:
    """Load the library early: when the first link needs it, there may be no descriptor or memory left."""
    import zstandard  # noqa: F401


@final
class _Source:
    """What zstd reads from: the block at hand, once.

    An empty answer would mean the end for ever; the error means "not now" and leaves the stream as it is.
    """

    __slots__ = ("block",)

    def __init__(self) -> None:
        self.block = b""

    def read(self, size: int) -> bytes:
        """The block; raises BlockingIOError when it has been read."""
        block = self.block
        if not block:
            raise BlockingIOError
        self.block = b""
        return block
