from pathlib import Path

from vpnrouter.trace.events import EVENT_NAMES
from vpnrouter.trace.schema import (
    BUFFER_FULL,
    COLUMNS,
    DISK_FULL,
    FILE_COLUMNS,
    INTERNAL_ERROR,
    IO_ERROR,
    PERMISSION,
    VERSION,
    VERSION_KEY,
    file_metadata,
)

# The contract that readers script against.
NAMES = (
    "ts_ns, router, vpn, event, trace_id, message_id, topic, mode, size_bytes, client, endpoint, "
    "bridge, peer_router, peer_vpn, hops, path, reason, since_ingress_ns, origin_router, "
    "origin_vpn, origin_ts_ns, count, partition, topic_syntax, parent_span_id"
)


def test_the_columns_are_those_promised_in_order() -> None:
    """Names and order are the contract's."""
    assert [column.name for column in COLUMNS] == NAMES.split(", ")


def test_new_columns_keep_the_version() -> None:
    """Readers of the first version's columns pass over what was added."""
    assert VERSION == 1
    assert all(column.nullable for column in COLUMNS[21:])


def test_types_are_ones_that_every_reader_knows() -> None:
    """Columns are strings and signed integers, no more."""
    assert {column.type for column in COLUMNS} == {"string", "int64", "int32"}


def test_only_the_router_stands_in_the_path() -> None:
    """Inside files stand all columns but the router, in the same order."""
    assert [c.name for c in COLUMNS if c not in FILE_COLUMNS] == ["router"]
    assert [c for c in COLUMNS if c in FILE_COLUMNS] == list(FILE_COLUMNS)


PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


def rows_under(heading: str) -> list[list[str]]:
    """Cells of the first table under a heading of docs/traces.md, without its two first lines."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines[2:]]


def test_the_page_lists_every_column() -> None:
    """docs/traces.md has the columns in order, with their types and whether they may be null."""
    assert [(name, kind, null != "never") for name, kind, null, _ in rows_under("Columns")] == [
        (column.name, column.type, column.nullable) for column in COLUMNS
    ]


def test_the_page_lists_every_event() -> None:
    """docs/traces.md has the events in order of their numbers."""
    assert [name for name, _ in rows_under("Events")] == EVENT_NAMES


def test_the_page_lists_the_metadata() -> None:
    """docs/traces.md has each key that a file carries, and the present version."""
    keys = {row[0]: row[1] for row in rows_under("Metadata of a file")}
    assert set(keys) == set(file_metadata("edge", 0.5))
    assert keys[VERSION_KEY].startswith(f"{VERSION}`")


def test_the_page_lists_the_reasons() -> None:
    """docs/traces.md has each reason for which the writer drops events."""
    reasons = {BUFFER_FULL, DISK_FULL, PERMISSION, IO_ERROR, INTERNAL_ERROR}
    assert {reason for reason, _ in rows_under("What tracing may cost")} == reasons
