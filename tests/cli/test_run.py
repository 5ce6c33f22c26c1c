"""`vpnrouter run`: what is told before the router serves."""

from pathlib import Path
from typing import Any

import pytest

from vpnrouter.cli import app


@pytest.mark.parametrize("has_overlay", [False, True])
@pytest.mark.parametrize("more", [[], ["--no-overlay"]])
def test_overlay_in_force(
    has_overlay: bool, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Whoever edits the file has to know that something lies over it."""
    config, overlay = tmp_path / "edge.yaml", tmp_path / "data" / "overlay.yaml"
    config.write_text(f"router: {{name: edge, data_dir: '{overlay.parent}'}}\n")
    overlay.parent.mkdir()
    if has_overlay:
        overlay.write_text("msg_vpns: {blue: {}}\n")
    monkeypatch.setattr("vpnrouter.server.run.run", lambda _: None)
    assert app.run(["run", str(config), *more]) == 0
    told = capsys.readouterr().err
    assert (f"{overlay} lies over {config}" in told) == (has_overlay and not more)
