"""The overview, and the screen of one message VPN."""

from pathlib import Path
from typing import Any

import pytest
from management_routers import routers


def test_trouble_stands_on_top_and_opens(looking: Any, mesh: Any) -> None:
    """What is down comes first, with its reason; Enter opens it."""

    async def test(seen: Any) -> None:
        lines = (await seen.screen()).splitlines()
        assert lines[2].split()[:4] == ["DOWN", "bridge", "green", "from-red"]
        assert "1m04s: no given file describes" in lines[2]
        assert lines[3].startswith("NO READER queue")
        screen = await seen.press("shift+tab")
        assert "DOWN edge/green/from-red: 1m04s: no given file describes router gone" in screen
        assert (await seen.press("enter")).startswith("overview › bridge green/from-red")
        assert (await seen.press("escape")).startswith("overview  ")

    looking(test, mesh.edge, mesh.core)


def test_message_vpns_with_rates(looking: Any, mesh: Any) -> None:
    """One line a message VPN, of all routers; what is lost, not what nobody wanted."""

    async def test(seen: Any) -> None:
        screen = await seen.look()
        row = next(line for line in screen.splitlines() if line.startswith("blue"))
        assert row.split() == ["blue", "edge", "up", "9", "54", "██", "58", "██", "139"]
        assert any(line.startswith("yellow") and "core" in line for line in screen.splitlines())
        assert "3 message VPNs, 2 bridges, 1 down, 1 urgent" in screen

    looking(test, mesh.edge, mesh.core)


def test_quiet(looking: Any, mesh: Any) -> None:
    """Where all is well it says so in one line."""

    async def test(seen: Any) -> None:
        assert "no trouble: all is up, nothing stalls, nothing is lost" in await seen.screen()

    looking(test, mesh.core)


MANY = """
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}}
  green:
    authentication: {basic: {enabled: false}}
    bridges:
""" + "".join(
    f"""
      from-red-{number}:
        remote_authentication: {{basic: {{client_username: any}}}}
        remote_msg_vpns: [{{name: red, router: gone, location: "198.51.100.{number}:55555"}}]
"""
    for number in range(1, 31)
)


@pytest.mark.parametrize(("size", "shown"), [((80, 24), 16), ((120, 40), 30), ((200, 50), 30)])
def test_trouble_takes_the_room_that_there_is(
    looking: Any, tmp_path: Path, size: tuple[int, int], shown: int
) -> None:
    """Message VPNs keep theirs; no line stays empty while there is more trouble."""
    (router,) = routers(tmp_path, edge=MANY)

    async def test(seen: Any) -> None:
        lines = (await seen.look(5.0)).splitlines()
        assert len([line for line in lines if line.startswith("DOWN")]) == shown
        assert [line[:5] for line in lines if line[:5] in {"blue ", "green"}] == ["blue ", "green"]

    looking(test, router, size=size)


def test_trouble_comes_and_goes(looking: Any, mesh: Any) -> None:
    """The table grows and shrinks with what is wrong, and the cursor below stays."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("j")
        router.remove_queue("blue", "orders")
        down = router.remove_bridge("green", "from-red")
        screen = await seen.look(5.0)
        assert "no trouble" in screen
        assert seen.app.screen.query_one("#vpns").key.split("\0")[2] == "green"
        router.bridges.append(down)
        assert "DOWN" in await seen.look(5.0)

    looking(test, router)


def test_message_vpn(looking: Any, mesh: Any) -> None:
    """Its rates, and what it discards by reason."""

    async def test(seen: Any) -> None:
        await seen.press("enter")
        screen = await seen.look()
        assert screen.startswith("overview › message VPN blue")
        assert "54 messages a second" in screen
        assert "transmit-congestion" in screen
        assert "no-subscription-match" in screen

    looking(test, mesh.edge)


def test_what_is_in_it(looking: Any, mesh: Any) -> None:
    """Its bridges, queues, clients and subscriptions, and none of other message VPNs."""

    async def test(seen: Any) -> None:
        await seen.press("enter")
        screen = await seen.press("b")
        assert "from-core" in screen
        assert "from-red" not in screen
        await seen.press("escape")
        assert "queues of blue" in await seen.press("u")
        await seen.press("escape")
        assert "clients of blue" in await seen.press("c")
        await seen.press("escape")
        screen = await seen.press("s")
        assert "subscriptions of blue" in screen
        assert "alerts/#" in screen

    looking(test, mesh.edge)


def test_gone(looking: Any, mesh: Any) -> None:
    """One that is removed meanwhile is told to be gone."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("enter")
        del router.router.vpns["blue"]
        assert "this message VPN is not there" in await seen.look()

    looking(test, router)
