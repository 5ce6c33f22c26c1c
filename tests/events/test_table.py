"""The table of events: consistent, named as the field does, and what docs/events.md says."""

import re
from pathlib import Path

import pytest

from vpnrouter.events import table
from vpnrouter.events.table import AREAS, NAMES, EventType

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "events.md"
KINDS = list(table.TABLE.values())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_row(kind: EventType) -> None:
    """Scope by name, an area that has a level, and a set event for each clear one."""
    assert re.fullmatch(r"(SYSTEM|VPN|CLIENT)(_[A-Z]+)+", kind.name)
    assert kind.area in AREAS
    assert kind.level in range(len(NAMES))
    if kind.clears:
        assert kind.clears in table.TABLE
    if kind.name.endswith("_CLEAR"):
        assert kind.clears == kind.name.removesuffix("_CLEAR")
    if kind.name.endswith("_HIGH"):
        assert f"{kind.name}_CLEAR" in table.TABLE


def test_names_and_labels_are_found() -> None:
    """`say` takes either; what is neither is a note under its own label."""
    assert table.named("VPN_BRIDGING_LINK_DOWN") is table.LINK_DOWN
    assert table.named("SIGHUP") is table.RELOAD
    assert table.named("") is table.NOTE
    other = table.named("other")
    assert (other.name, other.label) == (table.NOTE.name, "other")


def test_the_page_has_the_table() -> None:
    """docs/events.md lists each event with its level, area, what it tells and what it clears."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    told = [row for row in rows if re.match(r"\| `(SYSTEM|VPN|CLIENT)_", row)]
    assert told == [row_of(kind) for kind in KINDS]


def row_of(kind: EventType) -> str:
    """A row of the page's table."""
    ends = f"clears `{kind.clears}`" if kind.clears else "one-shot" if kind.one_shot else ""
    return f"| `{kind.name}` | {kind.level_name} | {kind.area} | {kind.tells} | {ends} |"
