from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vpnrouter.spool import ledger
from vpnrouter.spool.ledger import CHUNK, IdQueue


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


def test_sparse_removal_gives_memory_back() -> None:
    """One id of each hundred left, in whatever order the others went: few chunks are left."""
    queue = IdQueue()
    queue.extend(array("Q", range(100 * CHUNK)))
    for number in range(100 * CHUNK):
        if number % 100:
            assert queue.remove(number)
    assert len(queue) == CHUNK
    assert len(queue._chunks) <= 8


def test_chunk_splits_in_its_middle() -> None:
    """A chunk that grows beyond its size becomes two, and a started one loses its taken places."""
    queue = IdQueue()
    queue.extend(array("Q", range(0, 10 * ledger.CHUNK, 10)))
    for _ in range(CHUNK - 4):
        queue.popleft()
    left = queue.after(-1, 10).tolist()
    extra = []
    for number in range(left[0] + 1, left[0] + 10):
        queue.add(number)
        extra.append(number)
    assert queue.after(-1, 100).tolist() == sorted(left + extra)
