"""Segments of a queue, and the ids that wait in them."""

import contextlib
import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.spool import keys, ledger
from vpnrouter.spool.ledger import CHUNK as IDS_A_CHUNK
from vpnrouter.spool.ledger import IdQueue
from vpnrouter.spool.segments import (
    CHUNK,
    SegmentBuilder,
    SegmentTable,
    SettledBitmaps,
    bits_set,
    decode_index,
    decode_segment,
    encode_index,
    encode_segment,
)
from vpnrouter.spool.store import Batch, MemoryStore


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


ROW = st.tuples(
    st.sampled_from([0, 7, (1 << 32) - 1]),
    st.sampled_from([0, 4, 255]),
    st.sampled_from([0, 9, 65_535]),
    st.sampled_from([0, 1 << 61]),
    st.integers(0, 2),
)


SETS = [[1], [2, 1, 4_000_000_000], []]


@given(st.lists(st.binary(max_size=20), max_size=30))
def test_bodies_come_back(records: list[bytes]) -> None:
    """Records come back as they were, empty ones too."""
    assert decode_segment(encode_segment(records)) == records


@given(st.lists(ROW, min_size=1, max_size=20))
def test_index_comes_back(rows: list[tuple[int, int, int, int, int]]) -> None:
    """Columns come back, whether they have one value or many."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    sizes, priorities, lanes, expires, which = columns
    made = decode_index(encode_index(sizes, priorities, lanes, expires, SETS, which))
    assert made.count == len(rows)
    assert [made.sizes.tolist(), made.priorities.tolist()] == columns[:2]
    assert [made.lanes.tolist(), made.expires.tolist()] == columns[2:4]
    assert made.sets == SETS
    assert (made.which.tolist() or [0] * len(rows)) == columns[4]


def test_index_of_like_messages_is_short() -> None:
    """4,096 messages that differ in nothing have the index of one."""
    one = encode_index([256], [4], [0], [0], [[1]], [0])
    many = encode_index([256] * 4_096, [4] * 4_096, [0] * 4_096, [0] * 4_096, [[1]], [0] * 4_096)
    assert len(one) == len(many) == 26


@given(st.data())
def test_damaged_bodies(data: st.DataObject) -> None:
    """A cut or lengthened value is refused."""
    whole = encode_segment([b"one", b"", b"three"])
    cut = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:cut], whole + b"x"):
        with pytest.raises(SpoolError) as raised:
            decode_segment(damaged)
        assert raised.value.reason == "corrupt"


@given(st.data())
def test_damaged_index(data: st.DataObject) -> None:
    """A cut or lengthened index is refused; a changed one is refused or is another index."""
    whole = encode_index([1, 2], [4, 5], [0, 1], [0, 9], [[1], [2, 3]], [1, 0])
    cut = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:cut], whole + b"x"):
        with pytest.raises(SpoolError):
            decode_index(damaged)
    changed = whole[:cut] + bytes([data.draw(st.integers(0, 255))]) + whole[cut + 1 :]
    # Whatever else is raised fails the test.
    with contextlib.suppress(SpoolError):
        made = decode_index(changed)
        assert len(made.sizes) == len(made.expires) == made.count


def test_too_many_messages() -> None:
    """The count has two bytes."""
    assert len(decode_segment(encode_segment([b""] * 65_535))) == 65_535
    with pytest.raises(OverflowError):
        encode_segment([b""] * 65_536)


def test_bits_set() -> None:
    """Bits are counted over all bytes."""
    assert bits_set(b"\xff\x00\x81") == 10


def add(building: SegmentBuilder, *sets: list[int], record: bytes = b"record") -> None:
    """Add a message for each set of endpoints."""
    for members in sets:
        building.add(record, 6, 4, 0, 0, members)


def members(building: SegmentBuilder) -> list[list[int]]:
    """Who has each message, as the index says."""
    columns = decode_index(building.index())
    which = columns.which or [0] * columns.count
    return [columns.sets[number] for number in which]


def test_messages_for_several_sets() -> None:
    """Each message keeps its own set, equal sets are stored once."""
    building = SegmentBuilder(10)
    add(building, [1], [1, 2], [1], [2, 1], [1, 2])
    assert members(building) == [[1], [1, 2], [1], [2, 1], [1, 2]]
    assert len(decode_index(building.index()).sets) == 3
    assert (building.left, len(building)) == (8, 5)


def test_list_that_changes_later() -> None:
    """The caller's list stays the caller's."""
    building = SegmentBuilder(1)
    mine = [1]
    add(building, mine)
    mine.append(2)
    add(building, mine)
    assert members(building) == [[1], [1, 2]]


def test_settled_before_it_was_stored() -> None:
    """It is noted in a bitmap; a message that nobody needs has no body."""
    building = SegmentBuilder(1, 100)
    add(building, [1, 2], [1, 2], [3])
    building.settle(1, 0)
    building.settle(1, 0)
    building.settle(9, 0)
    building.settle(1, 1)
    building.settle(2, 1)
    assert building.left == 2
    assert members(building) == [[1, 2], [1, 2], [3]]
    assert [(part.endpoint, bytes(part.bits)) for part in building.parts()] == [
        (1, b"\3"),
        (2, b"\2"),
    ]
    assert decode_segment(building.bodies()) == [b"record", b"", b"record"]


def test_bounds_of_a_segment() -> None:
    """Messages up to a count and to a size; the first one of any size."""
    building = SegmentBuilder(1)
    assert building.takes(limits.SPOOL_SEGMENT_BYTES * 2)
    add(building, [1], record=b"x" * (limits.SPOOL_SEGMENT_BYTES - 10))
    assert building.takes(10)
    assert not building.takes(11)
    many = SegmentBuilder(1)
    add(many, *[[1]] * (limits.SPOOL_SEGMENT_MESSAGES - 1))
    assert many.takes(1)
    add(many, [1])
    assert not many.takes(1)


@pytest.mark.parametrize(
    ("size", "priority", "lane", "expires"),
    [(1 << 32, 0, 0, 0), (-1, 0, 0, 0), (0, 256, 0, 0), (0, 0, 65_536, 0), (0, 0, 0, 1 << 62)],
)
def test_values_without_a_column(size: int, priority: int, lane: int, expires: int) -> None:
    """They are refused when they come: sealing must not fail."""
    building = SegmentBuilder(1)
    with pytest.raises(OverflowError):
        building.add(b"x", size, priority, lane, expires, [1])
    assert len(building) == 0


@pytest.mark.parametrize("endpoints", [[], [1, 2, 1]])
def test_sets_without_sense(endpoints: list[int]) -> None:
    """A message for nobody, and an endpoint named twice, could never be settled."""
    building = SegmentBuilder(1)
    for _ in range(2):
        with pytest.raises(ValueError, match="endpoint"):
            building.add(b"x", 1, 1, 1, 1, endpoints)
    add(building, [1])
    assert members(building) == [[1]]


def test_more_endpoints_than_a_set_can_name() -> None:
    """The count of a set has two bytes."""
    building = SegmentBuilder(1)
    add(building, list(range(65_535)))
    with pytest.raises(OverflowError):
        add(building, list(range(65_536)))
    assert len(members(building)[0]) == 65_535


def store_with(*bitmaps: tuple[int, bytes]) -> MemoryStore:
    """A store with segment 10, ten messages for endpoints 1, 2 and 3, and these bitmaps of it."""
    store = MemoryStore(bytes(16))
    batch = Batch()
    batch.put(
        keys.index(10), encode_index([1] * 10, [4] * 10, [0] * 10, [0] * 10, [[1, 2, 3]], [0] * 10)
    )
    for endpoint, value in bitmaps:
        batch.put(keys.settled(endpoint, 10), value)
    store.commit(batch)
    return store


def test_bits() -> None:
    """A bit for each message, set once."""
    store = store_with()
    parts = SettledBitmaps(10, 10, 30, False)
    assert parts.settle(store, 1, 10)
    assert parts.settle(store, 1, 19)
    assert parts.settle(store, 2, 11)
    assert not parts.settle(store, 1, 19)
    assert parts.left == 27
    batch = Batch()
    parts.write(batch)
    assert parts.written()
    assert sorted(batch.puts) == [(keys.settled(1, 10), b"\1\2"), (keys.settled(2, 10), b"\2\0")]


def test_only_what_changed_is_written() -> None:
    """The bitmap of an endpoint that settled nothing in this unit stays as it is."""
    store = store_with()
    parts = SettledBitmaps(10, 10, 30, False)
    parts.settle(store, 1, 10)
    parts.settle(store, 2, 10)
    parts.write(Batch())
    parts.written()
    parts.settle(store, 2, 11)
    batch = Batch()
    parts.write(batch)
    assert parts.written()
    assert batch.puts == [(keys.settled(2, 10), b"\3\0")]


def test_erase_deletes_only_what_is_stored() -> None:
    """A bitmap that was never written is never deleted."""
    store = store_with()
    parts = SettledBitmaps(10, 10, 30, False)
    parts.settle(store, 1, 10)
    parts.write(Batch())
    parts.written()
    parts.settle(store, 2, 10)
    batch = Batch()
    parts.erase(store, batch)
    assert batch.deletes == [keys.bodies(10), keys.index(10), keys.settled(1, 10)]


def test_cold_state_is_read_again() -> None:
    """What was settled and forgotten in memory stays settled, and its bitmap is deleted in the end."""
    store = store_with((1, b"\1\0"), (3, b"\xff\3"))
    parts = SettledBitmaps(10, 10, 19, True)
    assert not parts.settle(store, 1, 10)
    assert parts.settle(store, 1, 11)
    assert parts.settle(store, 2, 11)
    batch = Batch()
    parts.erase(store, batch)
    gone = [keys.settled(1, 10), keys.settled(3, 10)]
    assert batch.deletes == [keys.bodies(10), keys.index(10), *gone]


def test_cold_state_without_changes() -> None:
    """A segment that may have bitmaps in the store is said to have them until they are known."""
    assert SettledBitmaps(10, 10, 19, True).written()
    assert not SettledBitmaps(10, 10, 30, False).written()


class QueueMachine(RuleBasedStateMachine):
    """The queue does what a sorted list does, over several chunks."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = IdQueue()
        self.model: list[int] = []

    @rule(gaps=st.lists(st.integers(1, 3), min_size=1, max_size=8), times=st.sampled_from([1, 300]))
    def append(self, gaps: list[int], times: int) -> None:
        """Add above."""
        number = self.model[-1] if self.model else 0
        for gap in gaps * times:
            number += gap
            self.queue.append(number)
            self.model.append(number)

    @rule(gap=st.integers(1, 3), size=st.integers(0, 2_500))
    def extend(self, gap: int, size: int) -> None:
        """Add many above."""
        start = self.model[-1] + 1 if self.model else 0
        numbers = array("Q", range(start, start + size * gap, gap))
        self.queue.extend(numbers)
        self.model += numbers

    @rule(number=st.integers(0, 12_000))
    def add(self, number: int) -> None:
        """Add anywhere."""
        self.queue.add(number)
        if number not in self.model:
            self.model = sorted([*self.model, number])

    @rule(start=st.integers(0, 6_000), size=st.integers(1, 1_500), step=st.sampled_from([1, 2, -1]))
    def remove_run(self, start: int, size: int, step: int) -> None:
        """Take out a run, of which some are there."""
        present = set(self.model)
        for number in range(start, start + size)[::step]:
            assert self.queue.remove(number) == (number in present)
            present.discard(number)
        self.model = sorted(present)

    @rule(times=st.integers(1, 1_200))
    def popleft(self, times: int) -> None:
        """Take off the lowest."""
        for _ in range(min(times, len(self.model))):
            assert self.queue.popleft() == self.model.pop(0)

    @rule(times=st.integers(1, 20))
    def add_below(self, times: int) -> None:
        """Put back below the lowest, as a redelivery does."""
        for _ in range(times):
            if not self.model or self.model[0] == 0:
                return
            self.model.insert(0, self.model[0] - 1)
            self.queue.add(self.model[0])

    @rule(number=st.integers(0, 12_000), size=st.integers(1, 3_000))
    def browse(self, number: int, size: int) -> None:
        """Look at what comes after an id."""
        wanted = [each for each in self.model if each > number][:size]
        assert self.queue.after(number, size).tolist() == wanted

    @precondition(lambda self: len(self.model) > 3_000)
    @rule()
    def clear(self) -> None:
        """Forget all."""
        self.queue.clear()
        self.model = []

    @invariant()
    def same(self) -> None:
        """Both agree on what there is."""
        assert len(self.queue) == len(self.model)
        if self.model:
            assert (self.queue.first(), self.queue.last()) == (self.model[0], self.model[-1])
        whole = self.queue.after(-1, len(self.model) + 1).tolist()
        assert whole == self.model


QueueMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)


TestQueue = QueueMachine.TestCase


def test_empty_queue() -> None:
    """Nothing is first or last, nothing is taken out."""
    queue = IdQueue()
    for ask in (queue.first, queue.last, queue.popleft):
        with pytest.raises(IndexError):
            ask()
    assert not queue.remove(1)
    assert 1 not in queue
    assert len(queue.after(0, 5)) == 0


def test_append_only_goes_up() -> None:
    """What is lower or equal is refused, and changes nothing."""
    queue = IdQueue()
    queue.append(5)
    for number in (5, 4):
        with pytest.raises(ValueError, match="does not come after"):
            queue.append(number)
    with pytest.raises(ValueError, match="does not come after"):
        queue.extend(array("Q", [5, 6]))
    assert len(queue) == 1


@given(st.sets(st.integers(0, 5_000), min_size=1, max_size=50))
def test_contains(numbers: set[int]) -> None:
    """Exactly what was added is in it."""
    queue = IdQueue()
    for number in numbers:
        queue.add(number)
    assert {number for number in range(5_001) if number in queue} == numbers


def test_sparse_removal_from_the_ids_gives_memory_back() -> None:
    """One id of each hundred left, in whatever order the others went: few chunks are left."""
    queue = IdQueue()
    queue.extend(array("Q", range(100 * IDS_A_CHUNK)))
    for number in range(100 * IDS_A_CHUNK):
        if number % 100:
            assert queue.remove(number)
    assert len(queue) == IDS_A_CHUNK
    assert len(queue._chunks) <= 8


def test_chunk_splits_in_its_middle() -> None:
    """A chunk that grows beyond its size becomes two, and a started one loses its taken places."""
    queue = IdQueue()
    queue.extend(array("Q", range(0, 10 * ledger.CHUNK, 10)))
    for _ in range(IDS_A_CHUNK - 4):
        queue.popleft()
    left = queue.after(-1, 10).tolist()
    extra = []
    for number in range(left[0] + 1, left[0] + 10):
        queue.add(number)
        extra.append(number)
    assert queue.after(-1, 100).tolist() == sorted(left + extra)
