from typing import Any


def test_message_vpn(looking: Any, mesh: Any) -> None:
    """Its rates, and what it discards by reason."""

    async def test(seen: Any) -> None:
        await seen.press("enter")
        screen = await seen.look()
        assert screen.startswith("overview › message VPN blue")
        assert "1.2k messages a second" in screen
        assert "transmit-congestion" in screen
        assert "no-subscription-match" in screen

    looking(test, mesh.edge())


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

    looking(test, mesh.edge())


def test_gone(looking: Any, mesh: Any) -> None:
    """One that is removed meanwhile is told to be gone."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("enter")
        del router.router.vpns["blue"]
        assert "this message VPN is not there" in await seen.look()

    looking(test, router)
