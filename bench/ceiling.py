"""Measures how fast the generator itself is: `python -m bench.ceiling`. No broker's figure can be higher.

The other side only hands bytes on (`bench.forwarder`), on the broker's core.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import IS_COMPILED, throughput
from bench.dialects import MQTT
from bench.machine import cores
from bench.ours import ready_addresses, ready_line
from bench.processes import running
from bench.products import Site


@contextlib.contextmanager
def forwarder(core: int | None) -> Iterator[Site]:
    """The broker that does no work, as a site."""
    with tempfile.TemporaryDirectory(prefix="bench-forwarder-") as folder:
        log = Path(folder) / "log"
        begin = time.perf_counter()
        with running([sys.executable, "-m", "bench.forwarder"], core=core, log=log) as process:
            address = ready_addresses(ready_line(process, log))["mqtt"]
            yield Site(MQTT, address, address, [process.pid], core, [time.perf_counter() - begin])


def main() -> None:
    """Prints the ceilings of the shapes in which everybody gets everything."""
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    gc.disable()
    print(f"generator compiled: {IS_COMPILED}")
    for shape in (throughput.ONE_TO_ONE, throughput.FANOUT):
        with forwarder(pinned[0] if pinned else None) as site:
            run = throughput.run(site, shape, 3.0)
        print(
            f"{shape.name}: {run.rate / 1e6:.1f} M frames/s, "
            f"generator busy {run.generator_busy:.2f}, "
            f"forwarder busy {run.broker_busy:.2f}, others on its core {run.others_busy:.2f} "
            f"{'; '.join(run.faults)}"
        )


if __name__ == "__main__":
    main()
