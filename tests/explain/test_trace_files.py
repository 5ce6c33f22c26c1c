"""The way of a message that was recorded in trace files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vpnrouter.config.load import load
from vpnrouter.errors import OperationError
from vpnrouter.explain.explain import explain_trace
from vpnrouter.explain.request import BRIDGE, CLIENT, Event, UsageError, path_of
from vpnrouter.explain.trace_files import parse_trace_id, read_trace
from vpnrouter.trace.parquet import ARROW_TYPES
from vpnrouter.trace.schema import FILE_COLUMNS, file_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

CONFIGS = Path(__file__).parents[2] / "configs"
ID = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32
BLUE = ("edge/blue",)

WAY = (
    Event("edge", "ingress", "blue", "weather/x", "direct", "pub", ts_ns=1_000_000, size=7),
    Event(
        "edge",
        "bridge_send",
        "blue",
        "weather/x",
        "direct",
        "#bridge/core/yellow/from-blue",
        bridge="from-blue",
        peer_router="core",
        peer_vpn="yellow",
        hops=1,
        ts_ns=1_500_000,
        since_ingress_ns=500_000,
    ),
    Event(
        "core",
        "bridge_receive",
        "yellow",
        "weather/x",
        "direct",
        bridge="from-blue",
        peer_router="edge",
        peer_vpn="blue",
        hops=1,
        path=BLUE,
        ts_ns=4_000_000,
    ),
    Event(
        "core",
        "deliver",
        "yellow",
        "weather/x",
        "direct",
        "sub",
        hops=1,
        path=BLUE,
        ts_ns=4_200_000,
        since_ingress_ns=200_000,
    ),
)


def write(path: Path, router: str, rows: Iterable[tuple[str, Event]], group: int = 2) -> None:
    """A trace file of `router` with these rows, `group` in a row group."""
    schema = pa.schema(
        [pa.field(one.name, ARROW_TYPES[one.type]) for one in FILE_COLUMNS],
        metadata=file_metadata(router, 1.0),
    )
    found: list[dict[str, Any]] = []
    for trace_id, event in rows:
        row = asdict(event) | {"trace_id": trace_id, "size_bytes": event.size}
        row["path"] = ">".join(event.path)
        found.append({name: row.get(name) for name in schema.names})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(found, schema), path, row_group_size=group)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Files of two routers with the message, and many rows of others."""
    folder = tmp_path / "traces"
    for router in ("edge", "core"):
        mine = [(ID, one) for one in WAY if one.router == router]
        noise = [(OTHER, Event(router, "ingress", "blue", "t", "direct", ts_ns=9))] * 20
        write(folder / "date=2026-01-01" / f"router={router}" / "part-1.parquet", router, noise)
        write(
            folder / "date=2026-01-02" / f"router={router}" / "part-1.parquet", router, noise + mine
        )
    (folder / "broken.parquet").write_bytes(b"no parquet")
    return folder


def test_a_trace_id_in_either_form() -> None:
    """Thirty-two digits, or the whole property that a message carries."""
    assert parse_trace_id(ID.upper()) == ID
    assert parse_trace_id(f"00-{ID}-0123456789abcdef-01") == ID
    for text in ("", "12", ID + "0", "0" * 32, f"00-{ID}-01"):
        with pytest.raises(UsageError):
            parse_trace_id(text)


def test_the_way_is_put_together(traces: Path) -> None:
    """Over two routers' files, with the time on the link; what is damaged is named."""
    found = read_trace([traces], ID)
    assert found.events == list(WAY)
    assert found.files == 4
    assert len(found.notes) == 1
    assert "broken.parquet" in found.notes[0]
    told = explain_trace(ID, found.events)
    assert (told.router, told.msg_vpn, told.client, told.size) == ("edge", "blue", "pub", 7)
    assert [(one.router, one.kind, one.name) for one in told.arrivals] == [("core", CLIENT, "sub")]
    crossed = told.steps[0].steps[0]
    assert (crossed.kind, crossed.name) == (BRIDGE, "from-blue")
    assert (crossed.link_ns, crossed.since_ns) == (2_500_000, 500_000)
    assert crossed.rules == []


def test_with_the_configurations(traces: Path) -> None:
    """Each step has the rule as it is written now, and what else did not get it."""
    mesh = [load(CONFIGS / "core.yaml"), load(CONFIGS / "edge.yaml")]
    told = explain_trace(ID, read_trace([traces], ID).events, mesh)
    crossed = told.steps[0].steps[0]
    assert crossed.rules[0].text == "remote subscription weather/>"
    assert crossed.rules[0].line == 30
    assert [one.text for one in crossed.steps if one.name == "orders"] == [
        "queue orders does not get it: no subscription of it matches"
    ]


def test_what_is_missing_is_said(traces: Path) -> None:
    """Files of one router alone: the rest is known from what its rows say."""
    late = traces / "date=2026-01-02"
    only_core = explain_trace(ID, read_trace([late / "router=core"], ID).events)
    assert only_core.steps[0].text.startswith("core/yellow: it came over bridge from-blue")
    assert any("where it was published" in one for one in only_core.notes)
    only_edge = explain_trace(ID, read_trace([late / "router=edge"], ID).events)
    assert only_edge.steps[0].steps[0].steps[0].text == "no row tells of its arrival there"


def test_an_unknown_message(traces: Path, tmp_path: Path) -> None:
    """No row, or no files."""
    assert read_trace([traces], "e" * 32).events == []
    with pytest.raises(OperationError, match="no such trace directory"):
        read_trace([tmp_path / "gone"], ID)
    with pytest.raises(OperationError, match="no trace of message"):
        explain_trace(ID, [])


def test_places_and_paths() -> None:
    """Both sides as router/vpn, and the way before."""
    event = Event("a", "bridge_send", "v", peer_router="b", peer_vpn="w")
    assert (event.place, event.peer, Event("a", "ingress").peer) == ("a/v", "b/w", "")
    assert path_of("a/v>b/w") == ("a/v", "b/w")
    assert path_of("") == ()
