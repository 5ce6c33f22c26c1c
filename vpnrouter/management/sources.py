"""Everything that the management API asks about one router, in one place."""

from dataclasses import dataclass, field

from vpnrouter.management.client_source import ClientSource, NoClients
from vpnrouter.management.editor import Editor
from vpnrouter.management.event_source import EventSource, NoEvents, NoTraces, TraceTap
from vpnrouter.management.monitor import Monitor
from vpnrouter.management.queue_source import NoQueues, QueueSource
from vpnrouter.management.spool_keeper import SpoolKeeper


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
    traces: TraceTap = field(default_factory=NoTraces)
