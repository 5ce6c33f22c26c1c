"""Trace files of a running router."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio


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
