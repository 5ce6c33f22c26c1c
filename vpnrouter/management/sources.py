"""What the management API asks of a running router: values are plain, and nothing of the core shows through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, final

from vpnrouter.bridges.status import BridgeStatus, LocalSubscriptionStatus, RemoteSubscriptionStatus
from vpnrouter.config.effects import Change
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.management.client_source import ClientSource, NoClients
from vpnrouter.management.metrics.exposition import Exposition
from vpnrouter.management.metrics.figures import FigureSource, NoFigures
from vpnrouter.management.queue_source import NoQueues, QueueSource

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


@dataclass(frozen=True, slots=True)
class EventStatus:
    """One event of the log."""

    event_id: int
    """Rising by one; the log keeps the last ones."""
    time_ns: int
    """Since 1970."""
    level: str
    """`debug`, `info`, `notice`, `warning` or `error`."""
    scope: str
    """`SYSTEM`, `VPN` or `CLIENT`."""
    event: str
    """The field's name, such as `VPN_BRIDGING_LINK_DOWN`; "" for what has none."""
    msg_vpn_name: str
    """"" for what is the router's as a whole."""
    name: str
    """The client, bridge, queue or listener that it is about; "" for none."""
    text: str
    area: str = ""
    """The part of the router that `logging.levels` has a level for."""


