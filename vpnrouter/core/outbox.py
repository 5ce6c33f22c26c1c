"""Queues the frames to be sent to one connection, bounded.

Encoded frames are appended during a round and leave in one write at its end. Beyond the bound, Direct frames are
discarded and counted, so that a slow consumer neither costs memory nor stalls others (promise DIRECT). Control frames
are always taken: they are few, and the protocol needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from vpnrouter import limits
from vpnrouter.wire.amqp import transfers
from vpnrouter.wire.varint import DIRECT_MASK, MESSAGE, frame_end, messages_from

if TYPE_CHECKING:
    from vpnrouter.wire.link.compressed import LinkPacker


COARSE_BYTES: Final = 4_096
COARSE_MOST: Final = 64
"""Chunks that have so many bytes on average are written as they are, so many at most."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Channel:
    """The edge's half of a connection: how bytes leave. Subclassed in `server`."""

    __slots__ = ()

    def flush(self) -> None:
        """Send the content of the outbox, or arrange for it."""

    def wake(self) -> None:
        """Read again after a pause."""

    def cut(self, why: str) -> bool:
        """Close the transport at once, and have the connection's `lost` called; False where this channel cannot."""
        return False


class RefusedFrames:
    """Records for traces what an outbox had no room for (discard_rows.py)."""

    __slots__ = ()

    def add(self, data: bytes, start: int, size: int, count: int) -> None:
        """Count `count` frames that were refused; the first is `data[start:start + size]`."""
        raise AssertionError(self)

    def told(self, count: int) -> None:
        """Take off `count` refused messages that have rows of their own."""
        raise AssertionError(self)

    def dropped(self, count: int) -> None:
        """Count messages that were accepted and then lost with the connection."""
        raise AssertionError(self)


