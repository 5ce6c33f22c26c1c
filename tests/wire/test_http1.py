"""Answers of HTTP/1.1 servers, whole and in pieces, against h11, and what is none."""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.http1 import AnswerReader, is_field_name, is_field_value

MOST = 1 << 20


class Answer(NamedTuple):
    """What a server sends, and what is read of it: status, body, whether the connection is kept, what is left over."""

    data: bytes
    status: int
    body: bytes = b""
    keeps: bool = True
    left: bytes = b""
    closes: bool = False


OK: Final = b"HTTP/1.1 200 OK\r\n"
CHUNKED: Final = OK + b"Transfer-Encoding: chunked\r\n\r\n"

ANSWERS: Final = {
    "empty": Answer(OK + b"Content-Length: 0\r\n\r\n", 200),
    "length": Answer(OK + b"Content-Length: 5\r\n\r\nhello", 200, b"hello"),
    "no reason": Answer(b"HTTP/1.1 202 \r\nContent-Length: 0\r\n\r\n", 202),
    "no blank behind the status": Answer(b"HTTP/1.1 202\r\nContent-Length: 0\r\n\r\n", 202),
    "no content": Answer(b"HTTP/1.1 204 No Content\r\n\r\n", 204),
    "no content, whatever it says": Answer(
        b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", 204
    ),
    "not modified": Answer(b"HTTP/1.1 304 x\r\nContent-Length: 30\r\n\r\n", 304),
    "chunks": Answer(CHUNKED + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", 200, b"hello!"),
    "chunks with extensions": Answer(
        CHUNKED + b'00A;name="x"\r\n0123456789\r\n000;last\r\n\r\n', 200, b"0123456789"
    ),
    "trailers": Answer(CHUNKED + b"1\r\nx\r\n0\r\nX-Sum: 1\r\nY: 2\r\n\r\n", 200, b"x"),
    "chunked in capitals": Answer(
        OK + b"transfer-encoding:  CHUNKED \r\n\r\n1\r\nx\r\n0\r\n\r\n", 200, b"x"
    ),
    "chunks and a length": Answer(
        OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, keeps=False
    ),
    "close": Answer(OK + b"Connection: close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    "close among others": Answer(
        OK + b"Connection: x, Close\r\nContent-Length: 0\r\n\r\n", 200, keeps=False
    ),
    "close in a second field": Answer(
        OK + b"Connection: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 200, keeps=False
    ),
    "until it closes": Answer(OK + b"\r\nall of it", 200, b"all of it", keeps=False, closes=True),
    "old": Answer(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, keeps=False),
    "old, kept": Answer(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", 200
    ),
    "continue first": Answer(
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", 200, b"x"
    ),
    "early hints": Answer(
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + OK + b"Content-Length: 0\r\n\r\n",
        200,
    ),
    "as many informs as may be": Answer(
        b"HTTP/1.1 100 Continue\r\n\r\n" * limits.HTTP_INFORMS + OK + b"Content-Length: 0\r\n\r\n",
        200,
    ),
    "one length twice": Answer(
        OK + b"Content-Length: 1\r\nContent-Length: 1, 1\r\n\r\nx", 200, b"x"
    ),
    "folded line": Answer(OK + b"X-A: 1\r\n  2\r\nContent-Length: 1\r\n\r\nx", 200, b"x"),
    "bytes beyond ASCII": Answer(OK + b"X-A: \xe9\xff\r\nContent-Length: 0\r\n\r\n", 200),
    "empty value": Answer(OK + b"X-A:\r\nContent-Length: 0\r\n\r\n", 200),
    "more than was asked for": Answer(
        OK + b"Content-Length: 0\r\n\r\nHTTP/1.1 500 x\r\n", 200, left=b"HTTP/1.1 500 x\r\n"
    ),
    "status beyond 599": Answer(b"HTTP/1.1 999 odd\r\nContent-Length: 0\r\n\r\n", 999),
}

BROKEN: Final = {
    "garbage": (b"\x16\x03\x01\x02\x00\x01", "no answer of HTTP/1.1"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "no answer of HTTP/1.1"),
    "HTTP/2": (b"HTTP/2 200\r\n\r\n", "no answer|status line"),
    "status of two digits": (b"HTTP/1.1 20 OK\r\n\r\n", "no status line"),
    "status of four digits": (b"HTTP/1.1 2000 OK\r\n\r\n", "no status line"),
    "status 0": (b"HTTP/1.1 000 OK\r\n\r\n", "no status line"),
    "line feeds alone": (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "CR LF"),
    "one line feed alone": (b"HTTP/1.1 200 OK\r\nX: 1\nY: 2\r\n\r\n", "control character|CR LF"),
    "NUL": (OK + b"X: a\0b\r\n\r\n", "control character"),
    "field without a colon": (OK + b"nothing\r\n\r\n", "without a name"),
    "field with a blank before its colon": (OK + b"X : 1\r\n\r\n", "without a name"),
    "field without a name": (OK + b": 1\r\n\r\n", "without a name"),
    "folded first line": (OK + b" x\r\n\r\n", "without a name"),
    "length that is none": (OK + b"Content-Length: x\r\n\r\n", "no number"),
    "negative length": (OK + b"Content-Length: -1\r\n\r\n", "no number"),
    "empty length": (OK + b"Content-Length:\r\n\r\n", "no number"),
    "length of too many digits": (
        OK + b"Content-Length: " + b"1" * 16 + b"\r\n\r\n",
        "no number",
    ),
    "two lengths": (OK + b"Content-Length: 1, 2\r\n\r\n", "several values"),
    "two lengths in two fields": (
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "several values",
    ),
    "gzip": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer coding"),
    "chunk without a size": (CHUNKED + b"\r\n", "without its size"),
    "chunk with another size": (CHUNKED + b"-1\r\n", "without its size"),
    "chunk with a size too long": (CHUNKED + b"1" * 16 + b"\r\n", "without its size"),
    "chunk that is longer": (CHUNKED + b"1\r\nxy\r\n", "longer than it says"),
    "chunk that ends with a line feed": (CHUNKED + b"1\nx\r\n", "CR LF"),
    "trailer with a control character": (CHUNKED + b"0\r\nA: \0\r\n\r\n", "control character"),
    "switching protocols": (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101"),
    "head too long": (OK + b"X: " + b"x" * limits.HTTP_HEAD_BYTES + b"\r\n\r\n", "a head of"),
    "head that goes on for ever": (
        OK + b"X: 1\r\n" * (limits.HTTP_HEAD_BYTES // 6 + 1),
        "a head of",
    ),
    "fields too many": (OK + b"X: 1\r\n" * limits.HTTP_FIELDS + b"\r\n", "fields"),
    "informs too many": (
        b"HTTP/1.1 100 Continue\r\n\r\n" * (limits.HTTP_INFORMS + 1),
        "answers 1xx",
    ),
    "line among chunks too long": (CHUNKED + b"1;" + b"x" * limits.HTTP_LINE_BYTES, "a line of"),
    "trailers too long": (
        CHUNKED + b"0\r\n" + (b"X: " + b"x" * 1_000 + b"\r\n") * 70,
        "trailers of",
    ),
}


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("name", ANSWERS)
def test_answer(name: str, step: int) -> None:
    """An answer is read the same in pieces of any size, and ends where it ends."""
    wanted = ANSWERS[name]
    reader = AnswerReader()
    reader.begin(MOST)
    at = 0
    while at < len(wanted.data) and not reader.done:
        at += reader.feed(wanted.data[at : at + step], 0)
    assert wanted.data[at:] == wanted.left
    if wanted.closes:
        assert not reader.done
        assert reader.closed()
    assert reader.done
    assert (reader.status, reader.body, reader.keeps) == (wanted.status, wanted.body, wanted.keeps)


@pytest.mark.parametrize("name", ANSWERS)
def test_split_anywhere(name: str) -> None:
    """An answer cut in two at any byte is the same one."""
    wanted = ANSWERS[name]
    data = wanted.data.removesuffix(wanted.left)
    for cut in range(1, len(data)):
        reader = AnswerReader()
        reader.begin(MOST)
        assert reader.feed(data[:cut], 0) == cut
        assert reader.feed(data[cut:], 0) == len(data) - cut
        assert reader.done or reader.closed()
        assert (reader.status, reader.body) == (wanted.status, wanted.body)


@pytest.mark.parametrize("step", [1, 1_000, 1 << 20])
@pytest.mark.parametrize("name", BROKEN)
def test_no_answer(name: str, step: int) -> None:
    """What is no answer is an error that says why, however it comes."""
    data, why = BROKEN[name]
    reader = AnswerReader()
    reader.begin(MOST)

    def feed_all() -> None:
        for start in range(0, len(data), step):
            reader.feed(data[start : start + step], 0)

    with pytest.raises(ProtocolError, match=why):
        feed_all()


@pytest.mark.parametrize("name", ANSWERS)
def test_half_an_answer(name: str) -> None:
    """An answer that ends before its end is not complete."""
    wanted = ANSWERS[name]
    data = wanted.data.removesuffix(wanted.left)
    reader = AnswerReader()
    reader.begin(MOST)
    reader.feed(data[: data.index(b"\r\n\r\n") + 2], 0)
    assert reader.started
    assert not reader.closed()


def test_answers_in_a_row() -> None:
    """Each answer of a connection is read by itself, like heads included."""
    reader = AnswerReader()
    for name in [*ANSWERS, *ANSWERS]:
        wanted = ANSWERS[name]
        for _ in range(3):
            reader.begin(MOST)
            assert not reader.started
            reader.feed(wanted.data, 0)
            assert reader.done or reader.closed()
            assert (reader.status, reader.body) == (wanted.status, wanted.body)


def test_kept_body_is_bounded() -> None:
    """Of a body only so many bytes are kept as are wanted; the rest is passed over."""
    for most in (0, 1, 3, 10, 11):
        reader = AnswerReader()
        reader.begin(most)
        reader.feed(CHUNKED + b"5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n", 0)
        assert reader.body == b"helloworld"[:most]
        assert reader.size == 10


@pytest.mark.parametrize("head", [OK + b"Content-Length: 99999999999\r\n\r\n", OK + b"\r\n"])
def test_endless_body_ends(head: bytes) -> None:
    """A body that is larger than the bound ends there, and so does its connection."""
    reader = AnswerReader()
    reader.begin(10)
    reader.feed(head, 0)
    piece = bytes(1 << 20)
    for _ in range(limits.HTTP_ANSWER_BYTES // len(piece)):
        reader.feed(piece, 0)
        assert not reader.done
    reader.feed(b"x", 0)
    assert reader.done
    assert not reader.keeps
    assert (reader.status, reader.held) == (200, 10)


def test_values_of_fields() -> None:
    """What is looked at besides the framing: the type of the body, when to come again, where else to go."""
    reader = AnswerReader()
    reader.begin(0)
    reader.feed(
        b"HTTP/1.1 503 Too  busy \r\ncontent-TYPE: text/x \r\nRetry-After:\t7\r\n"
        b"Location: /x y\r\nContent-Length: 0\r\n\r\n",
        0,
    )
    assert (reader.reason, reader.content_type) == (b"Too  busy", b"text/x")
    assert (reader.retry_after, reader.location) == (b"7", b"/x y")
    reader.begin(0)
    reader.feed(OK + b"Content-Length: 0\r\n\r\n", 0)
    assert reader.retry_after == b""


TOKENS = st.text("abcXYZ-_09!~", min_size=1, max_size=12).map(str.encode)
WORDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20).map(
    str.encode
)
RESERVED = {b"content-length", b"transfer-encoding", b"connection", b"te", b"upgrade"}


@given(
    status=st.integers(200, 599),
    fields=st.lists(st.tuples(TOKENS, WORDS), max_size=8),
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    chunked=st.booleans(),
    close=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_like_h11(
    status: int,
    fields: list[tuple[bytes, bytes]],
    chunks: list[bytes],
    chunked: bool,
    close: bool,
    cuts: list[int],
) -> None:
    """What h11 writes is read as h11 reads it, cut anywhere."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    while server.next_event() is not h11.NEED_DATA and server.their_state is not h11.DONE:
        pass
    body = b"".join(chunks)
    headers = [pair for pair in fields if pair[0].lower() not in RESERVED]
    headers.append(
        (b"Transfer-Encoding", b"chunked") if chunked else (b"Content-Length", b"%d" % len(body))
    )
    if close:
        headers.append((b"Connection", b"close"))
    bodiless = status in (204, 304)
    data = server.send(h11.Response(status_code=status, headers=headers)) or b""
    for chunk in () if bodiless else chunks:
        data += server.send(h11.Data(data=chunk)) or b""
    data += server.send(h11.EndOfMessage()) or b""
    client = h11.Connection(h11.CLIENT)
    client.send(
        h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")])
    )
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    seen = b""
    event = client.next_event()
    assert isinstance(event, h11.Response)
    while not isinstance(event, h11.EndOfMessage):
        event = client.next_event()
        if isinstance(event, h11.Data):
            seen += event.data
    reader = AnswerReader()
    reader.begin(MOST)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in itertools.pairwise(places):
        assert not reader.done
        assert reader.feed(data[start:end], 0) == end - start
    assert reader.done
    assert (reader.status, reader.body) == (status, seen)
    assert reader.keeps is (client.their_state is h11.DONE)


@given(data=st.binary(max_size=300), prefix=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED]))
def test_any_bytes(data: bytes, prefix: bytes) -> None:
    """Whatever comes is an answer, a part of one, or an error of the protocol, and nothing else."""
    reader = AnswerReader()
    reader.begin(100)
    data = prefix + data
    try:
        end = reader.feed(data, 0)
    except ProtocolError:
        return
    assert end == len(data) or reader.done
    assert len(reader.body) <= 100


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("X-A", True),
        ("a", True),
        ("", False),
        ("a b", False),
        ("a:", False),
        ("a\r\n", False),
        ("é", False),
    ],
)
def test_names(text: str, good: bool) -> None:
    """The name of a field is a token."""
    assert is_field_name(text) is good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("", True),
        ("a b", True),
        (" a", False),
        ("a ", False),
        ("a\r\nX: 1", False),
        ("a\n", False),
        ("a\tb", False),
        ("\x7f", False),
        ("é", False),
    ],
)
def test_values(text: str, good: bool) -> None:
    """The value of a field is visible ASCII with blanks in between."""
    assert is_field_value(text) is good
