"""Measures what tracing costs: `python -m bench.trace`.

Measured in processor time: the recorder and sampler as they are and as compiled by mypyc in a
temporary directory, the writer with files on a real disk, and the making of spans for a collector
(where the OpenTelemetry SDK is installed; without the network). The sum of recorder and writer bounds
what the router's thread loses: the writer holds the interpreter lock for a part of its time only. Spans
are made in a thread that stops at `SHARE` of a core.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.trace_load import draw_only, fill, gaps, rounds
from vpnrouter.trace import events
from vpnrouter.trace import recorder as recorder_module
from vpnrouter.trace.recorder import Context, Recorder
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.writer import Writer

ROUNDS = 7
"""Repetitions; the median is reported."""

MESSAGES = 200_000
SPAN_MESSAGES = 20_000
TARGETS = ((100_000, "1 % of 5,000,000 msg/s", 0.05), (200_000, "100 % of 100,000 msg/s", 0.15))
"""Events a second (two a message), what they stand for, and the part of a core they may cost."""

_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup
modules = ["vpnrouter/trace/recorder.py", "vpnrouter/trace/sampler.py", "bench/trace_load.py"]
setup(name="bench", packages=[], ext_modules=mypycify(["--strict", *modules], opt_level="3"))
"""


def contexts() -> tuple[list[Context], list[Context], list[bytes]]:
    """A hundred publishers, a hundred subscribers, a thousand topics; every nullable column has values."""
    publishers = [
        Context(
            events.INGRESS,
            "blue",
            client=f"publisher-{n}",
            parent_span_id=f"{n:016x}" if n % 10 == 0 else "",
        )
        for n in range(100)
    ]
    subscribers = [
        Context(
            events.ENQUEUE if n % 10 == 0 else events.DELIVER,
            "blue",
            client=f"subscriber-{n}",
            endpoint="queue" if n % 10 == 0 else "",
            partition=n // 10 if n % 10 == 0 else -1,
        )
        for n in range(100)
    ]
    return publishers, subscribers, [b"bench/site-%d/sensor-%d" % (n % 10, n) for n in range(1000)]


def recorder_costs() -> dict[str, float]:
    """Nanoseconds of processor time of each step in the router's thread."""
    publishers, subscribers, topics = contexts()
    record, empty, gap = [], [], []
    sampler = Sampler(0.01, 42)
    for _ in range(ROUNDS):
        recorder = Recorder(max_blocks=100)
        began = time.thread_time_ns()
        fill(recorder, publishers, subscribers, topics, 0, MESSAGES, 0x1122334455667788)
        filled = time.thread_time_ns()
        draw_only(publishers, subscribers, topics, 0, MESSAGES)
        around = time.thread_time_ns() - filled
        record.append((filled - began - around) / (2 * MESSAGES))
        began = time.thread_time_ns()
        rounds(recorder, MESSAGES)
        empty.append((time.thread_time_ns() - began) / MESSAGES)
        began = time.thread_time_ns()
        gaps(sampler, MESSAGES)
        gap.append((time.thread_time_ns() - began) / MESSAGES)
    return {
        "compiled": float(not str(recorder_module.__file__).endswith(".py")),
        "record_ns": statistics.median(record),
        "empty_round_ns": statistics.median(empty),
        "sample_ns": statistics.median(gap),
    }


def compiled_costs() -> dict[str, float] | None:
    """`recorder_costs` of a compiled copy; None when it cannot be compiled here."""
    source = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory(prefix="bench-trace-") as scratch:
        copy = Path(scratch)
        shutil.copytree(source / "vpnrouter" / "trace", copy / "vpnrouter" / "trace")
        for name in ("vpnrouter/__init__.py", "vpnrouter/limits.py"):
            shutil.copy(source / name, copy / name)
        (copy / "bench").mkdir()
        (copy / "bench" / "__init__.py").touch()
        for name in ("trace.py", "trace_load.py"):
            shutil.copy(source / "bench" / name, copy / "bench" / name)
        (copy / "setup.py").write_text(_SETUP, encoding="utf-8")
        for command in (
            ["setup.py", "-q", "build_ext", "--inplace"],
            ["-m", "bench.trace", "--here"],
        ):
            run = subprocess.run(
                [sys.executable, *command], cwd=copy, capture_output=True, text=True, check=False
            )
            if run.returncode != 0:
                print(run.stdout[-2000:], run.stderr[-2000:], sep="\n", file=sys.stderr)
                return None
        costs: dict[str, float] = json.loads(run.stdout)
        return costs


