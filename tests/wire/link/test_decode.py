from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at, split_direct
from vpnrouter.wire.link.extension import encode_extension
from vpnrouter.wire.varint import varint

NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40
)
TEXTS = st.one_of(st.just(""), NAMES)
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
FLAGS = st.sampled_from(range(10))
SIZES = st.integers(limits.LINK_HANDSHAKE_BYTES, 2**32 - 1)
USER_PROPERTIES = st.lists(st.tuples(NAMES, TEXTS), max_size=3).map(
    lambda pairs: b"".join(
        b"\x26" + b"".join(len(t.encode()).to_bytes(2, "big") + t.encode() for t in pair)
        for pair in pairs
    )
)
PATHS = st.lists(NAMES, max_size=5)


@st.composite
def extensions(draw: st.DrawFn) -> frames.Extension:
    """Extensions as a router builds them."""
    path = draw(PATHS)
    traced = draw(st.booleans())
    origin = draw(TEXTS)
    return frames.Extension(
        path,
        draw(st.integers(max(1, len(path)), 255)),
        trace_high=draw(U64) if traced else 0,
        trace_low=draw(st.integers(1, 2**64 - 1)) if traced else 0,
        message_id=draw(U64) if traced else 0,
        trace_flags=draw(st.integers(0, 255)) if traced else 0,
        origin_router=origin,
        origin_vpn=draw(NAMES) if origin else "",
        origin_ts_ns=draw(st.integers(-(2**63), 2**63 - 1)) if origin else 0,
        retain=draw(st.booleans()),
        expiry_ms=draw(st.one_of(st.just(-1), U64)),
    )


@st.composite
def ranges(draw: st.DrawFn, least: int = 0) -> list[tuple[int, int]]:
    """Ranges that one frame may name, near each other, in a row, or far apart."""
    counts = draw(
        st.lists(st.one_of(st.just(1), st.integers(1, 9_000)), min_size=least, max_size=6)
    )
    return [(draw(st.integers(0, 2**64 - 1 - count)), count) for count in counts]


def flow_message(message: frames.Direct) -> frames.Direct:
    """As GUARANTEED carries it: an extension that says nothing is none."""
    if message.extension is not None and not encode_extension(message.extension):
        message.extension = None
    return message


HELLOS = st.builds(
    frames.Hello,
    NAMES,
    NAMES,
    NAMES,
    NAMES,
    remote_router=TEXTS,
    client_username=TEXTS,
    password=TEXTS,
    tls=st.booleans(),
    features=U32,
    heartbeat_ms=U32,
    max_frame=SIZES,
    incarnation=U64,
    minor=st.integers(0, 255),
)
WELCOMES = st.builds(
    frames.Welcome,
    NAMES,
    NAMES,
    NAMES,
    features=U32,
    heartbeat_ms=U32,
    max_frame=SIZES,
    incarnation=U64,
    minor=st.integers(0, 255),
)
CODES = st.integers(0, 2**16 - 1)
WINDOWS = st.integers(0, 2**16 - 1)
STORE_IDS = st.binary(min_size=16, max_size=16)
MESSAGES = st.builds(
    frames.Direct,
    NAMES.map(str.encode),
    USER_PROPERTIES,
    st.binary(max_size=40),
    st.one_of(st.none(), extensions()),
)
CONTROL: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (encode.hello, HELLOS),
    (encode.welcome, WELCOMES),
    (encode.refuse, st.builds(frames.Refuse, CODES, TEXTS, U32)),
    (encode.close, st.builds(frames.Close, CODES, TEXTS, U32)),
    (encode.heartbeat, st.builds(frames.Heartbeat, U64, answer=st.booleans())),
    (
        encode.subscribe,
        st.builds(frames.Subscribe, U32, st.lists(st.tuples(FLAGS, NAMES), min_size=1, max_size=5)),
    ),
    (
        encode.unsubscribe,
        st.builds(frames.Unsubscribe, U32, st.lists(NAMES, min_size=1, max_size=5)),
    ),
    (
        encode.subscribed,
        st.builds(
            frames.Subscribed, U32, st.lists(st.integers(0, 255), min_size=1, max_size=9), TEXTS
        ),
    ),
    (encode.message, MESSAGES),
    (
        encode.bind,
        st.builds(
            frames.Bind,
            U32,
            NAMES,
            WINDOWS,
            accepted=st.dictionaries(STORE_IDS, ranges(1), max_size=limits.LINK_FLOW_STORES).filter(
                lambda stores: sum(n for r in stores.values() for _, n in r) <= 65_535
            ),
            selector=TEXTS,
            lanes=st.integers(0, 2),
            on_reject=st.integers(0, 2),
        ),
    ),
    (
        encode.bound,
        st.builds(frames.Bound, U32, CODES, U32, WINDOWS, STORE_IDS, TEXTS),
    ),
    (encode.unbind, st.builds(frames.Unbind, U32, CODES, TEXTS)),
    (encode.unbound, st.builds(frames.Unbound, U32)),
    (
        encode.guaranteed_message,
        st.builds(
            frames.Guaranteed,
            U32,
            U64,
            st.integers(0, 7),
            st.integers(0, 9),
            MESSAGES.map(flow_message),
        ),
    ),
    (encode.ack, st.builds(frames.Ack, U32, WINDOWS, ranges())),
    (encode.forget, st.builds(frames.Forget, U32, ranges(1))),
    (
        encode.reject,
        st.builds(frames.Reject, U32, U64, CODES, TEXTS, st.integers(0, 2)),
    ),
    (encode.settled, st.builds(frames.Settled, U32, U64, st.integers(1, 6))),
]
ANY_FRAME = st.one_of([frame.map(encoder) for encoder, frame in CONTROL])


