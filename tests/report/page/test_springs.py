"""vpnrouter.report.page.layout: linked points stand near each other."""

import numpy as np
import pytest

from vpnrouter.report.page.layout import spread


@pytest.mark.parametrize("points", [1, 2, 3, 40])
def test_every_point_has_a_spot_of_its_own(points: int) -> None:
    """No two points coincide, not even leaves of one hub, and all places are finite."""
    at = spread(points, [(0, n) for n in range(1, points)])
    assert at.shape == (points, 2)
    assert np.isfinite(at).all()
    assert len({tuple(spot) for spot in at.round(4)}) == points


def test_linked_points_are_nearer_than_others() -> None:
    """In a ring of 24 neighbours stand nearer than points across."""
    at = spread(24, [(n, (n + 1) % 24) for n in range(24)])
    beside = [np.hypot(*(at[n] - at[(n + 1) % 24])) for n in range(24)]
    across = [np.hypot(*(at[n] - at[(n + 12) % 24])) for n in range(24)]
    assert max(beside) < min(across)


def test_equal_graphs_look_equal() -> None:
    """The order in which links are named, and their direction, change nothing."""
    links = [(n, n // 2) for n in range(1, 30)]
    turned = [(b, a) for a, b in reversed(links)]
    assert (spread(30, links) == spread(30, turned)).all()
