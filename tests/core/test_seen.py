"""vpnrouter.core.seen: which messages have been here, and ids that no two routers share."""

from __future__ import annotations

from itertools import pairwise

from vpnrouter import limits
from vpnrouter.core.seen import DUPLICATE, FIRST, SHORTER, SeenIds, message_id


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


def test_ids_are_no_two_alike_and_never_none() -> None:
    """Each number of each router has an id of its own, above 0 and below 2**61, the same whenever it is asked for."""
    made = {message_id(key, number) for key in (b"one", b"other") for number in range(1, 20_000)}
    assert len(made) == 2 * 19_999
    assert min(made) > 0
    assert max(made) < 2**61
    assert message_id(b"one", 7) == message_id(b"one", 7)


def test_ids_that_were_seen_tell_no_other() -> None:
    """Neither their distances nor what a router tells of itself lead to the next one."""
    seen = [message_id(b"secret", number) for number in range(1, 1_000)]
    steps = {(after - before) % 2**61 for before, after in pairwise(seen)}
    assert len(steps) == 998