@final
class Outbox:
    """Frames for one connection.

    `ready` is the router's list of outboxes to flush at the end of the round. `messages` and `bytes_` count accepted
    Direct messages and bytes, `discarded` those without room, which `losses` reports in traces unless it is None.
    `parked` bytes wait elsewhere until the client asks for them (AMQP's credit). `pressed`: publishers are left unread
    until no more than `high` bytes wait, or until `until_ns` (backpressure.py); the outbox put itself on `crowded`,
    another list of the whole router, or None where nobody looks at it. `listed`: it is there. `reads`: publishers were
    left unread for it last, and it took something; `tried`: they were before.
    `narrowed`: see `narrow`. `amqp`: the frames are those of AMQP, else of MQTT or of a link; `plain`: there are no
    frames that could be counted. With a `packer`, set once and never taken away, content is packed at the moment it is
    taken.
    """

    __slots__ = (
        "_backpressure",
        "_crowded",
        "_cut",
        "_least",
        "_left",
        "_packed_sent",
        "_pause_after",
        "_skip",
        "_taken_cut",
        "_taken_packed_sent",
        "_taken_skip",
        "amqp",
        "bytes_",
        "channel",
        "chunks",
        "closed",
        "dirty",
        "discarded",
        "high",
        "limit",
        "listed",
        "losses",
        "messages",
        "narrowed",
        "packer",
        "parked",
        "plain",
        "pressed",
        "reads",
        "ready",
        "size",
        "tried",
        "until_ns",
    )

    def __init__(
        self, ready: list[Outbox], limit: int, crowded: list[Outbox] | None = None
    ) -> None:
        self.ready = ready
        self._crowded = crowded
        self.listed = False
        self.pressed = False
        self.until_ns = 0
        self.reads = False
        self.tried = False
        self.parked = 0
        self.limit = 0
        # The limit that holds again when there is memory, while it is `narrow`; else 0.
        self.narrowed = 0
        self.high = 0
        # Bytes that have left since publishers were last left unread, and how many must before they are again, at
        # least and now.
        self._left = 0
        self._least = 0
        self._pause_after = 0
        self.set_limit(limit)
        self.chunks: list[bytes] = []
        self.size = 0
        self.dirty = False
        self.closed = False
        self.amqp = False
        self.plain = False
        self.messages = 0
        self.bytes_ = 0
        self.discarded = 0
        # Bytes of the first chunk up to where a frame begins, and whether they end a message that
        # was cut in two by a write; the same of what was taken last.
        self._skip = 0
        self._cut = False
        self._taken_skip = 0
        self._taken_cut = False
        self.losses: RefusedFrames | None = None
        self.packer: LinkPacker | None = None
        # Bytes that have left of what was packed last, while its rest is the first chunk, else -1; the
        # same of what was taken last.
        self._packed_sent = -1
        self._taken_packed_sent = -1
        self.channel: Channel | None = None

    def set_limit(self, limit: int) -> None:
        """Bound what waits here to `limit` bytes; long before, publishers are left unread for a moment."""
        self.limit = limit
        self.high = min(limit // 4, limits.CROWDED_BYTES)
        self._least = min(limits.PAUSE_AFTER_BYTES, self.high)
        self._pause_after = self._least
        self._left = self._least

    def narrow(self) -> None:
        """Take no more Direct messages than wait here now: memory is short."""
        if not self.narrowed:
            self.narrowed = self.limit
        self.limit = min(self.limit, max(self.size, limits.OUTBOX_BYTES_LEAST))

    def widen(self) -> None:
        """End `narrow`."""
        self.limit = self.narrowed
        self.narrowed = 0

    def has_left(self, count: int) -> None:
        """Note that `count` bytes have left, and that there is room again where no more than `high` wait."""
        self._left += count
        if self.pressed and self.size + self.parked <= self.high:
            self._relax(reads=True)

    def crowd(self) -> None:
        """Have the publisher of this moment left unread, because much waits here; not for one that does not read."""
        if self.closed or self.listed or not (self.pressed or self._left >= self._least):
            return
        crowded = self._crowded
        if crowded is not None:
            self.listed = True
            crowded.append(self)

    def press(self, until_ns: int) -> None:
        """Leave publishers unread from now on, until `until_ns` at the latest, where what was read since the last time
        is enough: as many bytes as asked for, or as much in a second as would have been while they were left unread.
        """
        due = self._least * (until_ns - self.until_ns)
        if self._left < self._pause_after and self._left * limits.PUBLISHER_HELD_NS < due:
            return
        self.pressed = True
        self.until_ns = until_ns
        self._left = 0

    def holds_up(self, now_ns: int) -> bool:
        """Return whether publishers are still left unread; ends that when its time is over."""
        if self.pressed and (self.closed or now_ns >= self.until_ns):
            self._relax(reads=self._left >= self._least)
        return self.pressed

    def _relax(self, *, reads: bool) -> None:
        self.pressed = False
        self.tried = True
        self.reads = reads
        if reads:
            self._pause_after = self._least
        else:
            self._pause_after = max(self._least, min(2 * self._pause_after, self.limit // 2))

    def offer(self, data: bytes, count: int) -> int:
        """Append `count` Direct frames of equal size, as many as fit; count the rest as discarded.

        Returns how many were taken, the first ones.
        """
        length = len(data)
        if self.size + length > self.high or self.closed:
            self.crowd()
            if self.size + length > self.limit or self.closed:
                data, count = self._fitting(data, count)
                if count == 0:
                    return 0
                length = len(data)
        self.chunks.append(data)
        self.size += length
        self.messages += count
        self.bytes_ += length
        if not self.dirty:
            self.dirty = True
            self.ready.append(self)
        return count

    def _fitting(self, data: bytes, count: int) -> tuple[bytes, int]:
        unit = len(data) // count
        fit = 0 if self.closed else max(0, self.limit - self.size) // unit
        self.discarded += count - fit
        losses = self.losses
        if losses is not None and count > fit:
            losses.add(data, fit * unit, unit, count - fit)
        return data[: fit * unit], fit

    def offer_mixed(self, data: bytes, count: int) -> int:
        """Append `count` Direct frames of any sizes, as many as fit; count the rest as discarded.

        Returns how many were taken, the first ones.
        """
        room = self.limit - self.size
        if len(data) <= room and not self.closed:
            return self.offer(data, count)
        at: i64 = 0
        taken = 0
        if not self.closed:
            while (following := frame_end(data, at)) <= room:
                taken += 1
                at = following
        self.crowd()
        self.discarded += count - taken
        losses = self.losses
        if losses is not None:
            end = len(data)
            rest = at
            while rest < end:
                following = frame_end(data, rest)
                losses.add(data, rest, following - rest, 1)
                rest = following
        return self.offer(data[:at], taken) if taken else 0

    def control(self, data: bytes) -> None:
        """Append a control frame; never discarded."""
        if self.closed:
            return
        self.chunks.append(data)
        self.size += len(data)
        if not self.dirty:
            self.dirty = True
            self.ready.append(self)

    def take(self, at_most: int) -> bytes:
        """Remove and return the oldest frames, whole chunks, about `at_most` bytes (one chunk may be more).

        With a packer, `at_most` is of what is packed.
        """
        packer = self.packer
        if packer is not None and (self._packed_sent >= 0 or self._skip > 0):
            return self._take_rest()
        chunks = self.chunks
        self._taken_skip = self._skip
        self._taken_cut = self._cut
        self._skip = 0
        self._cut = False
        if len(chunks) == 1:
            data = chunks[0]
            chunks.clear()
        elif self.size <= at_most:
            data = b"".join(chunks)
            chunks.clear()
        else:
            count = 0
            total = 0
            for chunk in chunks:
                if total and total + len(chunk) > at_most:
                    break
                total += len(chunk)
                count += 1
            data = b"".join(chunks[:count])
            del chunks[:count]
        self.size -= len(data)
        if packer is None:
            return data
        packed = packer.pack(data)
        self._taken_packed_sent = -1 if packed is data else 0
        return packed

    def _take_rest(self) -> bytes:
        # What a write left begins within a frame, packed or not: it leaves as it is, alone.
        self._taken_packed_sent = self._packed_sent
        self._packed_sent = -1
        self._taken_skip = self._skip
        self._taken_cut = self._cut
        self._skip = 0
        self._cut = False
        rest = self.chunks.pop(0)
        self.size -= len(rest)
        return rest

    def put_back(self, data: bytes, sent: int) -> None:
        """Return the unsent part of a write to the front: `data`, as `take` gave it, from `sent` on."""
        rest = data[sent:]
        self.chunks.insert(0, rest)
        self.size += len(rest)
        if self._taken_packed_sent >= 0:
            self._packed_sent = self._taken_packed_sent + sent
            return
        if self.plain:
            return
        # Remembered for close(): where in the rest the next frame begins, and what was cut in two.
        at = self._taken_skip
        cut = at > sent and self._taken_cut
        while at < sent:
            end = transfers.frame_end(data, at) if self.amqp else frame_end(data, at)
            cut = end > sent and self._is_direct(data, at)
            at = end
        self._skip = at - sent
        self._cut = cut

    def _is_direct(self, data: bytes, at: i64) -> bool:
        if self.amqp:
            return transfers.is_settled(data, at)
        return data[at] & DIRECT_MASK == MESSAGE

    def is_coarse(self) -> bool:
        """Whether to write the chunks as they are: to join so few large ones would cost more."""
        count = len(self.chunks)
        return (
            1 < count <= COARSE_MOST and self.size >= count * COARSE_BYTES and self.packer is None
        )

    def take_chunks(self, at_most: int) -> list[bytes]:
        """Remove and return the oldest chunks, about `at_most` bytes (one chunk may be more). Not with a packer."""
        self._taken_skip = self._skip
        self._taken_cut = self._cut
        self._skip = 0
        self._cut = False
        taken = self.chunks
        total = 0
        count = 0
        for chunk in taken:
            if total and total + len(chunk) > at_most:
                break
            total += len(chunk)
            count += 1
        self.chunks = taken[count:]
        self.size -= total
        del taken[count:]
        return taken

    def put_back_chunks(self, chunks: list[bytes], sent: int) -> None:
        """Return to the front what a write did not take of `chunks`, as `take_chunks` gave them, from `sent` on."""
        index = 0
        while sent >= len(chunks[index]):
            sent -= len(chunks[index])
            index += 1
            self._taken_skip = 0
            self._taken_cut = False
        rest = chunks[index + 1 :]
        for chunk in rest:
            self.size += len(chunk)
        self.chunks = rest + self.chunks
        self.put_back(chunks[index], sent)

    def waiting(self) -> int:
        """How many messages wait here, those of which only a part has left among them."""
        if self.plain:
            return 0
        count = 1 if self._cut else 0
        at = self._skip
        first = 0
        packer = self.packer
        if packer is not None and self._packed_sent >= 0:
            first = 1
            for index in range(len(packer.ends)):
                if packer.ends[index] > self._packed_sent:
                    count += packer.counts[index]
        for index in range(first, len(self.chunks)):
            chunk = self.chunks[index]
            if self.amqp:
                count += transfers.settled_from(chunk, at)
            else:
                count += messages_from(chunk, at)
            at = 0
        return count

    def close(self) -> int:
        """Drop everything, accept nothing any more; returns how many messages were dropped."""
        lost = 0
        if not self.closed:
            # First: if the code below raises, it is not called again.
            self.closed = True
            lost = self.waiting()
        self.chunks.clear()
        self.size = 0
        self._skip = 0
        self._cut = False
        self._packed_sent = -1
        return lost
