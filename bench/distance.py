"""Measures a guaranteed bridge over a distance: `python -m bench.distance [--delays 0,5,50,200] [--window N]`.

Messages of 256 bytes go into a queue of one router and over a bridge into a queue of another one, whose consumer counts
them. Between the routers stands a relay that holds back each byte for half of the round trip, either way. One run
offers a fixed rate, another one as much as goes. Ratios are to the run without a relay in the same round.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import statistics
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import guaranteed_throughput as throughput
from bench.guaranteed_flow import Flow
from bench.guaranteed_ours import SpoolingRouter
from bench.machine import cores
from bench.processes import free_port, running
from bench.products import directory

if TYPE_CHECKING:
    from collections.abc import Iterator

OFFERED: Final = 15_000
"""Messages a second of the run with a fixed rate."""

WARM_UP_S: Final = 3.0
"""Until a window has found its size: some round trips."""

AHEAD: Final = 60_000
"""Messages that publishing may be ahead of consuming at full speed: more than are on the way over any distance."""

CHUNK_BYTES: Final = 1 << 16
MOST_WAITING_BYTES: Final = 64 << 20
"""Bytes on the way in one direction; a real network of this length holds as many."""


class Way:
    """One direction of a relayed connection: what was read, with the time at which it is due."""

    def __init__(self, source: socket.socket, sink: socket.socket, delay_s: float) -> None:
        self.source = source
        self.sink = sink
        self._delay_s = delay_s
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self._bytes = 0

    def due_s(self) -> float:
        """Return when the oldest bytes are due, infinity for none."""
        return self._waiting[0][0] if self._waiting else float("inf")

    def reads(self) -> bool:
        """Return whether there is room for more."""
        return self._bytes < MOST_WAITING_BYTES

    def take(self, now_s: float) -> bool:
        """Read what is there; False at the end."""
        data = self.source.recv(CHUNK_BYTES)
        if data:
            self._waiting.append((now_s + self._delay_s, memoryview(data)))
            self._bytes += len(data)
        return bool(data)

    def give(self, now_s: float) -> None:
        """Pass on what is due, as far as it is taken."""
        while self._waiting and self._waiting[0][0] <= now_s:
            at, data = self._waiting[0]
            try:
                count = self.sink.send(data)
            except BlockingIOError:
                return
            self._bytes -= count
            if count < len(data):
                self._waiting[0] = (at, data[count:])
                return
            self._waiting.popleft()


def relay(port: int, target: int, delay_s: float) -> None:
    """Pass each connection to `port` on to `target`, `delay_s` later in either direction, for ever."""
    ways: list[Way] = []
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            now_s = time.monotonic()
            for way in ways:
                way.give(now_s)
            wakes_s = min((way.due_s() for way in ways), default=float("inf"))
            # A sink that takes nothing at the moment is looked at again soon.
            wait_s = 1.0 if wakes_s == float("inf") else max(0.0005, wakes_s - time.monotonic())
            sources = [way.source for way in ways if way.reads()]
            readable, _, _ = select.select([listener, *sources], [], [], wait_s)
            if listener in readable:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", target))
                for sock in (near, far):
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ways += [Way(near, far, delay_s), Way(far, near, delay_s)]
            now_s = time.monotonic()
            for way in [one for one in ways if one.source in readable]:
                if way in ways and not way.take(now_s):
                    ways = [one for one in ways if way.source not in (one.source, one.sink)]
                    way.source.close()
                    way.sink.close()


@contextlib.contextmanager
def relayed(target: int, delay_s: float, folder: Path) -> Iterator[int]:
    """A relay in a process of its own; its port. Without a delay there is none."""
    if not delay_s:
        yield target
        return
    port = free_port()
    words = ["--relay", str(port), str(target), str(delay_s)]
    with running(
        [sys.executable, "-m", "bench.distance", *words], core=None, log=folder / "relay.log"
    ):
        yield port


def paced(flow: Flow, rate: float, seconds: float) -> None:
    """Publish at a fixed rate for so long."""
    begin_s, before = time.monotonic(), flow.sent
    while (past_s := time.monotonic() - begin_s) < seconds:
        limit = before + int(rate * past_s)
        flow.publish(lambda limit=limit: flow.sent >= limit, limit)  # type: ignore[misc]


def measure(delay_s: float, rate: float, seconds: float, window: int | None) -> tuple[float, str]:
    """Messages a second that cross, offered `rate` a second (0: as much as goes), and what was wrong."""
    store = SpoolingRouter()
    store.ahead = AHEAD
    pair = cores()
    core = None if pair is None else pair[0]
    with contextlib.ExitStack() as stack:
        near = stack.enter_context(directory("distance"))
        far = stack.enter_context(directory("distance"))
        reach = lambda port: stack.enter_context(relayed(port, delay_s, near))  # noqa: E731
        site = stack.enter_context(store.linked(near, far, core, reach, window))
        flow = stack.enter_context(throughput.flow(store, site, throughput.PUBLISHERS, 1))
        flow.publish(lambda: flow.consumed > 0, throughput.PUBLISHERS)

        def run(for_s: float) -> None:
            if rate:
                paced(flow, rate, for_s)
            else:
                ends_s = time.monotonic() + for_s
                flow.publish(lambda: time.monotonic() >= ends_s)

        run(WARM_UP_S)
        before, begin_s = flow.consumed, time.monotonic()
        run(seconds)
        found = (flow.consumed - before) / (time.monotonic() - begin_s)
        return found, "; ".join(flow.settle())


def main() -> int:
    """Run what the command line asks for; 1 where messages were lost or doubled."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--delays", default="0,5,50,200", help="round trips in milliseconds")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--window", type=int, help="egress_flow_window_size, instead of the default"
    )
    parser.add_argument("--relay", nargs=3, metavar=("PORT", "TARGET", "SECONDS"))
    options = parser.parse_args()
    if options.relay:
        port, target, delay = options.relay
        relay(int(port), int(target), float(delay))
        return 0
    trips = [float(text) for text in options.delays.split(",")]
    wrong = 0
    for rate in (OFFERED, 0):
        rates: dict[float, list[float]] = {trip: [] for trip in trips}
        for _ in range(options.rounds):
            for trip in trips:
                found, faults = measure(trip / 2_000, rate, options.seconds, options.window)
                rates[trip].append(found)
                wrong += bool(faults)
                if faults:
                    print(f"round trip {trip:g} ms: {faults}", flush=True)
        base = statistics.median(rates[trips[0]])
        for trip in trips:
            median = statistics.median(rates[trip])
            offered = f"{rate:,}/s offered" if rate else "full speed"
            print(
                f"{offered:>16}, round trip {trip:5g} ms: {median:9,.0f}/s, {median / base:.2f} of {trips[0]:g} ms",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
