"""Declares what /metrics shows of the router as a whole: each family beside its figure; and writes samples of all.

The formats are Prometheus' text format 0.0.4 and OpenMetrics. The families of message VPNs, bridges, connectors and
queues are declared with the attributes that monitoring shows (`settings/shown.py`).

A `…Figures` class is a row of numbers of one object. Fields without a family are its labels. Counters never go down as
long as what they count is there. Ages are seconds. A pair is what was received and what was sent. None stands for "does
not apply".
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from vpnrouter.durations import Histogram
from vpnrouter.settings.shown import Family, Section, counter, gauge, histogram

RX: Final = ',direction="rx"'
TX: Final = ',direction="tx"'

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def escaped(value: str) -> str:
    r"""Return a label's value as it is written: `\`, `"` and line feeds escaped."""
    if '"' not in value and "\\" not in value and "\n" not in value:
        return value
    return value.translate(_ESCAPES)


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """Return `name="value"` for each, with commas between."""
    return ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))


def head(family: Family, *, openmetrics: bool) -> str:
    """Return the lines HELP and TYPE."""
    name = family.name
    if openmetrics and family.kind == "counter":
        name = name.removesuffix("_total")
    return f"# HELP {name} {family.help}\n# TYPE {name} {family.kind}\n"


def samples(family: Family, rows: Sequence[str], values: Sequence[object]) -> str:
    """Return the samples of a family: of each row its labels, as `{name="value"` without the end, and its value."""
    name = family.name
    split = family.split
    lines: list[str] = []
    if split == "reason":
        return _by_reason(name, rows, values) if any(values) else ""
    for labels, value in zip(rows, values, strict=True):
        if not split and value is not None and (value or not family.sparse):
            lines.append(f"{name}{labels}}} {value}\n")
        elif value:
            lines += _several(name + labels, name, labels, split, value)
    return "".join(lines)


def _by_reason(name: str, rows: Sequence[str], values: Sequence[object]) -> str:
    # There are many, and few of them have a reason.
    return "".join(
        [
            f'{name}{labels},reason="{escaped(reason)}"}} {count}\n'
            for labels, counts in zip(rows, values, strict=True)
            if isinstance(counts, dict)
            for reason, count in counts.items()
        ]
    )


def _several(begin: str, name: str, labels: str, split: str, value: object) -> list[str]:
    match value:
        case Histogram():
            return _buckets(name, labels, value)
        case (received, sent):
            pairs = ((RX, received), (TX, sent))
            return [f"{begin}{way}}} {one}\n" for way, one in pairs if one is not None]
        case str():
            return [f'{begin},{split}="{escaped(value)}"}} 1\n']
        case dict():
            return [f"{begin},{labelled(tuple(value), tuple(value.values()))}}} 1\n"]
    return []


def _buckets(name: str, labels: str, value: Histogram) -> list[str]:
    lines = []
    count = 0
    for bound, more in zip((*value.bounds, None), value.counts, strict=True):
        count += more
        shown = "+Inf" if bound is None else f"{bound}"
        lines.append(f'{name}_bucket{labels},le="{shown}"}} {count}\n')
    lines.append(f"{name}_count{labels}}} {count}\n")
    lines.append(f"{name}_sum{labels}}} {value.total:.9f}\n")
    return lines


