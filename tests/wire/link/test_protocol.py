"""What is agreed, in which order frames may come, and why a link closes."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import codes, order
from vpnrouter.wire.link.ranges import (
    LAST_POSITION,
    decode_ranges,
    encode_ranges,
    positions_of,
    ranges_of,
)

UP = order.UP


EXPECTED = {
    order.STRANGE: "10",
    order.ASKING: "11 12",
    order.ASKING | order.PROVING: "11 12 16",
    order.CHALLENGING: "17",
    UP | order.ATTRACTING | order.CHALLENGING: "13 14 17 22 30 31",
    UP | order.SERVING | order.ASKING | order.PROVING: "11 12 13 14 15 16 20 21",
    0: "",
    UP | order.SERVING: "13 14 15 20 21",
    UP | order.ATTRACTING: "13 14 22 30 31",
    UP | order.ATTRACTING | order.SERVING: "13 14 15 20 21 22 30 31",
    UP | order.SERVING | order.ASKING: "11 12 13 14 15 20 21",
    UP | order.ATTRACTING | order.REUSABLE: "10 13 14 22 30 31",
    UP | order.ATTRACTING | order.PACKED: "13 14 22 30 31 60",
    UP | order.SERVING | order.FLOWING: "13 14 15 20 21 40 42 43 51 52 53",
    UP | order.ATTRACTING | order.FLOWING: "13 14 22 30 31 41 42 43 50 54",
    order.ASKING | order.FLOWING: "11 12",
}


KNOWN = bytes.fromhex("10 11 12 13 14 15 16 17 20 21 22 30 31")


FLOWS = bytes.fromhex("40 41 42 43 50 51 52 53 54")


@pytest.mark.parametrize("doing", list(EXPECTED))
def test_every_type_in_every_place(doing: int) -> None:
    """All 256 frame types in each state: taken, skipped, or refused by code."""
    taken = bytes.fromhex(EXPECTED[doing])
    assert order.accepted(doing) == frozenset(taken)
    for kind in range(256):
        if kind in taken or (doing & UP and kind >= 0x80):
            wanted = None
        elif doing == order.STRANGE:
            wanted = 0xC2
        elif kind in FLOWS:
            wanted = 0x82 if doing & order.FLOWING else 0xC0
        elif kind == 0x60 or (doing & UP and kind not in KNOWN):
            wanted = 0xC0
        else:
            wanted = 0x82
        got = None
        try:
            order.check_order(doing, kind)
        except ProtocolError as error:
            got = error.reason_code
        assert got == wanted, hex(kind)


@pytest.mark.parametrize(
    ("wish", "answer"),
    [
        (0, 0),
        (limits.LINK_HEARTBEAT_MIN_MS - 1, limits.LINK_HEARTBEAT_MIN_MS),
        (limits.LINK_HEARTBEAT_MIN_MS, limits.LINK_HEARTBEAT_MIN_MS),
        (10_000, 10_000),
        (limits.LINK_HEARTBEAT_MAX_MS + 1, limits.LINK_HEARTBEAT_MAX_MS),
        (2**32 - 1, limits.LINK_HEARTBEAT_MAX_MS),
    ],
)
def test_heartbeat_is_the_wish_within_bounds(wish: int, answer: int) -> None:
    """A wish for none gets none; any other is moved to the nearest bound (LINK-15)."""
    assert order.agreed_heartbeat_ms(wish) == answer


def test_the_lower_minor_is_spoken() -> None:
    """A peer of the future is answered with this side's minor (LINK-12)."""
    assert order.agreed_minor(7) == 1
    assert order.agreed_minor(0) == 0


def test_unknown_features_are_not_accepted() -> None:
    """Of an offer what is known here is taken: reuse, guaranteed flows, zstd, retained and amqp (LINK-48)."""
    assert order.agreed_features(0xFFFFFFFF) == 0b11111
    assert order.agreed_features(0b100000) == 0


def test_the_smaller_frame_limit_counts() -> None:
    """What the peer takes bounds what is sent, and so does this side's own limit (LINK-15)."""
    assert order.agreed_max_frame(16_384) == 16_384
    assert order.agreed_max_frame(2**32 - 1) == limits.LINK_FRAME_BYTES


DOC = (Path(__file__).parents[3] / "docs/link-protocol.md").read_text(encoding="utf-8")


def test_every_code_is_in_the_document_with_its_reason() -> None:
    """The table of LINK-16 and REASONS say the same."""
    rows = re.findall(r"^\| 0x([0-9a-f]{2}) \| [^|]+ \| ([^|]+) \|$", DOC, re.MULTILINE)
    told = {
        int(code, 16): reason for code, reason in rows if reason[0].isupper() or reason[0].isdigit()
    }
    assert {code: told.get(code) for code in codes.REASONS} == codes.REASONS


def test_codes_fit_a_protocol_error() -> None:
    """Each code can be carried by ProtocolError, whose reason code is a byte."""
    assert all(0 <= code <= 0xFF for code in codes.REASONS)


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
