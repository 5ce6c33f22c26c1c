"""The MQTT clients of a demonstration: their processes, paced, and what they counted."""

import contextlib
import json
import selectors
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vpnrouter.demo import scene
from vpnrouter.demo.children import Child, child
from vpnrouter.demo.expect import Tally, cumulative, received
from vpnrouter.demo.flights import Flights
from vpnrouter.demo.folder import ROUTERS
from vpnrouter.demo.pace import Pace
from vpnrouter.demo.progress import Teller

CONNECT_S: Final = 60.0
"""Seconds that the clients have until they are connected, reading the flights included."""

QUIET_S: Final = 1.0
"""Seconds of silence at the end, in which nothing more may arrive: twins or strays."""

_LOOK_S: Final = 0.1


@dataclass(frozen=True)
class Counted:
    """What the clients say: flights published by publisher, tallies by subscriber, seconds."""

    published: Mapping[str, int]
    tallies: Mapping[str, Tally]
    seconds: float


class Clients:
    """All client processes, connected."""

    def __init__(self, publishers: Child, subscribers: list[Child]) -> None:
        self._publishers = publishers
        self._subscribers = subscribers
        self._published: dict[str, int] = dict.fromkeys((one.name for one in scene.PUBLISHERS), 0)
        self._received: dict[str, int] = dict.fromkeys((one.name for one in scene.SUBSCRIBERS), 0)
        self._tallies: dict[str, Tally] = {}
        self._left = 0

    def run(self, flights: Flights, teller: Teller) -> Counted:
        """Publish all flights, wait until what is due has arrived, and collect the counts.

        Raises:
            OperationError: a client process failed.
        """
        begun_s = time.monotonic()
        pace = Pace(
            {
                one.name: cumulative(received(flights, one), len(flights))
                for one in scene.SUBSCRIBERS
            },
            len(flights),
        )
        told: set[str] = set()
        with selectors.DefaultSelector() as selector:
            for process in (self._publishers, *self._subscribers):
                selector.register(process, selectors.EVENT_READ, process)
            complete = False
            while not complete:
                now_s = time.monotonic()
                pace.received(self._received, now_s)
                until = pace.grant(now_s)
                if until is not None:
                    self._publishers.tell({"until": until})
                self._take(selector, _LOOK_S if until is None else 0)
                complete = self._left == pace.granted and pace.complete(now_s)
                teller.counts(self._published, self._received)
                for name in sorted(pace.given_up - told):
                    teller.stage(f"{name} lacks messages and is no longer waited for")
                told = set(pace.given_up)
            took_s = time.monotonic() - begun_s
            self._listen_on(selector)
            for process in self._subscribers:
                process.tell({"stop": True})
            while len(self._tallies) < len(scene.SUBSCRIBERS):
                self._take(selector, _LOOK_S)
            teller.counts(self._published, self._received)
        return Counted(self._published, self._tallies, took_s)

    def _listen_on(self, selector: selectors.BaseSelector) -> None:
        before = dict(self._received)
        end_s = time.monotonic() + QUIET_S
        while time.monotonic() < end_s:
            self._take(selector, _LOOK_S)
            if self._received != before:
                before = dict(self._received)
                end_s = time.monotonic() + QUIET_S

    def _take(self, selector: selectors.BaseSelector, timeout_s: float) -> None:
        for key, _ in selector.select(timeout_s):
            process: Child = key.data
            for line in process.lines():
                self._hear(json.loads(line))

    def _hear(self, told: Mapping[str, Any]) -> None:
        if "published" in told:
            self._published = told["published"]
            self._left = told["until"]
        self._received |= told.get("received", {})
        for name, tally in told.get("tallies", {}).items():
            self._tallies[name] = {place: Counter(topics) for place, topics in tally.items()}


@contextlib.contextmanager
def connected_clients(
    folder: Path, rows: int, addresses: Mapping[str, tuple[str, int]]
) -> Iterator[Clients]:
    """All clients of the scene, subscribers first; on leaving, however, their processes are ended.

    Raises:
        OperationError: they cannot connect.
    """
    where = json.dumps(addresses)
    with contextlib.ExitStack() as stack:

        def start(name: str, module: str, argument: str) -> Child:
            log = folder / ROUTERS / f"{name.replace(' ', '-')}.log"
            target = f"vpnrouter.demo.{module}:main"
            return stack.enter_context(child(name, target, [argument, where], log))

        routers = list(dict.fromkeys(scene.router_of(one.place) for one in scene.SUBSCRIBERS))
        subscribers = [start(f"subscribers {name}", "subscribing", name) for name in routers]
        publishers = start("publishers", "publishing", str(rows))
        for process in (*subscribers, publishers):
            process.first_line(CONNECT_S)
        yield Clients(publishers, subscribers)
