from typing import Any

import pytest

from vpnrouter.cli.app import run


def test_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What prints the same is named."""
    assert run(["tui"]) == 2
    assert "vpnrouter show" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["nowhere", "http://ann:secret@localhost:1"])
def test_url_is_none(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the screen is taken."""
    monkeypatch.setattr("vpnrouter.cli.tui._has_terminal", lambda: True)
    assert run(["tui", "--url", url]) == 2
    assert "secret" not in capsys.readouterr().err


def test_urls_of_several_routers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in their order; else the environment says where."""
    made: list[Any] = []
    monkeypatch.setattr("vpnrouter.cli.tui._has_terminal", lambda: True)

    def noted(app: Any) -> None:
        made.append(app)

    monkeypatch.setattr("vpnrouter.tui.app.TerminalInterface.run", noted)
    assert run(["tui", "--url", "http://a:1", "--url", "http://b:2/", "--url", "http://a:1"]) == 0
    monkeypatch.setenv("VPNROUTER_URL", "http://c:3")
    assert run(["tui"]) == 0
    urls = [[router.api.url for router in app.routers] for app in made]
    assert urls == [["http://a:1", "http://b:2"], ["http://c:3"]]
