"""vpnrouter.core.duplicates: which messages have been here."""

from __future__ import annotations

from vpnrouter import limits
from vpnrouter.core.duplicates import DUPLICATE, FIRST, SHORTER, SeenIds


def test_the_first_copy_enters() -> None:
    """A later one over as many links or more is a duplicate, one over fewer goes on to links, once."""
    seen = SeenIds()
    assert seen.look(7, 3) == FIRST
    assert seen.look(7, 3) == DUPLICATE
    assert seen.look(7, 9) == DUPLICATE
    assert seen.look(7, 2) == SHORTER
    assert seen.look(7, 2) == DUPLICATE
    assert seen.look(7, 3) == DUPLICATE
    assert seen.look(8, 3) == FIRST


def test_what_is_remembered_by_the_older_generation() -> None:
    """It counts as well, fewer links included."""
    seen = SeenIds(2)
    assert [seen.look(number, 5) for number in (1, 2, 3)] == [FIRST] * 3
    assert seen.look(1, 5) == DUPLICATE
    assert seen.look(2, 4) == SHORTER
    assert seen.look(2, 4) == DUPLICATE
    assert seen.look(3, 5) == DUPLICATE


def test_the_memory_is_bounded() -> None:
    """SEEN_IDS newer messages are never too many, twice as many are: then the copy counts as new."""
    seen = SeenIds()
    assert seen.look(1, 1) == FIRST
    for number in range(2, limits.SEEN_IDS + 2):
        seen.look(number, 1)
    assert seen.look(1, 1) == DUPLICATE
    for number in range(limits.SEEN_IDS + 2, 2 * limits.SEEN_IDS + 2):
        seen.look(number, 1)
        assert number % 1_000 or len(seen) <= 2 * limits.SEEN_IDS
    assert len(seen) <= 2 * limits.SEEN_IDS
    assert seen.look(1, 1) == FIRST
