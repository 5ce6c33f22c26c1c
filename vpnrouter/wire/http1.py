"""Reads answers of HTTP/1.1 servers, and says what the fields of a request may hold (RFC 9110, RFC 9112).

The reader is fed bytes as they come. What is kept of a body is bounded; the rest is passed over, and an answer that is
larger than that ends where the bound is, without a connection that can be used again.
"""

from __future__ import annotations

import re
from typing import Final, final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError

HEAD: Final = 0
"""The head is not complete."""
FIXED: Final = 1
"""So many bytes of the body are still to come."""
SIZE: Final = 2
"""The line with the size of a chunk is next."""
CHUNK: Final = 3
"""So many bytes of a chunk are still to come."""
BEHIND: Final = 4
"""The end of line behind a chunk is next."""
TRAILERS: Final = 5
"""Fields behind the last chunk, up to an empty line."""
OPEN: Final = 6
"""The body goes on until the server closes."""
DONE: Final = 7
"""The answer is complete."""

SWITCHING: Final = 101
"""Status of an answer that nobody has asked for: the connection would speak another protocol."""

NO_BODY: Final = (204, 304)
"""Statuses of answers without a body (RFC 9112, 6.3)."""

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: ([^\x00\r\n]*))?")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110, 5.6.2)."""
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00\r\n]*)?")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

_LENGTH_DIGITS: Final = 15


def is_field_name(text: str) -> bool:
    """Return whether a text is the name of a header field (RFC 9110, 5.1)."""
    return _TOKEN.fullmatch(text) is not None


def is_field_value(text: str) -> bool:
    """Return whether a header field may have a text as its value: visible ASCII and spaces, none at its ends."""
    return _VALUE.fullmatch(text) is not None and text == text.strip(" ")


def _broken(what: str) -> ProtocolError:
    return ProtocolError(0, what)


