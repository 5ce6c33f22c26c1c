from typing import Any

from vpnrouter.errors import TopicError


def test_tree_of_what_is_asked(looking: Any, mesh: Any) -> None:
    """Topic, message VPN and mode; each question is asked once."""
    asked: list[Any] = []

    async def explained(question: Any) -> list[str]:
        asked.append(question)
        if question.topic == "#":
            raise TopicError("a topic holds no wildcards")
        return [f"{question.topic} {question.mode}", "└── ✓ over bridge from-core", "    ✗ nobody"]

    async def test(seen: Any) -> None:
        assert "/ asks for a topic" in await seen.press("9")
        await seen.press("slash")
        screen = await seen.write("a/b")
        assert "└── ✓ over bridge from-core" in screen
        await seen.look()
        assert [tuple(each) for each in asked] == [("edge", "blue", "a/b", "direct")]
        assert "a/b persistent" in await seen.press("m")
        await seen.press("v")
        assert tuple(asked[-1]) == ("edge", "green", "a/b", "persistent")
        await seen.press("slash", "ctrl+u")
        assert "a topic holds no wildcards" in await seen.write("#")

    looking(test, mesh.edge(), explainer=explained)


def test_without_an_explainer(looking: Any, mesh: Any) -> None:
    """It says what tells it instead."""

    async def test(seen: Any) -> None:
        assert "vpnrouter explain CONFIG" in await seen.press("9")

    looking(test, mesh.edge())
