"""Thresholds: set at the one mark, cleared at the other, silent between."""

import random

import pytest

from vpnrouter.events import table
from vpnrouter.events.thresholds import ThresholdEvents, Thresholds, ThresholdValues

PAIR = ThresholdEvents(table.CONNECTIONS_HIGH, table.CONNECTIONS_HIGH_CLEAR, "connections")
MARKS = ThresholdValues(80, 60)


@pytest.mark.parametrize(
    ("marks", "bound", "values", "raised"),
    [
        (MARKS, 10, [0, 7, 8, 10, 7, 6, 8], {2: "set", 5: "clear", 6: "set"}),
        (MARKS, 1, [0, 1, 1, 0], {1: "set", 3: "clear"}),
        (MARKS, 3, [2, 3, 2, 1], {1: "set", 3: "clear"}),
        (ThresholdValues(25, 18), 1_000, [249, 250, 181, 180], {1: "set", 3: "clear"}),
        (ThresholdValues(100, 100), 5, [4, 5, 5, 4], {1: "set", 2: "clear", 3: None}),
        (MARKS, 0, [0, 5, 1_000], {}),
        (ThresholdValues(0, 0), 10, [0, 10], {}),
        (ThresholdValues(100, 50, absolute=True), 0, [99, 100, 51, 50], {1: "set", 3: "clear"}),
        (ThresholdValues(0, 0, absolute=True), 0, [0, 10], {}),
    ],
)
def test_values(
    marks: ThresholdValues, bound: int, values: list[int], raised: dict[int, str | None]
) -> None:
    """What each of a row of values raises, by its place."""
    thresholds = Thresholds()
    found = {}
    for place, value in enumerate(values):
        crossing = thresholds.look(PAIR, "blue", "", value, bound, marks)
        thresholds.done()
        if crossing is not None:
            found[place] = "set" if crossing.kind is table.CONNECTIONS_HIGH else "clear"
    assert found == {place: what for place, what in raised.items() if what}


def test_texts_have_the_numbers() -> None:
    """Who reads the event sees value, share and bound."""
    thresholds = Thresholds()
    high = thresholds.look(PAIR, "blue", "", 9_000, 10_000, MARKS)
    clear = thresholds.look(PAIR, "blue", "", 10, 10_000, MARKS)
    assert high is not None
    assert high.text == "connections high: 9,000 (90 % of 10,000)"
    assert clear is not None
    assert clear.text == "connections no longer high: 10"


def test_objects_are_told_apart() -> None:
    """Each queue of each message VPN has its own state."""
    thresholds = Thresholds()
    assert thresholds.look(PAIR, "blue", "a", 9, 10, MARKS)
    assert thresholds.look(PAIR, "blue", "b", 9, 10, MARKS)
    assert thresholds.look(PAIR, "red", "a", 9, 10, MARKS)
    assert not thresholds.look(PAIR, "blue", "a", 9, 10, MARKS)


def test_what_is_no_longer_watched_is_cleared() -> None:
    """A threshold that is switched off while it is high says so, once."""
    thresholds = Thresholds()
    assert thresholds.look(PAIR, "blue", "", 9, 10, MARKS)
    crossing = thresholds.look(PAIR, "blue", "", 9, 10, ThresholdValues(0, 0))
    assert crossing is not None
    assert crossing.kind is table.CONNECTIONS_HIGH_CLEAR
    assert thresholds.look(PAIR, "blue", "", 9, 10, ThresholdValues(0, 0)) is None


def test_what_is_gone_is_forgotten() -> None:
    """An object that was not looked at in a round is raised anew when it comes back."""
    thresholds = Thresholds()
    assert thresholds.look(PAIR, "blue", "q", 9, 10, MARKS)
    thresholds.done()
    thresholds.done()
    assert thresholds.look(PAIR, "blue", "q", 9, 10, MARKS)


def test_set_and_clear_take_turns() -> None:
    """Whatever the values are, each clear follows a set and each set a clear."""
    seed = random.randrange(1 << 32)
    draws = random.Random(seed)
    thresholds = Thresholds()
    high = False
    for _ in range(2_000):
        crossing = thresholds.look(PAIR, "blue", "", draws.randrange(12), 10, MARKS)
        thresholds.done()
        if crossing is not None:
            now = crossing.kind is table.CONNECTIONS_HIGH
            assert now is not high, f"seed {seed}"
            high = now
