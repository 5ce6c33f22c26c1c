import pytest

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import decode
from vpnrouter.wire.varint import varint

HEAD = bytes(4) + b"\0\1q\0\1"


def group(store: int, positions: int) -> bytes:
    """What BIND says of one store."""
    return bytes([store]) * 16 + b"\1" + bytes(8) + varint(positions)


def refused(groups: bytes) -> int:
    """The close code for a BIND with these groups, 0 when it is read."""
    body = HEAD + b"\1" + varint(len(groups)) + groups
    try:
        decode.bind(body, 0, len(body))
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
        assert len(decode.bind(body, 0, len(body)).selector) == size
    except ProtocolError as error:
        got = error.reason_code
    assert got == code
