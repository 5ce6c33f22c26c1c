"""vpnrouter.trace.span: equal for equal rows, different for others."""

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.trace.span import span_id

half = st.integers(0, (1 << 64) - 1)
row = st.tuples(
    half, half, half, st.text(), st.text(), st.sampled_from(("deliver", "ingress")), st.text()
)


def test_it_stays() -> None:
    """The number is part of what others have written down: it never changes."""
    assert span_id(1, 2, 3, "edge", "blue", "deliver", "c", "q") == 0x435C7D16D47B789B


@given(row, row)
def test_it_tells_rows_apart(
    one: tuple[int, int, int, str, str, str, str], other: tuple[int, int, int, str, str, str, str]
) -> None:
    """Two rows have the same id just when they are the same."""
    assert (span_id(*one) == span_id(*other)) == (one == other)
    assert 0 < span_id(*one) < 1 << 64


def test_names_do_not_run_together() -> None:
    """What ends one name does not begin the next."""
    found = {
        span_id(1, 2, 3, router, vpn, "deliver", client, endpoint)
        for router, vpn, client, endpoint in (
            ("ab", "c", "d", ""),
            ("a", "bc", "d", ""),
            ("ab", "", "cd", ""),
            ("ab", "c", "", "d"),
        )
    }
    assert len(found) == 4
