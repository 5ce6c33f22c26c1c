import random

import pytest

from vpnrouter.spool.segments import CHUNK, SegmentTable


def test_find() -> None:
    """A message belongs to the segment that reaches over it; gaps belong to none."""
    table = SegmentTable()
    table.append(10, 5, 7)
    table.append(20, 1, 1, True)
    assert [number for number in range(8, 25) if table.seek(number)] == [*range(10, 15), 20]
    assert table.find(14) == 10
    assert (table.first, table.count, table.left, table.parts) == (10, 5, 7, False)
    assert table.find(20) == 20
    assert (table.first, table.count, table.left, table.parts) == (20, 1, 1, True)


def test_nothing_is_found_in_an_empty_table() -> None:
    """Neither before the first segment came nor after the last one went."""
    table = SegmentTable()
    assert not table.seek(1)
    table.append(1, 1, 1)
    table.remove(1)
    assert not table.seek(1)
    assert len(table) == 0
    for ask in (table.find, table.remove):
        with pytest.raises(KeyError):
            ask(1)


def test_update() -> None:
    """What is left and whether there are bitmaps changes; the count stays."""
    table = SegmentTable()
    table.append(1, 4_096, 8_192)
    table.update(1, 4_000_000_000, True)
    table.seek(1)
    assert (table.count, table.left, table.parts) == (4_096, 4_000_000_000, True)
    table.update(1, 3, False)
    table.seek(4_096)
    assert (table.count, table.left, table.parts) == (4_096, 3, False)
    with pytest.raises(KeyError):
        table.update(4_097, 1, False)


@pytest.mark.parametrize("seed", range(6))
def test_like_a_dictionary(seed: int) -> None:
    """Random appends and removals, over several chunks, in several orders."""
    draw = random.Random(seed)
    table = SegmentTable()
    model: dict[int, tuple[int, int]] = {}
    number = 1
    for _ in range(4):
        for _ in range(draw.randrange(3 * CHUNK)):
            count = draw.randrange(1, 5)
            table.append(number, count, count * 2)
            model[number] = (count, count * 2)
            number += count + draw.randrange(2)
        gone = sorted(model, reverse=draw.random() < 0.5)
        if draw.random() < 0.5:
            draw.shuffle(gone)
        for first in gone[: draw.randrange(len(gone) + 1)]:
            table.remove(first)
            del model[first]
        assert table.firsts() == sorted(model), f"seed {seed}"
        for first, (count, left) in model.items():
            assert table.find(first + count - 1) == first
            assert (table.count, table.left) == (count, left)


def test_sparse_removal_gives_memory_back() -> None:
    """One segment of each hundred left: few chunks are left."""
    table = SegmentTable()
    for first in range(1, 50 * CHUNK + 1):
        table.append(first, 1, 1)
    for first in range(1, 50 * CHUNK + 1):
        if first % 100:
            table.remove(first)
    assert len(table._chunks) <= 6
