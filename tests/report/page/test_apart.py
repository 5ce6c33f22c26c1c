"""vpnrouter.report.page.layout: boxes that do not overlap."""

import numpy as np
import pytest

from vpnrouter.report.page.layout import Spots, apart


def overlapping(at: Spots, extent: Spots) -> int:
    """Pairs of boxes that share more than a pixel."""
    gap = np.abs(at[:, None] - at[None, :]) - (extent[:, None] + extent[None, :]) / 2
    return int(((gap < -1.0).all(axis=2).sum() - len(at)) // 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_crowded_boxes_part(seed: int) -> None:
    """120 boxes of many sizes on little room end without overlaps."""
    draw = np.random.default_rng(seed)
    extent = draw.uniform(40, 300, (120, 2))
    assert overlapping(apart(draw.uniform(0, 500, (120, 2)), extent), extent) == 0


def test_boxes_on_one_spot_part() -> None:
    """Even boxes that begin at the very same place."""
    extent = np.full((9, 2), 50.0)
    assert overlapping(apart(np.zeros((9, 2)), extent), extent) == 0


def test_boxes_that_do_not_touch_stay() -> None:
    """What is fine is left alone, the places given are not changed."""
    at = np.array([[0.0, 0.0], [100.0, 0.0]])
    assert (apart(at, np.full((2, 2), 50.0)) == at).all()
