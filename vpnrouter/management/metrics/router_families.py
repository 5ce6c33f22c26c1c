"""The metrics of the router as a whole, of its listeners, spool and traces, and of its process."""

from typing import Final

from vpnrouter.management.metrics.family import Family

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