class RouterFigures(NamedTuple):
    """The router as a whole."""

    info: Annotated[
        Mapping[str, str],
        gauge(
            "vpnrouter_build_info",
            "Version and build of the router, always 1.",
            "info",
            ("version", "build", "python"),
        ),
    ]
    ready: Annotated[
        int,
        gauge(
            "vpnrouter_ready",
            "1 while the router serves, 0 while it stops or its spool cannot be written.",
        ),
    ]
    uptime: Annotated[
        float, gauge("vpnrouter_uptime_seconds", "Time since the router was started.")
    ]
    connections: Annotated[
        int, gauge("vpnrouter_connections", "Clients and bridges that are connected.")
    ]
    protocol_errors: Annotated[
        int,
        counter(
            "vpnrouter_protocol_errors_total",
            "Connections ended because the peer broke its protocol or no TLS handshake came about.",
        ),
    ]
    logins_refused: Annotated[
        int, counter("vpnrouter_logins_refused_total", "Clients and bridges that were not let in.")
    ]
    accepts_refused: Annotated[
        int,
        counter(
            "vpnrouter_accepts_refused_total",
            "Connections closed at once because their listener had as many as it may have.",
        ),
    ]
    accept_errors: Annotated[
        int,
        counter(
            "vpnrouter_accept_errors_total",
            "Connections that the system could not give to the router, for want of file descriptors.",
        ),
    ]
    faults: Annotated[
        Mapping[str, int],
        counter(
            "vpnrouter_faults_total",
            "Unexpected errors that were contained, by what they cost: connection, timer, spool, bridge, connector,"
            " request, listener, task, thread.",
            "reason",
        ),
    ]
    strangers: Annotated[
        int,
        gauge(
            "vpnrouter_strangers", "Connections for clients and bridges that have not logged in."
        ),
    ]
    logins_waiting: Annotated[
        int, gauge("vpnrouter_logins_waiting", "Logins whose password hash waits to be verified.")
    ]
    strangers_refused: Annotated[
        Mapping[str, int],
        counter(
            "vpnrouter_strangers_refused_total",
            "Connections and logins turned away to stay within a bound.",
            "reason",
        ),
    ]
    publishers_held: Annotated[
        int,
        counter(
            "vpnrouter_publishers_held_total",
            "Times that a publisher was left unread for a moment, because much waited for a receiver of its messages.",
        ),
    ]
    publishers_held_time: Annotated[
        float,
        counter(
            "vpnrouter_publishers_held_seconds_total",
            "Time for which publishers were left unread, summed up over all of them.",
        ),
    ]
    loop_lag: Annotated[
        Histogram,
        histogram(
            "vpnrouter_event_loop_lag_seconds",
            "How much later than wished a task of the event loop had its turn, measured twice a second.",
        ),
    ]


class LoopFigures(NamedTuple):
    """One kind of work of the event loop."""

    work: str
    turns: Annotated[
        Histogram,
        histogram(
            "vpnrouter_event_loop_turn_seconds",
            "How long the turns of one kind of work took; all other work waits meanwhile.",
        ),
    ]


class ProcessFigures(NamedTuple):
    """The process; names are those that all exporters use."""

    cpu_seconds: Annotated[
        float, counter("process_cpu_seconds_total", "Processor time that the process has had.")
    ]
    resident_size: Annotated[
        int, gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.")
    ]
    virtual_size: Annotated[
        int, gauge("process_virtual_memory_bytes", "Address space of the process.")
    ]
    open_descriptors: Annotated[int, gauge("process_open_fds", "File descriptors that are open.")]
    most_descriptors: Annotated[
        int, gauge("process_max_fds", "File descriptors that may be open at a time.")
    ]
    threads: Annotated[int, gauge("process_threads", "Threads of the process.")]
    run_delay: Annotated[
        float,
        counter(
            "vpnrouter_run_delay_seconds_total",
            "Time for which the router's main thread was ready and waited for a processor.",
        ),
    ]
    start_time: Annotated[
        float, gauge("process_start_time_seconds", "When the process began, since 1970, UTC.")
    ]


class ListenerFigures(NamedTuple):
    """One listener."""

    protocol: str
    bind: str
    connections: Annotated[
        int, gauge("vpnrouter_listener_connections", "Connections that are open on the listener.")
    ]
    max_connections: Annotated[
        int, gauge("vpnrouter_listener_max_connections", "Connections that may be open on it.")
    ]


