"""A small mesh, digested: what edge sends to core over bridge `fares`, and core on to far over `onward`."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from vpnrouter.report.digests.digest import Digests, digested
from vpnrouter.report.schema import TRACES
from vpnrouter.report.spark import Quiet

SECOND = 1_000_000_000
MS = 1_000_000
SKEW = 40 * MS
"""The clock of core is ahead by so much."""

Rows = dict[str, list[dict[str, Any]]]


def _message(number: int, topic: str = "a/b") -> dict[str, Any]:
    return {
        "trace_id": f"{number:032x}",
        "message_id": number,
        "topic": topic,
        "mode": "direct",
        "size_bytes": 100,
    }


def _crossing(rows: Rows, number: int, at_ns: int, *, back: bool = False, times: int = 1) -> None:
    """One message from edge/blue to core/yellow, or back; it takes 3 ms."""
    of = _message(number, "b/a" if back else "a/b")
    start, goal = ("core", "edge") if back else ("edge", "core")
    vpns = {"edge": "blue", "core": "yellow"}
    bridge = "back" if back else "fares"
    ahead = {"edge": 0, "core": SKEW}
    sent = at_ns + ahead[start]
    origin = {"origin_ts_ns": sent, "origin_router": start, "origin_vpn": vpns[start]}
    rows[start] += [
        {**of, "event": "ingress", "vpn": vpns[start], "ts_ns": sent, "client": "pub", "hops": 0}
        | {"origin_ts_ns": sent},
        {**of, "event": "bridge_send", "vpn": vpns[start], "ts_ns": sent, "hops": 1, **origin}
        | {"client": f"#bridge/{goal}/{vpns[goal]}/{bridge}", "bridge": bridge}
        | {"peer_router": goal, "peer_vpn": vpns[goal]},
    ]
    came = at_ns + 3 * MS + ahead[goal]
    path = f"{start}/{vpns[start]}"
    rows[goal] += [
        {**of, "event": "bridge_receive", "vpn": vpns[goal], "ts_ns": came, "hops": 1, **origin}
        | {"bridge": bridge, "peer_router": start, "peer_vpn": vpns[start], "path": path},
        *(
            {**of, "event": "deliver", "vpn": vpns[goal], "ts_ns": came + copy, "hops": 1, **origin}
            | {"client": "sub", "path": path}
            for copy in range(times)
        ),
    ]


def _rows() -> Rows:
    rows: Rows = {"edge": [], "core": []}
    for number in range(1, 6):
        _crossing(rows, number, number * SECOND, times=2 if number == 5 else 1)
    for number in range(6, 9):
        _crossing(rows, number, number * SECOND, back=True)
    # The same message once more, over a second bridge.
    second = next(row for row in rows["core"] if row["event"] == "bridge_receive")
    rows["core"].append({**second, "bridge": "spare", "ts_ns": second["ts_ns"] + MS})
    lost = {**_message(99, "x"), "vpn": "blue", "ts_ns": SECOND, "hops": 0, "origin_ts_ns": SECOND}
    rows["edge"] += [
        {**lost, "event": "discard", "reason": "no-subscription-match", "client": "pub"},
        {**lost, "event": "discard", "reason": "no-subscription-match", "client": "pub"}
        | {"trace_id": None, "message_id": None, "count": 41},
        {"event": "link_up", "vpn": "blue", "ts_ns": 0, "client": "#bridge/core/yellow/fares"}
        | {"bridge": "fares", "peer_router": "core", "peer_vpn": "yellow"},
        {"event": "subscribe", "vpn": "blue", "ts_ns": 0, "client": "c", "topic": "a/+"}
        | {"topic_syntax": "mqtt"},
    ]
    kept = {**_message(50), "vpn": "yellow", "mode": "persistent", "endpoint": "q", "partition": 1}
    rows["core"] += [
        {**kept, "event": event, "ts_ns": 2 * SECOND, "hops": 0, "origin_ts_ns": 2 * SECOND - 7}
        for event in ("enqueue", "acknowledge")
    ]
    return rows


@pytest.fixture(scope="session")
def small_mesh_traces(spark: SparkSession) -> DataFrame:
    """The trace rows of the mesh."""
    rows = [
        tuple({"weight": 2.0, **row, "router": router}.get(name) for name in TRACES.names)
        for router, listed in _rows().items()
        for row in listed
    ]
    return spark.createDataFrame(rows, TRACES)


@pytest.fixture(scope="session")
def small_mesh(small_mesh_traces: DataFrame) -> Iterator[Digests]:
    """The mesh, digested."""
    with digested(small_mesh_traces, small_mesh_traces, None, SECOND, 2, Quiet()) as made:
        yield made


@pytest.fixture
def rows_of(small_mesh: Digests) -> Callable[[str], list[dict[str, Any]]]:
    """The rows of a digest by its name."""
    return lambda name: [row.asDict() for row in small_mesh.frames[name].collect()]
