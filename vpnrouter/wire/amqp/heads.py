"""Walks over the sections of a message (3.2) without an object for each, and reads what routing needs of them.

What is written in an unusual way is left to `sections.sections`: descriptors by symbol or in the long form, and bodies
that are described values.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.wire.amqp.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
)

_SMALL_ULONG: Final = 0x53
_NULL: Final = 0x40
_TRUE: Final = 0x41
_FALSE: Final = 0x42
_ZERO: Final = 0x43
_LIST0: Final = 0x45
_UBYTE: Final = 0x50
_SMALL_UINT: Final = 0x52
_UINT: Final = 0x70
_BIN8: Final = 0xA0
_BIN32: Final = 0xB0
_LIST8: Final = 0xC0
_MAP8: Final = 0xC1
_LIST32: Final = 0xD0
_MAP32: Final = 0xD1

DEFAULT_PRIORITY: Final = 4


def skip(buf: bytes, pos: i64, end: i64) -> i64:
    """Return the position behind the value at `pos`; -1 where it is described, cut off by `end`, or no value at all."""
    if pos >= end:
        return -1
    code: i64 = buf[pos]
    high: i64 = code >> 4
    pos += 1
    if high < 4:
        return -1
    if high == 4:
        return pos
    if high == 5:
        pos += 1
    elif high == 6:
        pos += 2
    elif high == 7:
        pos += 4
    elif high == 8:
        pos += 8
    elif high == 9:
        pos += 16
    elif high & 1 == 0:
        if pos >= end:
            return -1
        size: i64 = buf[pos]
        pos += 1 + size
    else:
        if pos + 4 > end:
            return -1
        pos += 4 + _u32(buf, pos)
    return pos if pos <= end else -1


def _u32(buf: bytes, at: i64) -> i64:
    first: i64 = buf[at]
    second: i64 = buf[at + 1]
    third: i64 = buf[at + 2]
    fourth: i64 = buf[at + 3]
    return first << 24 | second << 16 | third << 8 | fourth


def is_plain(buf: bytes, pos: i64, end: i64) -> bool:
    """Return whether `buf[pos:end]` is a sound message without delivery annotations, written in the usual way.

    It may be without a body, and without anything.
    """
    before: i64 = 0
    body: i64 = 0
    left: i64 = limits.AMQP_SECTIONS
    while pos < end:
        left -= 1
        if left < 0 or end - pos < 4 or buf[pos] != 0 or buf[pos + 1] != _SMALL_ULONG:
            return False
        code: i64 = buf[pos + 2]
        if code < HEADER or code > FOOTER or code == DELIVERY_ANNOTATIONS:
            return False
        if code < before or (code == before and code not in (DATA, SEQUENCE)):
            return False
        kind: i64 = buf[pos + 3]
        if not _fits(code, kind):
            return False
        if body and code not in (body, FOOTER):
            return False
        if DATA <= code <= VALUE:
            body = code
        before = code
        pos = skip(buf, pos + 3, end)
        if pos < 0:
            return False
    return True


def _fits(code: i64, kind: i64) -> bool:
    """Return whether a section of `code` may begin with a value of `kind`."""
    if code == DATA:
        return kind in (_BIN8, _BIN32)
    if code == VALUE:
        return kind != 0
    if code in (HEADER, PROPERTIES, SEQUENCE):
        return kind in (_LIST8, _LIST32, _LIST0)
    return kind in (_MAP8, _MAP32)


@final
class MessageScan:
    """What routing needs of a message: its header, and where its content, annotations and properties begin.

    `ttl` is -1 where the header says none. `annotations` and `properties` are the positions of their values, -1 where
    there are none; the content goes from `content` to the end. `application`: it has application properties.
    """

    __slots__ = (
        "_at",
        "annotations",
        "annotations_end",
        "application",
        "content",
        "durable",
        "priority",
        "properties",
        "properties_end",
        "ttl",
    )

    def __init__(self) -> None:
        self._at: i64 = 0
        self.content: i64 = 0
        self.annotations: i64 = -1
        self.annotations_end: i64 = -1
        self.properties: i64 = -1
        self.properties_end: i64 = -1
        self.application = False
        self.durable = False
        self.priority: i64 = DEFAULT_PRIORITY
        self.ttl: i64 = -1

    def read(self, buf: bytes) -> bool:
        """Read a message; False where it is not written in the usual way, or not sound."""
        end: i64 = len(buf)
        if not is_plain(buf, 0, end):
            return False
        pos: i64 = 0
        self.content = 0
        self.annotations = -1
        self.properties = -1
        self.application = False
        self.durable = False
        self.priority = DEFAULT_PRIORITY
        self.ttl = -1
        while pos < end:
            code: i64 = buf[pos + 2]
            behind = skip(buf, pos + 3, end)
            if code == HEADER:
                if not self._header(buf, pos + 3, behind):
                    return False
                self.content = behind
            elif code == MESSAGE_ANNOTATIONS:
                self.annotations = pos + 3
                self.annotations_end = behind
            elif code == PROPERTIES:
                self.properties = pos + 3
                self.properties_end = behind
            else:
                self.application = code == APPLICATION_PROPERTIES
                break
            pos = behind
        return True

    def _header(self, buf: bytes, pos: i64, end: i64) -> bool:
        code: i64 = buf[pos]
        if code == _LIST0:
            return True
        count: i64
        if code == _LIST8:
            if end - pos < 3:
                return False
            count = buf[pos + 2]
            self._at = pos + 3
        else:
            if end - pos < 9:
                return False
            count = _u32(buf, pos + 5)
            self._at = pos + 9
        if count > 5:
            return False
        if count > 0:
            durable = self._boolean(buf, end)
            if durable < 0:
                return False
            self.durable = durable == 1
        if count > 1:
            priority = self._number(buf, end, _UBYTE)
            if priority == -2:
                return False
            self.priority = DEFAULT_PRIORITY if priority < 0 else priority
        if count > 2:
            self.ttl = self._number(buf, end, _UINT)
            if self.ttl == -2:
                return False
        if count > 3 and self._boolean(buf, end) < 0:
            return False
        if count > 4 and self._number(buf, end, _UINT) == -2:
            return False
        return self._at == end

    def _boolean(self, buf: bytes, end: i64) -> i64:
        """Return 0 or 1 for the flag at `_at`, and go behind it; 0 for null, -1 where there is none."""
        at: i64 = self._at
        if at >= end:
            return -1
        code: i64 = buf[at]
        self._at = at + 1
        if code == _TRUE:
            return 1
        return 0 if code in (_FALSE, _NULL) else -1

    def _number(self, buf: bytes, end: i64, kind: i64) -> i64:
        """Return the number at `_at`, and go behind it; -1 for null, -2 where there is none of this kind."""
        at: i64 = self._at
        if at >= end:
            return -2
        code: i64 = buf[at]
        if code == _NULL:
            self._at = at + 1
            return -1
        if kind == _UBYTE:
            if code != _UBYTE or at + 2 > end:
                return -2
            self._at = at + 2
            value: i64 = buf[at + 1]
            return value
        if code == _ZERO:
            self._at = at + 1
            return 0
        if code == _SMALL_UINT and at + 2 <= end:
            self._at = at + 2
            small: i64 = buf[at + 1]
            return small
        if code == _UINT and at + 5 <= end:
            self._at = at + 5
            return _u32(buf, at + 1)
        return -2


_HEADERS: Final[dict[bool, bytes]] = {
    True: b"\x00\x53\x70\xc0\x05\x04\x41\x40\x40\x41",
    False: b"\x00\x53\x70\xc0\x05\x04\x42\x40\x40\x41",
}
"""Headers of messages of the default priority that live for ever and were not delivered before."""


def header(durable: bool, priority: int, ttl: int, count: int, first: bool) -> bytes:
    """Return a header section. `ttl` is -1 for none, `count` the deliveries that failed, `first` first-acquirer."""
    if priority == DEFAULT_PRIORITY and ttl < 0 and first:
        return _HEADERS[durable]
    fields = b"\x41" if durable else b"\x42"
    fields += bytes((_UBYTE, priority))
    fields += b"\x40" if ttl < 0 else b"\x70" + ttl.to_bytes(4, "big")
    fields += b"\x41" if first else b"\x42"
    fields += b"\x70" + count.to_bytes(4, "big") if count else b"\x43"
    return b"\x00\x53\x70\xc0" + bytes((len(fields) + 1, 5)) + fields
