"""Finds the window that keeps every broker's pipe full: `python -m bench.sweep [ours,mosquitto,nats]`.

Prints the rate at each window size, for each shape; the sizes in `bench.throughput` were chosen so.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import replace

from bench import throughput
from bench.machine import cores
from bench.mosquitto import Mosquitto
from bench.nats import NatsServer
from bench.ours import Vpnrouter
from bench.products import Product

WINDOWS = (64_000, 128_000, 256_000, 512_000, 1_000_000, 2_000_000, 3_500_000)
"""Bytes per subscriber; below the 4 MiB that our router keeps for a slow one by default."""


def main() -> None:
    """Prints one line per shape, broker and window."""
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else ["ours", "mosquitto", "nats"]
    every: list[Product] = [Vpnrouter(), Mosquitto(), NatsServer()]
    products = [product for product in every if product.name in names and not product.missing()]
    pinned = cores()
    if pinned is not None:
        os.sched_setaffinity(0, {pinned[1]})
    gc.disable()
    for shape in throughput.SHAPES:
        for product in products:
            for window in WINDOWS:
                with product.single(pinned[0] if pinned else None) as site:
                    run = throughput.run(site, replace(shape, window_bytes=window), 1.5)
                print(
                    f"{shape.name:10} {product.name:10} {window:>9,} B: {run.rate / 1e6:8.3f} M/s, "
                    f"broker busy {run.broker_busy:.2f}, others {run.others_busy:.2f} "
                    f"{'; '.join(run.faults)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
