"""Durations by bounds."""

from vpnrouter.management.metrics.families import BOUNDS_S, Durations


def test_counts() -> None:
    """A duration counts under the first bound that it does not exceed, and beyond all in the end."""
    durations = Durations()
    for milliseconds in (-1, 0, 1, 2, 10_000):
        durations.add(milliseconds * 1_000_000)
    shown = durations.histogram()
    assert shown.bounds == BOUNDS_S
    assert shown.counts[:2] == (3, 1)
    assert shown.counts[-1] == 1
    assert sum(shown.counts) == 5
    assert shown.total == 10.003
