"""Trace files that a router process ships to an S3 server: stopped, killed, cut off, and without rights."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from vpnrouter.testing.s3_server import MISSING, S3Server, StoreGate, find_server

KEY, SECRET = "AKIA-of-the-test", "s3cr3t-of-the-test"

TEXT = """
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: http, bind: "127.0.0.1:0"}}
trace:
  directory: ./traces
  sample: 1.0
  rotation: {{max_rows: 1, max_seconds: 1}}
  upload:
    url: s3://bucket/mesh
    endpoint: {url}
    region: us-east-1
    access_key: {key}
    secret_key: {secret}
    timeout_s: {timeout}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""


@pytest.fixture
def s3() -> Iterator[S3Server]:
    """An S3 server with a bucket."""
    program = find_server(Path(__file__).resolve().parents[2])
    if program is None:
        pytest.skip(MISSING)
    with S3Server(program) as server:
        server.make_bucket("bucket")
        yield server


@pytest.fixture
def gate(s3: S3Server) -> Iterator[StoreGate]:
    """A gate before the server."""
    made = StoreGate(s3.port)
    yield made
    made.end()


def text(gate: StoreGate, timeout: int = 2) -> str:
    """A configuration that uploads."""
    return TEXT.format(url=gate.url, key=KEY, secret=SECRET, timeout=timeout)


def local(folder: Path) -> dict[str, int]:
    """Sizes of the complete files, by their paths below the directory."""
    root = folder / "traces"
    return {
        path.relative_to(root).as_posix(): path.stat().st_size
        for path in root.glob("date=*/router=edge/part-*.parquet")
    }


def metric(router: Any, name: str) -> float:
    """The sum of all samples of a metric, 0 for none."""
    page = httpx.get(f"http://127.0.0.1:{router.port('http')}/metrics").text
    found = re.findall(rf"^vpnrouter_trace_{name}\{{[^}}]*\}} (\S+)", page, re.MULTILINE)
    return sum(map(float, found))


def writer_of(router: Any) -> int:
    """The process that writes traces."""
    children = Path(f"/proc/{router.process.pid}/task").glob("*/children")
    found = [int(pid) for each in children for pid in each.read_text(encoding="ascii").split()]
    (pid,) = [pid for pid in found if b"trace_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


def test_files_arrive_and_a_kill_loses_none(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    patiently: Callable[..., None],
    gate: StoreGate,
    s3: S3Server,
    tmp_path: Path,
) -> None:
    """A store that refuses is told and shown; after a kill of router and writer the next start uploads the rest, each
    file once; no secret is in a log, a figure or a state.
    """
    first = start(text(gate))
    client = paho(first.port("mqtt"))
    client.publish("a/1")
    patiently(lambda: len(s3.files("bucket/mesh")) >= 1, "the first file")
    patiently(lambda: metric(first, "uploaded_files_total") >= 1, "its figure")

    gate.status = 403
    client.publish("a/2")
    first.says("SYSTEM_TRACE_UPLOAD_DOWN")
    patiently(lambda: metric(first, "upload_failures_total") >= 1, "a failure")
    assert metric(first, "upload_pending_files") >= 1
    assert metric(first, "upload_pending_bytes") > 0
    client.publish("a/3")
    writer = writer_of(first)
    os.kill(writer, signal.SIGKILL)
    first.kill()
    before = s3.files("bucket/mesh")
    assert set(before) < set(local(tmp_path))

    gate.status = 0
    asked = len(gate.asked)
    second = start(text(gate))
    patiently(lambda: s3.files("bucket/mesh") == local(tmp_path), "all files")
    assert not any(Path(path).name in " ".join(gate.asked[asked:]) for path in before)
    patiently(lambda: metric(second, "upload_pending_files") == 0, "nothing waits")
    assert second.stop() == 0
    assert s3.files("bucket/mesh") == local(tmp_path)
    for path in s3.files("bucket/mesh"):
        with s3.filesystem().open_input_file(f"bucket/mesh/{path}") as file:
            assert pq.ParquetFile(file).read().num_rows >= 1
    said = "".join(first.err + second.err + first.out + second.out)
    states = "".join(path.read_text() for path in (tmp_path / "traces").glob(".upload-*"))
    for secret in (KEY, SECRET):
        assert secret not in said + states


def test_a_kill_in_the_middle_of_an_upload(
    start: Callable[..., Any],
    patiently: Callable[..., None],
    gate: StoreGate,
    s3: S3Server,
    tmp_path: Path,
) -> None:
    """Readers see nothing of the half that was sent; the next start sends the whole file."""
    folder = tmp_path / "traces" / "date=2024-10-10" / "router=edge"
    folder.mkdir(parents=True)
    (folder / "part-1728518400000000000-1.parquet").write_bytes(bytes(range(256)) * 90_000)
    gate.hangs, gate.refused = True, "partNumber=2"
    first = start(text(gate, timeout=300))
    assert gate.hanging.wait(60)
    os.kill(writer_of(first), signal.SIGKILL)
    first.kill()
    assert s3.files("bucket/mesh") == {}
    gate.hangs = False
    second = start(text(gate))
    patiently(lambda: s3.files("bucket/mesh") == local(tmp_path), "the whole file")
    assert second.stop() == 0


def test_a_store_that_hangs_delays_nothing(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    patiently: Callable[..., None],
    gate: StoreGate,
    tmp_path: Path,
) -> None:
    """Files are written on, the end takes seconds, and what was not uploaded is at the next start."""
    gate.hangs = True
    first = start(text(gate, timeout=300))
    client = paho(first.port("mqtt"))
    client.publish("a/1")
    assert gate.hanging.wait(60)
    known = len(local(tmp_path))
    client.publish("a/2")
    patiently(lambda: len(local(tmp_path)) > known, "another file")
    writer, began = writer_of(first), time.monotonic()
    assert first.stop() == 0
    assert time.monotonic() - began < 15
    assert not Path(f"/proc/{writer}").exists()


def test_a_store_that_comes_back(
    start: Callable[..., Any],
    paho: Callable[..., Any],
    patiently: Callable[..., None],
    gate: StoreGate,
    s3: S3Server,
    tmp_path: Path,
) -> None:
    """While it throttles, files wait; then all are uploaded, and both ends of the trouble are events."""
    gate.status = 503
    router = start(text(gate))
    client = paho(router.port("mqtt"))
    client.publish("a/1")
    router.says("SYSTEM_TRACE_UPLOAD_DOWN")
    gate.status = 0
    router.says("SYSTEM_TRACE_UPLOAD_UP")
    patiently(lambda: s3.files("bucket/mesh") == local(tmp_path), "all files")
    assert len(router.told("SYSTEM_TRACE_UPLOAD_DOWN")) == 1
