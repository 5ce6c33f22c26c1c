"""The options are tried by tests/cli/test_show.py; here is what it cannot see."""

from pathlib import Path

import pytest
import typer

from vpnrouter.cli._router_access import connect


def test_a_password_is_asked_for_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sits there is asked, and what is typed is not shown."""
    asked: list[tuple[str, dict[str, object]]] = []

    def prompt(text: str, **more: object) -> str:
        asked.append((text, more))
        return "right"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    connect("http://h", "ann", None, None).close()
    assert asked == [("Password", {"hide_input": True, "err": True})]


def test_wrong_options(tmp_path: Path) -> None:
    """Each names the option that is wrong."""
    with pytest.raises(typer.BadParameter, match="http://HOST:PORT"):
        connect("h", "", None, None)
    with pytest.raises(typer.BadParameter, match="whose password"):
        connect("http://h", "", tmp_path / "p", None)
