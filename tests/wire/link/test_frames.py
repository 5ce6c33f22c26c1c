"""Frames of the link protocol, encoded and decoded."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import decode as decoding
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at, split_direct
from vpnrouter.wire.link.encode import subscribe_frames, unsubscribe_frames
from vpnrouter.wire.link.extension import check_properties, decode_extension, encode_extension
from vpnrouter.wire.link.frames import Extension
from vpnrouter.wire.varint import varint

LONG = "x" * (limits.LINK_TEXT_BYTES + 1)


MANY = limits.LINK_SUBSCRIBE_FILTERS + 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: encode.hello(frames.Hello(LONG, "b", "v", "w")),
        lambda: encode.hello(frames.Hello("r", "b", "v", "w", password=LONG)),
        lambda: encode.refuse(frames.Refuse(0x87, LONG)),
        lambda: encode.close(frames.Close(0x87, LONG)),
        lambda: encode.subscribed(frames.Subscribed(1, [0], LONG)),
        lambda: encode.subscribed(frames.Subscribed(1, [])),
        lambda: encode.subscribed(frames.Subscribed(1, [0] * MANY)),
        lambda: encode.subscribe(frames.Subscribe(1, [])),
        lambda: encode.subscribe(frames.Subscribe(1, [(0, "a")] * MANY)),
        lambda: encode.subscribe(frames.Subscribe(1, [(0, "")])),
        lambda: encode.unsubscribe(frames.Unsubscribe(1, ["a" * (limits.TOPIC_BYTES + 1)])),
        lambda: encode.unsubscribe(frames.Unsubscribe(1, ["a"] * MANY)),
        lambda: encode.subscription_flags(5, deliver_always=False),
        lambda: encode.direct_body(b"", b"", b""),
        lambda: encode.direct_body(b"a" * (limits.TOPIC_BYTES + 1), b"", b""),
    ],
)
def test_what_no_peer_would_take_is_not_built(build: Callable[[], bytes]) -> None:
    """One step beyond each bound is a ValueError, before a byte is on its way."""
    with pytest.raises(ValueError):
        build()


def test_a_hello_with_every_text_at_its_bound_passes_a_stranger_s_limit() -> None:
    """LINK_HANDSHAKE_BYTES has room for the longest HELLO that can be built."""
    text = "x" * limits.LINK_TEXT_BYTES
    raw = encode.hello(
        frames.Hello(
            text,
            text,
            text,
            text,
            remote_router=text,
            client_username=text,
            password=text,
            tls=True,
            features=1,
            heartbeat_ms=1,
            max_frame=limits.LINK_HANDSHAKE_BYTES,
            incarnation=1,
        )
    )
    assert link_frame_at(raw, 0, len(raw), limits.LINK_HANDSHAKE_BYTES) == len(raw)


def test_the_largest_message_fits_a_frame() -> None:
    """LINK_FRAME_BYTES has room for 16 MiB of payload beside the longest topic and properties."""
    most = 5 + 2 + limits.TOPIC_BYTES + 4 + 65_535 + 3 + 65_535 + 16_777_216
    assert most <= limits.LINK_FRAME_BYTES


def test_direct_is_a_publish_of_mqtt_5() -> None:
    """DIRECT is, type byte included, what MQTT 5 sends as QoS 0 PUBLISH (3.3)."""
    raw = encode.direct(encode.direct_body(b"a/b", b"\x01\x01", b"hi"))
    assert raw == bytes.fromhex("30 0a 0003") + b"a/b" + bytes.fromhex("02 01 01") + b"hi"


def test_flags_of_a_subscription() -> None:
    """Bit 0 is deliver-always, the bits above the deliver-to-one priority."""
    assert encode.subscription_flags(0, deliver_always=False) == 0
    assert encode.subscription_flags(1, deliver_always=True) == 0b011
    assert encode.subscription_flags(4, deliver_always=False) == 0b1000


STORE = b"s" * 16


MESSAGE = frames.Direct(b"a", b"", b"")


ALL = limits.LINK_FLOW_POSITIONS


@pytest.mark.parametrize(
    "build",
    [
        lambda: encode.bind(frames.Bind(1, "", 1)),
        lambda: encode.bind(frames.Bind(1, LONG, 1)),
        lambda: encode.bind(frames.Bind(1, "q", 1, selector="x" * (limits.SELECTOR_BYTES + 1))),
        lambda: encode.bind(frames.Bind(1, "q", 1, accepted={b"short": [(1, 1)]})),
        lambda: encode.bind(frames.Bind(1, "q", 1, accepted={STORE: []})),
        lambda: encode.bind(
            frames.Bind(1, "q", 1, accepted={STORE: [(1, ALL)], b"t" * 16: [(1, 1)]})
        ),
        lambda: encode.bind(
            frames.Bind(
                1,
                "q",
                1,
                accepted={bytes([n]) * 16: [(1, 1)] for n in range(limits.LINK_FLOW_STORES + 1)},
            )
        ),
        lambda: encode.bound(frames.Bound(1, 0, 1, 1, STORE, LONG)),
        lambda: encode.bound(frames.Bound(1, 0, 1, 1, b"")),
        lambda: encode.unbind(frames.Unbind(1, 0, LONG)),
        lambda: encode.forget(frames.Forget(1, [])),
        lambda: encode.reject(frames.Reject(1, 1, 0x97, LONG)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 16, 4, MESSAGE)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 0, 10, MESSAGE)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 0, -1, MESSAGE)),
    ],
)
def test_flow_frames_that_no_peer_would_take_are_not_built(build: Callable[[], bytes]) -> None:
    """One step beyond each bound is a ValueError, before a byte is on its way."""
    with pytest.raises(ValueError):
        build()


def test_the_largest_guaranteed_message_fits_a_frame() -> None:
    """LINK_FRAME_BYTES has room for 16 MiB of payload in GUARANTEED as well."""
    most = 5 + 14 + 3 + 2 + limits.TOPIC_BYTES + 4 + 65_535 + 65_535 + 16_777_216
    assert most <= limits.LINK_FRAME_BYTES


def test_the_largest_bind_fits_a_frame() -> None:
    """ReceivedPositions positions that all stand alone, with the longest names, still make one frame (LINK-3)."""
    ranges = [(2 * n, 1) for n in range(ALL)]
    raw = encode.bind(
        frames.Bind(1, LONG[1:], 1, accepted={STORE: ranges}, selector="x" * limits.SELECTOR_BYTES)
    )
    assert link_frame_at(raw, 0, len(raw), limits.LINK_FRAME_BYTES) == len(raw)
    frame = decode(raw, 0, len(raw))
    assert isinstance(frame, frames.Bind)
    assert frame.accepted == {STORE: ranges}


def test_a_message_costs_fifteen_bytes_more_than_direct() -> None:
    """What GUARANTEED adds to a message without an extension: its head and the extension's length."""
    body = encode.direct_body(b"a/b", b"", b"payload")
    raw = encode.guaranteed(7, 9, frames.PERSISTENT, 4, b"", body)
    assert len(raw) == len(encode.direct(body)) + 15
    assert raw.endswith(body)


