"""vpnrouter.report.page.layout: where the boxes stand."""

import itertools
import random

import pytest

from vpnrouter.report.page.layout import Point, place

Sizes = dict[str, tuple[float, float]]


def overlaps(sizes: Sizes, at: dict[str, Point]) -> list[tuple[str, str]]:
    """Pairs of boxes that share a pixel."""
    return [
        (a, b)
        for a, b in itertools.combinations(at, 2)
        if abs(at[a][0] - at[b][0]) < (sizes[a][0] + sizes[b][0]) / 2 - 1
        and abs(at[a][1] - at[b][1]) < (sizes[a][1] + sizes[b][1]) / 2 - 1
    ]


@pytest.mark.parametrize("boxes", [1, 2, 3, 12, 80])
def test_boxes_do_not_overlap(boxes: int) -> None:
    """Boxes of many sizes, linked at random, all find a place of their own."""
    draw = random.Random(boxes)
    sizes = {f"r{n}": (draw.uniform(120, 400), draw.uniform(80, 500)) for n in range(boxes)}
    names = list(sizes)
    links = [(draw.choice(names), draw.choice(names), draw.uniform(1, 9)) for _ in range(2 * boxes)]
    at = place(sizes, links)
    assert set(at) == set(sizes)
    assert overlaps(sizes, at) == []


def test_equal_data_gives_an_equal_drawing() -> None:
    """Nothing is left to chance."""
    sizes = dict.fromkeys("abcdef", (100.0, 80.0))
    links = [("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 1.0), ("d", "e", 1.0)]
    assert place(sizes, links) == place(sizes, links)


def test_traffic_flows_to_the_right() -> None:
    """Two routers stand side by side, where messages come from on the left."""
    sizes = {"core": (150.0, 100.0), "edge": (150.0, 100.0)}
    for source, sink in (("edge", "core"), ("core", "edge")):
        at = place(sizes, [(source, sink, 5.0), (sink, source, 1.0)])
        assert at[source][0] + 300 < at[sink][0]
        assert abs(at[source][1] - at[sink][1]) < 1


def test_nothing_and_the_unlinked_have_places() -> None:
    """No boxes give no places; boxes without links stand beside each other."""
    assert place({}, []) == {}
    sizes = dict.fromkeys("abc", (100.0, 80.0))
    assert overlaps(sizes, place(sizes, [("a", "a", 1.0)])) == []


@pytest.mark.slow
def test_hundreds_of_routers_are_placed() -> None:
    """A large mesh too has a place of its own for every box."""
    sizes = {f"r{n}": (150.0, 100.0) for n in range(520)}
    links = [(f"r{n}", f"r{n // 3}", 1.0) for n in range(1, 520)]
    at = place(sizes, links)
    assert overlaps(sizes, at) == []
