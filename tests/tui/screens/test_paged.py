"""A list of 10,000 clients: what a look costs the router, the screen and this process."""

import asyncio
import time
from typing import Any

from textual.geometry import Region

from vpnrouter.management.status.clients import ClientStatus

CLIENTS = 10_000
LOOKS = 20


def many(mesh: Any) -> Any:
    """A router with 10,000 clients, each of which sends."""
    router = mesh.core()
    router.shown = mesh.StillClients(
        [
            ClientStatus("yellow", f"client-{number:05}", client_address="192.0.2.1:4000", uptime=9)
            for number in range(CLIENTS)
        ]
    )
    return router


def test_pages_as_the_cursor_moves(looking: Any, mesh: Any) -> None:
    """One page of 100 is asked for at a time, forward and back; a filter is the router's work."""
    router = many(mesh)

    async def test(seen: Any) -> None:
        await seen.press("4")
        router.shown.looked = 0
        screen = await seen.look()
        assert router.shown.looked == 100, "as many as are in the page"
        assert "rows 1 to 100 of 10,000" in screen
        assert "rows 101 to 200 of 10,000" in await seen.press("G", "down")
        assert "client-00100" in await seen.screen()
        assert "rows 1 to 100 of 10,000" in await seen.press("g", "up")
        assert seen.app.screen.query_one("#body").key.endswith("client-00099")
        await seen.press("slash")
        screen = await seen.write("0777")
        assert "rows 1 to 11 of 11" in screen
        assert "client-00777" in screen
        await seen.press("slash", "ctrl+u")
        assert "rows 1 to 100 of 9,000" in await seen.write("clientName!=client-09*")
        await seen.press("slash", "ctrl+u")
        assert "no attribute wrong" in await seen.write("wrong==1")

    looking(test, router)


def test_only_what_changed_is_painted(looking: Any, mesh: Any) -> None:
    """A look at 10,000 clients of whom one sends paints a line of the table, and costs little time."""
    router = many(mesh)

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.look()
        await seen.look()
        table = seen.app.screen.query_one("#body")
        painted: list[Region] = []
        refresh = table.refresh
        table.refresh = lambda *regions, **more: (
            painted.extend(regions) or refresh(*regions, **more)
        )
        await seen.look()
        assert painted == [], "nothing changed"
        sends = router.shown.clients["yellow", "client-00003"]
        router.shown.clients["yellow", "client-00003"] = ClientStatus(
            sends.msg_vpn_name, sends.client_name, client_address="192.0.2.1:4000", uptime=9,
            rx_msg_count=50,
        )  # fmt: skip
        await seen.look()
        assert painted == [Region(0, 4, 80, 1)]
        spent = time.process_time()
        for _ in range(LOOKS):
            seen.clock.now += 0.5
            await seen.app.look()
            await asyncio.sleep(0)
        spent = (time.process_time() - spent) / LOOKS
        # Router and screen are one process here: both are in the figure.
        print(
            f"a look at {CLIENTS:,} clients: {spent * 1_000:.1f} ms of CPU, {spent * 200:.1f} % at 2 Hz"
        )
        assert spent < 0.15

    looking(test, router)
