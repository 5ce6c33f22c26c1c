"""Defines what the trials need of a broker that stores messages.

Each runs with what makes it fastest while it still stores; `syncs` says what it has really put on
the disk before it acknowledges.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.guaranteed_ends import Consumer, Producer
from bench.products import Address

STOP_SECONDS = 120.0
"""Longest wait for a broker that puts its memory on the disk when it stops."""
UNKNOWN = -1
WINDOW = 500


@dataclass
class Running:
    """A broker that runs, or two that are linked."""

    publish_to: Address
    consume_at: Address
    pids: list[int]
    """The processes whose time and memory count; of the first broker first."""
    ready_seconds: float = 0.0
    """From exec to usable, of the first broker."""


class Store(Protocol):
    """A broker with durable storage."""

    name: str
    syncs: str
    """What is on the disk when it acknowledges, in a few words."""
    window: int
    """Messages that a publisher may have unacknowledged: `WINDOW` unless the broker is faster with
    less.
    """
    ahead: int
    """Messages that publishing may be ahead of consuming: likewise."""

    def missing(self) -> str:
        """Why it cannot run on this machine; empty when it can."""

    def version(self) -> str:
        """What it calls itself."""

    def start(self, folder: Path, core: int | None) -> contextlib.AbstractContextManager[Running]:
        """One broker with its data in the folder, where it finds what an earlier one left."""

    def linked(
        self, near: Path, far: Path, core: int | None
    ) -> contextlib.AbstractContextManager[Running]:
        """Two brokers on one core: what is published to the first is consumed at the second, over
        the broker's own guaranteed link. Queues are there already.
        """

    def prepare(self, at: Address, consumers: int) -> None:
        """Makes the queue or what stands for it, for so many consumers."""

    def producer(self, at: Address, number: int, window: int) -> Producer:
        """A publisher."""

    def consumer(self, at: Address, number: int, of: int) -> Consumer:
        """One of so many consumers."""

    def waiting(self, at: Address) -> int:
        """Messages in the queue; `UNKNOWN` where the broker cannot be asked."""


def end(pid: int, how: signal.Signals) -> float:
    """Signals a child process and waits for its end; returns the seconds. Raises TimeoutError.

    The process is not reaped: whoever started it still does that.
    """
    begin = time.monotonic()
    os.kill(pid, how)
    while _alive(pid):
        if time.monotonic() - begin > STOP_SECONDS:
            raise TimeoutError(f"process {pid} does not end")
        time.sleep(0.01)
    return time.monotonic() - begin


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
