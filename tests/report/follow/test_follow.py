"""A report that is followed, from files that come in while it runs: the command, with a Spark of its own."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark

PATIENCE_S = 240.0
_PROGRAM = "from vpnrouter.cli.app import main; main()"
_OPTIONS = ("--follow", "--every=0.5", "--late=1", "--json", "--output")


class Following:
    """`vpnrouter report --follow` of `traces`, and the summaries that it prints."""

    def __init__(self, traces: Path, output: Path) -> None:
        self.summaries: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._errors = output.with_suffix(".err")
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, "report", str(traces), *_OPTIONS, str(output)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.summaries.append(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def last(self) -> dict[str, Any]:
        """The newest summary."""
        return self.summaries[-1]

    def wait_for(self, bridged: int, least: int, output: Path) -> None:
        """Until the report tells of so many crossings, and of the delays of at least so many."""

        def told() -> bool:
            return bool(self.summaries) and (
                self.last["bridged"] == bridged and _samples(output) >= least
            )

        with self._changed:
            while not told():
                assert self._reader.is_alive(), self.errors()
                assert self._changed.wait(PATIENCE_S), (self.summaries[-1:], self.errors())

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        try:
            return self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def errors(self) -> str:
        """What it said on stderr."""
        return self._errors.read_text(encoding="utf-8")


def _write(tracefiles: ModuleType, root: Path, numbers: range, part: int) -> None:
    edge: list[Any] = []
    core: list[Any] = []
    for number in numbers:
        sent, came = tracefiles.crossing(number, sent_ns=1_000, received_ns=2_000_000)
        edge += sent
        core += came
    tracefiles.write(root, "edge", edge, part=part, sample=1.0)
    tracefiles.write(root, "core", core, part=part, sample=1.0)


def _samples(output: Path) -> int:
    edges = pq.read_table(output / "tables" / "edges.parquet").to_pylist()
    return sum(row["latency_samples"] for row in edges)


def test_a_followed_report(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Files that come in are in the report, each once, over a restart as well. A damaged one is named, and
    one of a newer format ends it in one line.
    """
    traces, output = tmp_path / "traces", tmp_path / "out"
    _write(tracefiles, traces, range(1, 21), 0)
    following = Following(traces, output)
    try:
        following.wait_for(20, 0, output)
        _write(tracefiles, traces, range(101, 111), 1)
        bad = traces / "date=2013-06-12" / "router=edge" / "part-9.parquet"
        bad.write_bytes(b"PAR1 this is none PAR1")
        # What entered first is done with when later messages have moved the watermark past it.
        following.wait_for(30, 20, output)
        assert following.last["set_aside"][0]["path"].endswith("part-9.parquet")
        assert (output / "report.html").exists()
    finally:
        code = following.stop()
    assert code == 0, following.errors()
    again = Following(traces, output)
    try:
        _write(tracefiles, traces, range(201, 206), 2)
        again.wait_for(35, 30, output)
        assert _samples(output) <= 35, "each is counted once"
        row = tracefiles.row("ingress", 0, "blue", client="c")
        tracefiles.write(traces, "edge", [row], part=7, version=99)
    finally:
        code = again.ended()
    assert code == 1
    told = [line for line in again.errors().splitlines() if line.startswith("vpnrouter:")]
    assert len(told) == 1
    assert "newer" in told[0]
