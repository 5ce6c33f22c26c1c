"""What the main screens look like at 80×24: pictures in __snapshots__, made anew by --snapshot-update."""

from typing import Any

import pytest


@pytest.fixture
def pictured(application: Any, mesh: Any, snap_compare: Any) -> Any:
    """`pictured(keys)` compares the screen that the keys lead to with its picture."""

    def compare(*steps: str) -> bool:
        app = application(mesh.edge, mesh.core)

        async def lead(pilot: Any) -> None:
            for key in ("", *steps):
                if key:
                    await pilot.press(key)
                await app.look()
                await pilot.pause()
                await pilot.pause()

        return bool(snap_compare(app, terminal_size=(80, 24), run_before=lead))

    return compare


def test_overview(pictured: Any) -> None:
    """Trouble on top, message VPNs below."""
    assert pictured()


def test_bridge_with_both_ends(pictured: Any) -> None:
    """Beside each other."""
    assert pictured("2", "j", "enter")


def test_queue(pictured: Any) -> None:
    """Its facts, and its messages."""
    assert pictured("3", "j", "enter")


def test_topology(pictured: Any) -> None:
    """The map of both routers."""
    assert pictured("5")


def test_help(pictured: Any) -> None:
    """Over the screen that it is of."""
    assert pictured("3", "question_mark")
