"""WebSocket frames of clients, as another library writes them and as the standard forbids them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong

from vpnrouter.wire.websocket import (
    ANSWERED,
    BINARY,
    PONG,
    WebSocketDecoder,
    close_frame,
    frame_head,
)

PAYLOADS = st.one_of(
    st.binary(max_size=200),
    st.integers(0, 70_000).map(lambda size: bytes(i & 255 for i in range(size))),
)
MASK = b"\x01\x02\x03\x04"


def frame(first: int, payload: bytes = b"", length: bytes = b"") -> bytes:
    """A masked frame; `length` stands in place of its seven bits of length and what belongs to them."""
    masked = bytes(byte ^ MASK[place & 3] for place, byte in enumerate(payload))
    return bytes((first,)) + (length or bytes((0x80 | len(payload),))) + MASK + masked


@given(st.lists(st.tuples(PAYLOADS, st.booleans(), st.binary(max_size=125)), max_size=6), st.data())
def test_frames_of_a_client(messages: list[tuple[bytes, bool, bytes]], data: st.DataObject) -> None:
    """Messages in one frame or in several, pings among them, cut anywhere: the payloads and the pongs come out."""
    client = Connection(ConnectionType.CLIENT)
    stream = b""
    for payload, whole, ping in messages:
        half = 0 if whole else len(payload) // 2
        if not whole:
            stream += client.send(BytesMessage(data=payload[:half], message_finished=False))
        stream += client.send(Ping(payload=ping))
        stream += client.send(BytesMessage(data=payload[half:]))
    decoder = WebSocketDecoder()
    received = replies = b""
    while stream:
        size = data.draw(st.integers(1, len(stream)), label="chunk")
        received += decoder.receive(stream[:size])
        replies += decoder.take_replies()
        stream = stream[size:]
    assert received == b"".join(payload for payload, _, _ in messages)
    assert not decoder.ended
    client.receive_data(replies)
    pongs = [bytes(event.payload) for event in client.events() if isinstance(event, Pong)]
    assert pongs == [ping for _, _, ping in messages]


@given(PAYLOADS)
def test_frames_of_the_server(payload: bytes) -> None:
    """Another library reads a frame of any length."""
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(frame_head(BINARY, len(payload)) + payload)
    found: list[Event] = list(client.events())
    assert b"".join(bytes(each.data) for each in found if isinstance(each, BytesMessage)) == payload


ENDS = {
    "not masked (5.1)": (b"\x82\x01x", 1002),
    "reserved bit (5.2)": (frame(0xC2, b"x"), 1002),
    "text (MQTT-6.0.0-1)": (frame(0x81, b"x"), 1003),
    "unknown data frame (5.2)": (frame(0x83, b"x"), 1002),
    "unknown control frame (5.2)": (frame(0x8B, b"x"), 1002),
    "continuation of nothing (5.4)": (frame(0x80, b"x"), 1002),
    "message within a message (5.4)": (frame(0x02, b"") + frame(0x82, b"x"), 1002),
    "16 bits for a short length (5.2)": (frame(0x82, length=b"\xfe\x00\x7d"), 1002),
    "64 bits for a short length (5.2)": (
        frame(0x82, length=b"\xff" + bytes(6) + b"\xff\xff"),
        1002,
    ),
    "highest bit of the length (5.2)": (frame(0x82, length=b"\xff" + b"\xff" * 8), 1002),
    "ping in parts (5.5)": (frame(0x09, b"x"), 1002),
    "ping of 126 bytes (5.5)": (frame(0x89, length=b"\xfe\x00\x7e"), 1002),
    "close": (frame(0x88, b"\x03\xe8bye"), 1000),
    "close without a reason": (frame(0x88), 1000),
    "close for a reason of an application": (frame(0x88, b"\x0f\xa0"), 4000),
    "close with half a reason (5.5.1)": (frame(0x88, b"\x03"), 1002),
    "close for a reason that may not be sent (7.4)": (frame(0x88, b"\x03\xed"), 1002),
}


@pytest.mark.parametrize("what", ENDS)
def test_ends(what: str) -> None:
    """What closes a WebSocket is answered by a Close frame with the reason, and nothing is read behind it."""
    sent, code = ENDS[what]
    decoder = WebSocketDecoder()
    assert decoder.receive(frame(0x82, b"before")) == b"before"
    assert decoder.receive(sent + frame(0x82, b"behind")) == b""
    assert decoder.ended
    assert decoder.take_replies() == close_frame(code)
    assert decoder.receive(frame(0x82, b"later")) == b""


def test_closed_by_the_server() -> None:
    """Another library reads the reason of a Close frame."""
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(close_frame(1003))
    (event,) = client.events()
    assert isinstance(event, CloseConnection)
    assert event.code == 1003


def test_a_long_ping_is_answered_whole() -> None:
    """A ping that comes byte by byte is answered once it is there."""
    decoder = WebSocketDecoder()
    sent = frame(0x89, b"a" * 125)
    for place in range(len(sent)):
        assert not decoder.take_replies()
        assert decoder.receive(sent[place : place + 1]) == b""
    assert decoder.take_replies() == frame_head(PONG, 125) + b"a" * 125


def test_of_many_pings_the_last_one_is_answered() -> None:
    """Some are answered one by one, and the last one for those behind them (RFC 6455, 5.5.3)."""
    decoder = WebSocketDecoder()
    pings = [b"%d" % number for number in range(20_000)]
    assert decoder.receive(b"".join(frame(0x89, ping) for ping in pings)) == b""
    answered = [*pings[:ANSWERED], pings[-1]]
    assert decoder.take_replies() == b"".join(frame_head(PONG, len(one)) + one for one in answered)
    assert decoder.controls == len(pings)
    assert decoder.receive(frame(0x82, b"x")) == b"x"
    assert decoder.controls == 0
