"""Writes trace files as docs/traces.md describes them, row by row, without the recorder."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.trace.parquet import partition_value
from vpnrouter.trace.schema import (
    COLUMNS,
    FILE_COLUMNS,
    ROUTER_KEY,
    SAMPLE_KEY,
    VERSION,
    VERSION_KEY,
)

SECOND = 1_000_000_000
START = 1_371_000_000 * SECOND
"""2013-06-12, in the middle of the flights of the demonstration."""

Row = Mapping[str, Any]


def row(event: str, at_ns: int, vpn: str | None, **fields: Any) -> dict[str, Any]:
    """A trace row at START + `at_ns`; what is not given is null."""
    return {"event": event, "ts_ns": START + at_ns, "vpn": vpn, **fields}


def write(
    root: Path,
    router: str,
    rows: Iterable[Row],
    *,
    part: int = 0,
    sample: float | None = None,
    version: int = VERSION,
    router_inside: bool = False,
    partitioned: bool = True,
) -> Path:
    """One complete trace file of `router` under `root`; returns its path."""
    columns = COLUMNS if router_inside else FILE_COLUMNS
    schema = pa.schema(
        [pa.field(c.name, getattr(pa, c.type)(), nullable=c.nullable) for c in columns]
    )
    listed = [{"router": router, **one} for one in rows] if router_inside else list(rows)
    metadata = {VERSION_KEY: str(version), ROUTER_KEY: router}
    if sample is not None:
        metadata[SAMPLE_KEY] = repr(sample)
    folder = root
    if partitioned:
        folder = root / "date=2013-06-12" / f"router={partition_value(router)}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"part-{part:05d}.parquet"
    table = pa.Table.from_pylist(listed, schema=schema.with_metadata(metadata))
    pq.write_table(table, path, compression="zstd")
    return path


def crossing(
    number: int,
    topic: str = "flights/UA/EWR/IAH",
    *,
    sent_ns: int | None = None,
    received_ns: int | None = None,
    mode: str = "direct",
    size_bytes: int = 64,
) -> tuple[list[Row], list[Row]]:
    """The rows at "edge" and at "core" of one message that goes from edge/blue over bridge "fares"
    to core/yellow.
    """
    at = number * SECOND
    of_message = {
        "trace_id": f"{number:032x}",
        "message_id": number,
        "topic": topic,
        "mode": mode,
        "size_bytes": size_bytes,
        "origin_ts_ns": START + at,
    }
    edge = [row("ingress", at, "blue", client="publisher", hops=0, **of_message)]
    if sent_ns is not None:
        edge.append(
            row(
                "bridge_send",
                at + sent_ns,
                "blue",
                client="#bridge/core/yellow/fares",
                bridge="fares",
                peer_router="core",
                peer_vpn="yellow",
                hops=1,
                origin_router="edge",
                origin_vpn="blue",
                **of_message,
            )
        )
    core = []
    if received_ns is not None:
        core = [
            row(
                "bridge_receive",
                at + received_ns,
                "yellow",
                bridge="fares",
                peer_router="edge",
                peer_vpn="blue",
                hops=1,
                path="edge/blue",
                origin_router="edge",
                origin_vpn="blue",
                **of_message,
            ),
            row(
                "deliver",
                at + received_ns + 1_000,
                "yellow",
                client="board",
                hops=0,
                **of_message,
            ),
        ]
    return edge, core