class EventSource(Protocol):
    """The event log of a running router. Called in the router's own thread."""

    def last_event_id(self) -> int:
        """Id of the newest event, 0 for none."""

    def events(
        self, after: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """At most `most` events with ids above `after`, by rising id.

        `sees` says of the name of a message VPN, "" for the router as a whole, whether its events are
        wanted.
        """

    def newest_events(
        self, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """The last `most` events, by rising id; `sees` is as for `events`."""


class Audit(Protocol):
    """Where the API tells who changed what. Texts have no secret in them. Called in the router's thread.

    `who` is the user's name, "" for whoever asked from this machine where no users are configured.
    `msg_vpn` is the message VPN that it was about, "" for several or none: who sees only one reads that.
    """

    def acted(self, who: str, what: str, msg_vpn: str = "") -> None:
        """Tell that something was done to clients, queues, bridges or the spool."""

    def denied(self, peer: str, why: str) -> None:
        """Tell of a failed login from address `peer`. No name is told: it may be a password."""


@final
class NoEvents:
    """The EventSource of a router that keeps no log."""

    def last_event_id(self) -> int:
        """Give 0, since there are no events."""
        return 0

    def events(
        self, after: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """Give no events."""
        return ()

    def newest_events(
        self, most: int, sees: Callable[[str], bool] | None = None
    ) -> Sequence[EventStatus]:
        """Give no events."""
        return ()


@final
class NoAudit:
    """An Audit that keeps nothing."""

    def acted(self, who: str, what: str, msg_vpn: str = "") -> None:
        """Ignore what was done."""

    def denied(self, peer: str, why: str) -> None:
        """Ignore the login that failed."""


@dataclass(frozen=True, slots=True)
class MsgVpnStatus:
    """One message VPN as monitoring shows it. Counts are since the router started; those of many clients, and all
    rates, are about a second old.
    """

    msg_vpn_name: str
    enabled: bool
    state: str
    """`up` or `down`."""
    msg_vpn_connections: int
    """Clients that are connected, bridges of other routers included."""
    subscription_count: int
    max_connection_count: int
    max_subscription_count: int
    bridge_count: int
    rx_msg_count: int
    rx_byte_count: int
    tx_msg_count: int
    tx_byte_count: int
    discarded_msg_count: int
    discarded: dict[str, int]
    """Messages by reason of core/discards.py."""
    rx_discarded_msg_count: int = 0
    tx_discarded_msg_count: int = 0
    """Those among them that were on their way to a client: it had no room, had gone, or had sent them itself."""
    rx_discarded: dict[str, int] = field(default_factory=dict)
    tx_discarded: dict[str, int] = field(default_factory=dict)
    """Each of the two by reason."""
    rejected_msg_count: int = 0
    """Guaranteed messages that were refused: their publishers know."""
    msg_spool_usage: int = 0
    """Bytes in its queues, topic endpoints and sessions."""
    average_rx_byte_rate: int = 0
    average_rx_msg_rate: int = 0
    average_tx_byte_rate: int = 0
    average_tx_msg_rate: int = 0
    rx_byte_rate: int = 0
    rx_msg_rate: int = 0
    tx_byte_rate: int = 0
    tx_msg_rate: int = 0


class Monitor(Protocol):
    """A running router, as the API sees it.

    Every method is called in the router's own thread and answers at once. Names come first and
    objects one by one, so that a page costs what it shows and not what the router holds.
    """

    def router_name(self) -> str:
        """Name of the router."""

    def is_ready(self) -> bool:
        """Whether all listeners are bound and the router does not stop."""

    def msg_vpn_names(self) -> Sequence[str]:
        """Names of all message VPNs."""

    def msg_vpn(self, msg_vpn: str) -> MsgVpnStatus | None:
        """One message VPN; None where there is none of that name."""

    def bridge_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of the bridges in a message VPN; none where it does not exist."""

    def bridge(self, msg_vpn: str, bridge: str) -> BridgeStatus | None:
        """One bridge; None where there is none of that name."""

    def remote_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[RemoteSubscriptionStatus]:
        """The subscriptions that a bridge asks its remote for; none where there is no such bridge."""

    def local_subscriptions(self, msg_vpn: str, bridge: str) -> Sequence[LocalSubscriptionStatus]:
        """The subscriptions that the remote's bridge asks for here."""

    def disconnect_bridge(self, msg_vpn: str, bridge: str) -> bool:
        """Drop the connection of a bridge, which connects again; False where it has none."""

    def clear_bridge_stats(self, msg_vpn: str, bridge: str) -> bool:
        """Begin the counts of a bridge anew; False where there is none of that name."""

    def clear_bridge_event(self, msg_vpn: str, bridge: str, event: str) -> bool:
        """Take an event of a bridge for seen, so that it is not shown as raised until it happens again; False
        where there is no such bridge.
        """


class SpoolKeeper(Protocol):
    """The spool of a running router, as the API sees it."""

    async def backup(self, directory: str) -> None:
        """Write a consistent copy into `directory`, which is not there yet, while messages go on.

        Raises SpoolError when that cannot be done; it says why.
        """


@dataclass(frozen=True, slots=True)
class TraceWish:
    """Which rows somebody wants to see; "" wants all."""

    topic: str = ""
    """A topic filter in the SMF dialect, checked. It leaves out rows that have no topic."""
    event: str = ""
    """A name of trace/events.py."""
    msg_vpn: str = ""
    trace_id: str = ""
    """32 lower-case hexadecimal digits."""
    seen: frozenset[str] | None = None
    """The message VPNs whose rows may be shown at all, None for those of all."""


@dataclass(frozen=True, slots=True)
class TraceLook:
    """What there is to see behind a mark."""

    mark: int
    """To ask for what comes after this."""
    rows: Sequence[Mapping[str, object]]
    """Names and values of columns as in trace files, and `router`; what is null is left out."""
    missed: int = 0
    """Rows between the marks that fitted the wish, or may have, and are not shown: too many at a time."""
    tracing: bool = True
    """False where the router traces nothing."""


class TraceTap(Protocol):
    """Routing traces as they happen, for whoever looks. Nothing is kept while nobody does.

    Called in the router's own thread.
    """

    def look(self, wish: TraceWish, after: int, most: int) -> TraceLook | None:
        """At most `most` rows behind mark `after` (0: from now on), the oldest first.

        A wish that nobody has come back to for some seconds is forgotten with its rows. None when too many
        different ones are looked at.
        """


@final
class NoTraces:
    """The TraceTap of a router that traces nothing."""

    def look(self, wish: TraceWish, after: int, most: int) -> TraceLook | None:
        """Give no rows, and say that nothing is traced."""
        return TraceLook(after, (), tracing=False)


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