@pytest.mark.parametrize("hops", [1, 2])
def test_the_lean_encoder_and_the_frame_agree(hops: int) -> None:
    """Bytes put together for each message are those of the frame as a value."""
    extension = frames.Extension([], hops, expiry_ms=5)
    message = frames.Direct(b"a/b", b"\x01\x01", b"payload", extension)
    lean = encode.guaranteed(
        7,
        2**63,
        frames.REDELIVERED,
        9,
        encode_extension(extension),
        encode.direct_body(b"a/b", b"\x01\x01", b"payload"),
    )
    frame = frames.Guaranteed(7, 2**63, frames.REDELIVERED, 9, message)
    assert lean == encode.guaranteed_message(frame)


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


HEAD = bytes(4) + b"\0\1q\0\1"


def group(store: int, positions: int) -> bytes:
    """What BIND says of one store."""
    return bytes([store]) * 16 + b"\1" + bytes(8) + varint(positions)


def refused(groups: bytes) -> int:
    """The close code for a BIND with these groups, 0 when it is read."""
    body = HEAD + b"\1" + varint(len(groups)) + groups
    try:
        decoding.bind(body, 0, len(body))
    except ProtocolError as error:
        return error.reason_code
    return 0


def test_limit_of_stores() -> None:
    """LINK_FLOW_STORES stores are read, one more is refused (LINK-40)."""
    most = b"".join([group(n, 1) for n in range(limits.LINK_FLOW_STORES)])
    assert refused(most) == 0
    assert refused(most + group(99, 1)) == 0x82


def test_limit_of_positions_over_all_stores() -> None:
    """LINK_FLOW_POSITIONS positions are read, however many stores they are of; one more is refused."""
    assert refused(group(1, limits.LINK_FLOW_POSITIONS - 1) + group(2, 1)) == 0
    assert refused(group(1, limits.LINK_FLOW_POSITIONS) + group(2, 1)) == 0x82


@pytest.mark.parametrize(
    ("size", "code"), [(limits.SELECTOR_BYTES, 0), (limits.SELECTOR_BYTES + 1, 0x81)]
)
def test_limit_of_a_selector(size: int, code: int) -> None:
    """SELECTOR_BYTES of selector are read, one more is malformed (LINK-40)."""
    body = HEAD + b"\2" + varint(size) + b"x" * size
    got = 0
    try:
        assert len(decoding.bind(body, 0, len(body)).selector) == size
    except ProtocolError as error:
        got = error.reason_code
    assert got == code


DOC = (Path(__file__).parents[3] / "docs/link-protocol.md").read_text(encoding="utf-8")


def test_every_frame_type_has_the_number_of_the_document() -> None:
    """The table of LINK-5 and the constants say the same."""
    rows = re.findall(r"^\| 0x([0-9a-f]{2}) \| ([A-Z_]+) \| \w+ \| LINK-\d+ \|$", DOC, re.MULTILINE)
    told = {name: int(number, 16) for number, name in rows}
    known = vars(frames)
    assert told == {name: known.get(name) for name in told}
    assert len(set(told.values())) == len(told)


