"""The pages about queues show configurations that load, and lead to pages that are there."""

import re
from pathlib import Path

import pytest

from vpnrouter.cli.app import COMMANDS
from vpnrouter.config.load import read

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```yaml\n(guaranteed_msging.*?|msg_vpns:.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    (page, number, text)
    for page in ("spool.md", "configuration.md")
    for number, text in enumerate(BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(
    ("page", "number", "text"), SHOWN, ids=[f"{page}-{number}" for page, number, _ in SHOWN]
)
def test_what_is_shown_loads(page: str, number: int, text: str, tmp_path: Path) -> None:
    """Each configuration is accepted, and nothing in it is doubtful."""
    path = tmp_path / "c.yaml"
    head = 'router: {name: here}\nlisteners: [{protocol: mqtt, bind: "127.0.0.1:0"}]\n'
    path.write_text(head + text, encoding="utf-8")
    told = [one for one in read(path).problems if "this version" not in one.message]
    assert told == []


def test_there_are_examples() -> None:
    """The pattern above finds them."""
    assert {page for page, _, _ in SHOWN} == {"spool.md", "configuration.md"}


def test_commands_and_links() -> None:
    """Every command of the page exists, every page that it leads to is there."""
    text = (DOCS / "spool.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^vpnrouter (\S+)", text, re.MULTILINE))
    assert named
    assert named <= COMMANDS.keys()
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (DOCS / target).exists(), target
