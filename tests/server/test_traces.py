"""Trace files of a running router."""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio

from vpnrouter.config.trace import Trace
from vpnrouter.errors import OperationError
from vpnrouter.server import traces
from vpnrouter.trace.writer import Writer


def rows(directory: Path) -> list[dict[str, Any]]:
    """The rows of all trace files, in the order of their times."""
    found: list[dict[str, Any]] = []
    for path in sorted(directory.glob("date=*/router=here/part-*.parquet")):
        found += pq.ParquetFile(path).read().to_pylist()
    return sorted(found, key=lambda row: row["ts_ns"])


async def test_what_was_recorded_is_there_after_the_stop(
    running: Any, client_of: Any, tmp_path: Path
) -> None:
    """A router that stops hands over what it recorded to the last event, in complete files alone."""
    text = f"""
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace: {{directory: {tmp_path}/traces, sample: 1.0}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""
    async with running(text) as node:
        client = await client_of(node)
        await client.connect("c")
        await client.subscribe("a/#")
        for number in range(10):
            await client.publish(f"a/{number}", bytes(number))
        for number in range(10):
            assert await client.payload() == bytes(number)
    events = rows(tmp_path / "traces")
    assert [row["topic"] for row in events if row["event"] == "ingress"] == [
        f"a/{number}" for number in range(10)
    ]
    assert [row["size_bytes"] for row in events if row["event"] == "deliver"] == list(range(10))
    assert {row["client"] for row in events} == {"c"}
    assert "subscribe" in {row["event"] for row in events}
    assert not list((tmp_path / "traces").rglob(".*"))


@pytest.mark.slow
async def test_files_appear_while_the_router_runs(
    running: Any, client_of: Any, tmp_path: Path
) -> None:
    """With a rotation of one second a file is complete soon after, without a stop."""
    text = f"""
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace: {{directory: {tmp_path}/traces, sample: 1.0, rotation: {{max_seconds: 1}}}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""
    async with running(text) as node:
        client = await client_of(node)
        await client.connect("c")
        await client.publish("a", b"x")
        with trio.fail_after(20):
            while not rows(tmp_path / "traces"):  # noqa: ASYNC110 - a file tells nobody
                await trio.sleep(0.1)


def old_file(directory: Path, router: str = "here") -> Path:
    """A file that an earlier process of a router completed in 2001."""
    path = directory / "date=2001-09-09" / f"router={router}" / "part-1000000000000000000-1.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    os.utime(path, (10**9, 10**9))
    return path


async def test_the_configuration_rules_rotation_and_retention(
    running: Any, client_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes, rows and seconds of a file reach the writer; old files of this router alone go away."""
    given: dict[str, Any] = {}

    class Watched(Writer):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            given.update(options)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(traces, "Writer", Watched)
    mine, other = old_file(tmp_path / "traces"), old_file(tmp_path / "traces", "other")
    text = f"""
listeners: [{{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}]
trace:
  directory: {tmp_path}/traces
  sample: 1.0
  rotation: {{max_bytes: 2000000, max_rows: 5000, max_seconds: 7}}
  retention: {{max_days: 30, max_bytes: 100000000}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""
    async with running(text) as node:
        client = await client_of(node)
        await client.connect("c")
        await client.subscribe("a")
    assert (given["file_bytes"], given["file_rows"]) == (2_000_000, 5_000)
    assert given["flush_ns"] == 7 * 10**9
    assert (mine.exists(), mine.parent.exists(), other.exists()) == (False, False, True)
    assert rows(tmp_path / "traces")


def test_what_is_missing_is_told_before_the_router_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a router that is to send spans needs the SDK."""
    traces.check_traces(None)
    traces.check_traces(Trace(directory="t"))
    wanted = {"directory": "t", "otlp": {"enabled": True}}
    traces.check_traces(Trace.model_validate(wanted))
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    traces.check_traces(Trace(directory="t"))
    traces.check_traces(Trace.model_validate({**wanted, "enabled": False}))
    with pytest.raises(OperationError, match=r"install '\.\[otel\]'"):
        traces.check_traces(Trace.model_validate(wanted))
