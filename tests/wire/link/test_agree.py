import pytest

from vpnrouter import limits
from vpnrouter.wire.link import order


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
    """Of an offer what is known here is taken: reuse, guaranteed flows, zstd and retained (LINK-48)."""
    assert order.agreed_features(0xFFFFFFFF) == 0b1111
    assert order.agreed_features(0b10000) == 0


def test_the_smaller_frame_limit_counts() -> None:
    """What the peer takes bounds what is sent, and so does this side's own limit (LINK-15)."""
    assert order.agreed_max_frame(16_384) == 16_384
    assert order.agreed_max_frame(2**32 - 1) == limits.LINK_FRAME_BYTES
