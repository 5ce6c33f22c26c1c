"""Defines what the scenarios need of a broker under comparison: one process, or two that are bridged.

Everything a product could be throttled by is lifted (queue lengths, pending bytes, pings, logs);
nothing is switched off that it does for a message.
"""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from bench.dialects import MQTT, MQTT_OVER_WEBSOCKET, MQTT_WITH_PROPERTIES, Dialect
from vpnrouter.cli.certs import TrialAuthority

Address = tuple[str, int]


class Access(StrEnum):
    """How the generator's clients reach a broker, and what their messages carry."""

    PLAIN = "plain"
    """TCP; MQTT 3.1.1, or NATS."""
    TLS = "tls"
    WEBSOCKET = "websocket"
    """MQTT 3.1.1 over WebSocket, a packet in each frame."""
    PROPERTIES = "properties"
    """MQTT 5, each message with a content type and a user property."""


MQTT_BY = {
    Access.PLAIN: MQTT,
    Access.TLS: MQTT,
    Access.WEBSOCKET: MQTT_OVER_WEBSOCKET,
    Access.PROPERTIES: MQTT_WITH_PROPERTIES,
}
"""The dialect of a broker that speaks MQTT."""


@dataclass
class Site:
    """A product that runs: where to publish, where to subscribe (the same place unless bridged)."""

    dialect: Dialect
    publish_to: Address
    subscribe_at: Address
    pids: list[int]
    core: int | None = None
    """The core that all its processes are bound to."""
    start_seconds: list[float] = field(default_factory=list)
    """From exec to usable, for each process."""
    tls: ssl.SSLContext | None = None
    """With what clients begin TLS, None where they do not."""
    management: Address | None = None
    """Where the router that clients publish to answers requests; None for products of others."""
    echoes: bool = False
    """Whether what a client publishes comes back to it alone."""


class Product(Protocol):
    """A broker that can be started."""

    name: str
    accesses: frozenset[Access]
    """The ways in that it has."""
    bridges: bool = True
    """Whether two of it can be bridged."""

    def missing(self) -> str:
        """Why it cannot run on this machine; empty when it can."""

    def version(self) -> str:
        """What it calls itself."""

    def single(
        self, core: int | None, access: Access = Access.PLAIN
    ) -> contextlib.AbstractContextManager[Site]:
        """One broker, with clients that reach it by `access`."""

    def bridged(self, core: int | None) -> contextlib.AbstractContextManager[Site]:
        """Two brokers on the same core; what is published on the first is to reach the second."""


@contextlib.contextmanager
def directory(name: str) -> Iterator[Path]:
    """A temporary directory, gone on leaving."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-", ignore_cleanup_errors=True) as path:
        yield Path(path)


CERTIFICATE = "bench.pem"
KEY = "bench.key"


def certify(folder: Path) -> ssl.SSLContext:
    """Write `CERTIFICATE` and `KEY` of a broker into `folder`; returns the context of its clients, who trust it."""
    authority = TrialAuthority(folder, datetime.now(UTC))
    authority.save()
    authority.server(Path(CERTIFICATE).stem, [], 30, force=False)
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False
    return context


def first_line(command: list[str]) -> str:
    """The first line that a command prints: its version, as a rule."""
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"


def find(program: str) -> str | None:
    """The program's path; daemons often stand where a user's path does not lead."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
