"""vpnrouter.report.page.tables: the page's tables."""

from collections.abc import Callable
from typing import Any

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.report.page import tables
from vpnrouter.report.page.figures import Places
from vpnrouter.report.page.tables import Sheet

Make = Callable[..., dict[str, Any]]
Rows = list[dict[str, Any]]


def edges_of(edges: Rows, *, estimated: bool = False) -> Sheet:
    """The table of edges."""
    return tables.edge_sheet(edges, Places([], edges), estimated=estimated)


def nodes_of(nodes: Rows, *, estimated: bool = False) -> Sheet:
    """The table of nodes."""
    return tables.node_sheet(nodes, Places(nodes, []), estimated=estimated)


def test_cells_stand_under_their_heading(
    node: Make, edge: Make, topic: Make, discard: Make
) -> None:
    """With and without estimates, each row of each table has as many cells as there are headings."""
    for estimated in (True, False):
        for sheet in (
            edges_of([edge("a/x", "b/y")], estimated=estimated),
            nodes_of([node("a", "x"), node("b", "y", traced=False)], estimated=estimated),
            tables.topic_sheet([topic("t")], 1, estimated=estimated),
            tables.discard_sheet([discard("slow")], Places([], []), estimated=estimated),
        ):
            assert {len(row) for row in sheet.rows} == {len(sheet.headings)}
            assert len(sheet.titles) == len(sheet.rows)
            labels = " ".join(heading.label for heading in sheet.headings).lower()
            assert ("estimated" in labels) is estimated


def test_cells_sort_by_value(edge: Make) -> None:
    """Keys of numeric cells are the numbers, and what is not known sorts below all that is."""
    sheet = edges_of(
        [edge("a/x", "b/y", messages=12_345, latency=(-5, 1, 2)), edge("a/x", "c/z", latency=None)],
        estimated=False,
    )
    at = {heading.label: place for place, heading in enumerate(sheet.headings)}
    assert (sheet.rows[0][at["Messages"]].text, sheet.rows[0][at["Messages"]].key) == (
        "12,345",
        12_345,
    )
    known, unknown = (row[at["Latency p50"]].key for row in sheet.rows)
    assert isinstance(known, int)
    assert isinstance(unknown, int)
    assert known == -5
    assert unknown < known


def test_trouble_is_marked(node: Make, edge: Make) -> None:
    """A link that went down and came back draws the eye, one that ended with its router does not."""
    bad = edges_of([edge("a/x", "b/y", link_ups=3, link_downs=2)], estimated=False)
    assert [cell.text for cell in bad.rows[0] if cell.alarm] == ["2"]
    stopped = edges_of([edge("a/x", "b/y", link_ups=1, link_downs=1)], estimated=False)
    assert not any(cell.alarm for cell in stopped.rows[0])
    full = nodes_of([node("a", "x", discarded=4)], estimated=False)
    assert [cell.text for cell in full.rows[0] if cell.alarm] == ["4"]
    fine = nodes_of([node("a", "x")], estimated=False)
    assert not any(cell.alarm for cell in fine.rows[0])


def test_long_tables_are_cut_and_say_so(topic: Make, discard: Make) -> None:
    """The page shows as many rows as it bears, and the sheet knows how many there are."""
    many = [topic(f"t/{n}") for n in range(REPORT_PAGE_ROWS + 1)]
    cut = tables.topic_sheet(many, 5_000, estimated=False)
    assert (len(cut.rows), cut.total) == (REPORT_PAGE_ROWS, 5_000)
    losses = [discard(f"reason {n}") for n in range(REPORT_PAGE_ROWS + 1)]
    sheet = tables.discard_sheet(losses, Places([], []), estimated=False)
    assert (len(sheet.rows), sheet.total) == (REPORT_PAGE_ROWS, REPORT_PAGE_ROWS + 1)


def test_the_busiest_bridges_are_shown(edge: Make) -> None:
    """Of more bridges than the page bears the busiest stand there, under their own numbers."""
    many = [edge("a/x", f"b/v{n}", messages=n) for n in range(REPORT_PAGE_SHAPE_ROWS + 7)]
    sheet = edges_of(many)
    assert (len(sheet.rows), sheet.total) == (REPORT_PAGE_SHAPE_ROWS, len(many))
    assert sheet.ids()[0] == f"edges-{len(many) - 1}"
    assert "edges-6" not in sheet.ids()
