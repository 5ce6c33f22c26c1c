import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from vpnrouter.tui.api import QUEUES_EVERY_S, Router, RouterApi


def on(url: str, clock: Any, test: Callable[[Router], Awaitable[None]]) -> None:
    """Run a test with a router that is served."""

    async def main() -> None:
        router = Router(RouterApi(url), clock)
        try:
            await test(router)
        finally:
            await router.api.aclose()

    asyncio.run(main())


async def nothing(_: Router) -> None:
    """A screen that asks for nothing."""


def test_name_and_role(served: Any, mesh: Any, clock: Any) -> None:
    """Asked for once, before anything else; until then it is called by its address."""

    async def test(router: Router) -> None:
        assert router.label == router.api.url.removeprefix("http://")
        assert await router.look(nothing)
        assert (router.label, router.store.role) == ("edge", "admin")

    on(served(mesh.edge()), clock, test)


def test_queues_are_not_gone_through_at_each_look(served: Any, mesh: Any, clock: Any) -> None:
    """The router looks at all of them for it."""
    router = mesh.edge()

    async def test(one: Router) -> None:
        await one.see_queues()
        assert {row["queueName"] for row in one.store.queues} == {"orders", "raw"}
        router.queues.contents.clear()
        clock.now += QUEUES_EVERY_S - 0.1
        await one.see_queues()
        assert len(one.store.queues) == 2
        clock.now += 0.1
        await one.see_queues()
        assert one.store.queues == []

    on(served(router), clock, test)


def test_many_bridges(served: Any, mesh: Any, clock: Any, monkeypatch: Any) -> None:
    """Beyond the bound the first ones are held, and those that are down."""
    monkeypatch.setattr("vpnrouter.tui.api.TUI_ROWS", 120)
    router = mesh.edge()
    router.bridges = {
        ("blue", f"b{n:03}"): mesh.standing.bridge_status(
            "blue", f"b{n:03}", health="down" if n > 247 else "up"
        )
        for n in range(250)
    }

    async def test(one: Router) -> None:
        await one.see_bridges()
        names = [row["bridgeName"] for row in one.store.bridges]
        assert names == [f"b{n:03}" for n in range(120)] + ["b248", "b249"]

    on(served(router), clock, test)


def test_it_may_come_back_as_another(served: Any, mesh: Any, clock: Any) -> None:
    """After a loss the name is asked for anew, and no rate stretches over it."""
    first, second = served(mesh.edge(), others=True), served(mesh.core(), others=True)

    async def test(router: Router) -> None:
        await router.look(nothing)
        router.store.meters.look("x", 0.0, 0)
        router.store.meters.look("x", 1.0, 5)
        router.api.url = "http://127.0.0.1:1"

        async def fetch(one: Router) -> None:
            await one.see_msg_vpns()

        assert not await router.look(fetch)
        assert router.connection.is_lost
        assert router.store.meters.rate("x") == 0.0
        router.api.url = second
        assert not await router.look(fetch), "its time has not come"
        clock.now += 1.0
        assert await router.look(fetch)
        assert router.label == "core"

    on(first, clock, test)