class SpoolFigures(NamedTuple):
    """The message spool."""

    up: Annotated[int, gauge("vpnrouter_spool_up", "1 while the message spool can be written.")]
    messages_size: Annotated[
        int,
        gauge("vpnrouter_spool_usage_bytes", "Messages in the spool, counted for each endpoint."),
    ]
    max_messages_size: Annotated[
        int, gauge("vpnrouter_spool_max_usage_bytes", "What these may come to; 0 for no bound.")
    ]
    unit_size: Annotated[
        int, gauge("vpnrouter_spool_unit_bytes", "What is collected for the next commit.")
    ]
    segments: Annotated[
        int, gauge("vpnrouter_spool_segments", "Segments in which the spool keeps messages.")
    ]
    commits: Annotated[
        Histogram,
        histogram(
            "vpnrouter_spool_commit_seconds", "How long commits took, each with a sync of the disk."
        ),
    ]
    failed_commits: Annotated[
        int,
        counter("vpnrouter_spool_failed_commits_total", "Commits that failed and were repeated."),
    ]
    troubles: Annotated[
        int,
        counter(
            "vpnrouter_spool_troubles_total",
            "Times that the store could not give a message back, or not note that one has gone.",
        ),
    ]
    damaged: Annotated[
        int,
        counter(
            "vpnrouter_spool_damaged_messages_total",
            "Messages that endpoints lost, since the store had them damaged.",
        ),
    ]


class TraceFigures(NamedTuple):
    """Routing traces. `dropped` by reason; what is waiting is neither written nor dropped."""

    rows: Annotated[
        int, counter("vpnrouter_trace_rows_total", "Trace rows that the router has recorded.")
    ]
    dropped: Annotated[
        Mapping[str, int],
        counter(
            "vpnrouter_trace_dropped_rows_total",
            "Trace rows that were lost: tracing never delays a message.",
            "reason",
        ),
    ]
    files: Annotated[
        int, counter("vpnrouter_trace_files_total", "Trace files that were completed.")
    ]
    size: Annotated[
        int, counter("vpnrouter_trace_file_bytes_total", "Bytes of the files that were completed.")
    ]
    removed_files: Annotated[
        int, counter("vpnrouter_trace_removed_files_total", "Trace files removed by retention.")
    ]
    tails: Annotated[
        int, gauge("vpnrouter_trace_tails", "Filters by which traces are looked at live now.")
    ]


class UploadFigures(NamedTuple):
    """Uploads of complete trace files."""

    files: Annotated[
        int, counter("vpnrouter_trace_uploaded_files_total", "Trace files that were uploaded.")
    ]
    size: Annotated[
        int,
        counter("vpnrouter_trace_uploaded_bytes_total", "Bytes of the files that were uploaded."),
    ]
    pending: Annotated[
        int, gauge("vpnrouter_trace_upload_pending_files", "Trace files that wait to be uploaded.")
    ]
    pending_size: Annotated[
        int, gauge("vpnrouter_trace_upload_pending_bytes", "Bytes of the files that wait.")
    ]
    failures: Annotated[
        Mapping[str, int],
        counter(
            "vpnrouter_trace_upload_failures_total",
            "Attempts to upload a trace file that failed; each is repeated.",
            "reason",
        ),
    ]
    lost: Annotated[
        int,
        counter(
            "vpnrouter_trace_upload_lost_files_total",
            "Trace files that were removed before they could be uploaded.",
        ),
    ]
    lost_size: Annotated[
        int,
        counter("vpnrouter_trace_upload_lost_bytes_total", "Bytes of the files that were lost."),
    ]


class LeftOutFigures(NamedTuple):
    """Objects of one kind that a scrape has no room for."""

    kind: str
    left_out: Annotated[
        int,
        gauge(
            "vpnrouter_metrics_left_out",
            "Objects without series because there are more than a scrape shows.",
        ),
    ]


def section_of(figures: type[Any]) -> Section:
    """Return the families and labels that a class of figures declares."""
    families: dict[str, Family] = {}
    labels: list[str] = []
    for name, hint in get_type_hints(figures, include_extras=True).items():
        for metric in getattr(hint, "__metadata__", ()):
            families[name] = metric.family
        if name not in families:
            labels.append(name)
    return Section(families, tuple(labels))
