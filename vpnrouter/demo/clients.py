"""Runs the processes of the MQTT clients, limits how fast they publish, and collects what they received.

Direct messages are delivered at most once: a router discards what does not fit in a slow client's outbox. So flights
are published in windows, and the next window waits until every subscriber has counted what the older ones must bring.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from vpnrouter.demo import scenario
from vpnrouter.demo.processes import ChildProcess, child_process
from vpnrouter.demo.progress import ROUTERS, ProgressReporter
from vpnrouter.demo.scenario import Flights, Tally, cumulative, received

WINDOW: Final = 2_000
"""Flights in a window."""

AHEAD: Final = 3
"""Windows on their way at a time: some 2 MB for one client, half of what an outbox takes."""

STALL_S: Final = 10.0
"""Seconds without any message after which a subscriber that lacks some is no longer waited for: they
are lost, which the summary tells."""


class Pace:
    """What may be published, from what has been received.

    `means[name][k]` is how many messages the first k flights bring to that subscriber.
    """

    def __init__(self, means: Mapping[str, npt.NDArray[np.int64]], flights: int) -> None:
        self._means = dict(means)
        self._flights = flights
        self._received = dict.fromkeys(means, 0)
        self._moved_s = 0.0
        self.granted = 0
        self.given_up: set[str] = set()

    def received(self, totals: Mapping[str, int], now_s: float) -> None:
        """Record the counts of subscribers."""
        for name, total in totals.items():
            if total != self._received[name]:
                self._received[name] = total
                self._moved_s = now_s

    def grant(self, now_s: float) -> int | None:
        """Return the flight up to which may now be published, when that is further than before."""
        if self.granted == self._flights:
            return None
        behind = max(0, self.granted - (AHEAD - 1) * WINDOW)
        if not self._has_all(behind, now_s):
            return None
        self._moved_s = now_s
        self.granted = min(self._flights, self.granted + WINDOW)
        return self.granted

    def complete(self, now_s: float) -> bool:
        """Return whether everything is published and everybody has what is due, or is given up."""
        return self.granted == self._flights and self._has_all(self._flights, now_s)

    def _has_all(self, flights: int, now_s: float) -> bool:
        lacking = {
            name
            for name, means in self._means.items()
            if self._received[name] < means[flights] and name not in self.given_up
        }
        if lacking and now_s - self._moved_s >= STALL_S:
            self.given_up |= lacking
            lacking = set()
        return not lacking


PROC: Final = Path("/proc/net")

_ESTABLISHED: Final = "01"


def accepted(ports: Collection[int], proc: Path = PROC) -> int | None:
    """Return how many connections to these listening ports are established; None where the system has no such tables.

    Each connection has a row for either end; only those count whose own port is one of `ports`.
    """
    tables = [path for name in ("tcp", "tcp6") if (path := proc / name).is_file()]
    if not tables:
        return None
    return sum(
        1
        for table in tables
        for row in table.read_text(encoding="ascii").splitlines()[1:]
        if _counts(row.split(), ports)
    )


def _counts(columns: list[str], ports: Collection[int]) -> bool:
    """Columns are number, local address, remote address, state and more; numbers are hexadecimal."""
    return columns[3] == _ESTABLISHED and int(columns[1].rpartition(":")[2], 16) in ports


CONNECT_S: Final = 60.0
"""Seconds that the clients have until they are connected, reading the flights included."""

QUIET_S: Final = 1.0
"""Seconds of silence at the end, in which nothing more may arrive: twins or strays."""

_POLL_S: Final = 0.1


@dataclass(frozen=True)
class ClientCounts:
    """What the clients report: flights published by publisher, tallies by subscriber, seconds."""

    published: Mapping[str, int]
    tallies: Mapping[str, Tally]
    seconds: float


class Clients:
    """All client processes, connected."""

    def __init__(self, publishers: ChildProcess, subscribers: list[ChildProcess]) -> None:
        self._publishers = publishers
        self._subscribers = subscribers
        self._published: dict[str, int] = dict.fromkeys(
            (publisher.name for publisher in scenario.PUBLISHERS), 0
        )
        self._received: dict[str, int] = dict.fromkeys(
            (subscriber.name for subscriber in scenario.SUBSCRIBERS), 0
        )
        self._tallies: dict[str, Tally] = {}
        self._left = 0

    def run(self, flights: Flights, reporter: ProgressReporter) -> ClientCounts:
        """Publish all flights, wait until what is due has arrived, and collect the counts.

        Raises:
            OperationError: a client process failed.
        """
        begun_s = time.monotonic()
        pace = Pace(
            {
                subscriber.name: cumulative(received(flights, subscriber), len(flights))
                for subscriber in scenario.SUBSCRIBERS
            },
            len(flights),
        )
        reported: set[str] = set()
        with selectors.DefaultSelector() as selector:
            for process in (self._publishers, *self._subscribers):
                selector.register(process, selectors.EVENT_READ, process)
            complete = False
            while not complete:
                now_s = time.monotonic()
                pace.received(self._received, now_s)
                until = pace.grant(now_s)
                if until is not None:
                    self._publishers.send({"until": until})
                self._take(selector, _POLL_S if until is None else 0)
                complete = self._left == pace.granted and pace.complete(now_s)
                reporter.counts(self._published, self._received)
                for name in sorted(pace.given_up - reported):
                    reporter.stage(f"{name} lacks messages and is no longer waited for")
                reported = set(pace.given_up)
            took_s = time.monotonic() - begun_s
            self._listen_on(selector)
            for process in self._subscribers:
                process.send({"stop": True})
            while len(self._tallies) < len(scenario.SUBSCRIBERS):
                self._take(selector, _POLL_S)
            reporter.counts(self._published, self._received)
        return ClientCounts(self._published, self._tallies, took_s)

    def _listen_on(self, selector: selectors.BaseSelector) -> None:
        before = dict(self._received)
        end_s = time.monotonic() + QUIET_S
        while time.monotonic() < end_s:
            self._take(selector, _POLL_S)
            if self._received != before:
                before = dict(self._received)
                end_s = time.monotonic() + QUIET_S

    def _take(self, selector: selectors.BaseSelector, timeout_s: float) -> None:
        for key, _ in selector.select(timeout_s):
            process: ChildProcess = key.data
            for line in process.lines():
                self._read(json.loads(line))

    def _read(self, message: Mapping[str, Any]) -> None:
        if "published" in message:
            self._published = message["published"]
            self._left = message["until"]
        self._received |= message.get("received", {})
        for name, tally in message.get("tallies", {}).items():
            self._tallies[name] = {place: Counter(topics) for place, topics in tally.items()}


@contextlib.contextmanager
def connected_clients(
    folder: Path, rows: int, addresses: Mapping[str, tuple[str, int]]
) -> Iterator[Clients]:
    """Start all clients of the scenario, subscribers first; their processes end with the block.

    Raises:
        OperationError: they cannot connect.
    """
    where = json.dumps(addresses)
    with contextlib.ExitStack() as stack:

        def start(name: str, function: str, argument: str) -> ChildProcess:
            log = folder / ROUTERS / f"{name.replace(' ', '-')}.log"
            target = f"vpnrouter.demo.client_processes:{function}"
            return stack.enter_context(child_process(name, target, [argument, where], log))

        routers = list(
            dict.fromkeys(
                scenario.router_of(subscriber.place) for subscriber in scenario.SUBSCRIBERS
            )
        )
        subscribers = [start(f"subscribers {name}", "subscribers", name) for name in routers]
        publishers = start("publishers", "publishers", str(rows))
        for process in (*subscribers, publishers):
            process.first_line(CONNECT_S)
        yield Clients(publishers, subscribers)