@final
class AnswerReader:
    """Reads the answers of one connection, one at a time: `begin`, then `feed` until it is `done`.

    `started`: a byte of the answer has come. `status` and `reason` are those of the status line, `content_type`,
    `retry_after` and `location` the values of these fields, b"" for none. `body` is what is kept of the body, at most
    `most` bytes; `size` are all that came. `keeps`: the connection can be used again.
    """

    __slots__ = (
        "_buffer",
        "_framing",
        "_informs",
        "_known",
        "_left",
        "_length",
        "_lines",
        "_parts",
        "_state",
        "content_type",
        "keeps",
        "location",
        "most",
        "reason",
        "retry_after",
        "size",
        "started",
        "status",
    )

    def __init__(self) -> None:
        self.most = 0
        self.started = False
        self.status = 0
        self.reason = b""
        self.content_type = b""
        self.retry_after = b""
        self.location = b""
        self.keeps = False
        self.size = 0
        self._state = HEAD
        self._buffer = b""
        self._parts: list[bytes] = []
        # Bytes to come of the body or of a chunk; bytes of trailers; answers 1xx that came.
        self._left = 0
        self._lines = 0
        self._informs = 0
        # The head that was read last, and what it says of the body: many servers say the same all the time.
        self._known = b""
        self._framing = HEAD
        self._length = 0

    def begin(self, most: int = 0) -> None:
        """Expect another answer, of whose body at most `most` bytes are kept."""
        self.most = most
        self.started = False
        self.size = 0
        self._state = HEAD
        self._buffer = b""
        self._parts.clear()
        self._informs = 0

    @property
    def done(self) -> bool:
        """Whether the answer is complete."""
        return self._state == DONE

    @property
    def body(self) -> bytes:
        """What is kept of the body."""
        return b"".join(self._parts)

    @property
    def held(self) -> int:
        """Bytes that are kept now."""
        return len(self._buffer) + min(self.size, self.most)

    def feed(self, data: bytes, pos: int) -> int:
        """Read on from `pos`; return where the answer ends, or the length of `data`.

        Raises ProtocolError for what is no answer of HTTP/1.1.
        """
        end = len(data)
        if pos < end:
            self.started = True
        while pos < end and self._state != DONE:
            state = self._state
            if state == HEAD:
                pos = self._head(data, pos)
            elif state in (FIXED, CHUNK):
                pos = self._counted(data, pos, end)
            elif state == OPEN:
                self._keep(data, pos, end)
                pos = end
            else:
                pos = self._line(data, pos)
            if self.size > limits.HTTP_ANSWER_BYTES:
                self.keeps = False
                self._state = DONE
        return pos

    def closed(self) -> bool:
        """Take it that the server has closed; return whether the answer is complete by that."""
        if self._state == OPEN:
            self._state = DONE
        return self._state == DONE

    # -- the head --------------------------------------------------------------------------------

    def _head(self, data: bytes, pos: int) -> int:
        """Read a head; return where it ends."""
        if self._buffer:
            before = len(self._buffer)
            data = self._buffer + data[pos:]
            start = 0
            # Where in `data` the bytes begin that came now, less those that were there before.
            shift = pos - before
            at = data.find(b"\r\n\r\n", max(0, before - 3))
        else:
            start = pos
            shift = 0
            at = data.find(b"\r\n\r\n", pos)
        if at < 0:
            rest = data[start:]
            if len(rest) > limits.HTTP_HEAD_BYTES:
                raise _broken(f"a head of more than {limits.HTTP_HEAD_BYTES:,} bytes")
            if rest.count(b"\n") != rest.count(b"\r\n"):
                raise _broken("a line that does not end with CR LF")
            if not b"HTTP/1.".startswith(rest[:7]):
                raise _broken("no answer of HTTP/1.1")
            self._buffer = rest
            return len(data) + shift
        if at - start > limits.HTTP_HEAD_BYTES:
            raise _broken(f"a head of more than {limits.HTTP_HEAD_BYTES:,} bytes")
        head = data[start:at]
        self._buffer = b""
        if head != self._known:
            self._known = b""
            self._read(head)
            self._known = head
        self._begin_body()
        return at + 4 + shift

    def _begin_body(self) -> None:
        if self.status < 200:
            self._informs += 1
            if self.status == SWITCHING:
                raise _broken("status 101, which was not asked for")
            if self._informs > limits.HTTP_INFORMS:
                raise _broken(f"more than {limits.HTTP_INFORMS} answers 1xx")
            return
        self._left = self._length
        self._state = self._framing

    def _read(self, head: bytes) -> None:
        """Read a head without its empty line."""
        lines = head.split(b"\r\n")
        if len(lines) > limits.HTTP_FIELDS:
            raise _broken(f"more than {limits.HTTP_FIELDS} fields")
        found = _STATUS_LINE.fullmatch(lines[0])
        if found is None:
            raise _broken("no status line of HTTP/1.1")
        old = found.group(1) == b"0"
        self.status = int(found.group(2))
        self.reason = (found.group(3) or b"").strip()
        self.content_type = b""
        self.retry_after = b""
        self.location = b""
        lengths: list[bytes] = []
        codings: list[bytes] = []
        options: list[bytes] = []
        for name, value in _fields(lines):
            if name == b"content-length":
                lengths.extend(value.split(b","))
            elif name == b"transfer-encoding":
                codings.extend(value.split(b","))
            elif name == b"connection":
                options.extend(value.lower().split(b","))
            elif name == b"content-type":
                self.content_type = value
            elif name == b"retry-after":
                self.retry_after = value
            elif name == b"location":
                self.location = value
        self._frame(lengths, codings, old=old)
        said = [option.strip() for option in options]
        if b"close" in said or (old and b"keep-alive" not in said):
            self.keeps = False

    def _frame(self, lengths: list[bytes], codings: list[bytes], *, old: bool) -> None:
        """Note how the body ends (RFC 9112, 6.3)."""
        length = _length(lengths)
        self.keeps = True
        self._length = 0
        if codings:
            if [coding.strip().lower() for coding in codings] != [b"chunked"]:
                raise _broken("a transfer coding that is not chunked")
            # With a length beside it, or from a server of HTTP/1.0, the end is in doubt (RFC 9112, 6.1).
            self.keeps = length < 0 and not old
            self._framing = SIZE
        elif length >= 0:
            self._length = length
            self._framing = FIXED if length else DONE
        else:
            self._framing = OPEN
        if self.status < 200 or self.status in NO_BODY:
            self._length = 0
            self._framing = DONE
        elif self._framing == OPEN:
            self.keeps = False

    # -- the body --------------------------------------------------------------------------------

    def _keep(self, data: bytes, pos: int, end: int) -> None:
        room = self.most - self.size
        if room > 0:
            self._parts.append(data[pos : min(end, pos + room)])
        self.size += end - pos

    def _counted(self, data: bytes, pos: int, end: int) -> int:
        until = min(end, pos + self._left)
        self._keep(data, pos, until)
        self._left -= until - pos
        if not self._left:
            self._state = DONE if self._state == FIXED else BEHIND
        return until

    def _line(self, data: bytes, pos: int) -> int:
        """Read a line of the framing by chunks; return where it ends."""
        at = data.find(b"\n", pos)
        until = len(data) if at < 0 else at + 1
        self._buffer += data[pos:until]
        if len(self._buffer) > limits.HTTP_LINE_BYTES:
            raise _broken(f"a line of more than {limits.HTTP_LINE_BYTES:,} bytes among the chunks")
        if at < 0:
            return until
        line = self._buffer
        self._buffer = b""
        if not line.endswith(b"\r\n"):
            raise _broken("a line that does not end with CR LF")
        line = line[:-2]
        if self._state == SIZE:
            found = _CHUNK_SIZE.fullmatch(line)
            if found is None:
                raise _broken("a chunk without its size")
            self._left = int(found.group(1), 16)
            self._lines = 0
            self._state = CHUNK if self._left else TRAILERS
        elif self._state == BEHIND:
            if line:
                raise _broken("a chunk that is longer than it says")
            self._state = SIZE
        elif not line:
            self._state = DONE
        else:
            self._lines += len(line)
            if self._lines > limits.HTTP_HEAD_BYTES:
                raise _broken(f"trailers of more than {limits.HTTP_HEAD_BYTES:,} bytes")
            if b"\r" in line or b"\0" in line:
                raise _broken("a trailer with a control character")
        return until


def _fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return names, in small letters, and values of the fields of a head, whose first line is none."""
    fields: list[tuple[bytes, bytes]] = []
    for index in range(1, len(lines)):
        line = lines[index]
        if b"\r" in line or b"\n" in line or b"\0" in line:
            raise _broken("a field with a control character")
        if line[:1] in (b" ", b"\t"):
            # RFC 9112, 5.2: a line that goes on.
            if not fields:
                raise _broken("a field without a name")
            name, value = fields.pop()
            fields.append((name, (value + b" " + line.strip(b" \t")).strip(b" \t")))
            continue
        name, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(name) is None:
            raise _broken("a field without a name")
        fields.append((name.lower(), value.strip(b" \t")))
    return fields


def _length(lengths: list[bytes]) -> int:
    """Return what Content-Length says, -1 where it is not there. Several have to say the same (RFC 9110, 8.6)."""
    length = -1
    for text in lengths:
        digits = text.strip(b" \t")
        if not digits.isdigit() or len(digits) > _LENGTH_DIGITS:
            raise _broken("a Content-Length that is no number")
        number = int(digits)
        if length >= 0 and number != length:
            raise _broken("several values of Content-Length")
        length = number
    return length
