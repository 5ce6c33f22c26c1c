"""vpnrouter.core.guaranteed.waiting_list."""

from __future__ import annotations

from array import array

import pytest

from vpnrouter.core.guaranteed.waiting_list import DelayedIds, ExpiryBuckets, WaitingList


def test_waiting() -> None:
    """Highest priority first, by age within one; ids come back to their old place."""
    waiting = WaitingList()
    assert (waiting.first(), waiting.last(), waiting.oldest()) == (0, 0, [])
    with pytest.raises(IndexError):
        waiting.pop()
    waiting.extend(array("Q", [1, 3, 5]), 2)
    waiting.extend(array("Q", [2, 4]), 2)
    waiting.extend(array("Q"), 7)
    waiting.add(9, 5)
    waiting.add(9, 5)
    assert (waiting.count, waiting.first(), waiting.last()) == (6, 9, 9)
    assert waiting.oldest() == [1, 9]
    assert waiting.after(2, 3) == [3, 4, 5]
    assert list(waiting.of_priority(2, 3, 9)) == [4, 5]
    assert list(waiting.of_priority(8, 0, 9)) == []
    assert waiting.has(3)
    assert waiting.remove(3)
    assert not waiting.remove(3)
    assert [waiting.pop() for _ in range(waiting.count)] == [9, 1, 2, 4, 5]
    assert waiting.count == 0


def test_delays() -> None:
    """By time; what is taken out does not come; the heap does not grow with what is gone."""
    delays = DelayedIds()
    for number in range(1_000):
        delays.add(number, 1_000 - number)
    for number in range(990):
        assert delays.remove(number)
    assert not delays.remove(5)
    assert (len(delays), delays.ids(), delays.has(995)) == (10, list(range(990, 1_000)), True)
    assert len(delays._heap) < 200
    delays.add(999, 50)
    assert delays.due(5, 3) == [998, 997, 996]
    assert delays.due(49, 100) == [995, 994, 993, 992, 991, 990]
    assert delays.due(50, 100) == [999]
    assert delays.next_ns() == -1


def test_buckets() -> None:
    """Rounded up to a second, a bounded number at a time."""
    second = 1_000_000_000
    buckets = ExpiryBuckets()
    for number in range(10):
        buckets.add(number, second + 1 + number % 2 * second)
    assert (buckets.count, buckets.next_ns()) == (10, 2 * second)
    assert buckets.due(2 * second - 1, 9) == []
    found = buckets.due(2 * second, 3) + buckets.due(2 * second, 3)
    assert sorted(found) == [0, 2, 4, 6, 8]
    assert sorted(buckets.due(9 * second, 9)) == [1, 3, 5, 7, 9]
    assert (buckets.count, buckets.next_ns()) == (0, -1)
