"""The tables of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.limits import REPORT_PAGE_ROWS, REPORT_PAGE_SHAPE_ROWS
from vpnrouter.report.page import tables
from vpnrouter.report.page.contents import Contents, ShapeIndex
from vpnrouter.report.page.tables import Sheet
from vpnrouter.report.schema import CHANGES, Rows


def test_unknown_sorts_last() -> None:
    """Whatever is not known sorts below all that is, and reads as a dash."""
    for make, least in ((tables.number, 0), (tables.octets, 0), (tables.time, -(10**12))):
        known, unknown = make(least), make(None)
        assert isinstance(known.key, int)
        assert isinstance(unknown.key, int)
        assert unknown.key < known.key
        assert unknown.text == "–"
    assert [tables.yes_no(value).text for value in (True, False, None)] == ["yes", "no", "–"]


def test_bars_and_names() -> None:
    """A bar is a share of the greatest; names are spelt out where they would disturb."""
    assert tables.number(5, most=10).bar == 50
    assert tables.number(5).bar is None
    assert tables.text("a\u202e").text == r"a\u202e"
    assert tables.place("a", "x", "node-0").shape == "node-0"
    assert tables.greatest([{"n": 3}, {"n": None}], "n") == 3
    assert tables.greatest([], "n") == 0


def test_rows_have_their_own_ids_and_choices() -> None:
    """Ids count from 0 unless numbers are given; choices are the different texts."""
    rows = [[tables.text("b")], [tables.text("a")], [tables.text("b")]]
    plain = tables.Sheet(
        name="s", headings=[tables.Heading(label="h")], rows=rows, titles=["", "", ""], total=3
    )
    assert plain.ids() == ["s-0", "s-1", "s-2"]
    assert plain.options(0) == ["a", "b"]
    numbered = tables.Sheet(
        name="s", headings=[], rows=rows, titles=["", "", ""], total=9, numbers=[7, 2, 5]
    )
    assert numbered.ids() == ["s-7", "s-2", "s-5"]


@pytest.mark.parametrize(
    ("kind", "area"),
    [
        ("loop", tables.TROUBLE),
        ("over_broad", tables.SUBSCRIPTIONS),
        ("cut_bridge", tables.STRUCTURE),
        ("missing_vpn", tables.DRIFT),
        ("of tomorrow", tables.TROUBLE),
    ],
)
def test_each_kind_is_about_something(kind: str, area: str) -> None:
    """Kinds have their area; one that is not known is trouble."""
    assert tables.area_of(kind) == area
    assert area in tables.AREAS


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("stalled_bridge", 38.0, "38 s"),
        ("clock_skew", -0.0021, "-2.1 ms"),
        ("hot_bridge", 0.042, "4.2 %"),
        ("skewed_partition", 3.25, "3.25 × the mean"),
        ("flapping_link", 5.0, "5"),
        ("loop", None, "–"),
    ],
)
def test_values_have_the_unit_of_their_kind(kind: str, value: float | None, text: str) -> None:
    """Seconds, shares, ratios and plain counts."""
    assert tables.value_of({"kind": kind, "value": value}) == text


Make = Callable[..., dict[str, Any]]


def edges_of(edges: Rows, *, estimated: bool = False) -> Sheet:
    """The table of edges."""
    return tables.edge_sheet(edges, ShapeIndex([], edges), estimated=estimated)


def nodes_of(nodes: Rows, *, estimated: bool = False) -> Sheet:
    """The table of nodes."""
    return tables.node_sheet(nodes, ShapeIndex(nodes, []), estimated=estimated)


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
    sheet = tables.discard_sheet(losses, ShapeIndex([], []), estimated=False)
    assert (len(sheet.rows), sheet.total) == (REPORT_PAGE_ROWS, REPORT_PAGE_ROWS + 1)


def test_the_busiest_bridges_are_shown(edge: Make) -> None:
    """Of more bridges than the page bears the busiest stand there, under their own numbers."""
    many = [edge("a/x", f"b/v{n}", messages=n) for n in range(REPORT_PAGE_SHAPE_ROWS + 7)]
    sheet = edges_of(many)
    assert (len(sheet.rows), sheet.total) == (REPORT_PAGE_SHAPE_ROWS, len(many))
    assert sheet.ids()[0] == f"edges-{len(many) - 1}"
    assert "edges-6" not in sheet.ids()


def sheets_of(contents: Contents) -> list[Sheet]:
    """All tables of this module."""
    places = ShapeIndex(contents.nodes, contents.edges)
    return [
        tables.finding_sheet(contents.findings, places),
        tables.change_sheet(contents.changes, places),
        tables.delay_sheet(contents.end_to_end, places),
        tables.clock_sheet(contents.clocks),
        tables.way_sheet(contents.ways),
        tables.vpn_sheet(contents.vpns, places),
        tables.pair_sheet(contents.pairs, places),
        tables.usage_sheet(contents.usage, places, estimated=True),
        tables.what_if_sheet(contents.what_if, places),
        tables.blast_radius_sheet(contents.blast_radius, places),
        tables.growth_sheet(contents.growth, places),
    ]


def test_cells_of_findings_stand_under_their_heading(mesh_30: Contents) -> None:
    """Each row of each table has as many cells as there are headings, and a title."""
    for sheet in sheets_of(mesh_30):
        assert sheet.rows, sheet.name
        assert {len(row) for row in sheet.rows} == {len(sheet.headings)}
        assert len(sheet.titles) == len(sheet.rows) == len(set(sheet.ids()))
        assert all(column < len(sheet.headings) for column in sheet.choices)


def test_the_worst_findings_are_shown(mesh_30: Contents) -> None:
    """Errors first, and of too many the least severe are left out."""
    one = mesh_30.findings[0]
    many = [one | {"severity": "info"}] * REPORT_PAGE_SHAPE_ROWS + [one | {"severity": "error"}]
    sheet = tables.finding_sheet(many, ShapeIndex(mesh_30.nodes, mesh_30.edges))
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
    sheet = tables.change_sheet([row], ShapeIndex([], []))
    assert tuple(cell.text for cell in sheet.rows[0][-3:]) == texts


def test_the_weakest_pairs_come_first(mesh_30: Contents) -> None:
    """Those that one bridge can part draw the eye."""
    sheet = tables.pair_sheet(mesh_30.pairs, ShapeIndex(mesh_30.nodes, mesh_30.edges))
    links = [row[2].key for row in sheet.rows]
    assert links == sorted(links, key=lambda key: int(str(key)))
    assert [row[2].alarm for row in sheet.rows] == [key == 1 for key in links]


def test_tables_for_bills_and_plans(mesh_30: Contents) -> None:
    """What is beyond a table comes first and says so; figures have the units of their rows, and days their interval."""
    shapes = ShapeIndex(mesh_30.nodes, mesh_30.edges)
    usage = tables.usage_sheet(mesh_30.usage, shapes, estimated=False)
    labels = [heading.label for heading in usage.headings]
    assert [row[labels.index("Client or bridge")].text for row in usage.rows[:2]] == [
        "4,321 more rows together",
        "sensor-1",
    ]
    assert usage.rows[2][3].shape == "edge-0"
    assert usage.rows[0][-1].text == "36.2 KiB"
    asked = tables.what_if_sheet(mesh_30.what_if, shapes)
    kinds = [row[1].text for row in asked.rows]
    assert kinds == ["without a router", "without a bridge", "carries more"]
    assert [(row[11].text, row[11].alarm) for row in asked.rows] == [
        ("× 1.75", True),
        ("–", False),
        ("× 1.75", True),
    ]
    assert asked.rows[0][8].shape == "edge-0"
    queue, bridge = tables.growth_sheet(mesh_30.growth, shapes).rows
    assert [queue[at].text for at in (4, 8, 9, 10)] == [
        "477 MiB",
        "4.66 GiB",
        "4.5 (2.25 to 5)",
        "–",
    ]
    assert [bridge[at].text for at in (4, 9, 10)] == ["–", "–", "too short"]
