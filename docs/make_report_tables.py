"""Writes docs/report-tables.md and docs/notebooks/views.sql from the columns of a report's tables and what they mean:
`python docs/make_report_tables.py`.
"""

from pathlib import Path
from typing import Final

from vpnrouter.report.meanings import TABLES, meaning_of, unit_of
from vpnrouter.report.output import SCHEMAS

_DOCS: Final = Path(__file__).resolve().parent
PAGE: Final = _DOCS / "report-tables.md"
VIEWS: Final = _DOCS / "notebooks" / "views.sql"

_HEAD: Final = """\
# The report's tables

This page lists all result tables of the topology report, as Parquet, Iceberg and Delta have them
([report.md](report.md#tables) describes how their figures come about). `python docs/make_report_tables.py` makes it
from `vpnrouter/report/schema.py` and `vpnrouter/report/meanings.py`.

- Each table has one more column, `date`: the last day (UTC) that the report covers. It is the partition: of a Parquet
  file its directory.
- Types are those of Spark's SQL. Every column may be null; where that means something, it is said.
- Counts are of *traced* messages, but for columns `*_estimated`. Bytes are those of payloads.
- `ns since 1970` are nanoseconds since 1970, UTC.

## What stays as it is

Who reads the tables can rely on this, from one version to the next:

- A table and a column keep their names, types, units and meanings. What a row stands for stays.
- **Tables and columns may be added**, at any place: read columns by name. In days that were written before, a new
  column is null.
- Where something has to go, a new column comes first, and the old one stays beside it until the next major version;
  the [changelog](../CHANGELOG.md) says so.
- New values may come in columns of kinds and reasons (`kind`, `action`, `event`, `reason`, `what`, `effect`,
  `measure`).
- The order of rows means something in JSON and in one Parquet file alone.

A test holds the columns against a list of those that were published.

## Reading them

[notebooks/views.sql](notebooks/views.sql) makes a view of the newest report of each table, for DuckDB and for Spark;
[notebooks/operators.ipynb](notebooks/operators.ipynb) answers ten questions with it.
"""

_VIEWS: Final = """\
-- Views of the newest report, for DuckDB and for Spark SQL. Made by `python docs/make_report_tables.py`. A semicolon
-- ends each statement and stands nowhere else.
--
-- They stand on the tables of all days, which are named as in docs/report-tables.md. With DuckDB, for each table:
--
--     create or replace temporary view nodes as
--         from read_parquet('report/tables/nodes/*/*.parquet', hive_partitioning = true, union_by_name = true)
--
-- with Spark:
--
--     create or replace temporary view nodes
--         using parquet options (path 'report/tables/nodes', mergeSchema 'true')
--
-- Iceberg tables are there by their names after `use CATALOG.vpnrouter`, Delta tables as delta.`…/lakehouse/nodes`.

-- The newest day, and the one before. A table may have no row of a day, but there are always message VPNs.
create or replace temporary view latest_day as
    select max(date) as date from nodes;
create or replace temporary view previous_day as
    select max(date) as date from nodes where date < (select max(date) from nodes);
"""

_VIEW: Final = """
-- {row}.
create or replace temporary view latest_{name} as
    select * from {name} where date = (select date from latest_day);
"""


def page() -> str:
    """The text of docs/report-tables.md as it should be."""
    parts = [_HEAD]
    for name, row in TABLES.items():
        parts.append(f"\n## `{name}`\n\nOne row for each: {row}.\n\n")
        parts.append("| column | type | unit | meaning |\n|---|---|---|---|\n")
        for field in SCHEMAS[name].fields:
            kind, unit = field.dataType.simpleString(), unit_of(name, field.name)
            parts.append(f"| `{field.name}` | {kind} | {unit} | {meaning_of(name, field.name)} |\n")
    return "".join(parts)


def views() -> str:
    """The text of docs/notebooks/views.sql as it should be."""
    return _VIEWS + "".join(
        _VIEW.format(row=row[0].upper() + row[1:], name=name) for name, row in TABLES.items()
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    VIEWS.parent.mkdir(exist_ok=True)
    VIEWS.write_text(views(), encoding="utf-8")
