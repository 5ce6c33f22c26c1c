import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SpoolError
from vpnrouter.spool.record import (
    DEFAULT_PRIORITY,
    Record,
    decode_record,
    encode_rare,
    encode_record,
)

U64 = st.integers(0, (1 << 64) - 1)
TIME = st.integers(0, (1 << 63) - 1)
NAME = st.text(st.characters(codec="utf-8"), max_size=40)


def fields(record: Record) -> dict[str, object]:
    """All that a record has."""
    return {name: getattr(record, name) for name in sorted(vars_of(record))}


def vars_of(record: Record) -> list[str]:
    """Names of a record's fields, of either build."""
    return [name for name in dir(record) if not name.startswith("_")]


def encoded(record: Record) -> bytes:
    """The bytes of a record."""
    rare = encode_rare(
        record.hops,
        record.path,
        record.origin_router,
        record.origin_vpn,
        record.origin_ts_ns,
        record.trace_high,
        record.trace_low,
    )
    return encode_record(
        record.topic,
        record.payload,
        record.block,
        record.flags,
        record.priority,
        record.expires_ns,
        record.ingress_ns,
        record.message_id,
        record.source_name,
        rare,
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Any message, with and without each of its parts."""
    record = Record(draw(st.binary(max_size=300)), draw(st.binary(max_size=300)))
    record.block = draw(st.binary(max_size=50))
    record.flags = draw(st.integers(0, 65_535))
    record.priority = draw(st.integers(0, 9))
    record.expires_ns = draw(st.just(0) | TIME)
    record.ingress_ns = draw(TIME)
    record.message_id = draw(U64)
    record.source_name = draw(NAME)
    if draw(st.booleans()):
        record.hops = draw(st.integers(0, 255))
        record.path = draw(st.lists(NAME, max_size=5))
        record.origin_router = draw(NAME)
        record.origin_vpn = draw(NAME)
        record.origin_ts_ns = draw(TIME)
        record.trace_high = draw(U64)
        record.trace_low = draw(U64)
    return record


@given(records())
def test_comes_back(record: Record) -> None:
    """What was encoded is decoded, whatever it is."""
    assert fields(decode_record(encoded(record))) == fields(record)


@given(records(), st.data())
def test_cut_or_changed_record(record: Record, data: st.DataObject) -> None:
    """Damage is a SpoolError or another record, never anything else."""
    whole = encoded(record)
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        changed = bytes([data.draw(st.integers(0, 255))])
        damaged = whole[:place] + changed + whole[place + 1 :]
    # Whatever else is raised fails the test.
    with contextlib.suppress(SpoolError):
        assert isinstance(decode_record(damaged).source_name, str)


def test_plain_message_is_short() -> None:
    """A plain message costs 24 bytes, its topic and its source beside the payload."""
    made = encode_record(b"a/b", b"x" * 256, b"", 1, 4, 0, 10**18, 5, "me", b"")
    assert len(made) == 24 + 3 + 2 + 256


def test_defaults() -> None:
    """What a record has that nobody said anything of."""
    record = Record(b"t", b"p")
    assert (record.priority, record.flags, record.path) == (DEFAULT_PRIORITY, 0, [])
    assert fields(decode_record(encoded(record))) == fields(record)


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, b"x" * 65_536), (3, 65_536), (3, -1), (4, 10), (4, -1), (7, 1 << 64), (7, -1)],
)
def test_field_out_of_range(at: int, value: object) -> None:
    """Nothing is cut to fit."""
    arguments: list[object] = [b"t", b"p", b"", 0, 4, 0, 1, 1, "me"]
    arguments[at] = value
    with pytest.raises(OverflowError):
        encode_record(*arguments)  # type: ignore[arg-type]


def test_longest_topic_and_source() -> None:
    """Both have 16 bits of length; a source is cut at the end of a character."""
    made = decode_record(encode_record(b"t" * 65_535, b"", b"", 0, 4, 0, 1, 1, "é" * 40_000))
    assert made.topic == b"t" * 65_535
    assert made.source_name == "é" * 32_767


def test_rare_part_has_a_bound() -> None:
    """A path beyond 64 KiB, or a number beyond its field, is refused."""
    with pytest.raises(OverflowError):
        encode_rare(1, ["x" * 255] * 257, "", "", 0, 0, 0)
    with pytest.raises(OverflowError):
        encode_rare(256, [], "", "", 0, 0, 0)
    assert encode_rare(0, [], "", "", 0, 0, 0) == b""
