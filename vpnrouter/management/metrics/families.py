"""Metric families (Prometheus text format 0.0.4, OpenMetrics): of the router, its parts, message VPNs and bridges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, final

Kind = Literal["counter", "gauge", "histogram"]

Split = Literal["", "reason", "direction", "state", "info", "le"]

RX: Final = ',direction="rx"'
TX: Final = ',direction="tx"'

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

_BARE: Final = str.maketrans("", "", '\\"\n')


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. Its labels are those of its section, and `labels` beyond them.

    What a value is, by `split`: "" a number; "reason" numbers by reason; "direction" a pair, received and
    sent; "state" the one state that is true; "info" texts by label; "le" a `Histogram`. None stands for no sample.
    """

    name: str
    kind: Kind
    help: str
    split: Split = ""
    info: tuple[str, ...] = ()
    """The labels of an "info"."""
    sparse: bool = False
    """Whether there is a sample only where the value is not 0: what nearly always is 0 would fill pages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels beyond those of the section."""
        if self.split == "info":
            return self.info
        return (self.split,) if self.split else ()


class Histogram(NamedTuple):
    """How often a duration was at most each of `bounds` seconds; `counts` has one more, for all beyond."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float
    """Sum of all, in seconds."""


BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Seconds."""

_BOUNDS_NS: Final = tuple(int(bound * 1e9) for bound in BOUNDS_S)


@final
class Durations:
    """Counts durations. One thread adds; another may read meanwhile."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one more duration; below 0 it counts as 0."""
        self._counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self._total_ns += max(0, duration_ns)

    def histogram(self) -> Histogram:
        """The histogram of all durations until now."""
        return Histogram(BOUNDS_S, tuple(self._counts), self._total_ns / 1e9)


