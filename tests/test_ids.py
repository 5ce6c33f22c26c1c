"""Message and trace ids."""

from vpnrouter.ids import IdSource


def test_ids_count_from_one() -> None:
    """Message ids of one source are 1, 2, 3 …, so 0 can mean "none"."""
    source = IdSource(7)
    assert [source.next() for _ in range(3)] == [1, 2, 3]


def test_high_half_is_the_seed_and_never_zero() -> None:
    """W3C trace context forbids a trace id of all zeros; the high half alone prevents it."""
    assert IdSource(7).high == 7
    assert IdSource(0).high == 1
    assert IdSource(1 << 64).high == 1
    assert IdSource((1 << 70) + 5).high == 5
