"""Ages from ids."""

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.management.status.queues import IdTimes


def test_age() -> None:
    """A message is as old as the last look that did not know it."""
    times = IdTimes()
    assert times.age_ns(3, 50) == 0
    times.note(10, 100)
    times.note(10, 200)
    times.note(12, 300)
    assert [times.age_ns(number, 1_000) for number in (3, 10, 11, 12, 99)] == [
        *(900, 800, 800, 700, 700),
    ]
    assert [times.knows(number) for number in (9, 10, 99)] == [False, True, True]


def test_nothing_comes() -> None:
    """While nothing comes, what comes next is young, and what was there before grows old."""
    times = IdTimes()
    for now in range(100, 10_000, 100):
        times.note(5, now)
    assert times.age_ns(5, 10_000) == 100
    assert times.age_ns(4, 10_000) == 9_900


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=60))
def test_never_younger_than_it_is(steps: list[tuple[int, int]]) -> None:
    """With few moments remembered, no message since the first look is told younger than it is."""
    times = IdTimes(6)
    following, now = 1, 0
    born: dict[int, int] = {}
    times.note(following, now)
    for count, passed in steps:
        for _ in range(count):
            born[following] = now
            following += 1
        now += passed
        times.note(following, now)
    ages = [times.age_ns(number, now) for number in born]
    assert all(age >= now - born[number] for number, age in zip(born, ages, strict=True))
    assert ages == sorted(ages, reverse=True)