def facts(value: Any) -> Any:
    """Everything a frame says, for comparison."""
    if not type(value).__module__.startswith("vpnrouter."):
        return value
    names = [n for n in dir(value) if not n.startswith("_")]
    return type(value).__name__, {name: facts(getattr(value, name)) for name in names}


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize(("encoder", "strategy"), CONTROL, ids=lambda x: getattr(x, "__name__", ""))
@given(data=st.data())
def test_round_trip(encoder: Any, strategy: st.SearchStrategy[Any], data: st.DataObject) -> None:
    """Every frame that can be built is read again as it was, whatever stands around it."""
    frame = data.draw(strategy)
    raw = encoder(frame)
    buf = b"\xff" + raw + b"\xff"
    length = link_frame_at(buf, 1, len(buf), limits.LINK_FRAME_BYTES)
    assert length == len(raw)
    assert facts(decode(buf, 1, length)) == facts(frame)


@settings(max_examples=50, deadline=None)
@given(many=st.lists(ANY_FRAME, min_size=1, max_size=4))
def test_byte_by_byte(many: list[bytes]) -> None:
    """A stream cut anywhere gives the same frames as the stream in one piece."""
    whole: list[Any] = []
    stream = b"".join(many)
    pos = 0
    while pos < len(stream):
        length = link_frame_at(stream, pos, len(stream), limits.LINK_FRAME_BYTES)
        whole.append(facts(decode(stream, pos, length)))
        pos += length
    single: list[Any] = []
    waiting = b""
    for byte in stream:
        waiting += bytes((byte,))
        length = link_frame_at(waiting, 0, len(waiting), limits.LINK_FRAME_BYTES)
        if length:
            single.append(facts(decode(waiting, 0, length)))
            waiting = waiting[length:]
    assert waiting == b""
    assert single == whole
    assert len(whole) == len(many)


@settings(max_examples=60, deadline=None)
@given(raw=ANY_FRAME)
def test_truncated_bodies(raw: bytes) -> None:
    """A body cut at any byte is refused or read as a shorter frame; nothing else escapes."""
    head = raw.index(raw[1:2], 1)
    while raw[head] & 0x80:
        head += 1
    body = raw[head + 1 :]
    for size in range(len(body)):
        cut = raw[:1] + varint(size) + body[:size]
        assert link_frame_at(cut, 0, len(cut), limits.LINK_FRAME_BYTES) == len(cut)
        try:
            shorter = decode(cut, 0, len(cut))
        except ProtocolError as error:
            assert error.reason_code in {0x81, 0x82, 0x84, 0xC1, 0xC2}  # noqa: PT017
        else:
            assert facts(shorter) != facts(decode(raw, 0, len(raw)))


@settings(max_examples=300, deadline=None)
@given(kind=st.integers(0, 255), body=st.binary(max_size=60))
def test_any_bytes_at_all(kind: int, body: bytes) -> None:
    """Garbage is a ProtocolError with a code that codes.py explains, or a frame."""
    raw = bytes((kind,)) + varint(len(body)) + body
    try:
        decode(raw, 0, len(raw))
    except ProtocolError as error:
        assert error.reason_code in {0x81, 0x82, 0x84, 0xC0, 0xC1, 0xC2}  # noqa: PT017


@settings(max_examples=200, deadline=None)
@given(topic=NAMES.map(str.encode), properties=USER_PROPERTIES, payload=st.binary(max_size=30))
def test_split_direct_finds_the_three_parts(
    topic: bytes, properties: bytes, payload: bytes
) -> None:
    """The indices that the fast path works with cut the body into what it was made of."""
    buf = b"\xff\xff" + encode.direct_body(topic, properties, payload) + b"\xff"
    end = len(buf) - 1
    topic_end, first, start = split_direct(buf, 2, end)
    assert buf[4:topic_end] == topic
    assert buf[first:start] == properties
    assert buf[start:end] == payload


def test_limits_of_one_frame() -> None:
    """The longest frame passes, and one byte more is told from its head alone."""
    body = limits.LINK_FRAME_BYTES - 5
    head = b"\x30" + varint(body)
    assert link_frame_at(head, 0, len(head), limits.LINK_FRAME_BYTES) == 0
    longer = b"\x30" + varint(body + 1)
    with pytest.raises(ProtocolError) as caught:
        link_frame_at(longer, 0, len(longer), limits.LINK_FRAME_BYTES)
    assert caught.value.reason_code == 0x95


@pytest.mark.parametrize(
    ("kind", "head", "entry"),
    [
        (frames.SUBSCRIBE, bytes(4), b"\0\0\1a"),
        (frames.UNSUBSCRIBE, bytes(4), b"\0\1a"),
        (frames.SUBSCRIBED, bytes(4), b"\0"),
    ],
)
def test_limit_of_filters_in_one_frame(kind: int, head: bytes, entry: bytes) -> None:
    """LINK_SUBSCRIBE_FILTERS entries are read, one more is refused (LINK-23)."""

    def frame(count: int) -> bytes:
        before = count.to_bytes(2, "big") if kind == frames.SUBSCRIBED else b""
        body = head + before + entry * count
        return bytes((kind,)) + varint(len(body)) + body

    most = frame(limits.LINK_SUBSCRIBE_FILTERS)
    decode(most, 0, len(most))
    longer = frame(limits.LINK_SUBSCRIBE_FILTERS + 1)
    with pytest.raises(ProtocolError) as caught:
        decode(longer, 0, len(longer))
    assert caught.value.reason_code == 0x82
