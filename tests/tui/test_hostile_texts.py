"""What strangers wrote, on every screen: it is drawn, and commands no terminal."""

from typing import Any

import pytest

from vpnrouter.tui.api import RouterApi

HOSTILE = "\x1b[2J\x1b]52;c;eA==\x07\x9b2J\x7f\u202e\u2028\r\nFORGED"


def poisoned(value: Any) -> Any:
    """An answer with every text made hostile."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    if isinstance(value, dict):
        return {name: poisoned(one) for name, one in value.items()}
    return value


def test_every_screen(looking: Any, mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Main screens, what opens from their first row, and the questions before something is done."""
    read, send = RouterApi._read, RouterApi._send

    def hostile(self: RouterApi, status: int, body: bytes) -> Any:
        answer = read(self, status, body)
        return answer | {"data": poisoned(answer["data"])}

    async def plainly(self: RouterApi, method: str, path: str, **more: Any) -> Any:
        from urllib.parse import quote

        return await send(self, method, path.replace(quote(HOSTILE, safe=""), ""), **more)

    monkeypatch.setattr(RouterApi, "_read", hostile)
    monkeypatch.setattr(RouterApi, "_send", plainly)
    steps = [
        (key, more)
        for key in "123456780"
        for more in ("", "enter", "j", "enter", "x", "d", "escape")
    ]

    async def test(seen: Any) -> None:
        forged = set()
        for main, key in steps:
            screen = await seen.press(*([key] if key else [main]))
            wrong = {one for one in screen if not (one.isprintable() or one == "\n")}
            assert not wrong, (main, key, wrong)
            assert not any(line.startswith("FORGED") for line in screen.splitlines())
            if "FORGED" in screen or "\\x1b[2J" in screen:
                forged.add(main)
        assert forged >= set("123456780") - {"7"}

    looking(test, mesh.edge, size=(200, 60))


def test_a_hostile_refusal(looking: Any, mesh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a router says when the answer is no."""
    from vpnrouter.tui.api import DeniedError

    def refuse(*_: object) -> Any:
        raise DeniedError("no" + HOSTILE, "NO", 400)

    async def test(seen: Any) -> None:
        monkeypatch.setattr(RouterApi, "_read", refuse)
        screen = await seen.press("2")
        assert "no\\x1b[2J" in screen
        assert all(one.isprintable() or one == "\n" for one in screen)

    looking(test, mesh.edge, size=(200, 60))
