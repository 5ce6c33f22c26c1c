"""The columns of the result tables: what each means, what stays, and the pages that are made of it."""

from __future__ import annotations

import json
import os
import runpy
from pathlib import Path
from typing import Final

import pytest

from vpnrouter.report.meanings import OWN, SHARED, TABLES, meaning_of, unit_of
from vpnrouter.report.output import SCHEMAS

ROOT: Final = Path(__file__).resolve().parents[2]
GOLDEN: Final = Path(__file__).with_name("columns.json")
MAKER: Final = runpy.run_path(str(ROOT / "docs" / "make_report_tables.py"))


def columns() -> dict[str, dict[str, str]]:
    """The types of all columns by their tables."""
    return {
        name: {field.name: field.dataType.simpleString() for field in schema.fields}
        for name, schema in SCHEMAS.items()
    }


def lost(
    published: dict[str, dict[str, str]], present: dict[str, dict[str, str]]
) -> dict[str, tuple[str, str | None]]:
    """What was published and is gone, or has another type now: both types by `TABLE.COLUMN`."""
    return {
        f"{table}.{column}": (kind, present.get(table, {}).get(column))
        for table, known in published.items()
        for column, kind in known.items()
        if present.get(table, {}).get(column) != kind
    }


def test_what_was_published_stays() -> None:
    """No table or column that somebody may read is removed or changes its type; more may come.

    `VPNROUTER_GOLDEN=write` adds those that are new to the list.
    """
    published = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    assert lost(published, columns()) == {}
    if os.environ.get("VPNROUTER_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(columns(), indent=1) + "\n", encoding="utf-8")
    assert len(json.loads(GOLDEN.read_text(encoding="utf-8"))) >= 22


def test_what_is_lost_is_named() -> None:
    """A column or a table that has gone, and another type; not what was added."""
    before = {"a": {"x": "int", "y": "string", "z": "bigint"}, "b": {"x": "int"}}
    after = {"a": {"w": "int", "x": "int", "y": "bigint"}, "c": {"x": "int"}}
    assert lost(before, after) == {
        "a.y": ("string", "bigint"),
        "a.z": ("bigint", None),
        "b.x": ("int", None),
    }
    assert lost(before, before | {"d": {}}) == {}


def test_every_column_has_a_meaning() -> None:
    """And no meaning is of a column that there is not."""
    assert TABLES.keys() == SCHEMAS.keys()
    shared = set()
    for name, known in columns().items():
        assert all(meaning_of(name, column) for column in known)
        assert OWN.get(name, {}).keys() <= known.keys(), name
        shared |= known.keys() - OWN.get(name, {}).keys()
    assert shared == SHARED.keys()
    assert OWN.keys() <= TABLES.keys()
    with pytest.raises(KeyError):
        meaning_of("nodes", "colour")


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("edges.first_ns", "ns since 1970"),
        ("edges.up_ns", "ns"),
        ("links.up_ns", "ns since 1970"),
        ("edges.peak_messages", "messages"),
        ("usage.published_estimated", "messages"),
        ("nodes.ingress_bytes", "bytes"),
        ("what_if.lost_per_s", "messages/s"),
        ("growth.per_day_low", "`unit`/day"),
        ("growth.days", "days"),
        ("providers.direction", ""),
        ("vpns.bridges_in", ""),
    ],
)
def test_units(column: str, unit: str) -> None:
    """By the name of the column; a table may mean something else."""
    assert unit_of(*column.split(".")) == unit


@pytest.mark.parametrize(("name", "made"), [("PAGE", "page"), ("VIEWS", "views")])
def test_pages_are_up_to_date(name: str, made: str) -> None:
    """Docs and views have all tables and columns as they are."""
    written = MAKER[name].read_text(encoding="utf-8")
    assert written == MAKER[made](), "make it again: python docs/make_report_tables.py"


def test_views_can_be_split_by_semicolons() -> None:
    """As a program does that has no reader of SQL files: each part is one statement."""
    parts = MAKER["views"]().split(";\n")
    assert parts.pop() == ""
    assert len(parts) == len(SCHEMAS) + 2
    assert all(part.count("create or replace temporary view latest_") <= 1 for part in parts)
