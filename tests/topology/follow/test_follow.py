"""A report that is followed, from files that come in while it runs."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from vpnrouter.errors import OperationError
from vpnrouter.topology import report
from vpnrouter.topology.engine.progress import Quiet
from vpnrouter.topology.follow.follow import Follower, Pace
from vpnrouter.topology.report import Asked
from vpnrouter.topology.summary import Summary

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def _one_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has one Spark session: that of the tests."""

    @contextmanager
    def shared(*_: Any, **__: Any) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(report, "spark_session", shared)


class Running:
    """A follower in a thread."""

    def __init__(self, asked: Asked) -> None:
        self.summaries: list[Summary] = []
        self.failure: OperationError | None = None
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._follower = Follower(asked, Pace(every_s=0.5, late_s=1), Quiet(), self._heard)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _heard(self, summary: Summary) -> None:
        with self._changed:
            self.summaries.append(summary)
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._follower.run(self._stop.is_set)
        except OperationError as error:
            self.failure = error
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, what: Callable[[], Any]) -> Any:
        """What `what` gives as soon as it is true; looks after each report."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while not (found := what()):
                left = deadline - time.monotonic()
                assert left > 0, self.summaries[-1:]
                assert self.failure is None
                self._changed.wait(left)
        return found

    def stop(self) -> None:
        """Stop it and wait."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def _write(tracefiles: ModuleType, root: Path, numbers: range, part: int) -> None:
    edge: list[Any] = []
    core: list[Any] = []
    for number in numbers:
        sent, came = tracefiles.crossing(number, sent_ns=1_000, received_ns=2_000_000)
        edge += sent
        core += came
    tracefiles.write(root, "edge", edge, part=part, sample=1.0)
    tracefiles.write(root, "core", core, part=part, sample=1.0)


def _counts(output: Path) -> tuple[int, int]:
    edges = pq.read_table(output / "tables" / "edges.parquet").to_pylist()
    return sum(row["messages"] for row in edges), sum(row["latency_samples"] for row in edges)


def test_a_followed_report(tracefiles: ModuleType, tmp_path: Path) -> None:
    """Files that come in are in the report, each once, over a restart as well; a damaged one is named."""
    traces, output = tmp_path / "traces", tmp_path / "out"
    _write(tracefiles, traces, range(1, 21), 0)
    asked = Asked(traces=[traces], output=output)
    running = Running(asked)
    try:
        running.wait_for(lambda: running.summaries and running.summaries[-1].bridged == 20)
        _write(tracefiles, traces, range(101, 111), 1)
        bad = traces / "date=2013-06-12" / "router=edge" / "part-9.parquet"
        bad.write_bytes(b"PAR1 this is none PAR1")
        # What entered first is done with when later messages have moved the watermark past it.
        running.wait_for(lambda: _counts(output) >= (30, 20))
        running.wait_for(lambda: running.summaries[-1].set_aside)
        assert running.summaries[-1].set_aside[0]["path"].endswith("part-9.parquet")
        assert (output / "report.html").exists()
    finally:
        running.stop()
    again = Running(asked)
    try:
        _write(tracefiles, traces, range(201, 206), 2)
        again.wait_for(
            lambda: (
                again.summaries
                and again.summaries[-1].bridged == 35
                and _counts(output) == (35, 30)
            )
        )
    finally:
        again.stop()


def test_a_newer_format_ends_it(tracefiles: ModuleType, tmp_path: Path) -> None:
    """A file of a newer format that comes in is refused as in any report, in one line."""
    traces = tmp_path / "traces"
    _write(tracefiles, traces, range(1, 3), 0)
    running = Running(Asked(traces=[traces], output=tmp_path / "out"))
    try:
        running.wait_for(lambda: running.summaries)
        row = tracefiles.row("ingress", 0, "blue", client="c")
        tracefiles.write(traces, "edge", [row], part=7, version=99)
        with pytest.raises(AssertionError):
            running.wait_for(lambda: False)
    finally:
        running.stop()
    assert running.failure is not None
    assert "newer" in str(running.failure)
    assert "\n" not in str(running.failure)
