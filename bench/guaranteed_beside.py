"""Measures Direct throughput beside a saturated guaranteed flow, as a share of Direct alone.

`python -m bench.guaranteed_beside NAME HOST PORT` is the guaranteed flow: a process of its own, on
the generator's core, that runs until it is told to stop by the end of its input.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time

from bench import throughput
from bench.dialects import MQTT, NATS
from bench.guaranteed_products import Running, Store
from bench.guaranteed_stores import by_name
from bench.guaranteed_throughput import PUBLISHERS, flow
from bench.products import Site
from bench.scenarios import Row

_LEAD_SECONDS = 1.0
"""How long the guaranteed flow runs before Direct messages join in."""


def run(store: Store, running: Running, core: int | None, seconds: float) -> Row:
    """Direct alone, then beside, on the same broker."""
    store.prepare(running.publish_to, 1)
    dialect = NATS if store.name == "nats" else MQTT
    site = Site(dialect, running.publish_to, running.consume_at, running.pids, core)
    alone = throughput.run(site, throughput.ONE_TO_ONE, seconds)
    host, port = running.publish_to
    command = [sys.executable, "-m", "bench.guaranteed_beside", store.name, host, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
        try:
            time.sleep(_LEAD_SECONDS)
            beside = throughput.run(site, throughput.ONE_TO_ONE, seconds)
            answer, _ = load.communicate(timeout=60)
        finally:
            load.kill()
    if not answer:
        raise RuntimeError("the guaranteed flow has failed")
    told = json.loads(answer)
    faults = [f"alone: {text}" for text in alone.faults]
    faults += [f"beside: {text}" for text in beside.faults]
    faults += [f"guaranteed: {text}" for text in told["faults"]]
    return {
        "share": beside.rate / alone.rate if alone.rate else 0.0,
        "alone_rate": alone.rate,
        "beside_rate": beside.rate,
        "guaranteed_rate": told["rate"],
        "generator_busy": beside.generator_busy + told["busy"],
        "broker_busy": beside.broker_busy,
        "others_busy": alone.others_busy,
        "faults": faults,
    }


def main() -> None:
    """The guaranteed flow; prints its figures as JSON."""
    store = by_name(sys.argv[1])
    address = (sys.argv[2], int(sys.argv[3]))
    with flow(store, Running(address, address, []), PUBLISHERS, 1) as loaded:
        begin = time.perf_counter()
        used = time.process_time()
        loaded.publish(_stopped)
        took = time.perf_counter() - begin
        row: Row = {
            "rate": loaded.consumed / took,
            "busy": (time.process_time() - used) / took,
            "faults": loaded.settle(),
        }
    print(json.dumps(row))


def _stopped() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    main()
