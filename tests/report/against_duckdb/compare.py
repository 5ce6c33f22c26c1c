"""Compares the tables of a report with those that figures.sql computes from the same trace files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
import networkx as nx

from vpnrouter.report.output import newest_table

EDGE: Final = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "nodes": ("router", "vpn"),
    "edges": EDGE,
    "rates": (*EDGE, "start_ns"),
    "links": (*EDGE, "up_ns"),
    "latencies": (*EDGE, "latency_ns"),
    "end_to_end": ("origin_router", "origin_vpn", "router", "vpn"),
    "ways": ("way",),
    "lengths": ("hops",),
    "topics": ("topic", "router", "vpn"),
    "discards": ("router", "vpn", "event", "reason", "place"),
    "providers": ("router", "vpn", "connector", "link", "provider", "direction"),
    "timeline": ("start_ns",),
    "blast_radius": ("router", "vpn"),
    "usage": ("what", "day", "router", "vpn", "client", *EDGE),
}
"""Tables, and the columns that name a row of each. All other columns that both sides have are figures."""

MOST_ROWS: Final = {"ways": 1_000, "topics": 1_000, "discards": 1_000, "usage": 10_000}
"""Rows of a table, as docs/report.md bounds them; the others of a mesh that the tests have are complete."""

PERCENTILE_ERROR: Final = 0.016
"""Of its value, as docs/report.md promises."""

Row = dict[str, Any]
Table = dict[tuple[Any, ...], Row]


class Figures:
    """The tables of a report in `report`, and the same of the trace files that `traces` (a pattern) matches."""

    def __init__(self, traces: Path, report: Path) -> None:
        self._report = report
        self._base = duckdb.connect(config={"threads": 2})
        self.clocks = self.told("clocks")
        self._base.execute(
            "create table corrections (router text, reference text, offset_ns bigint,"
            " first_ns bigint, last_ns bigint, drift_ppm double)"
        )
        columns = ("router", "reference", "offset_ns", "first_ns", "last_ns", "drift_ppm")
        self._base.executemany(
            "insert into corrections values (?, ?, ?, ?, ?, ?)",
            [tuple(row[name] for name in columns) for row in self.clocks],
        )
        starts = [row["start_ns"] for row in self.told("timeline")]
        # Stretches begin at whole multiples of their length.
        self.width_ns = math.gcd(*starts)
        self._base.execute(f"set variable width_ns = {self.width_ns}::bigint")
        self._base.execute(f"set variable traces = '{traces}'")
        self._base.execute(Path(__file__).with_name("figures.sql").read_text(encoding="utf-8"))

    def query(self, text: str, *values: str) -> list[Row]:
        """The rows of a query with these values for its question marks, by column."""
        asked = self._base.execute(text, values)
        names = [column[0] for column in asked.description or ()]
        return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]

    def told(self, name: str) -> list[Row]:
        """A table of the report."""
        return newest_table(self._report, name).to_pylist()

    def computed(self, name: str) -> list[Row]:
        """The same table, of the trace files."""
        return self.query(f'from "{name}"')

    def compare(self, name: str) -> int:
        """Compare each figure of a table; return how many these were."""
        keys = KEYS[name]
        told, computed = by(keys, self.told(name)), by(keys, self.computed(name))
        if name == "usage":
            _fold_rest(told, computed)
        missing = computed.keys() - told.keys()
        assert not told.keys() - computed.keys(), _some(name, told.keys() - computed.keys())
        assert not missing or len(told) == MOST_ROWS.get(name), _some(name, missing)
        return sum(_same(name, key, row, computed[key]) for key, row in told.items())

    def compare_percentiles(self, name: str, shares: Mapping[str, float]) -> int:
        """Compare the percentiles in these columns of `edges` or `end_to_end`, as near as is promised; return how many
        these were.
        """
        keys = KEYS[name]
        source = "edge_latencies" if name == "edges" else name
        computed = by(keys, self.computed(source))
        count = 0
        for key, row in by(keys, self.told(name)).items():
            if key not in computed:
                assert all(row[column] is None for column in shares), (name, key)
                continue
            sorted_ns = computed[key]["sorted_ns"]
            for column, share in shares.items():
                exact = sorted_ns[max(math.ceil(len(sorted_ns) * share) - 1, 0)]
                error = abs(row[column] - exact)
                assert error <= PERCENTILE_ERROR * abs(exact) + 1, (name, key, column, exact, row)
                count += 1
            count += _same(name, key, row, computed[key])
        return count

    def compare_clocks(self) -> int:
        """Compare clocks along the best way of comparisons to the reference; return how many figures these were.

        A clock that moved takes part in no way: no message that it corrects may be faster than the error allows.
        """
        told = {row["router"]: row for row in self.clocks if row["first_ns"] is None}
        most = max((row["error_ns"] for row in self.clocks if row["first_ns"]), default=0)
        (fastest,) = self.query("select min(ns) as ns from latency where corrected")
        assert fastest["ns"] is None or fastest["ns"] >= -2 * most
        graph = nx.Graph()
        for pair in self.query("from compared"):
            ends = pair["router"], pair["other"]
            if all(end in told and told[end]["offset_ns"] is not None for end in ends):
                ahead = {pair["router"]: pair["ahead_ns"], pair["other"]: -pair["ahead_ns"]}
                graph.add_edge(*ends, error=pair["error_ns"], ahead=ahead)
        for router, row in told.items():
            if row["offset_ns"] is None:
                assert row["error_ns"] is None, row
                continue
            way = nx.dijkstra_path(graph, row["reference"], router, "error") if graph else [router]
            steps = [(graph.edges[step], step[1]) for step in pairwise(way)]
            offset = sum(step["ahead"][end] for step, end in steps)
            error = sum(step["error"] for step, _ in steps)
            # Each step is rounded to a nanosecond.
            assert abs(row["offset_ns"] - offset) <= len(way), (row, offset)
            assert abs(row["error_ns"] - error) <= len(way), (row, error)
            assert row["pairs"] == (graph.degree(router) if router in graph else 0), row
        return 3 * len(told)


def by(keys: Sequence[str], rows: Iterable[Row]) -> Table:
    """Rows by their keys, each of which stands once."""
    listed = list(rows)
    table = {tuple(row[key] for key in keys): row for row in listed}
    assert len(table) == len(listed), f"rows with the same {keys}"
    return table


def _same(name: str, key: tuple[Any, ...], told: Row, computed: Row) -> int:
    """Compare the figures of one row; return how many these were."""
    figures = (computed.keys() & told.keys()) - set(KEYS[name])
    for column in figures:
        where = f"{name} {key}: {column}"
        same = told[column] == computed[column]
        if isinstance(told[column], float):
            same = math.isclose(told[column], computed[column], rel_tol=1e-9)
        assert same, f"{where}: {told[column]} {computed[column]}"
    if name == "discards":
        assert told["example_topic"] in computed["topics"], (told, computed)
    return len(figures)


def _fold_rest(told: Table, computed: Table) -> None:
    """Of what the report has in one row of the others, compare the sums."""
    rest = [key for key in told if key[0] == "rest"]
    if rest:
        [row] = [told.pop(key) for key in rest]
        others = [computed[key] for key in computed.keys() - told.keys()]
        assert row["rows"] == len(others)
        for column in ("published", "published_bytes", "delivered", "delivered_bytes", "crossings"):
            assert row[column] == sum(other[column] for other in others), column
        for key in computed.keys() - told.keys():
            del computed[key]


def _some(name: str, keys: Iterable[tuple[Any, ...]]) -> str:
    return f"{name} on one side only: {sorted(keys, key=repr)[:5]}"
