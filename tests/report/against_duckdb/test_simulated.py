"""A million trace rows of a simulated mesh: each figure of the report is the one that DuckDB computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from vpnrouter.simulation.simulate import Options, all_faults, simulate
from vpnrouter.trace.schema import SAMPLE_KEY

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SECOND: Final = 1_000_000_000
START_NS: Final = int(datetime(2026, 3, 1, 23, 20, tzinfo=UTC).timestamp()) * SECOND
"""The simulated hour has two days."""
ROWS: Final = 1_000_000
VPNS: Final = 200
BROKER: Final = "mqtt://broker.example.org:1883"
OTHER: Final = "mqtts://other.example.org:8883"


def sampled(file: Path, rate: float | None, table: pa.Table | None = None) -> None:
    """Write a trace file again, as of a router with this sampling rate (None: not known)."""
    rows = pq.read_table(file, partitioning=None) if table is None else table
    metadata = {
        key: value for key, value in rows.schema.metadata.items() if key != SAMPLE_KEY.encode()
    }
    if rate is not None:
        metadata[SAMPLE_KEY] = repr(rate)
    pq.write_table(rows.replace_schema_metadata(metadata), file, compression="zstd")


def vary_rates(traces: Path, moved: set[str]) -> None:
    """Give routers different rates. One has a rate that is not known, and one has another rate from the middle on."""
    files: dict[str, list[Path]] = {}
    for file in sorted(traces.rglob("*.parquet")):
        files.setdefault(file.parent.name.removeprefix("router="), []).append(file)
    steady = [router for router in files if router not in moved]
    for number, router in enumerate(steady):
        for file in files[router]:
            sampled(file, (0.25, 0.5, 0.125)[number % 3])
    for file in files[steady[4]]:
        sampled(file, None)
    changed = files[steady[0]][0]
    rows = pq.read_table(changed, partitioning=None)
    late = pc.greater_equal(rows["ts_ns"], START_NS + 1_200 * SECOND)
    sampled(changed.with_name("part-2.parquet"), 0.0625, rows.filter(late))
    sampled(changed, 0.25, rows.filter(pc.invert(late)))


def message(number: int, **more: Any) -> dict[str, Any]:
    """What all rows of a message have."""
    entered = START_NS + number * 7 * SECOND
    of = {"trace_id": f"{number:032x}", "message_id": number, "topic": f"harbour/{number % 5}"}
    return {**of, "mode": "direct", "size_bytes": number % 90, "origin_ts_ns": entered, **more}


def harbour() -> dict[str, list[dict[str, Any]]]:
    """Rows with connectors, of two routers: messages come from one provider, cross a bridge and go to another one or
    back. Some are sent there again, some expire, and some become dead letters. Two links stay up, one of them to a
    router that does not trace.
    """
    rows: dict[str, list[dict[str, Any]]] = {"harbour": [], "quay": []}
    link = {"bridge": "in-from-sea", "vpn": "quay"}
    rows["quay"].append(
        {**link, "event": "link_up", "ts_ns": START_NS, "peer_router": "harbour", "peer_vpn": "sea"}
    )
    dark = {"bridge": "in-from-night", "peer_router": "dark", "peer_vpn": "night"}
    rows["quay"].append({**dark, "event": "link_up", "ts_ns": START_NS + 5, "vpn": "quay"})
    for number in range(1, 400):
        entered = START_NS + number * 7 * SECOND
        mode = "persistent" if number % 3 == 0 else "direct"
        came = message(number, mode=mode, path=BROKER, origin_router="harbour", origin_vpn="sea")
        at = {**came, "vpn": "sea", "hops": 1}
        rows["harbour"] += [
            {
                **at,
                "event": "ingress",
                "ts_ns": entered,
                "client": "#connector/there",
                "bridge": "there/in",
            }
            | {"peer_router": BROKER},
            {
                **at,
                "event": "bridge_send",
                "ts_ns": entered + 40_000,
                "hops": 2,
                "bridge": "in-from-sea",
            }
            | {
                "peer_router": "quay",
                "peer_vpn": "quay",
                "client": "#bridge/quay/quay/in-from-sea",
            },
        ]
        if number % 11 == 0:
            continue
        over = {**came, "vpn": "quay", "hops": 2, "path": f"{BROKER}>harbour/sea"}
        out = {"client": "#connector/far", "bridge": "far/out", "peer_router": OTHER}
        at_ns = entered + 1_000_000 + number * 1_000
        rows["quay"].append(
            {**over, "event": "bridge_receive", "ts_ns": at_ns, "bridge": "in-from-sea"}
            | {"peer_router": "harbour", "peer_vpn": "sea"}
        )
        rows["quay"].append({**over, **out, "event": "deliver", "ts_ns": at_ns + 9_000})
        if mode == "persistent":
            kept = {**over, "endpoint": "q"}
            kind = ("redeliver", "expire", "dead_letter")[number % 9 // 3]
            rows["quay"].append(
                {**kept, "event": "enqueue", "ts_ns": at_ns + 500, "client": "#bridge/in-from-sea"}
            )
            rows["quay"].append(
                {
                    **kept,
                    **(out if kind == "redeliver" else {}),
                    "event": kind,
                    "ts_ns": at_ns + 5 * SECOND,
                }
            )
    return rows


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory, tracefiles: ModuleType) -> tuple[Path, Any]:
    """The directory with the traces of the mesh, and the truth about it."""
    folder = tmp_path_factory.mktemp("mesh")
    options = Options(
        vpns=VPNS, rows=ROWS, sample=0.25, faults=all_faults(VPNS), start_ns=START_NS, configs=False
    )
    truth = simulate(options, folder)
    moved = {fault["router"] for fault in truth["faults"] if fault["kind"].startswith("clock_")}
    vary_rates(folder / "traces", moved)
    for router, rows in harbour().items():
        place = folder / "traces" / router
        tracefiles.write(
            place, router, rows, partitioned=False, sample=0.5, always="discard,reject"
        )
    return folder, json.loads((folder / "truth.json").read_text(encoding="utf-8"))


def moves_of(fault: dict[str, Any], at_ns: int) -> list[float]:
    """By how many nanoseconds a clock that was set, or that drifts since the beginning, may have moved at a time."""
    whole = fault["value"] * SECOND
    if fault["begin_s"]:
        return [0.0, whole]
    return [whole * (at_ns - START_NS) / (3_600 * SECOND)]


def test_each_figure_is_that_of_duckdb(
    truth: tuple[Path, Any],
    figures_of: Callable[[Path], Any],
    compare_all: Callable[[Any], dict[str, int]],
) -> None:
    """Counts, bytes, estimates and times are the same; percentiles are as near as is promised."""
    folder, made = truth
    figures = figures_of(folder)
    counts = compare_all(figures)
    assert min(counts.values()) > 0
    assert sum(counts.values()) > 90_000
    # 60 stretches cover the time.
    assert 60 * figures.width_ns >= 3_600 * SECOND
    # The table of topics is cut, and has those on which most messages entered a message VPN.
    told = {(row["topic"], row["router"], row["vpn"]) for row in figures.told("topics")}
    busy: dict[bool, list[int]] = {True: [], False: []}
    for row in figures.computed("topics"):
        inside = (row["topic"], row["router"], row["vpn"]) in told
        busy[inside].append(row["published"] + row["bridged_in"])
    assert min(busy[True]) >= max(busy[False])
    # Clocks are as far ahead as they were made, within the error that the report states.
    clocks = made["clocks"]
    moved = {fault["router"]: fault for fault in made["faults"] if fault["kind"] == "clock_moved"}
    compared = [row for row in figures.clocks if row["offset_ns"] is not None]
    stretches: dict[str, list[int]] = {}
    for row in compared:
        if row["router"] in clocks:
            wrong = row["offset_ns"] - (clocks[row["router"]] - clocks[row["reference"]])
            if row["first_ns"] is not None:
                stretches.setdefault(row["router"], []).append(row["first_ns"])
                wrong = min(
                    (wrong - move for move in moves_of(moved[row["router"]], row["first_ns"])),
                    key=abs,
                )
            assert abs(wrong) <= row["error_ns"], row
    assert len(compared) > 30
    # One that drifts does so all the time; one that was set has a time before that and one after.
    expected = {router: 2 if fault["begin_s"] else 1 for router, fault in moved.items()}
    assert {router: len(firsts) for router, firsts in stretches.items()} == expected
