import itertools

import pytest

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import order

EXPECTED = {
    (order.ACCEPTOR, order.HANDSHAKE): "10",
    (order.DIALER, order.HANDSHAKE): "11 12",
    (order.ACCEPTOR, order.UP): "13 14 20 21",
    (order.DIALER, order.UP): "13 14 22 30 31",
}
KNOWN = bytes.fromhex("10 11 12 13 14 20 21 22 30 31")


@pytest.mark.parametrize(("role", "phase"), list(itertools.product((0, 1), (0, 1))))
def test_every_type_in_every_place(role: int, phase: int) -> None:
    """All 256 frame types in each role and phase: taken, skipped, or refused by code."""
    for kind in range(256):
        taken = kind in bytes.fromhex(EXPECTED[(role, phase)])
        if taken or (phase == order.UP and kind >= 0x80):
            wanted = None
        elif (role, phase) == (order.ACCEPTOR, order.HANDSHAKE):
            wanted = 0xC2
        elif phase == order.HANDSHAKE or kind in KNOWN:
            wanted = 0x82
        else:
            wanted = 0xC0
        got = None
        try:
            order.check_order(role, phase, kind)
        except ProtocolError as error:
            got = error.reason_code
        assert got == wanted, hex(kind)
