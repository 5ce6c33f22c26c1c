"""vpnrouter.report.page.tables: the tables of what was found out."""

from typing import Any

import pytest

from vpnrouter.limits import REPORT_PAGE_SHAPE_ROWS
from vpnrouter.report.page import tables
from vpnrouter.report.page.figures import Contents, Places
from vpnrouter.report.page.tables import Sheet
from vpnrouter.report.schema import CHANGES


def sheets_of(contents: Contents) -> list[Sheet]:
    """All tables of this module."""
    places = Places(contents.nodes, contents.edges)
    return [
        tables.finding_sheet(contents.findings, places),
        tables.change_sheet(contents.changes, places),
        tables.delay_sheet(contents.end_to_end, places),
        tables.clock_sheet(contents.clocks),
        tables.way_sheet(contents.ways),
        tables.vpn_sheet(contents.vpns, places),
        tables.pair_sheet(contents.pairs, places),
    ]


def test_cells_stand_under_their_heading(mesh_30: Contents) -> None:
    """Each row of each table has as many cells as there are headings, and a title."""
    for sheet in sheets_of(mesh_30):
        assert sheet.rows, sheet.name
        assert {len(row) for row in sheet.rows} == {len(sheet.headings)}
        assert len(sheet.titles) == len(sheet.rows) == len(set(sheet.ids()))
        assert all(column < len(sheet.headings) for column in sheet.choices)


def test_empty_tables(mesh_30: Contents) -> None:
    """Nothing in, nothing out."""
    bare = Contents(nodes=mesh_30.nodes, edges=[])
    assert [len(sheet.rows) for sheet in sheets_of(bare)] == [0] * 7


def test_the_worst_findings_are_shown(mesh_30: Contents) -> None:
    """Errors first, and of too many the least severe are left out."""
    one = mesh_30.findings[0]
    many = [one | {"severity": "info"}] * REPORT_PAGE_SHAPE_ROWS + [one | {"severity": "error"}]
    sheet = tables.finding_sheet(many, Places(mesh_30.nodes, mesh_30.edges))
    assert (len(sheet.rows), sheet.total) == (REPORT_PAGE_SHAPE_ROWS, len(many))
    assert [row[0].tone for row in sheet.rows[:2]] == ["error", "info"]
    assert str(sheet.rows[0][3].shape).startswith(("edge-", "node-"))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({"measure": "latency_p95_ns", "before": 1e6, "after": 2e6}, ("1 ms", "2 ms", "× 2")),
        ({"measure": "messages", "before": 4.0, "after": 1.0}, ("4", "1", "× 0.25")),
        ({"measure": "messages", "before": None, "after": 5_000.0}, ("–", "5,000", "–")),
        ({"measure": None, "before": 0.0, "after": 5.0}, ("0", "5", "–")),
        ({"measure": "messages", "before": 5.0, "after": None}, ("5", "–", "–")),
    ],
)
def test_changes_are_compared(values: dict[str, Any], texts: tuple[str, ...]) -> None:
    """Durations as such, ratios where there is something to compare with."""
    row = dict.fromkeys(CHANGES.names) | {"what": "bridge", "change": "more"} | values
    sheet = tables.change_sheet([row], Places([], []))
    assert tuple(cell.text for cell in sheet.rows[0][-3:]) == texts


def test_the_weakest_pairs_come_first(mesh_30: Contents) -> None:
    """Those that one bridge can part draw the eye."""
    sheet = tables.pair_sheet(mesh_30.pairs, Places(mesh_30.nodes, mesh_30.edges))
    links = [row[2].key for row in sheet.rows]
    assert links == sorted(links, key=lambda key: int(str(key)))
    assert [row[2].alarm for row in sheet.rows] == [key == 1 for key in links]
