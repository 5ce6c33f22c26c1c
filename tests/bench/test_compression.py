import random

import pytest

from bench.compression import documents, measure, noise


@pytest.mark.parametrize("in_a_write", [1, 7, 1_000])
def test_figures_are_of_what_went_in(in_a_write: int) -> None:
    """Text becomes smaller, random bytes do not, and each figure is there."""
    text = measure(documents(60, random.Random(1)), in_a_write)
    assert text["ratio"] > 2
    assert 1_024 < text["bytes"] < 1_200
    assert 0.98 < measure(noise(300, random.Random(1)), in_a_write)["ratio"] < 1.4
    assert min(text.values()) > 0
