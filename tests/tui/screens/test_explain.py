"""The screen that explains where a message goes, and where its answer comes from."""

import asyncio
from typing import Any

import pytest

from vpnrouter.errors import OperationError, TopicError
from vpnrouter.management.client import ManagementClient
from vpnrouter.tui.explainer import explainer_of
from vpnrouter.tui.screens.explain import Question


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

    looking(test, mesh.edge, explainer=explained)


def test_without_an_explainer(looking: Any, mesh: Any) -> None:
    """It says what tells it instead."""

    async def test(seen: Any) -> None:
        assert "vpnrouter explain CONFIG" in await seen.press("9")

    looking(test, mesh.edge)


def test_a_router_that_is_away_is_told() -> None:
    """In one line, as commands do."""
    explained = explainer_of(lambda: [ManagementClient("http://127.0.0.1:1")])
    with pytest.raises(OperationError, match="cannot connect"):
        asyncio.run(explained(Question("edge", "blue", "a/b", "direct")))