def writer_costs() -> dict[str, float]:
    """Processor time and bytes of an event in the writer's thread."""
    publishers, subscribers, topics = contexts()
    thread, process, wall = [], [], []
    with tempfile.TemporaryDirectory(prefix="bench-trace-") as directory:
        recorder = Recorder(max_blocks=100)
        writer = Writer(directory, "bench", recorder)
        for number in range(ROUNDS + 1):
            fill(recorder, publishers, subscribers, topics, number * MESSAGES, MESSAGES, 1 << 63)
            recorder.cut()
            began = time.thread_time_ns(), time.process_time_ns(), time.perf_counter_ns()
            writer.stop(0)
            if number > 0:  # the first imports numpy and pyarrow
                thread.append((time.thread_time_ns() - began[0]) / (2 * MESSAGES))
                process.append((time.process_time_ns() - began[1]) / (2 * MESSAGES))
                wall.append((time.perf_counter_ns() - began[2]) / (2 * MESSAGES))
        status = writer.status()
        if status.dropped:
            raise SystemExit(f"trace events were dropped: {status.dropped} {status.last_error}")
        return {
            "thread_ns": statistics.median(thread),
            "process_ns": statistics.median(process),
            "rows_per_s": 1e9 / statistics.median(wall),
            "bytes_per_row": status.size_bytes / status.written,
        }


def span_costs() -> dict[str, float] | None:
    """Processor time of a span: from trace rows to the bytes of a request; None without the SDK."""
    try:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    except ImportError:
        return None
    from vpnrouter.server.otlp import CHUNK_ROWS, SpanFactory, plain_columns
    from vpnrouter.trace.parquet import table
    from vpnrouter.trace.spans import COLUMNS, SpanMaker

    publishers, subscribers, topics = contexts()
    making, sending, counts = [], [], []
    for number in range(3):
        recorder = Recorder(max_blocks=100)
        fill(recorder, publishers, subscribers, topics, 0, SPAN_MESSAGES, 1 << 63)
        recorder.cut()
        maker, factory = SpanMaker("bench"), SpanFactory("bench", "0")
        began = time.thread_time_ns()
        spans = []
        for block in recorder.take():
            rows = table(block, "bench")
            columns = [plain_columns(rows.column(name)) for name in COLUMNS]
            for at in range(0, rows.num_rows, CHUNK_ROWS):
                values = [column.slice(at, CHUNK_ROWS).to_pylist() for column in columns]
                spans += maker.take(
                    dict(zip(COLUMNS, row, strict=True)) for row in zip(*values, strict=True)
                )
        spans += maker.flush()
        made = time.thread_time_ns()
        for at in range(0, len(spans), 512):
            batch = [factory.span(span) for span in spans[at : at + 512]]
            encode_spans(batch).SerializePartialToString()
        ended = time.thread_time_ns()
        if number > 0:
            making.append((made - began) / len(spans))
            sending.append((ended - made) / len(spans))
            counts.append(len(spans))
    making_ns, sending_ns = statistics.median(making), statistics.median(sending)
    return {
        "making_ns": making_ns,
        "sending_ns": sending_ns,
        "spans_per_core_second": 1e9 / (making_ns + sending_ns),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="only this build's recorder, as JSON")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(recorder_costs()))
        return
    pure = recorder_costs()
    compiled = compiled_costs()
    writer = writer_costs()
    spans = span_costs()
    if arguments.json:
        figures = {"pure": pure, "compiled": compiled, "writer": writer, "spans": spans}
        print(json.dumps(figures, indent=2))
        return
    for name, costs in (("this build", pure), ("compiled copy", compiled)):
        if costs is not None:
            print(
                f"{name:14} record {costs['record_ns']:6.1f} ns   round without events "
                f"{costs['empty_round_ns']:5.1f} ns   sampler {costs['sample_ns']:5.1f} ns"
            )
    print(
        f"writer         {writer['thread_ns']:.1f} ns processor time per event "
        f"({writer['process_ns']:.1f} with all threads), {writer['rows_per_s']:,.0f} rows/s, "
        f"{writer['bytes_per_row']:.1f} bytes/row"
    )
    record = (compiled or pure)["record_ns"] + (compiled or pure)["sample_ns"] / 2
    for rate, meaning, target in TARGETS:
        total = rate * (record + writer["thread_ns"]) / 1e9
        print(
            f"{meaning}: {rate:,} events/s cost {total:.1%} of a core in both threads "
            f"(at most {target:.0%}), {rate * record / 1e9:.1%} in the router's"
        )
    if spans is not None:
        from vpnrouter.server.otlp import SHARE

        print(
            f"spans          {spans['making_ns'] / 1e3:.1f} µs to make, "
            f"{spans['sending_ns'] / 1e3:.1f} µs to encode: "
            f"{spans['spans_per_core_second']:,.0f} spans/s of a whole core, "
            f"{SHARE * spans['spans_per_core_second']:,.0f} at {SHARE:.0%}"
        )


if __name__ == "__main__":
    main()
