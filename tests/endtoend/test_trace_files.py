"""Trace files of a router process that is stopped, killed and started again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TEXT = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]
trace: {directory: ./traces, sample: 1.0, rotation: {max_seconds: SECONDS}}
msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}
"""


def text(seconds: int) -> str:
    """A configuration; a file is complete after so many seconds."""
    return TEXT.replace("SECONDS", str(seconds))


def files(folder: Path) -> list[Path]:
    """Complete files, oldest first."""
    found = folder.glob("traces/date=*/router=edge/part-*.parquet")
    return sorted(found, key=lambda path: [int(part) for part in path.stem.split("-")[1:]])


def topics(folder: Path) -> list[str]:
    """Topics of what was published, from all complete files."""
    found: list[str] = []
    for path in files(folder):
        rows = pq.ParquetFile(path).read(columns=["ts_ns", "event", "topic"]).to_pylist()
        found += [row["topic"] for row in rows if row["event"] == "ingress"]
    return found


def test_trace_files_survive_stops_and_kills(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    patiently: Callable[..., None],
    tmp_path: Path,
) -> None:
    """A clean stop writes everything; a kill loses the open file alone; nothing is overwritten."""
    first = start(text(60))
    paho(first.port("mqtt")).publish("a/1")
    assert first.stop() == 0
    assert topics(tmp_path) == ["a/1"]

    second = start(text(1))
    client = paho(second.port("mqtt"))
    client.publish("a/2")
    patiently(lambda: topics(tmp_path) == ["a/1", "a/2"], "a/2 in a complete file")
    client.publish("a/3")
    patiently(lambda: any(tmp_path.glob("traces/**/.part-*")) or len(files(tmp_path)) > 2, "a/3")
    second.kill()
    before = {path: path.read_bytes() for path in files(tmp_path)}
    assert topics(tmp_path)[:2] == ["a/1", "a/2"]
    for path in before:
        pq.ParquetFile(path).read()

    third = start(text(60))
    paho(third.port("mqtt")).publish("a/4")
    assert third.stop() == 0
    assert topics(tmp_path)[:2] == ["a/1", "a/2"]
    assert topics(tmp_path)[-1] == "a/4"
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob("traces/**/.part-*"))
    assert len(files(tmp_path)) > len(before) >= 2
