"""Reads and writes transfers, which nearly all frames of a busy link are, without an object for each.

Plain is a whole message in one frame, without a delivery state. What is not is left to `frames.decode`.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from mypy_extensions import i64

from vpnrouter.wire.amqp.heads import is_plain
from vpnrouter.wire.copying import WORD, copy_bytes

_DOFF_LEAST: Final = 2
_LIST_AT: Final = 11
"""Where the list of the fields begins in a frame with the shortest head."""

_SHORTEST: Final = 18
_SHORTEST_LONG: Final = 24
"""Bytes of the shortest transfer, and of the shortest with a long form of its list."""

_NULL: Final = 0x40
_TRUE: Final = 0x41
_FALSE: Final = 0x42
_ZERO: Final = 0x43
_SMALL: Final = 0x52
_UINT: Final = 0x70
_BINARY: Final = 0xA0
_LIST8: Final = 0xC0
_LIST32: Final = 0xD0

_SETTLED: Final = 4
_MORE: Final = 5
_RESUME: Final = 8
_ABORTED: Final = 9
_BATCHABLE: Final = 10
_LEAST_FIELDS: Final = 3


@final
class PlainTransfer:
    """The transfer that `read` has found: its fields, and where in the buffer its tag and its message lie.

    `message_format` is -1 where it says none. The message ends where the next frame begins, at `end`.
    """

    __slots__ = (
        "_at",
        "channel",
        "delivery_id",
        "end",
        "handle",
        "message",
        "message_format",
        "settled",
        "tag",
        "tag_end",
    )

    def __init__(self) -> None:
        self._at: i64 = 0
        self.channel: i64 = 0
        self.handle: i64 = 0
        self.delivery_id: i64 = 0
        self.message_format: i64 = 0
        self.settled = False
        self.tag: i64 = 0
        self.tag_end: i64 = 0
        self.message: i64 = 0
        self.end: i64 = 0

    def read(self, buf: bytes, pos: i64, end: i64, max_frame: i64) -> bool:
        """Read the frame at `pos`; False where it is not whole, no plain transfer, or not sound."""
        if end - pos < _SHORTEST:
            return False
        size = _u32(buf, pos)
        following: i64 = pos + size
        if following > end or size > max_frame or size < _SHORTEST:
            return False
        if (
            buf[pos + 4] != _DOFF_LEAST
            or buf[pos + 5] != 0
            or buf[pos + 8] != 0
            or buf[pos + 9] != 0x53
            or buf[pos + 10] != 0x14
        ):
            return False
        high: i64 = buf[pos + 6]
        low: i64 = buf[pos + 7]
        self.channel = high << 8 | low
        at: i64 = pos + _LIST_AT
        length: i64
        count: i64
        if buf[at] == _LIST8:
            length = buf[at + 1]
            count = buf[at + 2]
            self.message = at + 2 + length
            self._at = at + 3
        elif buf[at] == _LIST32 and size >= _SHORTEST_LONG:
            length = _u32(buf, at + 1)
            count = _u32(buf, at + 5)
            self.message = at + 5 + length
            self._at = at + 9
        else:
            return False
        self.end = following
        if self.message > following or count < _LEAST_FIELDS or count > _BATCHABLE + 1:
            return False
        return self._fields(buf, count) and self._at == self.message

    def _fields(self, buf: bytes, count: i64) -> bool:
        last: i64 = self.message
        self.handle = self._uint(buf, last)
        self.delivery_id = self._uint(buf, last)
        if self.handle < 0 or self.delivery_id < 0 or self._at + 2 > last:
            return False
        if buf[self._at] != _BINARY:
            return False
        self.tag = self._at + 2
        tag_bytes: i64 = buf[self._at + 1]
        self.tag_end = self.tag + tag_bytes
        self._at = self.tag_end
        self.message_format = -1
        self.settled = False
        number: i64 = _LEAST_FIELDS
        while number < count:
            if self._at >= last:
                return False
            code: i64 = buf[self._at]
            if code == _NULL:
                self._at += 1
            elif number == _LEAST_FIELDS:
                self.message_format = self._uint(buf, last)
                if self.message_format < 0:
                    return False
            elif number == _SETTLED and (code in (_TRUE, _FALSE)):
                self.settled = code == _TRUE
                self._at += 1
            elif (number == _BATCHABLE and (code in (_TRUE, _FALSE))) or (
                (number in (_MORE, _RESUME, _ABORTED)) and code == _FALSE
            ):
                self._at += 1
            else:
                return False
            number += 1
        return True

    def _uint(self, buf: bytes, last: i64) -> i64:
        """Return the number at `_at`, and go behind it; -1 where there is none before `last`."""
        at: i64 = self._at
        if at >= last:
            return -1
        code: i64 = buf[at]
        value: i64
        if code == _ZERO:
            self._at = at + 1
            return 0
        if code == _SMALL and at + 2 <= last:
            self._at = at + 2
            value = buf[at + 1]
            return value
        if code == _UINT and at + 5 <= last:
            self._at = at + 5
            return _u32(buf, at + 1)
        return -1


@final
class Burst:
    """Plain settled transfers over one link, one behind the other: `count` of them, of `size` bytes with their frames.

    `next` is where they end.
    """

    __slots__ = ("_places", "_plain", "count", "next", "size")

    def __init__(self) -> None:
        self._plain = PlainTransfer()
        # Where each message begins and ends: two words for each.
        self._places = b""
        self.count: i64 = 0
        self.size: i64 = 0
        self.next: i64 = 0

    def scan(
        self,
        buf: bytes,
        pos: i64,
        end: i64,
        channel: i64,
        handle: i64,
        max_frame: i64,
        max_message: i64,
        most: i64,
    ) -> i64:
        """Find at most `most` transfers from `pos` on, of sound messages of at most `max_message` bytes.

        Returns how many there are.
        """
        plain = self._plain
        places = BytesWriter()
        start: i64 = pos
        count: i64 = 0
        while count < most and plain.read(buf, pos, end, max_frame):
            if not plain.settled or plain.handle != handle or plain.channel != channel:
                break
            if plain.message_format > 0:
                break
            message: i64 = plain.message
            following: i64 = plain.end
            if following - message > max_message or not is_plain(buf, message, following):
                break
            write_i64_le(places, message)
            write_i64_le(places, following)
            count += 1
            pos = following
        self._places = places.getvalue()
        self.count = count
        self.size = pos - start
        self.next = pos
        return count

    def message(self, buf: bytes, index: i64) -> bytes:
        """Return one of the messages."""
        at: i64 = read_i64_le(self._places, index * 2 * WORD)
        end: i64 = read_i64_le(self._places, index * 2 * WORD + WORD)
        return buf[at:end]

    def frames(self, buf: bytes, count: i64, head: TransferHead, delivery: i64, most: i64) -> bytes:
        """Return the frames with which the first `count` messages leave over the link of `head`, settled.

        `delivery` is the id of the first one. b"" where one of them does not fit into `most` bytes.
        """
        out = BytesWriter()
        places = self._places
        index: i64 = 0
        while index < count:
            at: i64 = read_i64_le(places, index * 2 * WORD)
            end: i64 = read_i64_le(places, index * 2 * WORD + WORD)
            total: i64 = HEAD_BYTES + end - at
            if total > most:
                return b""
            head.write(out, total, delivery)
            copy_bytes(out, buf, at, end)
            delivery = (delivery + 1) & 0xFFFF_FFFF
            index += 1
        return out.getvalue()


HEAD_BYTES: Final = 32
"""Of a frame with a whole message, before the message: four words."""

_WRAP: Final = 0x1_0000_0000
_HALF: Final = 0x8000_0000
_SETTLED_TAG: Final = 0x4143_0000_0000_04A0
"""A tag of four bytes, which are left out, message format 0, and that the message is settled."""

UNSETTLED_HEAD_BYTES: Final = 48
"""The same of a message that is not settled: two words more, for its tag."""

_TAG: Final = 0x10A0
_UNSETTLED: Final = 0x4200_0000_0070_0000
"""What stands before a tag of sixteen bytes, and behind it: message format 0, and that the message is not settled."""

_WORD16: Final = 0x1_0000
_WORD48: Final = 0x1_0000_0000_0000
_SIGN16: Final = 0x8000
_SIGN48: Final = 0x8000_0000_0000


@final
class TransferHead:
    """What the frames of whole messages over one link begin with.

    The tag of a delivery that is settled is its id. That of another is the id of its message, by which a client may ask
    for it over another connection, and a proof that the client was given it.
    """

    __slots__ = ("_first", "_longer", "_second", "_third")

    def __init__(self, channel: int, handle: int) -> None:
        number = handle.to_bytes(4, "big")
        self._first: i64 = _word(bytes(4) + b"\x02\x00" + channel.to_bytes(2, "big"))
        self._second: i64 = _word(_PERFORMATIVE + b"\x13\x05\x70" + number[:1])
        self._longer: i64 = _word(_PERFORMATIVE + b"\x23\x05\x70" + number[:1])
        self._third: i64 = _word(number[1:] + b"\x70" + bytes(4))

    def write(self, out: BytesWriter, total: i64, delivery: i64) -> None:
        """Write the head of a frame of `total` bytes whose message is settled."""
        write_i64_le(out, self._first + _swapped(total))
        write_i64_le(out, self._second)
        turned = _swapped(delivery)
        write_i64_le(out, self._third + _signed(turned) * _WRAP)
        write_i64_le(out, _SETTLED_TAG + (turned << 16))

    def _write_unsettled(
        self, out: BytesWriter, total: i64, delivery: i64, message: i64, proof: i64
    ) -> None:
        write_i64_le(out, self._first + _swapped(total))
        write_i64_le(out, self._longer)
        write_i64_le(out, self._third + _signed(_swapped(delivery)) * _WRAP)
        low = _swapped(message & 0xFFFF_FFFF)
        middle: i64 = low & (_WORD16 - 1)
        if middle >= _SIGN16:
            middle -= _WORD16
        write_i64_le(out, _TAG + (_swapped(message >> 32) << 16) + middle * _WORD48)
        most: i64 = proof & (_WORD48 - 1)
        if most >= _SIGN48:
            most -= _WORD48
        write_i64_le(out, (low >> 16) + most * _WORD16)
        write_i64_le(out, _UNSETTLED + (proof >> 48 & (_WORD16 - 1)))

    def whole(
        self,
        delivery: i64,
        settled: bool,
        header: bytes,
        content: bytes,
        message: i64,
        proof: i64 = 0,
    ) -> bytes:
        """Return the frame of a message of these two parts; `message` is its id, for one that is not settled.

        `proof` are eight bytes, little-endian, that follow the id in its tag.
        """
        out = BytesWriter()
        size: i64 = len(header) + len(content)
        if settled:
            self.write(out, HEAD_BYTES + size, delivery)
        else:
            self._write_unsettled(out, UNSETTLED_HEAD_BYTES + size, delivery, message, proof)
        copy_bytes(out, header, 0, len(header))
        copy_bytes(out, content, 0, len(content))
        return out.getvalue()


def _word(data: bytes) -> int:
    """Return eight bytes as the number that is written in their place."""
    return int.from_bytes(data, "little", signed=True)


def _swapped(value: i64) -> i64:
    """Return a number of 32 bits with its bytes in the other order."""
    return (value & 255) << 24 | (value >> 8 & 255) << 16 | (value >> 16 & 255) << 8 | value >> 24


def _signed(value: i64) -> i64:
    """Return a number of 32 bits as one with a sign."""
    return value - _WRAP if value >= _HALF else value


def _u32(buf: bytes, at: i64) -> i64:
    first: i64 = buf[at]
    second: i64 = buf[at + 1]
    third: i64 = buf[at + 2]
    fourth: i64 = buf[at + 3]
    return first << 24 | second << 16 | third << 8 | fourth


_PERFORMATIVE: Final = b"\x00\x53\x14\xc0"
_FRAME_HEAD: Final = 8
_NO_MODE: Final = b"\x40"
"""A transfer does not say how its receiver settles."""


def handle_bytes(handle: int) -> bytes:
    """Return a handle as the first field of the transfers of its link."""
    if handle == 0:
        return b"\x43"
    return b"\x52" + bytes((handle,)) if handle < 256 else b"\x70" + handle.to_bytes(4, "big")


@final
class OutgoingTransfer:
    """A message on its way to a client: one `frame`, or what is left of it, which is cut when it is sent.

    `size` is how many bytes are left. Many clients may share the `content`.
    """

    __slots__ = (
        "_at",
        "_content",
        "_first",
        "_head",
        "_rest",
        "_room",
        "_state",
        "channel",
        "size",
    )

    def __init__(self, frame: bytes) -> None:
        self.channel = 0
        self.size = len(frame)
        self._first = frame
        self._rest = b""
        self._head = b""
        self._content = b""
        self._at = 0
        self._room = 0
        self._state = b""

    def cut(
        self,
        channel: int,
        first: bytes,
        rest: bytes,
        head: bytes,
        content: bytes,
        most: int,
        state: bytes = b"",
    ) -> None:
        """Cut `head` and `content` into frames of at most `most` bytes.

        `first` are the fields of the first one up to the flag for more, `rest` those of the others. All say the
        `state`, b"" for none.
        """
        self.channel = channel
        self._state = state
        self._first = first
        self._rest = rest
        self._head = head
        self._content = content
        self._room = most
        self.size = len(head) + len(content)

    def next(self) -> bytes:
        """Return the next frame; there is one while `size` is not 0."""
        if not self._room:
            self.size = 0
            return self._first
        fields = self._rest if self._at else self._first
        behind = _NO_MODE + self._state if self._state else b""
        room = self._room - _FRAME_HEAD - len(_PERFORMATIVE) - 2 - len(fields) - 1 - len(behind)
        start = self._at
        end = start + min(room, self.size)
        ahead = len(self._head)
        payload = self._content[max(0, start - ahead) : max(0, end - ahead)]
        if start < ahead:
            payload = self._head[start:end] + payload
        self._at = end
        self.size -= end - start
        more = b"\x41" if self.size else b"\x42"
        return _frame(self.channel, 8 if behind else 6, fields + more + behind, payload)


def cut_transfer(
    channel: int,
    handle: bytes,
    delivery_id: int,
    settled: bool,
    head: bytes,
    content: bytes,
    most: int,
    tag: bytes = b"",
    state: bytes = b"",
) -> OutgoingTransfer:
    """Return a message of `head` and `content` over the link of `handle` (`handle_bytes`), in frames of `most` bytes.

    Without a `tag` the delivery's is its id. A frame but the last one says that there is more. `state` is that of the
    delivery as it is written, b"" for none.
    """
    number = delivery_id.to_bytes(4, "big")
    done = b"\x41" if settled else b"\x42"
    tag = tag or number
    first = handle + b"\x70" + number + b"\xa0" + bytes((len(tag),)) + tag + b"\x43" + done
    fields = first + b"\x42" + _NO_MODE + state if state else first
    if _FRAME_HEAD + len(_PERFORMATIVE) + 2 + len(fields) + len(head) + len(content) <= most:
        return OutgoingTransfer(_frame(channel, 8 if state else 5, fields, head + content))
    outgoing = OutgoingTransfer(b"")
    outgoing.cut(channel, first, handle + b"\x40\x40\x40\x40", head, content, most, state)
    return outgoing


def _frame(channel: int, count: int, fields: bytes, payload: bytes) -> bytes:
    body = _PERFORMATIVE + bytes((len(fields) + 1, count)) + fields
    size = _FRAME_HEAD + len(body) + len(payload)
    return size.to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body + payload


def disposition(channel: int, role: bool, first: int, last: int, settled: bool) -> bytes:
    """Return the frame that says that the deliveries `first` to `last` are accepted; of the same size for any."""
    return (
        b"\x00\x00\x00\x1e\x02\x00"
        + channel.to_bytes(2, "big")
        + b"\x00\x53\x15\xc0\x11\x05"
        + (b"\x41" if role else b"\x42")
        + b"\x70"
        + first.to_bytes(4, "big")
        + b"\x70"
        + last.to_bytes(4, "big")
        + (b"\x41" if settled else b"\x42")
        + b"\x00\x53\x24\x45"
    )


_SETTLED_BEHIND: Final = 12
"""Bytes of a transfer of `transfer` between its handle and the flag that it is settled."""


def frame_end(data: bytes, at: i64) -> i64:
    """Where the frame at `at` ends; the end of `data` when it goes beyond."""
    end: i64 = len(data)
    if end - at < _FRAME_HEAD:
        return end
    size = _u32(data, at)
    following: i64 = at + size
    return min(end, following) if size >= _FRAME_HEAD else end


def is_settled(data: bytes, at: i64) -> bool:
    """Return whether at `at` a message begins that `transfer` has written, and that its receiver need not settle."""
    end: i64 = len(data)
    if end - at < _SHORTEST or data[at + 10] != 0x14 or data[at + 11] != _LIST8:
        return False
    code: i64 = data[at + 14]
    pos: i64 = at + 15
    if code == _SMALL:
        pos += 1
    elif code == _UINT:
        pos += 4
    pos += _SETTLED_BEHIND
    return pos < end and data[pos - _SETTLED_BEHIND] == _UINT and data[pos] == _TRUE


def settled_from(data: bytes, at: i64) -> int:
    """How many messages that count as delivered begin at or after `at`, where a frame begins (or `data` ends)."""
    count = 0
    end: i64 = len(data)
    while at < end:
        if is_settled(data, at):
            count += 1
        at = frame_end(data, at)
    return count
