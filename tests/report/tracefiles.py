"""Writes trace files as docs/traces.md describes them, row by row, without the recorder."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from vpnrouter.trace.parquet import ARROW_TYPES, partition_value
from vpnrouter.trace.schema import (
    ALWAYS_KEY,
    COLUMNS,
    CONTEXT,
    FILE_COLUMNS,
    ROUTER_KEY,
    SAMPLE_KEY,
    VERSION,
    VERSION_KEY,
    context_of,
)

SECOND = 1_000_000_000
START = 1_371_000_000 * SECOND
"""2013-06-12, in the middle of the flights of the demonstration."""

Row = Mapping[str, Any]


def row(event: str, at_ns: int, vpn: str | None, **fields: Any) -> dict[str, Any]:
    """A trace row at START + `at_ns`; what is not given is null."""
    return {"event": event, "ts_ns": START + at_ns, "vpn": vpn, **fields}


def _with_contexts(rows: Iterable[Row], router: str) -> list[dict[str, Any]]:
    told = []
    known = set()
    for row in rows:
        context = context_of([{"router": router, **row}.get(name) for name in CONTEXT])
        in_full = context not in known or row.get("mode") is None
        known.add(context)
        told.append({**row, "context": context, "in_full": in_full})
    return told


def write(
    root: Path,
    router: str,
    rows: Iterable[Row],
    *,
    part: int = 0,
    sample: float | None = None,
    always: str | None = None,
    version: int = VERSION,
    router_inside: bool = False,
    partitioned: bool = True,
    with_contexts: bool = True,
) -> Path:
    """One complete trace file of `router` under `root`; returns its path."""
    columns = [
        column
        for column in (COLUMNS if router_inside else FILE_COLUMNS)
        if with_contexts or column.name not in {"context", "in_full"}
    ]
    schema = pa.schema(
        [pa.field(c.name, ARROW_TYPES[c.type], nullable=c.nullable) for c in columns]
    )
    listed = [{"router": router, **one} for one in rows] if router_inside else list(rows)
    if with_contexts:
        listed = _with_contexts(listed, router)
    metadata = {VERSION_KEY: str(version), ROUTER_KEY: router}
    if sample is not None:
        metadata[SAMPLE_KEY] = repr(sample)
    if always is not None:
        metadata[ALWAYS_KEY] = always
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


MS: Final = 1_000_000
SKEW: Final = 40 * MS
"""The clock of core is ahead by so much."""
VPNS: Final = {"edge": "blue", "core": "yellow", "north": "v", "south": "v"}

Rows = dict[str, list[Row]]


def mesh_rows() -> Rows:
    """The trace rows of one small mesh, by router.

    Edge sends to core over bridge `fares`, and core back over `back`. North sends to south over bridges that
    differ in what happened there, and nothing comes back.
    """
    rows: Rows = {"edge": [], "core": [], "north": [], "south": []}
    for number in range(1, 6):
        _cross(rows, "edge", "core", "fares", number, times=2 if number == 5 else 1)
    for number in range(6, 9):
        _cross(rows, "core", "edge", "back", number)
    # The same message once more, over a second bridge.
    second = next(row for row in rows["core"] if row["event"] == "bridge_receive")
    rows["core"].append({**second, "bridge": "spare", "ts_ns": second["ts_ns"] + MS})
    lost = {**_message(99, "x"), "vpn": "blue", "ts_ns": SECOND, "hops": 0, "origin_ts_ns": SECOND}
    lost |= {"event": "discard", "reason": "no-subscription-match"}
    up = {"bridge": "fares", "peer_router": "core", "peer_vpn": "yellow"}
    client = "#bridge/core/yellow/fares"
    held = {"event": "subscribe", "vpn": "blue", "ts_ns": 0}
    rows["edge"] += [
        {**lost, "client": "pub"},
        {**lost, "client": "pub", "trace_id": None, "message_id": None, "count": 41},
        {**up, "event": "link_up", "vpn": "blue", "ts_ns": 0, "client": client},
        {**held, "client": "c", "topic": "a/+", "topic_syntax": "mqtt"},
        {**held, "client": client, "topic": "a/>", "topic_syntax": "smf"},
    ]
    for number in range(61, 67):
        hole = {**lost, **_message(number, "nobody/wants"), "client": "other"}
        by = {"bridge": "there/in", "peer_router": "mqtt://broker:1883"}
        rows["edge"] += [{**hole, "event": "ingress", "reason": None, **by}, hole]
    kept = {**_message(50), "vpn": "yellow", "mode": "persistent", "endpoint": "q", "partition": 1}
    rows["core"] += [
        {**kept, "event": event, "ts_ns": 2 * SECOND, "hops": 0, "origin_ts_ns": 2 * SECOND - 7}
        for event in ("enqueue", "acknowledge")
    ]
    # An application of one traceparent sends both.
    _seen(rows, "shared", 1_001, [0], [3 * MS], trace_id="f" * 32)
    _seen(rows, "shared", 1_002, [0], [9 * MS], trace_id="f" * 32)
    # The link went down between first arrival and acknowledgement.
    _seen(rows, "again", 1_003, [MS, 60 * MS], [5 * MS, 70 * MS], mode="persistent")
    # South's clock is behind by more than the way takes.
    _seen(rows, "behind", 1_004, [0], [-47 * MS])
    # Each end of these was seen alone.
    _seen(rows, "cut", 1_005, [0], [])
    _seen(rows, "cut", 1_006, [], [MS])
    for number in range(100, 200):
        _seen(rows, "many", 1_000 + number, [0], [number * 10_000])
    # Rows of one message do not stand together in files of two routers.
    rows["south"].reverse()
    # Of a bridge from a router that does not trace only its link is known.
    tail = {"bridge": "tail", "peer_router": "west", "peer_vpn": "v"}
    rows["south"].append({**tail, "event": "link_up", "vpn": "v", "ts_ns": SECOND})
    return rows


def _message(number: int, topic: str = "a/b") -> Row:
    return {
        "trace_id": f"{number:032x}",
        "message_id": number,
        "topic": topic,
        "mode": "direct",
        "size_bytes": 100,
    }


def _cross(rows: Rows, start: str, goal: str, bridge: str, number: int, *, times: int = 1) -> None:
    """One message that takes 3 ms and is delivered so many times."""
    ahead = {"edge": 0, "core": SKEW}
    sent = number * SECOND + ahead[start]
    entered = {**_message(number, "a/b" if start == "edge" else "b/a"), "origin_ts_ns": sent}
    of = {**entered, "origin_router": start, "origin_vpn": VPNS[start], "hops": 1, "bridge": bridge}
    local = {"vpn": VPNS[start], "ts_ns": sent}
    rows[start] += [
        {**entered, **local, "event": "ingress", "client": "pub", "hops": 0},
        {**of, **local, "event": "bridge_send", "client": f"#bridge/{goal}/{VPNS[goal]}/{bridge}"}
        | {"peer_router": goal, "peer_vpn": VPNS[goal]},
    ]
    came = number * SECOND + 3 * MS + ahead[goal]
    of |= {"vpn": VPNS[goal], "path": f"{start}/{VPNS[start]}"}
    rows[goal] += [
        {**of, "event": "bridge_receive", "ts_ns": came, "peer_router": start}
        | {"peer_vpn": VPNS[start]},
        *(
            {**of, "event": "deliver", "ts_ns": came + copy, "client": "sub", "bridge": None}
            for copy in range(times)
        ),
    ]


def _seen(
    rows: Rows, bridge: str, number: int, sent_ns: list[int], came_ns: list[int], **more: Any
) -> None:
    """One message from north to south, sent and come at these times after its first ingress."""
    entered = 1_000 * SECOND + number * MS
    of = {**_message(number, "t"), "origin_ts_ns": entered, "origin_router": "north"}
    of |= {"origin_vpn": "v", "vpn": "v", "peer_vpn": "v", "hops": 1, "bridge": bridge, **more}
    sent = {**of, "event": "bridge_send", "client": "#bridge", "peer_router": "south"}
    came = {**of, "event": "bridge_receive", "peer_router": "north", "path": "north/v"}
    rows["north"] += [{**sent, "ts_ns": entered + at} for at in sent_ns]
    rows["south"] += [{**came, "ts_ns": entered + at} for at in came_ns]