def test_flags_are_apart() -> None:
    """Each flag of a message is a bit of its own."""
    flags = (
        frames.REDELIVERED,
        frames.PERSISTENT,
        frames.DMQ_ELIGIBLE,
        frames.EXACTLY_ONCE,
    )
    assert sum(flags) == frames.MESSAGE_FLAGS == 0b1111


def test_ten_thousand_filters_cost_three_frames() -> None:
    """The count per frame bounds how many control messages a change of many filters costs."""
    filters = [(0, f"orders/{n}/>") for n in range(10_000)]
    batches = subscribe_frames(7, filters, limits.LINK_FRAME_BYTES)
    assert [frame.request_id for frame in batches] == [7, 8, 9]
    assert [len(frame.filters) for frame in batches] == [4_096, 4_096, 1_808]


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("aé/>", min_size=1, max_size=30), max_size=40),
    max_frame=st.integers(80, 200),
)
def test_frames_keep_below_the_limit_and_lose_nothing(texts: list[str], max_frame: int) -> None:
    """Every filter is in exactly one frame, in order, and no frame is longer than allowed."""
    subscribes = subscribe_frames(1, [(1, text) for text in texts], max_frame)
    unsubscribes = unsubscribe_frames(1, texts, max_frame)
    assert all(len(encode.subscribe(frame)) <= max_frame for frame in subscribes)
    assert all(len(encode.unsubscribe(frame)) <= max_frame for frame in unsubscribes)
    assert [pair for frame in subscribes for pair in frame.filters] == [(1, t) for t in texts]
    assert [text for frame in unsubscribes for text in frame.filters] == texts
    assert [frame.request_id for frame in subscribes] == list(range(1, len(subscribes) + 1))


def test_a_filter_that_no_frame_holds() -> None:
    """A filter longer than a whole frame is a ValueError."""
    with pytest.raises(ValueError, match="filter of 90 bytes"):
        subscribe_frames(1, [(0, "a" * 90)], 100)


FULL = "r" * 127 + "/" + "v" * 127


def test_the_longest_path_fits() -> None:
    """255 visited VPNs with the longest names cross, and stay below LINK_EXTENSION_BYTES."""
    path = [FULL] * limits.LINK_PATH_ENTRIES
    raw = encode_extension(
        Extension(path, 255, trace_low=1, origin_router=FULL, origin_vpn=FULL, retain=True)
    )
    assert len(raw) <= limits.LINK_EXTENSION_BYTES
    assert decode_extension(raw, 0, len(raw)).path == path


@pytest.mark.parametrize(
    "ext",
    [
        Extension([FULL] * (limits.LINK_PATH_ENTRIES + 1), 256),
        Extension([FULL] * 3, 2),
        Extension([], 0),
        Extension(["x" * (limits.LINK_PATH_ENTRY_BYTES + 1)]),
        Extension([""]),
        Extension([], origin_router="r"),
    ],
)
def test_extensions_that_no_peer_would_take_are_not_built(ext: Extension) -> None:
    """One step beyond each bound is a ValueError."""
    with pytest.raises(ValueError):
        encode_extension(ext)


def test_a_path_of_256_is_refused() -> None:
    """One visited VPN beyond LINK_PATH_ENTRIES is malformed (LINK-31)."""
    raw = b"\x01\x80\x04" + b"\x01v" * 256
    with pytest.raises(ProtocolError) as caught:
        decode_extension(raw, 0, len(raw))
    assert caught.value.reason_code == 0x81


def test_defaults_cost_nothing() -> None:
    """An extension that says nothing is empty, and a path implies its hops."""
    assert encode_extension(Extension([])) == b""
    assert encode_extension(Extension(["r/v", "r/w"], 2)) == b"\x01\x08\x03r/v\x03r/w"


@pytest.mark.parametrize(
    "block",
    ["", "0100", "0101", "02ffffffff", "030000", "08000161", "090000", "2600000000"],
)
def test_blocks_that_a_link_carries(block: str) -> None:
    """Each property of LINK-28 at an edge of its values."""
    raw = bytes.fromhex(block)
    check_properties(b"\xff" + raw + b"\xff", 1, 1 + len(raw))


@pytest.mark.parametrize("kind", [k for k in range(256) if k not in (1, 2, 3, 8, 9, 0x26)])
def test_every_other_property_is_refused(kind: int) -> None:
    """A property that a link does not carry is 0x82, whatever follows it."""
    with pytest.raises(ProtocolError) as caught:
        check_properties(bytes((kind, 0, 1, 1, 1)), 0, 5)
    assert caught.value.reason_code == 0x82


@settings(max_examples=300, deadline=None)
@given(block=st.binary(max_size=12), after=st.binary(max_size=4))
def test_nothing_behind_the_block_is_read(block: bytes, after: bytes) -> None:
    """The verdict on a block does not depend on the bytes behind it."""

    def verdict(buf: bytes) -> int | None:
        try:
            check_properties(buf, 0, len(block))
        except ProtocolError as error:
            return error.reason_code
        return None

    assert verdict(block) == verdict(block + after)