def escaped(value: str) -> str:
    r"""A label's value as it is written: `\`, `"` and line feeds escaped."""
    if value.translate(_BARE) == value:
        return value
    return value.translate(_ESCAPES)


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """`name="value"` for each, with a comma before each but the first."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))


def head(family: Family, *, openmetrics: bool) -> str:
    """The lines HELP and TYPE."""
    name = family.name
    if openmetrics and family.kind == "counter":
        name = name.removesuffix("_total")
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"


def samples(family: Family, rows: Sequence[str], values: Sequence[object]) -> str:
    """The samples of a family: of each row its labels, as `{name="value"` without the end, and its value."""
    name = family.name
    split = family.split
    found: list[str] = []
    for labels, value in zip(rows, values, strict=True):
        if not split and value is not None and (value or not family.sparse):
            found.append(f"{name}{labels}}} {value}\n")
        elif value:
            found += _several(name + labels, name, labels, split, value)
    return "".join(found)


def _several(begin: str, name: str, labels: str, split: str, value: object) -> list[str]:
    match value:
        case Histogram():
            return _buckets(name, labels, value)
        case (received, sent):
            pairs = ((RX, received), (TX, sent))
            return [f"{begin}{way}}} {one}\n" for way, one in pairs if one is not None]
        case str():
            return [f'{begin},{split}="{escaped(value)}"}} 1\n']
        case dict() if split == "info":
            return [f"{begin},{labelled(tuple(value), tuple(value.values()))}}} 1\n"]
        case dict():
            return [
                f'{begin},{split}="{escaped(reason)}"}} {count}\n'
                for reason, count in value.items()
            ]
    return []


def _buckets(name: str, labels: str, value: Histogram) -> list[str]:
    found = []
    count = 0
    for bound, more in zip((*value.bounds, None), value.counts, strict=True):
        count += more
        shown = "+Inf" if bound is None else f"{bound}"
        found.append(f'{name}_bucket{labels},le="{shown}"}} {count}\n')
    found.append(f"{name}_count{labels}}} {count}\n")
    found.append(f"{name}_sum{labels}}} {value.total:.9f}\n")
    return found


ROUTER: Final[dict[str, Family]] = {
    "info": Family(
        "vpnrouter_build_info",
        "gauge",
        "Version and build of the router, always 1.",
        "info",
        ("version", "build", "python"),
    ),
    "ready": Family(
        "vpnrouter_ready", "gauge", "1 from the moment that the router serves until it stops."
    ),
    "uptime": Family("vpnrouter_uptime_seconds", "gauge", "Time since the router was started."),
    "connections": Family(
        "vpnrouter_connections", "gauge", "Clients and bridges that are connected."
    ),
    "protocol_errors": Family(
        "vpnrouter_protocol_errors_total",
        "counter",
        "Connections ended because the peer broke its protocol or no TLS handshake came about.",
    ),
    "logins_refused": Family(
        "vpnrouter_logins_refused_total", "counter", "Clients and bridges that were not let in."
    ),
    "accepts_refused": Family(
        "vpnrouter_accepts_refused_total",
        "counter",
        "Connections closed at once because their listener had as many as it may have.",
    ),
    "accept_errors": Family(
        "vpnrouter_accept_errors_total",
        "counter",
        "Connections that the system could not give to the router, for want of file descriptors.",
    ),
    "faults": Family(
        "vpnrouter_faults_total",
        "counter",
        "Unexpected errors that were contained, by what they cost: connection, timer, spool, bridge, request,"
        " listener, task, thread.",
        "reason",
    ),
    "strangers": Family(
        "vpnrouter_strangers",
        "gauge",
        "Connections for clients and bridges that have not logged in.",
    ),
    "logins_waiting": Family(
        "vpnrouter_logins_waiting", "gauge", "Logins whose password hash waits to be verified."
    ),
    "strangers_refused": Family(
        "vpnrouter_strangers_refused_total",
        "counter",
        "Connections and logins turned away to stay within a bound.",
        "reason",
    ),
    "loop_lag": Family(
        "vpnrouter_event_loop_lag_seconds",
        "histogram",
        "How much later than wished a task of the event loop had its turn, measured twice a second.",
        "le",
    ),
}

PROCESS: Final[dict[str, Family]] = {
    "cpu_seconds": Family(
        "process_cpu_seconds_total", "counter", "Processor time that the process has had."
    ),
    "resident_size": Family(
        "process_resident_memory_bytes", "gauge", "Memory of the process that is in RAM."
    ),
    "virtual_size": Family(
        "process_virtual_memory_bytes", "gauge", "Address space of the process."
    ),
    "open_descriptors": Family("process_open_fds", "gauge", "File descriptors that are open."),
    "most_descriptors": Family(
        "process_max_fds", "gauge", "File descriptors that may be open at a time."
    ),
    "threads": Family("process_threads", "gauge", "Threads of the process."),
    "start_time": Family(
        "process_start_time_seconds", "gauge", "When the process began, since 1970, UTC."
    ),
}

LISTENER: Final[dict[str, Family]] = {
    "connections": Family(
        "vpnrouter_listener_connections", "gauge", "Connections that are open on the listener."
    ),
    "max_connections": Family(
        "vpnrouter_listener_max_connections", "gauge", "Connections that may be open on it."
    ),
}

LISTENER_LABELS: Final = ("protocol", "bind")

SPOOL: Final[dict[str, Family]] = {
    "up": Family("vpnrouter_spool_up", "gauge", "1 while the message spool can be written."),
    "messages_size": Family(
        "vpnrouter_spool_usage_bytes", "gauge", "Messages in the spool, counted for each endpoint."
    ),
    "max_messages_size": Family(
        "vpnrouter_spool_max_usage_bytes", "gauge", "What these may come to; 0 for no bound."
    ),
    "unit_size": Family(
        "vpnrouter_spool_unit_bytes", "gauge", "What is collected for the next commit."
    ),
    "segments": Family(
        "vpnrouter_spool_segments", "gauge", "Segments in which the spool keeps messages."
    ),
    "commits": Family(
        "vpnrouter_spool_commit_seconds",
        "histogram",
        "How long commits took, each with a sync of the disk.",
        "le",
    ),
    "failed_commits": Family(
        "vpnrouter_spool_failed_commits_total", "counter", "Commits that failed and were repeated."
    ),
    "troubles": Family(
        "vpnrouter_spool_troubles_total",
        "counter",
        "Times that the store could not give a message back, or not note that one has gone.",
    ),
}

TRACE: Final[dict[str, Family]] = {
    "rows": Family(
        "vpnrouter_trace_rows_total", "counter", "Trace rows that the router has recorded."
    ),
    "dropped": Family(
        "vpnrouter_trace_dropped_rows_total",
        "counter",
        "Trace rows that were lost: tracing never delays a message.",
        "reason",
    ),
    "files": Family("vpnrouter_trace_files_total", "counter", "Trace files that were completed."),
    "size": Family(
        "vpnrouter_trace_file_bytes_total", "counter", "Bytes of the files that were completed."
    ),
    "removed_files": Family(
        "vpnrouter_trace_removed_files_total", "counter", "Trace files removed by retention."
    ),
    "tails": Family(
        "vpnrouter_trace_tails", "gauge", "Filters by which traces are looked at live now."
    ),
}

LEFT_OUT: Final[dict[str, Family]] = {
    "left_out": Family(
        "vpnrouter_metrics_left_out",
        "gauge",
        "Objects without series because there are more than a scrape shows.",
    ),
}

LEFT_OUT_LABELS: Final = ("kind",)


MSG_VPN_LABELS: Final = ("msg_vpn",)

MSG_VPN: Final[dict[str, Family]] = {
    "enabled": Family("vpnrouter_msg_vpn_enabled", "gauge", "1 while the message VPN is enabled."),
    "connections": Family(
        "vpnrouter_msg_vpn_connections", "gauge", "Clients connected, bridges of others included."
    ),
    "max_connections": Family(
        "vpnrouter_msg_vpn_max_connections", "gauge", "Connections that it may have."
    ),
    "subscriptions": Family("vpnrouter_msg_vpn_subscriptions", "gauge", "Subscriptions."),
    "max_subscriptions": Family(
        "vpnrouter_msg_vpn_max_subscriptions", "gauge", "Subscriptions that it may have."
    ),
    "messages": Family(
        "vpnrouter_msg_vpn_messages_total",
        "counter",
        "Messages from clients and bridges (rx), and to them (tx).",
        "direction",
    ),
    "size": Family("vpnrouter_msg_vpn_bytes_total", "counter", "Bytes of these.", "direction"),
    "discarded": Family(
        "vpnrouter_msg_vpn_discarded_messages_total",
        "counter",
        "Messages discarded, by reason.",
        "reason",
    ),
    "tx_discarded": Family(
        "vpnrouter_msg_vpn_tx_discarded_messages_total",
        "counter",
        "Those among them that were on their way to a client, by reason.",
        "reason",
    ),
    "rejected": Family(
        "vpnrouter_msg_vpn_rejected_messages_total",
        "counter",
        "Guaranteed messages that were refused, which their publishers were told.",
    ),
    "nack_disconnects": Family(
        "vpnrouter_msg_vpn_nack_disconnects_total",
        "counter",
        "MQTT 3.1.1 publishers disconnected because there is no other way to refuse a message.",
    ),
    "retained": Family(
        "vpnrouter_msg_vpn_retained_messages", "gauge", "Topics with a retained message."
    ),
    "retained_size": Family(
        "vpnrouter_msg_vpn_retained_bytes",
        "gauge",
        "Topics, properties and payloads that are retained.",
    ),
    "max_retained_size": Family(
        "vpnrouter_msg_vpn_max_retained_bytes", "gauge", "What these may come to, -1 for no bound."
    ),
    "retained_refused": Family(
        "vpnrouter_msg_vpn_retained_refused_messages_total",
        "counter",
        "Messages not retained for want of room.",
    ),
    "spool_size": Family(
        "vpnrouter_msg_vpn_spool_usage_bytes",
        "gauge",
        "Messages of its endpoints, and what it retains, in the spool.",
    ),
    "max_spool_size": Family(
        "vpnrouter_msg_vpn_max_spool_usage_bytes", "gauge", "What these may come to."
    ),
    "egress_flows": Family(
        "vpnrouter_msg_vpn_egress_flows", "gauge", "Consumers bound to its endpoints."
    ),
    "sessions": Family(
        "vpnrouter_msg_vpn_session_endpoints", "gauge", "Endpoints that belong to MQTT sessions."
    ),
    "session_messages": Family(
        "vpnrouter_msg_vpn_session_messages", "gauge", "Messages in these, all together."
    ),
    "session_size": Family("vpnrouter_msg_vpn_session_bytes", "gauge", "Bytes of these."),
    "replay_log_messages": Family(
        "vpnrouter_msg_vpn_replay_log_messages", "gauge", "Messages in the replay log."
    ),
    "replay_log_size": Family("vpnrouter_msg_vpn_replay_log_bytes", "gauge", "Bytes of these."),
}

BRIDGE_LABELS: Final = ("msg_vpn", "bridge")

BRIDGE: Final[dict[str, Family]] = {
    "info": Family(
        "vpnrouter_bridge_info",
        "gauge",
        "The other end of a bridge, always 1.",
        "info",
        ("remote_router", "remote_msg_vpn", "remote_address", "establisher", "encrypted", "queue"),
    ),
    "up": Family(
        "vpnrouter_bridge_up", "gauge", "1 while the bridge is logged in, stalled or not."
    ),
    "health": Family(
        "vpnrouter_bridge_health",
        "gauge",
        "How the bridge fares, 1: up, incomplete, unbound, stalled, down, msg-vpn-disabled, disabled.",
        "state",
    ),
    "enabled": Family(
        "vpnrouter_bridge_enabled",
        "gauge",
        "1 while the bridge is enabled, whatever its message VPN is.",
    ),
    "inbound_state": Family(
        "vpnrouter_bridge_inbound_state", "gauge", "The state of the inbound half, 1.", "state"
    ),
    "outbound_state": Family(
        "vpnrouter_bridge_outbound_state", "gauge", "The state of the outbound half, 1.", "state"
    ),
    "state_age": Family(
        "vpnrouter_bridge_state_age_seconds", "gauge", "Time in the inbound half's state."
    ),
    "uptime": Family("vpnrouter_bridge_uptime_seconds", "gauge", "Time that it has been up."),
    "failures": Family(
        "vpnrouter_bridge_failures_total", "counter", "How often the inbound half has failed."
    ),
    "messages": Family(
        "vpnrouter_bridge_messages_total", "counter", "Messages that crossed.", "direction"
    ),
    "size": Family("vpnrouter_bridge_bytes_total", "counter", "Bytes of these.", "direction"),
    "control_messages": Family(
        "vpnrouter_bridge_control_messages_total", "counter", "All other frames.", "direction"
    ),
    "control_size": Family(
        "vpnrouter_bridge_control_bytes_total", "counter", "Bytes of these.", "direction"
    ),
    "delivered": Family(
        "vpnrouter_bridge_delivered_messages_total",
        "counter",
        "Messages that came and were handed to the message VPN.",
    ),
    "offered": Family(
        "vpnrouter_bridge_offered_messages_total",
        "counter",
        "Messages that the message VPN had for the other end.",
    ),
    "discarded_rx": Family(
        "vpnrouter_bridge_rx_discarded_messages_total",
        "counter",
        "Messages that came and were discarded, by reason.",
        "reason",
    ),
    "discarded_tx": Family(
        "vpnrouter_bridge_tx_discarded_messages_total",
        "counter",
        "Messages offered and discarded, by reason.",
        "reason",
    ),
    "in_flight": Family(
        "vpnrouter_bridge_in_flight_messages",
        "gauge",
        "Depth: messages that wait here to be delivered (rx) or sent (tx).",
        "direction",
    ),
    "backlog": Family(
        "vpnrouter_bridge_backlog_messages",
        "gauge",
        "All messages known here to wait for the bridge: in flight, parked, in queues here.",
    ),
    "backlog_age": Family(
        "vpnrouter_bridge_backlog_oldest_message_age_seconds",
        "gauge",
        "How long the oldest of those in queues here has been waiting; no sample for none.",
    ),
    "imbalance": Family(
        "vpnrouter_bridge_imbalance_messages",
        "gauge",
        "Messages not accounted for; anything but 0 is a fault of the router.",
        "direction",
    ),
    "last_message_age": Family(
        "vpnrouter_bridge_last_message_age_seconds",
        "gauge",
        "Time since a message last crossed; no sample when none has.",
        "direction",
    ),
    "guaranteed": Family(
        "vpnrouter_bridge_guaranteed_messages_total",
        "counter",
        "Guaranteed messages that came, repeated ones among them.",
        sparse=True,
    ),
    "guaranteed_taken": Family(
        "vpnrouter_bridge_guaranteed_taken_messages_total",
        "counter",
        "Guaranteed messages that were accepted.",
        sparse=True,
    ),
    "guaranteed_refused": Family(
        "vpnrouter_bridge_guaranteed_refused_messages_total",
        "counter",
        "How often the message VPN refused one, each try counted.",
        sparse=True,
    ),
    "guaranteed_duplicates": Family(
        "vpnrouter_bridge_guaranteed_duplicate_messages_total",
        "counter",
        "Guaranteed messages that had been accepted before.",
        sparse=True,
    ),
    "parked": Family(
        "vpnrouter_bridge_parked_messages",
        "gauge",
        "Messages set aside in the parking lot.",
        sparse=True,
    ),
    "remote_queue": Family(
        "vpnrouter_bridge_remote_queue_messages",
        "gauge",
        "Messages in the remote queue that the bridge takes from, as the remote told last.",
    ),
    "remote_queue_standby": Family(
        "vpnrouter_bridge_remote_queue_standby",
        "gauge",
        "1 while another consumer gets what is in the remote queue.",
        sparse=True,
    ),
    "remotes": Family("vpnrouter_bridge_remotes", "gauge", "Remote message VPNs configured."),
    "remotes_up": Family(
        "vpnrouter_bridge_remotes_up", "gauge", "Remote message VPNs that it is logged in to."
    ),
}

QUEUE_LABELS: Final = ("msg_vpn", "queue")

QUEUE: Final[dict[str, Family]] = {
    "messages": Family(
        "vpnrouter_queue_messages", "gauge", "Messages in the queue, unacknowledged ones included."
    ),
    "size": Family("vpnrouter_queue_bytes", "gauge", "Bytes of these."),
    "max_size": Family("vpnrouter_queue_max_bytes", "gauge", "What these may come to."),
    "unacked": Family(
        "vpnrouter_queue_unacked_messages", "gauge", "Messages that consumers hold unacknowledged."
    ),
    "consumers": Family("vpnrouter_queue_consumers", "gauge", "Consumers that are bound."),
    "oldest_age": Family(
        "vpnrouter_queue_oldest_message_age_seconds",
        "gauge",
        "How long the oldest message has been waiting; 0 when there is none.",
    ),
    "ingress_disabled": Family(
        "vpnrouter_queue_ingress_disabled",
        "gauge",
        "1 while the queue takes no messages.",
        sparse=True,
    ),
    "egress_disabled": Family(
        "vpnrouter_queue_egress_disabled",
        "gauge",
        "1 while consumers get no messages.",
        sparse=True,
    ),
    "spooled": Family(
        "vpnrouter_queue_spooled_messages_total", "counter", "Messages that the queue has taken."
    ),
    "spooled_size": Family("vpnrouter_queue_spooled_bytes_total", "counter", "Bytes of these."),
    "acked": Family(
        "vpnrouter_queue_acked_messages_total", "counter", "Messages that were consumed."
    ),
    "redelivered": Family(
        "vpnrouter_queue_redelivered_messages_total",
        "counter",
        "Deliveries of a message anew.",
        sparse=True,
    ),
    "moved": Family(
        "vpnrouter_queue_moved_messages_total",
        "counter",
        "Messages that went to the dead message queue, or were moved by an operator.",
        sparse=True,
    ),
    "deleted": Family(
        "vpnrouter_queue_deleted_messages_total",
        "counter",
        "Messages deleted by an operator.",
        sparse=True,
    ),
    "discarded": Family(
        "vpnrouter_queue_discarded_messages_total",
        "counter",
        "Messages that were in the queue and are lost, by reason.",
        "reason",
    ),
    "refused": Family(
        "vpnrouter_queue_refused_messages_total",
        "counter",
        "Messages that the queue did not take, by reason.",
        "reason",
    ),
    "imbalance": Family(
        "vpnrouter_queue_imbalance_messages",
        "gauge",
        "Messages not accounted for; anything but 0 is a fault of the router.",
        sparse=True,
    ),
}
