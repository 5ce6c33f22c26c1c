"""The pages about bridges show configurations that load."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.cli.app import run
from vpnrouter.config.load import load

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("bridges.md", "deliver-to-one.md")
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    (page, number, text)
    for page in PAGES
    for number, text in enumerate(BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
]
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def whole(shown: dict[str, Any]) -> dict[str, Any]:
    """A configuration around what a page shows of one message VPN."""
    if "router" in shown:
        return shown
    listener = {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "yellow"}
    return {"router": {"name": "core"}, "listeners": [listener], "msg_vpns": {"yellow": shown}}


@pytest.mark.parametrize(
    ("page", "number", "text"), SHOWN, ids=[f"{page}-{number}" for page, number, _ in SHOWN]
)
def test_what_is_shown_loads(
    page: str, number: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each configuration of the page is accepted, and nothing in it is without effect."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    if "certs/" in text:
        assert run(["certs", "--output", "certs", "--client", "core-bridge"]) == 0
    path = tmp_path / "shown.yaml"
    path.write_text(yaml.safe_dump(whole(yaml.safe_load(text)), sort_keys=False), encoding="utf-8")
    loaded = load(str(path))
    assert [str(problem) for problem in loaded.warnings] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every page and file that is linked exists."""
    links = LINK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
