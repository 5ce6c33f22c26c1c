from typing import Any


async def test_live(still: Any, opened: Any) -> None:
    """Whoever answers lives, whether ready or not, and says so to anybody."""
    still.context.edge.stopping = True
    async with opened(still, peer="192.0.2.1") as client:
        answer = await client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})


async def test_ready(still: Any, opened: Any) -> None:
    """Ready while the router serves, 503 while not."""
    async with opened(still, {"ann": {"password": "pw"}}) as client:
        assert (await client.get("/health/ready")).status_code == 200
        still.context.edge.stopping = True
        answer = await client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
