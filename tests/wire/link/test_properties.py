import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.extension import check_properties


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
