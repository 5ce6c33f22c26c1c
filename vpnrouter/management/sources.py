"""The running router that the management API tells of, and the few things that it needs of the edge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import trio

from vpnrouter.bridges.status import BridgeStatus, LocalSubscriptionStatus, RemoteSubscriptionStatus
from vpnrouter.config.effects import Change
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.router import Router
from vpnrouter.events.log import EventLog
from vpnrouter.management.audit import Audit
from vpnrouter.management.client_source import ClientSource, NoClients
from vpnrouter.management.live_traces import LiveTraces
from vpnrouter.management.meters import VpnMeters
from vpnrouter.management.metrics.exposition import Exposition
from vpnrouter.management.metrics.figures import FigureSource, NoFigures
from vpnrouter.management.queue_source import NoQueues, QueueSource
from vpnrouter.spool.store import Store

ConfigPath = tuple[str | int, ...]
"""Keys and list indexes from the top of a document."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What a document would do to the router. `changes` is empty where `problems` has an error."""

    problems: tuple[Problem, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Edited:
    """What a change did: a line for each difference, and the digest of what is in force now."""

    lines: tuple[str, ...]
    digest: str


class Editor(Protocol):
    """The configuration of a running router: the person's file and, over it, what was changed by the API.

    Called in the router's own thread. Changes are made one at a time, in the order they were asked for.
    """

    def config(self) -> RouterConfig:
        """The configuration in force."""

    def document(self) -> Plain:
        """The configuration as plain data, as in file and overlay, with its secrets; read only."""

    def position(self, path: ConfigPath) -> Position:
        """Where the part at `path` is written, the overlay's places included."""

    def positions(self) -> Iterable[tuple[ConfigPath, Position]]:
        """Every part of the document and where it is written. May be walked in a thread."""

    def files(self) -> tuple[str, str]:
        """The paths of the person's file and of the overlay, which need not exist."""

    def digest(self) -> str:
        """Hexadecimal digest of the document in force: another document, another digest."""

    def overlay(self) -> Plain:
        """What lies over the file: a merge patch (RFC 7396), {} for nothing."""

    async def examine(self, document: Plain) -> Examined:
        """What it would take to put `document` into force; nothing changes."""

    async def edit(self, change: Callable[[Plain], None], who: str, expected: str = "") -> Edited:
        """Change a copy of the document by `change`, check it as `check` does, write the overlay, put it
        into force. `who` is told in the log. `expected` is the digest that must be in force, "" for any.

        Raises ConfigError where the result is refused, with every problem; OperationError where it cannot
        be applied or written, or where `expected` is not in force; and what `change` raises. Nothing has
        changed then.
        """

    async def return_to(self, digest: str, who: str) -> Edited:
        """Put an earlier document into force, one of the last that were; raises like `edit`."""


class BridgeSource(Protocol):
    """A bridge that can be asked how it stands: one of the configuration, or one of another router."""

    def status(self, now_ns: int, *, whole: bool = False) -> BridgeStatus:
        """How it stands at `now_ns`, monotonic, with counts since they were cleared.

        With `whole`, counts since the start of the router, and no rates and ages.
        """

    def remote_subscriptions(self) -> Sequence[RemoteSubscriptionStatus]:
        """The subscriptions that it asks its remote for."""

    def local_subscriptions(self) -> Sequence[LocalSubscriptionStatus]:
        """What its remote's bridge asks for here."""

    def disconnect(self) -> bool:
        """Drop its connection, which comes again; False when it has none."""

    def clear_stats(self) -> None:
        """Begin its counts anew."""

    def clear_event(self, event: str) -> None:
        """Take an event for seen, such as `ttl-exceeded`: it is not shown as raised until it happens again."""


@dataclass(kw_only=True, slots=True)
class Sources:
    """The router that the API tells of, and what it has besides; all is used in the router's own thread.

    `bridges` are by message VPN and name. `store` is None for a router without guaranteed messaging, `editor` for
    one that was not started from a file: its configuration cannot be changed by the API.
    """

    router: Router
    bridges: Mapping[tuple[str, str], BridgeSource] = field(default_factory=dict)
    stopping: bool = False
    queues: QueueSource = field(default_factory=NoQueues)
    store: Store | None = None
    clients: ClientSource = field(default_factory=NoClients)
    editor: Editor | None = None
    figures: FigureSource = field(default_factory=NoFigures)
    exposition: Exposition = field(default_factory=Exposition)
    meters: VpnMeters = field(init=False)
    log: EventLog = field(init=False)
    audit: Audit = field(init=False)
    traces: LiveTraces = field(init=False)
    backups: trio.Lock = field(default_factory=trio.Lock)
    """One backup of the spool at a time."""

    def __post_init__(self) -> None:
        router = self.router
        self.meters = VpnMeters(router)
        self.log = router.plane.events or EventLog(router.name, time.time_ns)
        self.audit = Audit(self.log)
        self.traces = LiveTraces(router.name)


def names_of_bridges(sources: Sources, msg_vpn: str) -> list[str]:
    """Names of the bridges in a message VPN; none where it does not exist."""
    return [name for place, name in sources.bridges if place == msg_vpn]
