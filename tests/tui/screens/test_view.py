from typing import Any

from vpnrouter.tui.screens.view import shortened

NOBODY = "http://127.0.0.1:1"


def test_lost_connection_is_shown_and_recovers(looking: Any, mesh: Any) -> None:
    """Since when, when the next try is, and why; what was known stays; it goes on by itself."""

    async def test(seen: Any) -> None:
        api = seen.app.router.api
        url, api.url = api.url, NOBODY
        screen = await seen.look()
        assert " edge: LOST since 03:00:07Z (0s), next try in 1s: " in screen
        assert "from-red" in screen, "what was known stays on the screen"
        screen = await seen.look(0.5)
        assert "(0s), next try in 1s" in screen, "no try before its time"
        screen = await seen.look(0.5)
        assert "(1s), next try in 2s" in screen, "tries are further and further apart"
        api.url = url
        assert "LOST" in await seen.look(1.0), "its time has not come"
        screen = await seen.look(1.0)
        assert "LOST" not in screen
        assert "DOWN" in screen

    looking(test, mesh.edge())


def test_try_now(looking: Any, mesh: Any) -> None:
    """`r` does not wait for the next try."""

    async def test(seen: Any) -> None:
        api = seen.app.router.api
        url, api.url = api.url, NOBODY
        await seen.look()
        api.url = url
        assert "LOST" not in await seen.press("r")

    looking(test, mesh.edge())


def test_router_that_is_not_there_at_the_start(looking: Any, mesh: Any) -> None:
    """It is named by its address; the other one is shown all the same."""

    async def test(seen: Any) -> None:
        screen = await seen.screen()
        assert " 127.0.0.1:1: LOST since" in screen
        assert "blue" in screen

    looking(test, NOBODY, mesh.edge())


def test_wrong_password_is_told(looking: Any, mesh: Any) -> None:
    """In one line, and the password is not in it."""
    users = {"ann": {"password": "pw", "role": "admin"}}

    async def test(seen: Any) -> None:
        screen = await seen.screen()
        notes = screen.splitlines()[-2]
        assert notes.strip()
        assert "hunter2" not in screen

    looking(test, mesh.edge(), users=users, login=("ann", "hunter2"))


def test_keys_that_change_are_grey_for_a_viewer(looking: Any, mesh: Any) -> None:
    """All of them, and none of the others."""
    users = {"ann": {"password": "pw", "role": "read-only"}}

    async def test(seen: Any) -> None:
        await seen.press("2")
        (foot,) = seen.app.screen.query_one("#foot").lines
        styles = {said.strip(): style for said, style in foot}
        assert [styles[key] for key in "exR"] == ["dim"] * 3
        assert [styles[key] for key in "dq"] == ["key"] * 2

    looking(test, mesh.edge(), users=users, login=("ann", "pw"))


def test_refusal_makes_keys_grey(looking: Any, mesh: Any) -> None:
    """A router that did not tell the role, and says no, is not asked again."""
    users = {"ann": {"password": "pw", "role": "read-only"}}

    async def test(seen: Any) -> None:
        seen.app.router.store.role = ""
        await seen.press("2")
        await seen.press("R")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        assert "may look and not change" in await seen.screen()
        assert seen.app.router.store.role == "read-only"

    looking(test, mesh.edge(), users=users, login=("ann", "pw"))


def test_action_whose_answer_is_lost(looking: Any, mesh: Any) -> None:
    """It is not known whether it was done, and it is said."""

    async def test(seen: Any) -> None:
        await seen.press("2")
        await seen.press("R")
        seen.app.router.api.url = NOBODY
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        screen = await seen.screen()
        assert "not known whether it was done" in screen
        assert "LOST" in await seen.look()

    looking(test, mesh.edge())


def test_the_way_here_gives_place_to_the_clock() -> None:
    """Of a long way the end is left, of a long name its beginning."""
    places = ["overview", "bridges", "bridge blue/from-red"]
    assert shortened(places, 41) == " › ".join(places)
    assert shortened(places, 35) == "bridges › bridge blue/from-red"
    assert shortened(places, 20) == "bridge blue/from-red"
    assert shortened(places, 12) == "bridge blue…"
