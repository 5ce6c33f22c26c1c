"""The time inside a payload."""

import pytest

from vpnrouter.cli._mqtt_link import STAMP_BYTES, stamp_of, stamped


def test_there_and_back() -> None:
    """What was put in is read again, and the payload follows it."""
    made = stamped(b"rest", 1_700_000_000_000_000_000)
    assert stamp_of(made) == 1_700_000_000_000_000_000
    assert made[STAMP_BYTES:] == b"rest"


@pytest.mark.parametrize("payload", [b"", b"@", b"@12 x", b"x@1700000000000000000 ", b"\xff" * 30])
def test_other_payloads(payload: bytes) -> None:
    """They say nothing of a time."""
    assert stamp_of(payload) == 0
