import time

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys
from vpnrouter.spool.recovery import Recovered, Recovery
from vpnrouter.spool.segments import SegmentTable, encode_index
from vpnrouter.spool.store import Batch, MemoryStore


def store_with(rows: dict[bytes, bytes]) -> MemoryStore:
    """A store with these rows."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    for key, value in rows.items():
        batch.put(key, value)
    store.commit(batch)
    return store


def index(sets: list[list[int]], which: list[int]) -> bytes:
    """An index whose columns tell the messages apart."""
    count = len(which)
    numbers = list(range(count))
    return encode_index(
        numbers, numbers, [9 - number for number in numbers], [0] * count, sets, which
    )


def told(found: Recovered) -> tuple[int, list[int], list[int], list[int]]:
    """What is looked at of a portion."""
    assert len(found.ids) == len(found.sizes) == len(found.priorities) == len(found.expires)
    return found.endpoint, found.ids.tolist(), found.sizes.tolist(), found.lanes.tolist()


def test_whole_and_partly_settled_segments() -> None:
    """Ids ascend per endpoint; columns stand beside their ids."""
    store = store_with(
        {
            keys.index(10): index([[1, 2]], [0, 0, 0]),
            keys.index(20): index([[1], [1, 3], []], [0, 1, 2, 1]),
            keys.settled(1, 10): b"\2",
            keys.settled(1, 20): b"\1",
        }
    )
    table = SegmentTable()
    recovery = Recovery(store, table)
    assert [told(found) for found in recovery.run()] == [
        (1, [10, 12, 21, 23], [0, 2, 1, 3], [9, 7, 8, 6]),
        (2, [10, 11, 12], [0, 1, 2], [9, 8, 7]),
        (3, [21, 23], [1, 3], [8, 6]),
    ]
    assert (recovery.next_id, recovery.spent) == (24, [])
    table.seek(10)
    assert (table.count, table.left, table.parts) == (3, 5, True)
    table.seek(20)
    assert (table.count, table.left, table.parts) == (4, 4, True)


def test_a_bitmap_without_its_segment_settles_nothing() -> None:
    """What is left of a segment that is gone says nothing of the next one."""
    store = store_with({keys.settled(1, 5): b"\3", keys.index(10): index([[1]], [0, 0])})
    assert [told(found)[1] for found in Recovery(store, SegmentTable()).run()] == [[10, 11]]


def test_portions() -> None:
    """Much is handed over in portions, each endpoint's in order."""
    rows = {keys.index(10 * number): index([[1]], [0] * 10) for number in range(1, 8)}
    recovery = Recovery(store_with(rows), SegmentTable(), 25)
    portions = [found.ids.tolist() for found in recovery.run()]
    assert [len(portion) for portion in portions] == [30, 30, 10]
    assert [number for portion in portions for number in portion] == list(range(10, 80))


def test_bodies_are_not_read() -> None:
    """Recovery asks for indexes and bitmaps alone."""
    store = store_with({keys.index(1): index([[1]], [0]), keys.bodies(1): b"not a segment"})
    assert [told(found)[1] for found in Recovery(store, SegmentTable()).run()] == [[1]]


def test_segment_of_which_nothing_is_left() -> None:
    """It is named, and not in the table."""
    store = store_with({keys.index(1): index([[1]], [0, 0]), keys.settled(1, 1): b"\3"})
    table = SegmentTable()
    recovery = Recovery(store, table)
    assert list(recovery.run()) == []
    assert recovery.spent == [1]
    assert len(table) == 0


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ({keys.index(1): b"x"}, "segment 1"),
        ({keys.index(1): index([[1]], [0, 0]), keys.index(2): index([[1]], [0])}, "segment 2"),
        ({keys.index(1): index([[1]], [0]), keys.settled(1, 1): b"\0\0"}, "bitmap"),
    ],
)
def test_damage(rows: dict[bytes, bytes], what: str) -> None:
    """What cannot be true is refused, and the segment is named."""
    with pytest.raises(SpoolError, match=what) as raised:
        list(Recovery(store_with(rows), SegmentTable()).run())
    assert raised.value.reason == "corrupt"


def test_a_million_messages() -> None:
    """Whole segments are taken as ranges: a start with a million messages takes no time worth telling."""
    units = 2_000
    value = encode_index([256] * 500, [4] * 500, [0] * 500, [0] * 500, [[1]], [0] * 500)
    store = store_with({keys.index(1 + 500 * number): value for number in range(units)})
    begun = time.perf_counter()
    count = sum(len(found.ids) for found in Recovery(store, SegmentTable()).run())
    assert count == 1_000_000
    assert time.perf_counter() - begun < 3.0
