"""Measures how long a report takes: `python -m bench.report`.

Traces of a simulated mesh, read and grouped once by plain Spark, then reported on in full, each in a process of its
own. The same with ten times as many rows says how it grows. Memory is that of all processes of the report together.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from bench.machine import resident_bytes
from bench.processes import family
from vpnrouter.simulation.simulate import Options, simulate

_PLAIN: Final = """
import sys, time
from vpnrouter.report.engine.session import spark_session
with spark_session() as spark:
    frame = spark.read.parquet(sys.argv[1])
    for _ in range(2):
        begun = time.monotonic()
        frame.groupBy("router", "vpn", "event").count().collect()
        print(time.monotonic() - begun)
"""


def main() -> None:
    """Print a line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000_000, 100_000_000])
    parser.add_argument("--vpns", type=int, default=1_000)
    parser.add_argument("--folder", type=Path, help="where the traces go, and stay")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vpnrouter-report-") as scratch:
        for rows in given.rows:
            place = (given.folder or Path(scratch)) / str(rows)
            traces = place / "traces"
            if not traces.exists():
                simulate(Options(vpns=given.vpns, rows=rows, configs=False), place)
            first, second = _plain(traces)
            seconds, memory = _report(traces, place / "report")
            print(
                f"{rows:,} rows: report {seconds:.1f} s, {rows / seconds:,.0f} rows/s, "
                f"{memory / (1 << 20):,.0f} MiB; read and grouped in {first:.1f} s, again in "
                f"{second:.1f} s: 1/{seconds / first:.1f} and 1/{seconds / second:.1f} of its rate",
                flush=True,
            )


def _plain(traces: Path) -> tuple[float, float]:
    """Seconds that plain Spark takes for one grouping of the same files, cold and warm."""
    program = [sys.executable, "-c", _PLAIN, str(traces)]
    out = subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()
    return float(out[0]), float(out[1])


def _report(traces: Path, output: Path) -> tuple[float, int]:
    """Seconds of the whole command, and the most memory that its processes had together, bytes."""
    command = "from vpnrouter.cli.app import main; main()"
    program = [sys.executable, "-c", command, "report", str(traces), "--output", str(output)]
    begun = time.monotonic()
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        most = [0]
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.5):
                with contextlib.suppress(OSError):
                    most[0] = max(most[0], resident_bytes(family(process.pid)))

        watcher = threading.Thread(target=look)
        watcher.start()
        code = process.wait()
        done.set()
        watcher.join()
    if code:
        raise SystemExit(f"the report ended with exit code {code}")
    return time.monotonic() - begun, most[0]


if __name__ == "__main__":
    main()
