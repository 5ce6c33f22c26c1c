from typing import Any


def test_depth_readers_and_rates(looking: Any, mesh: Any) -> None:
    """A line a queue; rates from what went in and out between two looks."""
    router = mesh.edge()
    changes = router.queues.changes["blue", "orders"]

    async def test(seen: Any) -> None:
        await seen.press("3")
        changes.update(spooled_msg_count=120, acked_msg_count=20)
        screen = await seen.look(2.0)
        row = next(line for line in screen.splitlines() if line.startswith("orders"))
        assert row.split() == ["orders", "blue", "250", "17kB", "2%", "0", "60", "10", "-", "1h02m"]
        assert "rows 1 to 3 of 3" in screen

    looking(test, router)


def test_usual_filters_are_the_routers_work(looking: Any, mesh: Any) -> None:
    """`f` goes through them; what does not meet one is not sent."""

    async def test(seen: Any) -> None:
        await seen.press("3")
        screen = await seen.press("f")
        assert "dead" not in screen.splitlines()[2]
        assert "rows 1 to 2 of 2  filter: with messages" in screen
        screen = await seen.press("f")
        assert "rows 1 to 1 of 1  filter: messages and no reader" in screen

    looking(test, mesh.edge())


def test_open(looking: Any, mesh: Any) -> None:
    """Enter opens the queue."""

    async def test(seen: Any) -> None:
        await seen.press("3")
        assert "queue blue/orders" in await seen.press("j", "enter")

    looking(test, mesh.edge())
