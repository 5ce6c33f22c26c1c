"""Screens with the newest at the bottom: events and traces."""

from pathlib import Path
from typing import Any

import pytest

from vpnrouter.events import table
from vpnrouter.events.log import EventLog
from vpnrouter.limits import TUI_TAIL
from vpnrouter.tui.screens.live import conditions


def linked(router: Any, kind: Any, text: str) -> None:
    """Raise an event of the bridge from-red."""
    router.log.raise_event(kind, "green", "from-red", text)


def above(screen: str) -> str:
    """The table."""
    return screen.partition("─")[0]


def below(screen: str) -> str:
    """The whole text of the row under the cursor."""
    return "".join(screen.rpartition("─")[2].splitlines()[:-2])


def test_pause_and_clear(looking: Any, mesh: Any) -> None:
    """Nothing moves while it is paused, and nothing is lost of a log."""

    async def test(seen: Any) -> None:
        await seen.press("6")
        assert "paused, space goes on" in await seen.press("space")
        linked(mesh.edge, table.LINK_UP, "LATER")
        assert "LATER" not in await seen.look()
        assert "LATER" in await seen.press("space")
        assert "LATER" not in await seen.press("c")

    looking(test, mesh.edge, size=(120, 24))


def test_follows_until_the_cursor_moves(looking: Any, mesh: Any) -> None:
    """Whoever reads further up is left there; the end follows again. What is kept is bounded."""
    router = mesh.edge
    for number in range(1, 51):
        linked(router, table.LINK_UP, f"E{number:05}")

    async def test(seen: Any) -> None:
        assert "E00050" in await seen.press("6")
        await seen.press("g")
        linked(router, table.LINK_UP, "E00060")
        screen = await seen.look()
        assert "sensor-01" in screen
        assert "E00060" not in screen
        assert "E00060" in await seen.press("G")
        linked(router, table.LINK_UP, "NEWEST")
        assert "NEWEST" in await seen.look()
        view = seen.app.view
        view.add([{"eventId": n} for n in range(TUI_TAIL * 2)])
        assert len(view.kept) == TUI_TAIL

    looking(test, router, size=(120, 24))


def test_log_goes_on(looking: Any, mesh: Any) -> None:
    """What was before, then what comes, once each; a filter is any word of it, and what it leaves out is kept."""
    linked(mesh.edge, table.LINK_DOWN, "refused")

    async def test(seen: Any) -> None:
        screen = await seen.press("6")
        assert "03:01:05 warning green       from-red" in screen
        assert "VPN_BRIDGING_LINK_DOWN refused" in screen
        linked(mesh.edge, table.LINK_DOWN, "again")
        assert above(await seen.look()).count("LINK_DOWN") == 2
        assert above(await seen.look()).count("LINK_DOWN") == 2
        await seen.press("slash")
        screen = await seen.write("refused")
        assert above(screen).count("LINK_DOWN") == 1
        assert "CONNECT" not in screen
        assert "filter: refused" in screen

    looking(test, mesh.edge, size=(120, 24))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_whole_text_of_an_event(looking: Any, mesh: Any, size: tuple[int, int]) -> None:
    """The row under the cursor is told whole below the table, and with all attributes behind Enter."""
    said = "cannot connect to 198.51.100.9:55555: " + "and so on, " * 40 + "THE END"
    linked(mesh.edge, table.LINK_DOWN, "refused because of many words that need some room HERE")
    linked(mesh.edge, table.LINK_DOWN, said)

    async def test(seen: Any) -> None:
        whole = below(await seen.press("6"))
        assert "VPN_BRIDGING_LINK_DOWN green from-red: cannot connect to 198.51.100.9" in whole
        assert whole.endswith("⏎") == (size[0] < 200)
        assert ("THE END" in whole) == (size[0] == 200)
        whole = below(await seen.press("k"))
        assert whole.endswith("refused because of many words that need some room HERE")
        await seen.press("j")
        screen = await seen.press("enter")
        assert screen.startswith("overview › events › event")
        assert "VPN_BRIDGING_LINK_DOWN" in screen
        assert "THE END" in screen

    looking(test, mesh.edge, size=size)


def test_router_that_was_started_anew(looking: Any, mesh: Any) -> None:
    """Its log begins anew, and what comes is seen."""

    async def test(seen: Any) -> None:
        await seen.press("6")
        log = EventLog("edge", mesh.edge.wall_ns)
        mesh.edge.context.log = log
        log.raise_event(table.LINK_UP, "green", "from-red", "reborn")
        await seen.look()
        assert "reborn" in await seen.look()

    looking(test, mesh.edge, size=(120, 24))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("", {}),
        ("orders/>", {"topic": "orders/>"}),
        ("topic=a/* event=discard", {"topic": "a/*", "event": "discard"}),
        ("msgVpnName=blue a=b", {"msgVpnName": "blue", "topic": "a=b"}),
    ],
)
def test_filter_is_the_routers_work(written: str, asked: dict[str, str]) -> None:
    """A bare word is a topic, whatever it looks like."""
    assert conditions(written) == asked


def test_tail(looking: Any, mesh: Any, tmp_path: Path) -> None:
    """Rows as they come, with why a message was lost; a filter begins anew."""
    edge = mesh.edge
    with edge.traced(tmp_path) as hand_over:

        async def test(seen: Any) -> None:
            await seen.press("7")
            edge.clients["sensor-02"].publish("bulk", bytes(16_000))
            hand_over()
            screen = await seen.look()
            assert "03:01:05 ingress        blue     bulk" in screen
            assert "transmit-congestion" in screen
            await seen.press("slash")
            await seen.write("event=discard topic=none/>")
            edge.clients["sensor-02"].publish("none/1", b"x")
            edge.clients["sensor-02"].publish("other", b"x")
            hand_over()
            screen = await seen.look()
            assert "discard        blue     none/1" in screen
            assert "ingress" not in above(screen)
            assert "other" not in screen

        looking(test, edge, size=(100, 24))


def test_refused_filter(looking: Any, mesh: Any) -> None:
    """The router's words; and a router that traces nothing says so, for an empty tail is no proof."""

    async def test(seen: Any) -> None:
        assert "this router traces nothing" in await seen.press("7")
        await seen.press("slash")
        screen = await seen.write("event=nonsense")
        assert "event: nonsense is none of" in screen

    looking(test, mesh.edge)
