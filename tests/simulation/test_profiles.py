import numpy as np
import pytest

from vpnrouter.simulation import feeds


@pytest.mark.parametrize("number", range(len(feeds.SHAPES)))
def test_all_messages_come_in_time(number: int) -> None:
    """A profile begins and ends when it must, and its two readings are each other's inverse."""
    one = feeds.normal(2.0, 600.0, np.random.default_rng(1))[number]
    shares = np.linspace(0, 1, 50)
    times = one.times(shares)
    assert times[0] == 2.0
    assert times[-1] == 600.0
    assert (np.diff(times) > 0).all()
    assert one.before(times) == pytest.approx(shares)


def test_shapes_differ() -> None:
    """Bursts are uneven, a flat profile is even."""
    flat, *_, bursts, _ = feeds.normal(0.0, 720.0, np.random.default_rng(1))
    cells = np.linspace(0, 720, 721)
    assert np.diff(flat.before(cells)).std() == pytest.approx(0, abs=1e-12)
    load = np.diff(bursts.before(cells)) * 720
    assert load.std() > 0.8


def test_windows_hold_all_and_nothing_else() -> None:
    """Traffic within windows comes there only; the share of a window is what it had before."""
    day = feeds.normal(0.0, 600.0, np.random.default_rng(1))[1]
    windows = [(100.0, 150.0), (300.0, 420.5)]
    some = day.within(windows)
    times = some.times(np.linspace(0, 1, 1_001))
    inside = [(times >= begin) & (times <= end) for begin, end in windows]
    assert np.logical_or(*inside).all()
    part = day.share_within(windows[:1]) / day.share_within(windows)
    assert some.before(np.array([200.0]))[0] == pytest.approx(part)
