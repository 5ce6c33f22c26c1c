import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.ranges import (
    LAST_POSITION,
    decode_ranges,
    encode_ranges,
    positions_of,
    ranges_of,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 40), st.integers(LAST_POSITION - 40, LAST_POSITION))))
def test_ranges_hold_exactly_the_positions(positions: list[int]) -> None:
    """In any order and with doubles: the ranges are ascending, apart, and cover each position once."""
    ranges = ranges_of(positions)
    assert positions_of(ranges) == sorted(set(positions))
    ends = [first + count for first, count in ranges]
    assert all(end < first for end, (first, _) in zip(ends, ranges[1:], strict=False))
    raw = encode_ranges(ranges)
    assert decode_ranges(b"\xff" + raw + b"\xff", 1, 1 + len(raw)) == ranges


def test_a_whole_window_in_a_row_is_one_entry() -> None:
    """255 positions that follow each other take ten bytes."""
    assert len(encode_ranges(ranges_of(range(1_000, 1_255)))) == 10


@pytest.mark.parametrize(
    "ranges",
    [
        [(1, 0)],
        [(1, -1)],
        [(LAST_POSITION, 2)],
        [(1, limits.LINK_FLOW_POSITIONS + 1)],
        [(1, limits.LINK_FLOW_POSITIONS), (0, 1)],
    ],
)
def test_what_no_peer_would_take_is_not_built(ranges: list[tuple[int, int]]) -> None:
    """One step beyond each bound is a ValueError."""
    with pytest.raises(ValueError):
        encode_ranges(ranges)


def test_limit_of_positions() -> None:
    """LINK_FLOW_POSITIONS positions are read, in as many ranges, and one more is refused (LINK-42)."""
    raw = b"".join([(2 * n).to_bytes(8, "big") + b"\1" for n in range(limits.LINK_FLOW_POSITIONS)])
    assert len(decode_ranges(raw, 0, len(raw))) == limits.LINK_FLOW_POSITIONS
    longer = raw + bytes(8) + b"\1"
    with pytest.raises(ProtocolError) as caught:
        decode_ranges(longer, 0, len(longer))
    assert caught.value.reason_code == 0x82
