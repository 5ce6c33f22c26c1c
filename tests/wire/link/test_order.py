"""The table of frame order over everything a link can be doing."""

import pytest

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import order

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
