"""What /metrics asks of a running router: rows of numbers, in the order of the families that show them.

Counters never go down as long as what they count is there. Ages are seconds. A direction's pair is what came in
and what went out. None stands for "does not apply".
"""

from collections.abc import Mapping
from typing import NamedTuple

from vpnrouter.management.metrics.families import Histogram

Pair = tuple[float | None, float | None]
"""Received, sent."""


class MsgVpnFigures(NamedTuple):
    """One message VPN; the first field is its label."""

    msg_vpn: str
    enabled: int
    connections: int
    max_connections: int
    subscriptions: int
    max_subscriptions: int
    messages: Pair
    size: Pair
    discarded: Mapping[str, int]
    tx_discarded: Mapping[str, int]
    rejected: int
    nack_disconnects: int
    retained: int
    retained_size: int
    max_retained_size: int
    retained_refused: int
    spool_size: int
    max_spool_size: int
    egress_flows: int
    sessions: int
    session_messages: int
    session_size: int
    replay_log_messages: int
    replay_log_size: int


class BridgeFigures(NamedTuple):
    """One bridge; the first two fields are its labels."""

    msg_vpn: str
    bridge: str
    info: Mapping[str, str]
    up: int
    health: str
    enabled: int
    inbound_state: str
    outbound_state: str
    state_age: float
    uptime: int
    failures: int
    messages: Pair
    size: Pair
    control_messages: Pair
    control_size: Pair
    delivered: int
    offered: int
    discarded_rx: Mapping[str, int]
    discarded_tx: Mapping[str, int]
    in_flight: Pair
    backlog: int
    backlog_age: float | None
    imbalance: Pair
    last_message_age: Pair
    guaranteed: int
    guaranteed_taken: int
    guaranteed_refused: int
    guaranteed_duplicates: int
    parked: int
    remote_queue: int | None
    remote_queue_standby: int
    remotes: int
    remotes_up: int


class QueueFigures(NamedTuple):
    """One queue, topic endpoint or parking lot; the first two fields are its labels."""

    msg_vpn: str
    queue: str
    messages: int
    size: int
    max_size: int
    unacked: int
    consumers: int
    oldest_age: float | None
    ingress_disabled: int
    egress_disabled: int
    spooled: int
    spooled_size: int
    acked: int
    redelivered: int
    moved: int
    deleted: int
    discarded: Mapping[str, int]
    refused: Mapping[str, int]
    imbalance: int


class ListenerFigures(NamedTuple):
    """One listener; the first two fields are its labels."""

    protocol: str
    bind: str
    connections: int
    max_connections: int


class SpoolFigures(NamedTuple):
    """The message spool."""

    up: int
    messages_size: int
    max_messages_size: int
    unit_size: int
    segments: int
    commits: Histogram
    failed_commits: int
    troubles: int


class TraceFigures(NamedTuple):
    """Routing traces. `dropped` by reason; what is waiting is neither written nor dropped."""

    rows: int
    dropped: Mapping[str, int]
    files: int
    size: int
    removed_files: int
    tails: int


class ProcessFigures(NamedTuple):
    """The process; names are those that all exporters use."""

    cpu_seconds: float
    resident_size: int
    virtual_size: int
    open_descriptors: int
    most_descriptors: int
    threads: int
    start_time: float


class RouterFigures(NamedTuple):
    """The router as a whole."""

    info: Mapping[str, str]
    ready: int
    uptime: float
    connections: int
    protocol_errors: int
    logins_refused: int
    accepts_refused: int
    accept_errors: int
    faults: Mapping[str, int]
    strangers: int
    logins_waiting: int
    strangers_refused: Mapping[str, int]
    loop_lag: Histogram
