"""Everything that the management API asks about one router, in one place."""

from dataclasses import dataclass, field

from vpnrouter.management.client_source import ClientSource, NoClients
from vpnrouter.management.editor import Editor
from vpnrouter.management.event_source import Audit, EventSource, NoAudit, NoEvents
from vpnrouter.management.metrics.exposition import Exposition
from vpnrouter.management.metrics.figures import FigureSource, NoFigures
from vpnrouter.management.monitor import Monitor
from vpnrouter.management.queue_source import NoQueues, QueueSource
from vpnrouter.management.spool_keeper import SpoolKeeper
from vpnrouter.management.trace_source import NoTraces, TraceTap


@dataclass(kw_only=True, slots=True)
class Sources:
    """The parts of a router as the API sees them; what a router lacks has its default.

    `spool` is None for a router without guaranteed messaging, `editor` for one that was not started from a
    file: its configuration cannot be changed by the API.
    """

    monitor: Monitor
    queues: QueueSource = field(default_factory=NoQueues)
    spool: SpoolKeeper | None = None
    clients: ClientSource = field(default_factory=NoClients)
    editor: Editor | None = None
    events: EventSource = field(default_factory=NoEvents)
    audit: Audit = field(default_factory=NoAudit)
    traces: TraceTap = field(default_factory=NoTraces)
    figures: FigureSource = field(default_factory=NoFigures)
    exposition: Exposition = field(default_factory=Exposition)
