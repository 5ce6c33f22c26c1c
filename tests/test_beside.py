"""Long work beside the data plane."""

import sys
import time

import pytest
import trio

from vpnrouter.beside import beside


def fibonacci(number: int) -> int:
    """Slowly."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


async def test_a_thread_rests_half_of_the_time() -> None:
    """Work in Python takes at least half as long again as the processor works on it; the result is that of the work."""

    def work() -> tuple[int, float, float]:
        cpu, wall = time.thread_time(), time.monotonic()
        found = fibonacci(20)
        return found, time.thread_time() - cpu, time.monotonic() - wall

    found, cpu, wall = await beside(work, trio.CapacityLimiter(1))
    assert found == 6_765
    assert wall > 1.5 * cpu


async def test_what_work_raises_comes_to_its_caller() -> None:
    """And the thread, which others use later, looks at calls no longer."""
    limiter = trio.CapacityLimiter(1)
    with pytest.raises(ZeroDivisionError):
        await beside(lambda: 1 // 0, limiter)
    assert await trio.to_thread.run_sync(sys.getprofile, limiter=limiter) is None


async def test_a_cancelled_caller_ends_the_work() -> None:
    """Work that would never end does so within some rests, and its thread is free again."""
    limiter = trio.CapacityLimiter(1)

    def work() -> None:
        while True:
            fibonacci(5)

    with trio.move_on_after(0.05) as scope:
        await beside(work, limiter)
    assert scope.cancelled_caught
    assert limiter.borrowed_tokens == 0
