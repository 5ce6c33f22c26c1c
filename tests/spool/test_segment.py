import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SpoolError
from vpnrouter.spool.segments import (
    bits_set,
    decode_index,
    decode_segment,
    encode_index,
    encode_segment,
)

ROW = st.tuples(
    st.sampled_from([0, 7, (1 << 32) - 1]),
    st.sampled_from([0, 4, 255]),
    st.sampled_from([0, 9, 65_535]),
    st.sampled_from([0, 1 << 61]),
    st.integers(0, 2),
)
SETS = [[1], [2, 1, 4_000_000_000], []]


@given(st.lists(st.binary(max_size=20), max_size=30))
def test_bodies_come_back(records: list[bytes]) -> None:
    """Records come back as they were, empty ones too."""
    assert decode_segment(encode_segment(records)) == records


@given(st.lists(ROW, min_size=1, max_size=20))
def test_index_comes_back(rows: list[tuple[int, int, int, int, int]]) -> None:
    """Columns come back, whether they have one value or many."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    sizes, priorities, lanes, expires, which = columns
    made = decode_index(encode_index(sizes, priorities, lanes, expires, SETS, which))
    assert made.count == len(rows)
    assert [made.sizes.tolist(), made.priorities.tolist()] == columns[:2]
    assert [made.lanes.tolist(), made.expires.tolist()] == columns[2:4]
    assert made.sets == SETS
    assert (made.which.tolist() or [0] * len(rows)) == columns[4]


def test_index_of_like_messages_is_short() -> None:
    """4,096 messages that differ in nothing have the index of one."""
    one = encode_index([256], [4], [0], [0], [[1]], [0])
    many = encode_index([256] * 4_096, [4] * 4_096, [0] * 4_096, [0] * 4_096, [[1]], [0] * 4_096)
    assert len(one) == len(many) == 26


@given(st.data())
def test_damaged_bodies(data: st.DataObject) -> None:
    """A cut or lengthened value is refused."""
    whole = encode_segment([b"one", b"", b"three"])
    cut = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:cut], whole + b"x"):
        with pytest.raises(SpoolError) as raised:
            decode_segment(damaged)
        assert raised.value.reason == "corrupt"


@given(st.data())
def test_damaged_index(data: st.DataObject) -> None:
    """A cut or lengthened index is refused; a changed one is refused or is another index."""
    whole = encode_index([1, 2], [4, 5], [0, 1], [0, 9], [[1], [2, 3]], [1, 0])
    cut = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:cut], whole + b"x"):
        with pytest.raises(SpoolError):
            decode_index(damaged)
    changed = whole[:cut] + bytes([data.draw(st.integers(0, 255))]) + whole[cut + 1 :]
    # Whatever else is raised fails the test.
    with contextlib.suppress(SpoolError):
        made = decode_index(changed)
        assert len(made.sizes) == len(made.expires) == made.count


def test_too_many_messages() -> None:
    """The count has two bytes."""
    assert len(decode_segment(encode_segment([b""] * 65_535))) == 65_535
    with pytest.raises(OverflowError):
        encode_segment([b""] * 65_536)


def test_bits_set() -> None:
    """Bits are counted over all bytes."""
    assert bits_set(b"\xff\x00\x81") == 10
