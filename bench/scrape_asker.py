"""Requests a router's management API at a rate, and notes how long each answer took.

`python -m bench.scrape_asker HOST:PORT RATE PATH…` is a process of its own; it asks from the moment that a line
comes in until another one does, then prints its figures as JSON. A path that ends in `*` is read page after page.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import sys
import time
from collections.abc import Sequence
from typing import Final

TIMEOUT_S: Final = 20.0


class Asker:
    """Asks for paths in turn over one connection that stays open."""

    def __init__(self, address: str, paths: Sequence[str]) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
        self._paths = list(paths)
        self._turn = 0
        self._following: dict[str, str] = {}
        self.took_ns: dict[str, list[int]] = {path: [] for path in paths}
        self.sizes: dict[str, int] = {}
        self.faults: list[str] = []

    def ask(self) -> None:
        """One request, and its answer to the last byte."""
        path = self._paths[self._turn % len(self._paths)]
        self._turn += 1
        begin = time.perf_counter_ns()
        self._connection.request("GET", self._following.get(path, path.rstrip("*")))
        answer = self._connection.getresponse()
        body = answer.read()
        self.took_ns[path].append(time.perf_counter_ns() - begin)
        self.sizes[path] = max(len(body), self.sizes.get(path, 0))
        if answer.status != 200:
            self.faults.append(f"{path}: {answer.status}")
        if path.endswith("*"):
            meta = json.loads(body)["meta"]
            following = meta.get("paging", {}).get("nextPageUri", "")
            if following:
                self._following[path] = "/" + following.split("/", 3)[3]
            else:
                self._following.pop(path, None)


def main() -> None:
    """Wait, ask, tell."""
    with contextlib.suppress(OSError):
        # In earnest whoever asks has a machine of its own: here it must not wait for the core of the load.
        os.nice(-10)
    address, rate, *paths = sys.argv[1:]
    asker = Asker(address, paths)
    for _ in paths:
        # What loads at the first request is no matter of the thousandth.
        asker.ask()
    for took in asker.took_ns.values():
        took.clear()
    print("ready", flush=True)
    sys.stdin.readline()
    period = 1.0 / float(rate)
    due = time.monotonic() + period / 2
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        asker.ask()
        due = max(due + period, time.monotonic())
    print(json.dumps({"took_ns": asker.took_ns, "sizes": asker.sizes, "faults": asker.faults}))


if __name__ == "__main__":
    main()
