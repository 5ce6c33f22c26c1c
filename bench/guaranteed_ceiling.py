"""Measures how fast the guaranteed generators are: `python -m bench.guaranteed_ceiling`. No broker can be faster.

The other side is `bench.guaranteed_acker`, on the broker's core.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench import guaranteed_mqtt as mqtt
from bench import guaranteed_throughput as throughput
from bench.guaranteed_ends import Consumer
from bench.guaranteed_mosquitto import StoringMosquitto
from bench.guaranteed_products import Running, Store
from bench.machine import cores
from bench.ours import ready_addresses, ready_line
from bench.processes import running
from bench.products import Address, directory


class Acker(StoringMosquitto, Store):
    """The broker that does no work, spoken to like the others that speak MQTT."""

    syncs = "nothing"

    @override
    @contextlib.contextmanager
    def start(self, folder: Path, core: int | None) -> Iterator[Running]:
        log = folder / "log"
        command = [sys.executable, "-m", "bench.guaranteed_acker"]
        begin = time.perf_counter()
        with running(command, core=core, log=log) as process:
            address = ready_addresses(ready_line(process, log))["mqtt"]
            yield Running(address, address, [process.pid], time.perf_counter() - begin)

    @override
    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        return mqtt.consumer(at, f"bench-consumer-{number}", "all")


def main() -> None:
    """Prints the ceilings with one and with eight consumers."""
    pinned = cores()
    core = pinned[0] if pinned else None
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    gc.disable()
    store = Acker()
    for consumers in (1, 8):
        with directory("acker") as folder, store.start(folder, core) as site:
            row = throughput.run(store, site, core, 3.0, consumers)
        print(
            f"8 publishers, {consumers} consumers: {row['rate']:,.0f} messages/s, "
            f"generator busy {row['generator_busy']:.2f}, acker busy {row['broker_busy']:.2f}, "
            f"others on its core {row['others_busy']:.2f}, faults {row['faults']}"
        )


if __name__ == "__main__":
    main()
