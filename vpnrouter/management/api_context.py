"""Holds the running router that the API shows and changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.router import Router
from vpnrouter.events.log import EventLog
from vpnrouter.management.audit import Audit
from vpnrouter.management.config.editor import ConfigEditor
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


@dataclass(kw_only=True, slots=True)
class ApiContext:
    """The router that the API tells of, made of its own objects; all is used in the router's own thread.

    `store` is None for a router without guaranteed messaging, `editor` for one that was not started from a file: its
    configuration cannot be changed by the API.
    """

    book: LinkRegistry
    edge: ServerHooks = field(default_factory=ServerHooks)
    store: Store | None = None
    editor: ConfigEditor | None = None
    exposition: Exposition = field(default_factory=Exposition)
    clock_ns: Callable[[], int] = time.monotonic_ns
    """The clock of bridges and connections, which does not jump."""
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
        self.clients = Clients(self.book, self.edge, cleared, self.clock_ns)
        self.profiles = Profiles(router)
        self.queues = Queues(router, spool_of(router.context), cleared)
        self.meters = VpnMeters(router, self.clock_ns)
        self.log = router.context.events or EventLog(router.name, time.time_ns)
        self.audit = Audit(self.log)
        self.traces = LiveTraces(router.name, self.clock_ns)
        self.figures = Figures(router, bridges, self.meters, self.traces, self.edge)


def names_of_bridges(context: ApiContext, msg_vpn: str) -> list[str]:
    """Return names of the bridges in a message VPN; none where it does not exist."""
    return [name for place, name in context.bridges if place == msg_vpn]
