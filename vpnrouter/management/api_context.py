"""Holds the running router that the API shows, and the interface that edits its configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import trio

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.config.effects import Change
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.router import Router
from vpnrouter.events.log import EventLog
from vpnrouter.management.audit import Audit
from vpnrouter.management.live_traces import LiveTraces
from vpnrouter.management.meters import VpnMeters
from vpnrouter.management.metrics.exposition import Exposition
from vpnrouter.management.metrics.source import Figures
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.management.status.bridges import Bridges
from vpnrouter.management.status.clients import Clients
from vpnrouter.management.status.profiles import Profiles
from vpnrouter.management.status.queues import Queues
from vpnrouter.management.status.stats_baseline import EndpointBaselines
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


@dataclass(kw_only=True, slots=True)
class ApiContext:
    """The router that the API tells of, made of its own objects; all is used in the router's own thread.

    `store` is None for a router without guaranteed messaging, `editor` for one that was not started from a file: its
    configuration cannot be changed by the API.
    """

    book: LinkRegistry
    edge: ServerHooks = field(default_factory=ServerHooks)
    store: Store | None = None
    editor: Editor | None = None
    exposition: Exposition = field(default_factory=Exposition)
    router: Router = field(init=False)
    bridges: Bridges = field(init=False)
    clients: Clients = field(init=False)
    profiles: Profiles = field(init=False)
    queues: Queues = field(init=False)
    meters: VpnMeters = field(init=False)
    log: EventLog = field(init=False)
    audit: Audit = field(init=False)
    traces: LiveTraces = field(init=False)
    figures: Figures = field(init=False)
    backups: trio.Lock = field(default_factory=trio.Lock)
    """One backup of the spool at a time."""

    def __post_init__(self) -> None:
        self.router = router = self.book.router
        cleared = EndpointBaselines()
        self.bridges = bridges = Bridges(self.book, self.edge)
        self.clients = Clients(self.book, self.edge, cleared)
        self.profiles = Profiles(router)
        self.queues = Queues(router, spool_of(router.context), cleared)
        self.meters = VpnMeters(router)
        self.log = router.context.events or EventLog(router.name, time.time_ns)
        self.audit = Audit(self.log)
        self.traces = LiveTraces(router.name)
        self.figures = Figures(router, bridges, self.meters, self.traces, self.edge)


def names_of_bridges(context: ApiContext, msg_vpn: str) -> list[str]:
    """Names of the bridges in a message VPN; none where it does not exist."""
    return [name for place, name in context.bridges if place == msg_vpn]
