"""The columns of trace files, as data; docs/traces.md is the table for people. And why events are lost.

Columns marked `partition` stand only in the directory names (`date=…/router=…`), as Spark, Hive
and pyarrow datasets write and read them, and never inside the files: with two sources for one
column, readers disagree on its type and place.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

BUFFER_FULL: Final = "buffer-full"
"""Dropped by the recorder: the writer was behind."""

DISK_FULL: Final = "disk-full"
PERMISSION: Final = "permission"
IO_ERROR: Final = "io-error"
INTERNAL_ERROR: Final = "internal-error"

PROCESS_ENDED: Final = "process-ended"
"""The process that writes traces was killed, or ended by itself."""

_REASONS: Final = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EFBIG: DISK_FULL,
    errno.EACCES: PERMISSION,
    errno.EPERM: PERMISSION,
    errno.EROFS: PERMISSION,
}


def reason_of(error: Exception) -> str:
    """Return the name of an error: one of the last four above."""
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0, IO_ERROR)
    return INTERNAL_ERROR


VERSION: Final = 1
"""Raised when a column changes its meaning or type or goes away; new columns keep it."""

VERSION_KEY: Final = "vpnrouter.trace.version"
"""Key of `VERSION` in the metadata of a file."""

ROUTER_KEY: Final = "vpnrouter.router"
"""Key of the router's name in the metadata of a file, for a file taken out of its directory."""

SAMPLE_KEY: Final = "vpnrouter.trace.sample"
"""Key of the share of messages that the router traced when the file was written, 0.0 to 1.0."""

ALWAYS_KEY: Final = "vpnrouter.trace.always"
"""Key of the events that are recorded of every message, traced or not: names with commas between them."""

HOST_KEY: Final = "vpnrouter.host"
"""Key of the boot id of the machine whose clock the times are of; "" where it is not known."""


class Column(NamedTuple):
    """One column: its name, Arrow type, whether it may be null, and where it stands."""

    name: str
    type: str
    nullable: bool
    partition: bool = False


COLUMNS: Final[tuple[Column, ...]] = (
    Column("ts_ns", "int64", nullable=False),
    Column("router", "string", nullable=False, partition=True),
    Column("vpn", "string", nullable=True),
    Column("event", "string", nullable=False),
    Column("trace_id", "string", nullable=True),
    Column("message_id", "int64", nullable=True),
    Column("topic", "string", nullable=True),
    Column("mode", "string", nullable=True),
    Column("size_bytes", "int64", nullable=True),
    Column("client", "string", nullable=True),
    Column("endpoint", "string", nullable=True),
    Column("bridge", "string", nullable=True),
    Column("peer_router", "string", nullable=True),
    Column("peer_vpn", "string", nullable=True),
    Column("hops", "int32", nullable=True),
    Column("path", "string", nullable=True),
    Column("reason", "string", nullable=True),
    Column("since_ingress_ns", "int64", nullable=True),
    Column("origin_router", "string", nullable=True),
    Column("origin_vpn", "string", nullable=True),
    Column("origin_ts_ns", "int64", nullable=True),
    Column("count", "int64", nullable=True),
    Column("partition", "int32", nullable=True),
    Column("topic_syntax", "string", nullable=True),
    Column("parent_span_id", "string", nullable=True),
    Column("context", "int64", nullable=True),
    Column("in_full", "bool", nullable=True),
)
"""Every column, in the order of the files; `date` stands in the directory name alone."""

FILE_COLUMNS: Final[tuple[Column, ...]] = tuple(c for c in COLUMNS if not c.partition)
"""The columns inside a file."""

CONTEXT: Final = (
    *("router", "vpn", "event", "mode", "client", "endpoint", "bridge", "peer_router", "peer_vpn"),
    *("hops", "path", "reason", "origin_router", "origin_vpn", "partition", "topic_syntax"),
)
"""The columns that `context` stands for: rows with one `context` are alike in all of them."""

CONTEXT_DIGITS: Final = 15
"""Hexadecimal digits of a SHA-256 that are a `context`: as many as an integer with a sign holds."""

CONTEXT_SEPARATOR: Final = "\0"


def context_of(values: Sequence[str | int | None]) -> int:
    """Return the `context` of a row with these values of CONTEXT: the first digits of the SHA-256 of all of them as
    text, a null as "", with U+0000 between.
    """
    text = CONTEXT_SEPARATOR.join("" if value is None else str(value) for value in values)
    return int(hashlib.sha256(text.encode()).hexdigest()[:CONTEXT_DIGITS], 16)


def file_metadata(
    router: str, sample: float | None, always: Sequence[str] = (), host: str = ""
) -> dict[str, str]:
    """Return what a file says about itself: version, router, machine, the events that are recorded of every message
    and, where it is known, the sampling rate.
    """
    metadata = {
        VERSION_KEY: str(VERSION),
        ROUTER_KEY: router,
        HOST_KEY: host,
        ALWAYS_KEY: ",".join(always),
    }
    if sample is not None:
        metadata[SAMPLE_KEY] = repr(sample)
    return metadata
