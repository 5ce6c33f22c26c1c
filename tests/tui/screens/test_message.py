from typing import Any


async def opened(seen: Any, queue: str) -> str:
    """The first message of a queue."""
    await seen.press("3")
    await seen.press("slash")
    await seen.write(queue)
    await seen.press("enter")
    return await seen.press("enter")


def test_payload_as_json_text_and_hex(looking: Any, mesh: Any) -> None:
    """JSON is shown as such at once; the other views are a key away."""

    async def test(seen: Any) -> None:
        screen = await opened(seen, "orders")
        assert '  "city": "Köln",' in screen
        assert "as json" in screen
        assert '{"order": 1, "city": "Köln"' in await seen.press("t")
        assert "00000000  7b 22 6f 72 64 65 72" in await seen.press("x")
        assert '  "order": 1,' in await seen.press("o")

    looking(test, mesh.edge())


def test_bytes_are_shown_as_bytes(looking: Any, mesh: Any) -> None:
    """And the attributes of the message above them."""

    async def test(seen: Any) -> None:
        screen = await opened(seen, "raw")
        assert "t/7" in screen
        assert "00000020  20 21 22" in screen
        assert "payload of 48 bytes as hex" in screen

    looking(test, mesh.edge())


def test_payload_is_asked_for_once(looking: Any, mesh: Any) -> None:
    """It does not change, however long one looks at it; nor does it go when the message does."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await opened(seen, "orders")
        router.queues.contents["blue", "orders"].clear()
        assert '"city": "Köln"' in await seen.look()

    looking(test, router)
